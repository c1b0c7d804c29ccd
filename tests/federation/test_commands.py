"""`dpcausal federation`, by files carried by hand."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpcausal import Effect
from dpcausal.cli import app
from dpcausal.errors import TransportError
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.transports.nvflare.provision import _refused
from tests.federation.conftest import Federation


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["federation", *map(str, words)])


@pytest.fixture
def workspace(federation: Federation, tmp_path: Path) -> Path:
    """Anna's folder, with all hospitals in the roster."""
    workspace = tmp_path / "workspace"
    made = run("init", workspace, "anna")
    assert made.exit_code == 0
    (tmp_path / "anna.key").replace(workspace / "anna.key")  # the one that the hospitals know
    for name, member in federation.roster.sites.items():
        assert run("admit", workspace, name, member.key, "--units-unknown").exit_code == 0
    assert Roster.from_toml(workspace / "roster.toml") == federation.roster
    return workspace


def test_commands_lead_from_a_study_to_an_effect(workspace: Path, federation: Federation, tmp_path: Path) -> None:
    study, exchange = tmp_path / "study.toml", tmp_path / "exchange"
    study.write_text(federation.study().to_toml(), encoding="utf-8")
    asked = run("ask", workspace, study, "--files", exchange)
    assert asked.exit_code == 0
    (request,) = (exchange / "out").iterdir()
    assert str(request) in asked.output.replace("\n", "")
    nobody = run("run", workspace, study, "--files", exchange)
    assert nobody.exit_code == 1
    assert "north, south, west did not answer" in nobody.output
    for name in ("north", "south"):
        (exchange / "in" / f"{name}.message.json").write_text(federation.sites[name](request.read_text()))
    few = run("run", workspace, study, "--files", exchange, "--min-sites", 3)
    assert few.exit_code == 1
    two = run("run", workspace, study, "--files", exchange)
    assert two.exit_code == 0
    assert "2 of 3 sites" in two.output
    (exchange / "in" / "west.message.json").write_text(federation.sites["west"](request.read_text()))
    three = run("run", workspace, study, "--files", exchange, "--json")
    assert three.exit_code == 0
    assert Effect.from_json(json.dumps(json.loads(three.stdout))).n == 600


def test_files_carried_by_hand_open_a_secure_sum(workspace: Path, federation: Federation, tmp_path: Path) -> None:
    study, exchange = tmp_path / "study.toml", tmp_path / "exchange"
    terms = {"honest": 2, "colluding": 1}
    more: dict[str, Any] = {
        "design": "trial",
        "requires": {"balance": {"epsilon": 0.5, "covariates": ["age"], "most": 5.0}},
        "secondary": {"wards": {"name": "subgroup_effects", "by": ["ward"], "epsilon": 0.5}},
    }
    secure = federation.study(aggregation="secure", secure=terms, sites=federation.roster.keys, **more)
    study.write_text(secure.to_toml(), encoding="utf-8")
    carried = set[Path]()
    for place in range(1, 6):
        waiting = run("run", workspace, study, "--files", exchange)
        assert waiting.exit_code == 1
        assert f"round {place} of 5" in waiting.output
        assert "does not count" not in waiting.output
        requests = set((exchange / "out").iterdir()) - carried
        assert len(requests) == (3 if place == 3 else 1)  # in round 3 each site gets what is for it alone
        carried |= requests
        for name, answer in federation.sites.items():
            (request,) = (each for each in requests if len(requests) == 1 or f".{name}." in each.name)
            (exchange / "in" / f"{name}{place}.message.json").write_text(answer(request.read_text()))
    opened = run("run", workspace, study, "--files", exchange)
    assert opened.exit_code == 0, opened.output
    assert "secure sums of 3 of 3 sites" in opened.output.replace("\n", " ")
    assert "standardised mean differences" in opened.output
    assert "average treatment effect in each group" in opened.output
    assert "covariate_sums + arm_moments + subgroup_moments: epsilon 2" in opened.output.replace("\n", " ")


