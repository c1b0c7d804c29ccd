"""A site's sessions of secure sums: private, on disk before an answer leaves, and never in a backup."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dpcausal import DifferenceInMeans, Study
from dpcausal.errors import StudyError
from dpcausal.federation.protocol import Message, Request, Step
from dpcausal.federation.signatures import Key, claimed_body
from dpcausal.ledger import Ledger
from dpcausal.site.backup import backup_site, restore_site
from dpcausal.site.policy import KEY
from dpcausal.site.review import objections
from dpcausal.site.site import Site
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.vault import Vault
from tests.support.site_folders import approve_study, make_site_folder

NAMES = ("east", "north", "west")


class Three:
    """Three sites, a requester, and a study with secure sums that all have approved."""

    def __init__(self, folder: Path) -> None:
        schema = standard_schema()
        self.folder = folder
        self.anna = Key.make("anna", folder / "anna.key")
        keys = {
            name: make_site_folder(
                folder / name, name, synthetic_table(schema, 100, place), schema, {"anna": self.anna.public}
            )
            for place, name in enumerate(NAMES)
        }
        usual: dict[str, Any] = {"schema": schema, "estimator": DifferenceInMeans(), "epsilon": 1.0, "pooling": "sums"}
        terms: dict[str, Any] = {"aggregation": "secure", "secure": {"honest": 2, "colluding": 0}, "sites": keys}
        self.study = Study(name="scores", question="?", requester="anna", **usual, **terms)
        for name in NAMES:
            approve_study(folder / name, self.study)

    def ask(self, name: str, step: Step, carries: tuple[str, ...] = ()) -> str:
        """Return a site's signed message. Each call is a new process as far as the site is concerned."""
        request = Request(study=self.study.to_toml(), ask=step, carries=tuple(sorted(carries)))
        return Site(self.folder / name).answer(self.anna.seal(request.to_json()))

    def round(self, step: Step, carries: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the messages of all sites."""
        return tuple(self.ask(name, step, carries) for name in NAMES)

    def debits(self, name: str) -> int:
        entries = Ledger(f"sqlite:///{self.folder / name / 'ledger.db'}").entries()
        return [entry.kind for entry in entries].count("debit")


@pytest.fixture
def three(tmp_path: Path) -> Three:
    return Three(tmp_path)


def code(message: str) -> str:
    return Message.from_json(claimed_body(message)).code


def headers(messages: tuple[str, ...]) -> tuple[str, ...]:
    answers = (json.loads(claimed_body(text))["answer"] for text in messages)
    return tuple(answer["header"] for answer in answers)


def test_session_is_private_and_stored_before_each_answer(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = three.round("keys")
    file = three.folder / "east" / "sessions" / f"{three.study.digest}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert three.ask("east", "keys") == keys[0]  # the same secrets, in a new process
    written: list[str] = []
    replace = Path.replace

    def noted(self: Path, target: Path) -> Path:
        written.append(str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    shares = three.ask("east", "shares", keys)
    assert written == [str(file)]
    assert json.loads(file.read_text())["sent"] == json.loads(claimed_body(shares))["answer"]["shares"]


def test_site_killed_after_its_debit_answers_without_a_second_one(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = three.round("keys")
    shares = three.round("shares", keys)
    with monkeypatch.context() as killed:
        killed.setattr(Ledger, "store", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            three.ask("east", "masked", shares)
    assert three.debits("east") == 1
    masked = three.round("masked", shares)
    assert set(map(code, masked)) == {"answered"}
    assert three.ask("east", "masked", shares) == masked[0]
    assert three.debits("east") == 1
    confirmed = three.round("confirm", headers(masked))
    assert set(map(code, three.round("unmask", confirmed))) == {"answered"}


def test_rounds_in_another_order_are_refused(three: Three) -> None:
    assert code(three.ask("east", "shares")) == "refused_step"
    keys = three.round("keys")
    assert code(three.ask("east", "masked", keys)) == "refused_step"
    shares = three.round("shares", keys)
    assert code(three.ask("east", "confirm", shares)) == "refused_step"
    assert code(three.ask("east", "unmask", shares)) == "refused_step"
    assert three.debits("east") == 0


def test_table_is_read_and_paid_for_in_one_round_only(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    init = Vault.__init__

    def counted(self: Vault, *parts: Any, **named: Any) -> None:
        opened.append("vault")
        init(self, *parts, **named)

    monkeypatch.setattr(Vault, "__init__", counted)
    keys = three.round("keys")
    shares = three.round("shares", keys)
    assert opened == []
    masked = three.round("masked", shares)
    assert len(opened) == len(NAMES)
    three.round("unmask", three.round("confirm", headers(masked)))
    assert len(opened) == len(NAMES)


def test_lost_or_restored_session_is_not_begun_again_once_it_was_paid_for(three: Three, tmp_path: Path) -> None:
    keys = three.round("keys")
    masked = three.round("masked", three.round("shares", keys))
    folder = three.folder / "east"
    backup_site(folder, tmp_path / "backup.tar", with_keys=True)
    (folder / "table.parquet").rename(tmp_path / "table.parquet")
    folder.rename(tmp_path / "old")
    restore_site(tmp_path / "backup.tar", folder)
    (tmp_path / "table.parquet").rename(folder / "table.parquet")
    assert not (folder / "sessions").exists()
    Ledger.restore(f"sqlite:///{folder / 'ledger.db'}", by="a person", reason="moved", lost_epsilon=0.0)
    assert code(three.ask("east", "keys")) == "refused_step"
    assert code(three.ask("east", "confirm", headers(masked))) == "refused_step"
    assert three.debits("east") == 1


def test_older_copy_of_a_session_would_confirm_two_sums(three: Three) -> None:
    """The reason why no backup holds a session: put back, it confirms another set of sites."""
    keys = three.round("keys")
    masked = three.round("masked", three.round("shares", keys))
    file = three.folder / "east" / "sessions" / f"{three.study.digest}.json"
    older = file.read_text()
    assert code(three.ask("east", "confirm", headers(masked))) == "answered"
    assert code(three.ask("east", "confirm", headers(masked[:2]))) == "refused_step"
    file.write_text(older)
    assert code(three.ask("east", "confirm", headers(masked[:2]))) == "answered"


def test_study_that_lists_another_key_for_the_site_is_refused(three: Three) -> None:
    (three.folder / "east" / KEY).unlink()
    Key.make("east", three.folder / "east" / KEY)
    assert code(three.ask("east", "keys")) == "refused_step"


def test_study_without_the_site_is_not_allowed(three: Three, tmp_path: Path) -> None:
    schema = standard_schema()
    requesters = {"anna": three.anna.public}
    make_site_folder(tmp_path / "south", "south", synthetic_table(schema, 100), schema, requesters)
    south = Site(tmp_path / "south")
    assert objections(south.policy, three.study) == ("its table [sites] does not list south",)
    with pytest.raises(StudyError, match="does not list south"):
        approve_study(tmp_path / "south", three.study)


def test_review_says_who_takes_part_and_when_the_price_is_spent(three: Three) -> None:
    review = str(Site(three.folder / "east").review(three.study.digest))
    for words in (
        "at least 2 sites",
        "2 honest sites",
        "at most 0 of these",
        "from 1 on",
        "never opened",
        "west: public key",
    ):
        assert words in " ".join(review.split()), words
    assert "masked, with a share of the noise" in " ".join(review.split())
