"""`dpcausal federation mailbox`, `federation invite`, `site join-mailbox` and `site poll`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.cli import mailbox as commands
from dpcausal.federation.operation.heartbeat import is_serving
from dpcausal.federation.transports.mailbox import poller
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.mailbox_server import MailboxServer
from tests.support.site_folders import approve_study, make_site_folder

pytestmark = pytest.mark.xdist_group("mailbox")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def test_commands_lead_from_an_invitation_to_an_effect(tmp_path: Path) -> None:
    study = dpc.Study(
        name="commands",
        question="Does treatment raise the score?",
        requester="anna",
        schema=standard_schema(),
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        pooling="minimum_variance",
    )
    (tmp_path / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    north, workspace = tmp_path / "north", tmp_path / "workspace"
    with MailboxServer(workspace, workers=1) as server:
        table = synthetic_table(standard_schema(), 100, seed=1)
        make_site_folder(north, "north", table, standard_schema(), {"anna": server.anna.public})
        approve_study(north, study)
        invited = run("federation", "invite", workspace, "north")
        assert invited.exit_code == 0, invited.output
        joined = run("site", "join-mailbox", north, invited.stdout.strip().splitlines()[-1])
        assert "north joined the mailbox" in joined.output
        asking = ("federation", "run", workspace, tmp_path / "study.toml", "--mailbox", "--attempts", 1, "--json")
        asked = run("federation", "ask", workspace, tmp_path / "study.toml", "--mailbox")
        assert asked.exit_code == 0, asked.output
        assert "north was asked" in asked.output
        assert "Collect the answers with: dpcausal federation run" in asked.output
        assert server.workspace.roster.sites.keys() == {"north"}
        old = server.workspace.roster.sites["north"].key
        assert "The mailbox knows the new key" in run("site", "rotate-key", north).output
        polled = run("site", "poll", north, "--once")
        assert polled.exit_code == 0
        assert "outcome=answered" in polled.output
        answered = run(*asking, "--timeout", 20)
        assert answered.exit_code == 0, answered.output
        assert "north has a new key, signed with its old one" in answered.output
        member = server.workspace.roster.sites["north"]
        assert (member.key != old, list(member.former)) == (True, [old])
        effect = json.loads(answered.stdout[answered.stdout.index("{") :])
        assert [each["status"] for each in effect["sites"]] == ["answered"]
        status = json.loads(run("federation", "mailbox", "status", workspace, "--json").stdout)
        assert status["server"] == "reached"
        assert [(each["site"], each["waiting"]) for each in status["sites"]] == [("north", 0)]
        assert "north" in run("federation", "mailbox", "status", workspace).output
        assert "refuses north" in run("federation", "mailbox", "revoke", workspace, "north").output
        refused = run("site", "poll", north, "--once")
        assert refused.exit_code == 1
        assert "refusal: unknown" in refused.output
        renewed = run("federation", "mailbox", "renew", workspace, "--days", 40)
        assert renewed.exit_code == 0
    gone = run("site", "poll", north, "--once")
    assert gone.exit_code == 1
    assert "refused" in gone.output


def test_a_single_poll_counts_as_polling_while_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    north, seen = tmp_path / "north", list[bool]()
    table = synthetic_table(standard_schema(), 100, seed=1)
    make_site_folder(north, "north", table, standard_schema(), {})
    (north / "mailbox").mkdir()
    monkeypatch.setattr(commands, "client_in", lambda *_: None)
    refused = list[Result]()

    def poll(_: object) -> None:
        seen.append(is_serving(north / "mailbox"))
        refused.append(run("site", "rotate-key", north))  # the poller would go on with the old key

    monkeypatch.setattr(poller.Poller, "poll", poll)
    assert run("site", "poll", north, "--once").exit_code == 0
    assert (refused[0].exit_code, "stop dpcausal site poll first" in refused[0].output) == (2, True)
    assert (seen, is_serving(north / "mailbox")) == ([True], False)


def test_folders_without_a_mailbox_say_how_to_create_one(tmp_path: Path) -> None:
    assert run("federation", "init", tmp_path / "workspace", "anna").exit_code == 0
    for words in (("status",), ("serve",), ("renew",), ("admit",), ("revoke",)):
        done = run("federation", "mailbox", *words, tmp_path / "workspace", *(["north"] * (words == ("revoke",))))
        assert done.exit_code == 2
        assert "mailbox init" in done.output
    nobody = run("federation", "mailbox", "init", tmp_path / "nowhere", "--host", "localhost")
    assert nobody.exit_code == 2
    assert "federation init" in nobody.output


def test_token_that_was_cut_is_refused(tmp_path: Path) -> None:
    table = synthetic_table(standard_schema(), 10, seed=1)
    make_site_folder(tmp_path / "north", "north", table, standard_schema(), {})
    done = run("site", "join-mailbox", tmp_path / "north", "dpcausal-mailbox-1.abc")
    assert done.exit_code == 2
    assert "token" in done.output
    assert not (tmp_path / "north" / "mailbox").exists()