def test_run_names_files_that_do_not_count(workspace: Path, federation: Federation, tmp_path: Path) -> None:
    study, other, exchange = tmp_path / "study.toml", tmp_path / "other.toml", tmp_path / "exchange"
    study.write_text(federation.study().to_toml(), encoding="utf-8")
    other.write_text(federation.study(epsilon=0.5).to_toml(), encoding="utf-8")
    for asked, name in ((study, "north.message.json"), (other, "south.message.json"), (study, "west.json")):
        run("ask", workspace, asked, "--files", tmp_path / asked.stem)
        (request,) = (tmp_path / asked.stem / "out").iterdir()
        (exchange / "in").mkdir(parents=True, exist_ok=True)
        (exchange / "in" / name).write_text(federation.sites[name.split(".")[0]](request.read_text()))
    (exchange / "in" / "notes.txt").write_text("sent on Monday")
    one = run("run", workspace, study, "--files", exchange)
    assert one.exit_code == 0
    assert "1 of 3 sites" in one.output or "south: did not answer" in one.output
    for name, why in (("south.message", "another study"), ("west", "does not end in"), ("notes", "no message")):
        assert [line for line in one.stderr.splitlines() if f"{name}." in line and why in line], one.stderr
    assert "north.message.json" not in one.stderr


def test_key_and_fingerprint_are_printed(workspace: Path, federation: Federation, tmp_path: Path) -> None:
    assert run("key", workspace).output == f"{federation.anna.public}\n"
    (workspace / "bob.key").write_bytes((workspace / "anna.key").read_bytes())
    assert "anna, bob" in run("key", workspace).output
    assert run("key", tmp_path).exit_code == 2
    assert "--host HOST" in run("fingerprint", workspace).output.replace("\n", " ")


@pytest.mark.xdist_group("federation")
def test_fingerprint_is_the_one_that_init_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nvflare")
    from tests.support.nvflare_commands import nvflare_here  # noqa: PLC0415 (needs an extra)

    monkeypatch.setattr("dpcausal.federation.transports.nvflare.provision._nvflare", nvflare_here)
    printed = run("init", tmp_path / "workspace", "anna", "--host", "localhost").output
    (line,) = (line for line in printed.splitlines() if line.startswith("SHA256:"))
    assert run("fingerprint", tmp_path / "workspace").output == f"{line}\n"


def test_wrong_use_is_refused_with_a_hint(workspace: Path, federation: Federation, tmp_path: Path) -> None:
    study, other = tmp_path / "study.toml", tmp_path / "other.toml"
    study.write_text(federation.study().to_toml(), encoding="utf-8")
    other.write_text(federation.study().to_toml().replace('"anna"', '"bob"'), encoding="utf-8")
    for words, hint in (
        (("init", workspace, "anna"), "holds a workspace already"),
        (("admit", workspace, "north", "ab" * 32, "--units", 300), "another key or number of units"),
        (("admit", workspace, "east", "ab", "--units", 300), "64 hexadecimal digits"),
        (("admit", workspace, "east", "ab" * 32), "or --units-unknown, and neither was given"),
        (
            ("admit", workspace, "east", "ab" * 32, "--units", 300, "--units-unknown"),
            "or --units-unknown, and both were given",
        ),
        (("run", workspace, study), "--host HOST"),
        (("run", workspace, study, "--files", "a", "--kit", "b"), "choose one of the two"),
        (("run", workspace, tmp_path / "absent.toml", "--files", "a"), "does not exist"),
        (("run", workspace, other, "--files", tmp_path / "a"), "has no key of 'bob'"),
        (("run", workspace, workspace / "roster.toml", "--files", tmp_path / "a"), "a study with version = 2"),
        (("run", tmp_path / "nowhere", study, "--files", tmp_path / "a"), "federation init"),
        (("ask", workspace, study, "--files", study), "is a file"),
        (("serve", workspace), "--host HOST"),
    ):
        result = run(*words)
        assert result.exit_code == 2, words
        assert hint in " ".join(result.output.replace("│", " ").split()), result.output  # however long paths are
        assert "Traceback" not in result.output


def test_run_prints_no_control_character_of_a_file_name_and_waits_for_no_pipe(
    workspace: Path, federation: Federation, tmp_path: Path
) -> None:
    study, exchange = tmp_path / "study.toml", tmp_path / "exchange"
    study.write_text(federation.study().to_toml(), encoding="utf-8")
    run("ask", workspace, study, "--files", exchange)
    (exchange / "in" / "\x1b[2J.message.json").write_text("not a message")
    os.mkfifo(exchange / "in" / "pipe.message.json")
    os.mkfifo(exchange / "in" / "pipe")
    with (exchange / "in" / "large.message.json").open("wb") as large:
        large.truncate(1_500_000_000)
    done = run("run", workspace, study, "--files", exchange)
    assert done.exit_code == 1
    assert "\x1b" not in done.output
    assert "\\x1b[2J.message.json' does not count" in done.output.replace("\n", "")
    assert done.output.replace("\n", "").count("does not count") == 4


