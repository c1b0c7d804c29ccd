"""A site's sessions of secure sums: private, on disk before an answer leaves, and never in a backup."""

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpcausal import DifferenceInMeans, Study
from dpcausal.cli import app
from dpcausal.errors import StudyError
from dpcausal.federation.protocol.messages import Ask, Message, Request, Step
from dpcausal.federation.protocol.signatures import Key, claimed_body, claimed_signer
from dpcausal.federation.protocol.transport import with_enclosed
from dpcausal.federation.secure import messages as secure_messages
from dpcausal.federation.secure.session import SiteSession
from dpcausal.federation.site.backup import backup_site, restore_site
from dpcausal.federation.site.policy import KEY
from dpcausal.federation.site.review import objections
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.site_ledger import MESSAGES
from dpcausal.federation.site.status import site_status
from dpcausal.federation.site.stores import ResponseStore
from dpcausal.ledger import Ledger
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.vault import Vault
from tests.support.copies import fill
from tests.support.site_folders import allow_secure_sums, approve_study, confirm_settings, make_site_folder

NAMES = ("east", "north", "west")


class Three:
    """Three sites, a requester, and a study with secure sums that all have approved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        fill(folder, "three sites", self._make)
        self.anna = Key.read("anna", folder / "anna.key")
        self.study = self._study()

    def _make(self) -> None:
        anna = Key.make("anna", self.folder / "anna.key").public
        for place, name in enumerate(NAMES):
            table, witness = synthetic_table(standard_schema(), 100, place), f"../{name}-witness.log"
            make_site_folder(self.folder / name, name, table, standard_schema(), {"anna": anna}, witness=witness)
        allow_secure_sums({name: self.folder / name for name in NAMES})
        for name in NAMES:
            approve_study(self.folder / name, self._study())

    def _study(self) -> Study:
        keys = {name: Key.read(name, self.folder / name / KEY).public for name in NAMES}
        usual: dict[str, Any] = {"estimator": DifferenceInMeans(), "epsilon": 1.0, "pooling": "sums"}
        terms: dict[str, Any] = {"aggregation": "secure", "secure": {"honest": 2, "colluding": 0}, "sites": keys}
        return Study(name="scores", question="?", requester="anna", schema=standard_schema(), **usual, **terms)

    def ask(self, name: str, step: Ask, carries: tuple[str, ...] = ()) -> str:
        """Return a site's signed message. Each call is a new process as far as the site is concerned.

        In the round `masked`, sites get headers of the answers to the round before, and their own ciphertexts.
        """
        enclosed = ""
        if step == "masked" and all(map(shares_in, carries)):
            enclosed, carries = enclosed_for(name, carries), headers(carries)
        request = Request(study=self.study.to_toml(), ask=step, carries=tuple(sorted(carries)))
        return Site(self.folder / name).answer(with_enclosed(self.anna.seal(request.to_json()), enclosed))

    def restore_ledger(self, name: str, **words: Any) -> None:
        """Record the loss of a site's ledger that came from a backup."""
        address, witness = f"sqlite:///{self.folder / name / 'ledger.db'}", self.folder / f"{name}-witness.log"
        Ledger.restore(address, by="a person", witness=str(self.folder / name / ".." / witness.name), **words)

    def round(self, step: Step, carries: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the messages of all sites."""
        return tuple(self.ask(name, step, carries) for name in NAMES)

    def session(self, name: str) -> Path:
        """Return the file of a site's session."""
        return self.folder / name / "sessions" / f"{self.study.digest}.json"

    def renew(self, name: str) -> None:
        """Confirm a restored site, and approve the study again."""
        confirm_settings(self.folder / name)
        approve_study(self.folder / name, self.study)

    def debits(self, name: str) -> int:
        entries = Site(self.folder / name).ledger().entries()
        return [entry.kind for entry in entries].count("debit")


@pytest.fixture
def three(tmp_path: Path) -> Three:
    return Three(tmp_path)


def code(message: str) -> str:
    return Message.from_json(claimed_body(message)).code


def shares_in(message: str) -> dict[str, str]:
    """Return the ciphertexts in a site's answer to the round `shares`."""
    answer = json.loads(claimed_body(message))["answer"] or {}
    found: dict[str, str] = answer.get("shares", {}).get("ciphertexts", {})
    return found


def enclosed_for(name: str, messages: tuple[str, ...]) -> str:
    """Return the ciphertexts that answers to the round `shares` hold for a site."""
    made = {claimed_signer(text): shares_in(text) for text in messages}
    return json.dumps({sender: each[name] for sender, each in made.items() if name in each})


def headers(messages: tuple[str, ...]) -> tuple[str, ...]:
    answers = (json.loads(claimed_body(text))["answer"] for text in messages)
    return tuple(answer["header"] for answer in answers)


def test_session_is_private_and_stored_before_each_answer(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = three.round("keys")
    file = three.session("east")
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


def test_expired_approvals_begin_no_sum_and_finish_one_that_was_paid_for(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = "dpcausal.federation.site.decisions.is_in_time"
    keys = three.round("keys")
    shares = three.round("shares", keys)
    with monkeypatch.context() as late:
        late.setattr(clock, lambda *_: False)
        assert {code(three.ask("east", *each)) for each in (("keys",), ("masked", shares))} == {"undecided"}
        assert three.debits("east") == 0
    masked = three.round("masked", shares)
    monkeypatch.setattr(clock, lambda *_: False)
    confirmed = three.round("confirm", headers(masked))
    assert set(map(code, three.round("unmask", confirmed))) == {"answered"}
    assert code(three.ask("east", "facts")) == "undecided"


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
    three.restore_ledger("east", reason="moved", lost_epsilon=0.0)
    three.renew("east")
    assert code(three.ask("east", "keys")) == "refused_step"
    assert code(three.ask("east", "confirm", headers(masked))) == "refused_step"
    assert three.debits("east") == 1


def put_back_after_a_confirmation(three: Three) -> str:
    """Let east confirm a sum, put its session back as it was before, and ask it to confirm another; return its code."""
    keys = three.round("keys")
    masked = three.round("masked", three.round("shares", keys))
    file = three.session("east")
    older = file.read_text()
    confirmed = three.ask("east", "confirm", headers(masked))
    assert code(confirmed) == "answered"
    assert code(three.ask("east", "confirm", headers(masked[:2]))) == "refused_step"
    file.write_text(older)
    other = code(three.ask("east", "confirm", headers(masked[:2])))
    assert other == "answered" or three.ask("east", "confirm", headers(masked)) == confirmed
    return other


def test_older_copy_of_a_session_confirms_no_other_sum(three: Three) -> None:
    assert put_back_after_a_confirmation(three) == "refused_step"
    entries = Site(three.folder / "east").ledger().entries()
    assert [entry.kind for entry in entries].count("confirm") == 1


def test_check_of_the_recorded_sum_has_teeth(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a ledger that records no confirmation. The older copy confirms a second sum."""
    monkeypatch.setattr(Ledger, "store_confirmation", lambda _, __, summed: summed)
    assert put_back_after_a_confirmation(three) == "answered"


def told_that_all_agree(three: Three, tmp_path: Path) -> str:
    """Show east fewer members than the others, and forge their headers to say the same; return east's code."""
    shares = three.round("shares", three.round("keys"))
    masked = three.ask("east", "masked", shares[:2]), three.ask("north", "masked", shares)
    assert set(map(code, masked)) == {"answered"}
    own, other = headers(masked)
    assert code(three.ask("east", "confirm", (own, other))) == "refused_step"
    statement = json.loads(claimed_body(own)) | {"site": "north"}
    forged = Key.make("north", tmp_path / "forged.key").seal(json.dumps(statement, sort_keys=True))
    return code(three.ask("east", "confirm", (own, forged)))


def test_different_members_are_not_confirmed_whatever_the_coordinator_says(three: Three, tmp_path: Path) -> None:
    assert told_that_all_agree(three, tmp_path) == "refused_step"


def test_check_of_the_members_has_teeth(three: Three, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that reads headers without verifying them believes the coordinator."""
    monkeypatch.setattr(secure_messages, "opened", lambda text, _: (claimed_signer(text), claimed_body(text)))
    assert told_that_all_agree(three, tmp_path) == "answered"


def test_sum_confirmed_without_its_ledger_is_not_opened(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = three.round("keys")
    masked = three.round("masked", three.round("shares", keys))
    older = three.session("east").read_text()
    three.ask("east", "confirm", headers(masked))
    three.session("east").write_text(older)
    with monkeypatch.context() as mutant:
        mutant.setattr(Ledger, "store_confirmation", lambda _, __, summed: summed)
        confirmed = [three.ask(name, "confirm", headers(masked[:2])) for name in NAMES[:2]]
    assert set(map(code, confirmed)) == {"answered"}
    assert code(three.ask("east", "unmask", tuple(confirmed))) == "refused_step"


def test_session_is_not_confirmed_after_its_ledger_was_restored(three: Three) -> None:
    keys = three.round("keys")
    masked = three.round("masked", three.round("shares", keys))
    three.restore_ledger("east", reason="disk failure", lost_epsilon=0.0)
    three.renew("east")
    assert code(three.ask("east", "confirm", headers(masked))) == "refused_step"
    assert code(three.ask("north", "confirm", headers(masked))) == "answered"


def test_session_from_before_a_restore_neither_masks_nor_confirms_again(three: Three) -> None:
    """A copy from before the debit would pay again, and confirm a second sum with the same secrets."""
    assert code(three.ask("east", "facts")) == "answered"  # the older ledger knows the data set
    shares = three.round("shares", three.round("keys"))
    session, ledger = three.session("east"), three.folder / "east" / "ledger.db"
    older = session.read_text(), ledger.read_bytes()
    masked = three.round("masked", shares)
    assert code(three.ask("east", "confirm", headers(masked))) == "answered"
    session.write_text(older[0])
    ledger.write_bytes(older[1])
    receipts = ResponseStore(three.folder / "east" / MESSAGES).receipts()
    three.restore_ledger("east", reason="disk failure", receipts=receipts, lost_epsilon=1.0)
    three.renew("east")
    assert code(three.ask("east", "masked", shares[:2])) == "refused_step"
    assert code(three.ask("east", "confirm", headers(masked[:2]))) == "refused_step"


def secrets_of(file: Path) -> list[str]:
    """Return the secrets in a session: its keys, its seed and the shares that it holds."""
    session = json.loads(file.read_text())
    own = [session[name] for name in ("channel_key", "mask_key", "seed")]
    return [text for text in [*own, *(share for pair in session["held"].values() for share in pair)] if text]


def finish(three: Three) -> tuple[list[str], bytes]:
    """Run all rounds; return the secrets that east did not reveal, and what is left of the file that held them."""
    keys = three.round("keys")
    shares = three.round("shares", keys)
    masked = three.round("masked", shares)
    confirmed = three.round("confirm", headers(masked))
    file = three.session("east")
    secrets = secrets_of(file)
    with file.open("rb") as opened:
        unmasked = three.ask("east", "unmask", confirmed)
        replaced = opened.read()
    assert code(unmasked) == "answered"
    asked: dict[Step, tuple[str, ...]] = {"keys": (), "shares": keys, "masked": shares, "confirm": headers(masked)}
    answers = (keys, shares, masked, confirmed)
    for (step, carries), answer in zip(asked.items(), answers, strict=True):
        assert three.ask("east", step, carries) == answer[0], step
    assert three.ask("east", "unmask", confirmed) == unmasked
    assert three.ask("east", "unmask", confirmed[:2]) != unmasked  # another request, and the same shares
    revealed = json.loads(claimed_body(unmasked))["answer"]["unmask"]["seeds"].values()
    return [secret for secret in secrets if secret not in revealed], replaced


def test_secrets_are_erased_before_the_last_answer_and_all_answers_stay(three: Three) -> None:
    secrets, replaced = finish(three)
    assert len(secrets) == 3 + len(NAMES)  # its own, and a share of each site's mask key
    assert set(replaced) == {0}
    everything = b"".join(file.read_bytes() for file in (three.folder / "east").rglob("*") if file.is_file())
    assert not [secret for secret in secrets if secret.encode() in everything]


def test_search_for_secrets_has_teeth(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a session that stays as it is."""
    monkeypatch.setattr(SiteSession, "erase", lambda _: None)
    secrets, _ = finish(three)
    assert set(secrets) <= set(secrets_of(three.session("east")))


def test_ended_session_holds_no_secrets_and_takes_no_further_part(three: Three) -> None:
    keys = three.round("keys")
    shares = three.round("shares", keys)
    folder = three.folder / "east"
    assert checks_of(folder)["sessions"]["words"].startswith("not finished: 1, the oldest for 0 days, study ")
    days = 40 * 86_400
    os.utime(three.session("east"), (time.time() - days, time.time() - days))
    assert checks_of(folder)["sessions"]["level"] == "attention"
    ended = CliRunner().invoke(app, ["site", "end-session", str(folder), three.study.digest])
    assert ended.exit_code == 0, ended.output
    assert secrets_of(three.session("east")) == []
    assert "sessions" not in checks_of(folder)
    assert three.ask("east", "shares", keys) == shares[0]
    assert code(three.ask("east", "masked", shares)) == "refused_step"
    assert three.debits("east") == 0


def test_session_that_ended_after_its_debit_confirms_nothing(three: Three) -> None:
    keys = three.round("keys")
    masked = three.round("masked", three.round("shares", keys))
    Site(three.folder / "east").end_session(three.study.digest)
    assert code(three.ask("east", "confirm", headers(masked))) == "refused_step"
    assert code(three.ask("east", "keys")) == "answered"


def checks_of(folder: Path) -> dict[str, dict[str, Any]]:
    checks: dict[str, dict[str, Any]] = json.loads(site_status(folder).to_json())["checks"]
    return checks


def test_study_that_lists_another_key_for_the_site_is_refused(three: Three) -> None:
    (three.folder / "east" / KEY).unlink()
    Key.make("east", three.folder / "east" / KEY)
    assert code(three.ask("east", "keys")) == "refused_step"


def test_study_without_the_site_is_not_allowed(three: Three, tmp_path: Path) -> None:
    schema = standard_schema()
    requesters = {"anna": three.anna.public}
    make_site_folder(tmp_path / "south", "south", synthetic_table(schema, 100), schema, requesters)
    south = Site(tmp_path / "south")
    assert "its table [sites] does not list south" in objections(south.policy, three.study)
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
