"""What a site has approved and not answered yet is shown beside what it has spent and has left."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.federation.console.site_folder import SiteFolder
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site.policy import FILE
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from dpcausal.ledger import Spending
from dpcausal.utils.hash_chain import digest_of_text
from tests.support.site_folders import approve_study, confirm_settings, person_key, signed


def committed_at(folder: Path) -> tuple[float, int]:
    """Return the epsilon that a site has committed, and the number of studies that it is for."""
    site = Site(folder)
    found = site.committed(site.ledger())
    return found.price.epsilon, len(found.studies)


def answer(folder: Path, requester: Key, study: Study) -> str:
    request = Request(study=study.to_toml(), ask="releases")
    return Message.from_json(claimed_body(Site(folder).answer(requester.seal(request.to_json())))).code


def test_budget_is_committed_from_the_approval_to_the_answer(folder: Path, requester: Key, study: Study) -> None:
    first = replace(study, name="first", epsilon=0.25)
    approve_study(folder, first)
    assert committed_at(folder) == (0.25, 1)
    assert answer(folder, requester, first) == "answered"  # from here on the ledger knows the number of units
    Site(folder).receive(study.to_toml())
    assert committed_at(folder) == (0.0, 0)
    approve_study(folder, study)
    assert committed_at(folder) == (1.0, 1)
    approve_study(folder, replace(study, name="the same question"))
    assert committed_at(folder) == (1.0, 2)  # it is paid for once
    larger = replace(study, name="larger", epsilon=1.5)
    approve_study(folder, larger)
    assert committed_at(folder) == (2.5, 3)
    console = SiteFolder(folder)
    assert console.committed
    assert (console.committed.price, console.committed.left) == (Spending(2.5, 0.0), Spending(0.25, 0.0))
    assert console.bar
    assert (console.bar.spent, console.bar.committed) == (8.33, 83.33)
    assert answer(folder, requester, study) == "answered"
    assert committed_at(folder) == (1.5, 1)
    assert answer(folder, requester, larger) == "answered"
    assert committed_at(folder) == (0.0, 0)
    assert Site(folder).ledger().spent == Spending(2.75, 0.0)


def test_what_will_not_be_answered_is_not_committed(folder: Path, study: Study) -> None:
    others = [replace(study, name=name, epsilon=0.2 + place) for place, name in enumerate(("rejected", "forbidden"))]
    for each in (study, *others):
        approve_study(folder, each)
    Site(folder).decide(signed(folder, digest_of_text(others[0].to_toml()), "reject", "bob"))
    policy = folder / FILE
    text = policy.read_text(encoding="utf-8").replace("epsilon_per_study = 2.0", "epsilon_per_study = 1.0")
    policy.write_text(text, encoding="utf-8")
    confirm_settings(folder)
    assert committed_at(folder) == (1.0, 1)


def test_status_and_approval_warn_where_not_everything_fits(
    folder: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    runner, key = CliRunner(), person_key(folder, "bob")
    outputs = []
    for place, epsilon in enumerate((2.0, 1.5)):
        each = replace(study, name=f"study {place}", epsilon=epsilon)
        digest = Site(folder).receive(each.to_toml())
        done = runner.invoke(app, ["site", "approve", str(folder), digest, "--key", str(key), "--yes"])
        assert done.exit_code == 0, done.output
        outputs.append(done.output)
    assert "Warning" not in outputs[0]
    words = "the budget has too little left for this study beside what is committed: epsilon 2, delta 0"
    assert f"Warning: {words} for 1 approved study" in outputs[1]
    check = next(check for check in site_status(folder).checks if check.name == "budget")
    assert check.words == (
        "spent epsilon 0, delta 0; committed epsilon 3.5, delta 0; left epsilon 3, delta 0: "
        "too little for all approved studies"
    )
    assert (check.level, check.value["committed"]) == (1, {"epsilon": 3.5, "delta": 0.0})