@pytest.mark.parametrize("fails", ["request", "roster"])
def test_admit_announces_a_site_only_when_all_is_done(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    request, signed = tmp_path / "east.request.zip", tmp_path / "east.signed.zip"
    request.write_text("a request")

    def sign(*_: object) -> Path:
        if fails == "request":
            raise TransportError(expected="the request of a site named 'east'", got="another", hint="ask the sender.")
        signed.write_text("signed")
        return signed

    monkeypatch.setattr("dpcausal.federation.transports.nvflare.provision.sign", sign)
    key = Roster.from_toml(workspace / "roster.toml").sites["north"].key if fails == "roster" else "ab" * 32
    before = (workspace / "roster.toml").read_text()
    refused = run("admit", workspace, "east", key, "--units-unknown", "--request", request)
    assert refused.exit_code == 2
    assert "is in the roster" not in refused.output
    assert (workspace / "roster.toml").read_text() == before
    assert not signed.exists()


def test_key_of_a_requester_is_not_admitted_as_that_of_a_site(workspace: Path) -> None:
    public = run("key", workspace).output.split()[-1]
    refused = run("admit", workspace, "east", public, "--units-unknown")
    assert refused.exit_code == 2
    assert "the public key of a requester" in refused.output


def test_ask_needs_files_or_the_mailbox(workspace: Path, federation: Federation, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(federation.study().to_toml(), encoding="utf-8")
    for words, got in (((), "neither"), (("--mailbox", "--files", tmp_path / "exchange"), "both")):
        refused = run("ask", workspace, study, *words)
        assert refused.exit_code == 2
        assert f"not {got}" in refused.output or got in refused.output
        assert "--files FOLDER or --mailbox" in refused.output


def test_hint_of_nvflare_names_no_option_that_our_command_lacks() -> None:
    refused = _refused(("cert", "approve"), "the file exists", "Use --force to overwrite it.")
    assert "--force" not in refused.hint
    assert _refused(("cert", "approve"), "it failed", "Ask the sender.").hint == "Ask the sender."


def test_withdrawing_by_files_tells_whoever_has_not_heard_of_it(
    workspace: Path, federation: Federation, tmp_path: Path
) -> None:
    study, exchange = tmp_path / "study.toml", tmp_path / "exchange"
    study.write_text(federation.study().to_toml(), encoding="utf-8")
    run("ask", workspace, study, "--files", exchange, "--days", 2)
    (asked,) = (exchange / "out").iterdir()
    first = run("withdraw", workspace, study, "--files", exchange)
    assert (first.exit_code, asked.exists()) == (1, False)
    assert "west did not answer" in first.output
    (request,) = (exchange / "out").iterdir()
    for name in federation.tables:
        (exchange / "in" / f"{name}.message.json").write_text(federation.sites[name](request.read_text()))
    told = run("withdraw", workspace, study, "--files", exchange)
    assert told.exit_code == 0
    assert "north knows the study as withdrawn by its requester" in told.output


def test_plan_names_the_sites_that_would_pay_for_a_weight_of_0(
    workspace: Path, federation: Federation, tmp_path: Path
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(federation.study(pooling="minimum_variance").to_toml(), encoding="utf-8")
    unknown = run("plan", workspace, study, "--site", "north=3000")
    assert (unknown.exit_code, "not known of south, west" in unknown.output) == (2, True)
    sizes = ("--site", "north=3000", "--site", "south=3000", "--site", "west=30")
    planned = run("plan", workspace, study, *sizes)
    assert planned.exit_code == 1
    assert "north: 3,000 units, price epsilon 1" in planned.output
    assert "west would pay for a weight of 0" in planned.output.replace("\n", " ")
    study.write_text(federation.study(pooling="inverse_variance").to_toml(), encoding="utf-8")
    assert run("plan", workspace, study, *sizes).exit_code == 0
    study.write_text(federation.study().to_toml(), encoding="utf-8")
    assert "every unit counts alike" in run("plan", workspace, study, *sizes).output.replace("\n", " ")
