"""Approvals count for as many days as a site's policy says."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.errors import StudyError
from dpcausal.federation.console.site_folder import SiteFolder
from dpcausal.federation.protocol.messages import Ask, Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site.policy import FILE, Policy
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from tests.support.site_folders import approve_study, record_state, signed

DAYS = 30
MOMENT = timedelta(microseconds=1)


def set_policy(folder: Path, line: str) -> None:
    file = folder / FILE
    file.write_text(f"{line}\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    record_state(folder)


@pytest.fixture
def north(folder: Path) -> Site:
    set_policy(folder, f"approval_days = {DAYS}")
    return Site(folder)


@pytest.fixture
def digest(north: Site, study: Study) -> str:
    return north.receive(study.to_toml())


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Set the clock by which decisions are signed and counted."""

    def set_clock(now: datetime) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # noqa: ARG003
                return now

        monkeypatch.setattr("dpcausal.federation.site.decisions.datetime", Clock)

    return set_clock


def code_of(site: Site, requester: Key, study: Study, ask: Ask = "releases") -> str:
    request = Request(study=study.to_toml(), ask=ask)
    return Message.from_json(claimed_body(site.answer(requester.seal(request.to_json())))).code


def approve(folder: Path, digest: str, by: str = "bob") -> datetime:
    """Let somebody approve a study, and return when that was signed."""
    site = Site(folder)
    site.decide(signed(folder, digest, "approve", by))
    return site.audit_log.decisions(digest)[-1].time


def test_approval_counts_until_its_days_are_over(
    north: Site, folder: Path, digest: str, at: Callable[[datetime], None]
) -> None:
    end = approve(folder, digest) + timedelta(days=DAYS)
    at(end - MOMENT)
    assert north.status(digest) == "approved"
    at(end)
    assert north.status(digest) == "expired"


def test_without_the_setting_an_approval_counts_without_end(
    folder: Path, study: Study, at: Callable[[datetime], None]
) -> None:
    site = Site(folder)
    digest = site.receive(study.to_toml())
    at(approve(folder, digest) + timedelta(days=10_000))
    assert site.policy.approval_days is None
    assert site.status(digest) == "approved"


def test_nothing_is_opened_or_paid_for_on_an_expired_approval(  # noqa: PLR0917 (fixtures)
    north: Site, folder: Path, requester: Key, study: Study, digest: str, at: Callable[[datetime], None]
) -> None:
    signed_at = approve(folder, digest)
    at(signed_at + timedelta(days=DAYS))
    (folder / "table.parquet").rename(folder / "elsewhere")
    assert [code_of(north, requester, study, ask) for ask in ("facts", "releases")] == ["undecided", "undecided"]
    assert north.ledger().spent.epsilon == 0.0
    assert north.ledger().data_set is None
    (folder / "elsewhere").rename(folder / "table.parquet")
    approve(folder, digest)
    assert north.status(digest) == "approved"
    assert code_of(north, requester, study) == "answered"
    at(signed_at + timedelta(days=10 * DAYS))
    assert code_of(north, requester, study, "facts") == "undecided"
    assert code_of(north, requester, study) == "answered"  # what was paid for in time is sent again
    assert north.ledger().spent.epsilon == 1.0


def test_mutant_without_expiry_answers(  # noqa: PLR0917 (fixtures)
    monkeypatch: pytest.MonkeyPatch,
    north: Site,
    folder: Path,
    requester: Key,
    study: Study,
    digest: str,
    at: Callable[[datetime], None],
) -> None:
    at(approve(folder, digest) + timedelta(days=DAYS))
    assert code_of(north, requester, study) == "undecided"
    monkeypatch.setattr("dpcausal.federation.site.decisions.is_in_time", lambda *_: True)
    assert code_of(north, requester, study) == "answered"


def test_each_of_two_approvals_must_be_in_time(folder: Path, study: Study, at: Callable[[datetime], None]) -> None:
    file = folder / FILE
    file.write_text(file.read_text(encoding="utf-8").replace("approvals = 1", "approvals = 2"), encoding="utf-8")
    set_policy(folder, f"approval_days = {DAYS}")
    site, now = Site(folder), datetime.now(UTC)
    digest = site.receive(study.to_toml())
    approve(folder, digest, "bob")
    at(now + timedelta(days=DAYS - 1))
    approve(folder, digest, "carol")
    assert site.status(digest) == "approved"
    at(now + timedelta(days=DAYS + 1))
    assert site.status(digest) == "expired"
    approve(folder, digest, "bob")
    assert site.status(digest) == "approved"


def test_a_rejection_does_not_expire(north: Site, folder: Path, digest: str, at: Callable[[datetime], None]) -> None:
    north.decide(signed(folder, digest, "reject", "bob"))
    at(datetime.now(UTC) + timedelta(days=10 * DAYS))
    assert north.status(digest) == "rejected"


def test_expired_approval_does_not_revive_the_rejection_before_it(
    north: Site, folder: Path, digest: str, at: Callable[[datetime], None]
) -> None:
    north.decide(signed(folder, digest, "reject", "bob"))
    at(approve(folder, digest) + timedelta(days=DAYS))
    assert north.status(digest) == "expired"


def test_expired_approvals_are_listed_until_the_study_is_answered(  # noqa: PLR0917 (fixtures)
    north: Site, folder: Path, requester: Key, study: Study, digest: str, at: Callable[[datetime], None]
) -> None:
    done = replace(study, name="done", epsilon=0.5)
    approve_study(folder, done)
    assert code_of(north, requester, done) == "answered"
    at(approve(folder, digest) + timedelta(days=DAYS))
    waiting = next(check for check in site_status(folder).checks if check.name == "waiting")
    assert waiting.value == 1
    assert waiting.words == "1 of 2 studies wait for a decision, 1 of them again: their approvals expired"
    console = SiteFolder(folder)
    assert [(each.digest, each.status, each.approved_by) for each in console.waiting] == [(digest, "expired", ())]
    listed = CliRunner().invoke(app, ["site", "review", str(folder)]).output
    assert "    expired: scores" in listed
    assert "    expired, answered: done" in listed
    review = dict(north.review(digest, open_table=False).lines())
    assert review["decisions"].endswith(f", for {DAYS} days, expired: made for this")
    assert review["status"] == "expired (approvals needed: 1)"


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "true", '"30"', "3651"])
def test_unusable_numbers_of_days_are_refused(folder: Path, days: str) -> None:
    file = folder / FILE
    file.write_text(f"approval_days = {days}\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    with pytest.raises(StudyError, match="approval_days: a number of days from 1 to 3,650"):
        Policy.read(folder)
