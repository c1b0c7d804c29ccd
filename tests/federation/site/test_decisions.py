"""Decisions of people: what counts, and what somebody who can rewrite the audit log does not gain."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dpcausal import Study
from dpcausal.errors import DpcausalError, LedgerError, StudyError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.audit_log import AuditLog
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.decisions import claimed_decision, sign_decision
from dpcausal.federation.site.people import PEOPLE, Person, add_person
from dpcausal.federation.site.policy import FILE
from dpcausal.federation.site.site import Site
from dpcausal.utils.hash_chain import digest_of, digest_of_text
from tests.support.copies import fill
from tests.support.site_folders import confirm_settings, person_key, signed


@pytest.fixture
def digest(north: Site, study: Study) -> str:
    return north.receive(study.to_toml())


def key_of(folder: Path, name: str) -> Key:
    return Key.read(name, person_key(folder, name))


def test_decision_is_recorded_with_its_signature(north: Site, folder: Path, digest: str) -> None:
    sealed = signed(folder, digest, "approve", "bob", "board of 3 May")
    assert north.decide(sealed) == digest
    [entry] = north.audit_log.decisions(digest)
    assert (entry.who, entry.what, entry.sealed) == ("bob", "board of 3 May", sealed)
    assert north.status(digest) == "approved"


def test_nobody_can_approve_at_a_site_without_people(
    north: Site, folder: Path, digest: str, tmp_path: Path, study: Study
) -> None:
    key = Key.make("bob", tmp_path / "bob.key")
    sealed = sign_decision(key, site="north", study=digest, kind="approve", by="bob")
    with pytest.raises(StudyError, match=r"no approvers yet(.|\n)*dpcausal site people add"):
        north.decide(sealed)
    add_person(folder, Person("bob", ("reader", "operator"), key=key.public))
    with pytest.raises(StudyError, match="role approver"):
        north.decide(sealed)
    assert north.status(digest) == "undecided"
    assert not north.audit_log.entries()


def test_requester_may_not_approve_under_any_spelling_or_key(
    north: Site, folder: Path, digest: str, requester: Key, tmp_path: Path
) -> None:
    key = Key.make("Anna", tmp_path / "own.key")
    add_person(folder, Person(" ANNA ", ("approver",), key=key.public))
    add_person(folder, Person("Dr. Smith", ("approver",), key=requester.public))
    for each, name in ((key, "ANNA"), (requester, "Dr. Smith")):
        sealed = sign_decision(each, site="north", study=digest, kind="approve", by=name)
        with pytest.raises(StudyError, match="requests this study"):
            north.decide(sealed)
        north.audit_log.record(sealed)  # around the check
        assert north.status(digest) == "undecided"
    north.decide(sign_decision(key, site="north", study=digest, kind="reject", by="ANNA"))
    assert north.status(digest) == "rejected"


def test_console_signs_only_for_people_with_a_login(north: Site, folder: Path, digest: str, tmp_path: Path) -> None:
    console = Key.make("console", tmp_path / "console.key")
    Changes(folder).add_person(Person("Dr. Adams", ("approver",), login="subject-1"))
    person_key(folder, "bob")  # without login

    def by_console(name: str) -> str:
        return sign_decision(console, site="north", study=digest, kind="approve", by=name, via="console")

    with pytest.raises(StudyError, match="another signature"):
        north.decide(by_console("Dr. Adams"))
    Changes(folder).set_console_key(console.public)
    with pytest.raises(StudyError, match="another signature"):
        north.decide(by_console("bob"))
    with pytest.raises(StudyError, match="another signature"):
        north.decide(sign_decision(console, site="north", study=digest, kind="approve", by="Dr. Adams"))
    north.decide(by_console("Dr. Adams"))
    assert north.status(digest) == "approved"


def test_decision_cannot_be_recorded_twice_or_from_the_future(
    north: Site, folder: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval = signed(folder, digest, "approve", "bob")
    north.decide(approval)
    north.decide(signed(folder, digest, "reject", "bob"))
    with pytest.raises(StudyError, match="made after bob's last one"):
        north.decide(approval)
    north.audit_log.record(approval)  # around the check: the time that was signed counts, not the place in the log
    assert north.status(digest) == "rejected"

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Tomorrow":  # noqa: ARG003
            return cls.fromtimestamp((datetime.now(UTC) + timedelta(days=1)).timestamp(), UTC)

    with monkeypatch.context() as patched:
        patched.setattr("dpcausal.federation.site.decisions.datetime", Tomorrow)
        later = signed(folder, digest, "approve", "bob")
    with pytest.raises(StudyError, match="before now"):
        north.decide(later)


def test_approvals_of_a_removed_person_count_no_more_and_rejections_do(north: Site, folder: Path, digest: str) -> None:
    north.decide(signed(folder, digest, "approve", "bob"))
    north.decide(signed(folder, digest, "reject", "carol"))
    Changes(folder).remove_person("Carol")
    assert north.status(digest) == "rejected"
    Changes(folder).remove_person("bob")
    assert north.status(digest) == "rejected"


def test_removed_approver_leaves_the_study_undecided(north: Site, folder: Path, digest: str) -> None:
    north.decide(signed(folder, digest, "approve", "bob"))
    Changes(folder).remove_person("bob")
    assert north.status(digest) == "undecided"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "allow"},
        {"study": "ab12"},
        {"at": "yesterday"},
        {"at": "2026-05-03T10:00:00"},
        {"via": "mail"},
        {"by": "bob "},
        {"why": "\x1b[2J"},
        {"why": "x" * 2_001},
        {"format": "decision 2"},
        {"more": "1"},
        {"site": 7},
    ],
    ids=lambda each: str(each)[:100],
)
def test_documents_that_are_not_decisions_are_refused(
    north: Site, folder: Path, digest: str, change: dict[str, object]
) -> None:
    body = json.loads(json.loads(signed(folder, digest, "approve", "bob"))["body"])
    with pytest.raises(StudyError):
        north.decide(key_of(folder, "bob").seal(json.dumps(body | change)))
    for nonsense in ("", "[]", "{}", "[" * 10_000):
        with pytest.raises(StudyError, match="a signed decision"):
            north.decide(key_of(folder, "bob").seal(nonsense))


@dataclass
class Scene:
    """A site that needs two approvals, with one approval by bob, a rejection by carol, and an answer."""

    folder: Path
    study: str
    other: str

    @property
    def lines(self) -> list[dict[str, object]]:
        lines = map(json.loads, (self.folder / "audit_log.jsonl").read_text().splitlines())
        return [line for line in lines if line["kind"] not in ("people", "confirm")]

    def rewrite(self, lines: list[dict[str, object]], *, with_index: bool) -> None:
        """Write these entries with all digests computed anew; somebody thorough replaces the index as well."""
        previous, text = "", ""
        for line in lines:
            content = {name: value for name, value in line.items() if name != "digest"} | {"previous": previous}
            previous = digest_of(content)
            text += json.dumps(content | {"digest": previous}, sort_keys=True) + "\n"
        file = self.folder / "audit_log.jsonl"
        file.write_text(text)
        if with_index:
            file.with_suffix(".index").unlink()
            AuditLog(file).rebuild_index("somebody")

    def status(self, study: str) -> str:
        """The status, or `refused` where the log is not believed at all."""
        try:
            return Site(self.folder).status(study)
        except LedgerError:
            return "refused"


@pytest.fixture
def scene(tmp_path: Path, folder: Path, study: Study) -> Scene:
    another = replace(study, question="Another?")
    fill(tmp_path, "an approval and a rejection", lambda: decide_twice(folder, study, another))
    return Scene(folder, study.digest, another.digest)


def decide_twice(folder: Path, study: Study, another: Study) -> None:
    policy = folder / FILE
    policy.write_text(policy.read_text().replace("approvals = 1", "approvals = 2"))
    confirm_settings(folder)
    site = Site(folder)
    digest = site.receive(study.to_toml())
    site.receive(another.to_toml())
    site.decide(signed(folder, digest, "approve", "bob"))
    site.decide(signed(folder, digest, "reject", "carol"))
    site.audit_log.write("answer", digest, "anna", "request rejected")


def entry_of(sealed: str, **changes: object) -> dict[str, object]:
    """The entry that a signed decision would have in the log, with the changes of a forger."""
    claimed = claimed_decision(sealed)
    entry = {"kind": claimed.kind, "study": claimed.study, "who": claimed.by, "what": claimed.why, "at": claimed.at}
    return {"version": 3, **entry, "sealed": sealed} | changes


def restated(line: dict[str, object], **changes: str) -> dict[str, object]:
    """An entry whose signed body says something else, under the old signature."""
    sealed = json.loads(str(line["sealed"]))
    sealed["body"] = json.dumps(json.loads(sealed["body"]) | changes, sort_keys=True)
    if "by" in changes:
        sealed["signer"] = changes["by"]
    return entry_of(json.dumps(sealed, sort_keys=True))


def rejection_into_approval(scene: Scene) -> list[dict[str, object]]:
    first, second, *rest = scene.lines
    return [first, restated(second, kind="approve"), *rest]


def rejection_relabelled(scene: Scene) -> list[dict[str, object]]:
    first, second, *rest = scene.lines
    return [first, second | {"kind": "approve"}, *rest]


def signature_from_another_study(scene: Scene) -> list[dict[str, object]]:
    copies = [
        restated(entry_of(signed(scene.folder, scene.other, "approve", name)), study=scene.study)
        for name in ("bob", "dora")
    ]
    return [scene.lines[0], *copies]


def signature_from_another_site(scene: Scene) -> list[dict[str, object]]:
    sealed = sign_decision(key_of(scene.folder, "dora"), site="south", study=scene.study, kind="approve", by="dora")
    return [scene.lines[0], entry_of(sealed)]


def another_person(scene: Scene) -> list[dict[str, object]]:
    person_key(scene.folder, "dora")
    return [scene.lines[0], restated(scene.lines[0], by="dora")]


def approval_by_the_requester(scene: Scene) -> list[dict[str, object]]:
    return [scene.lines[0], entry_of(signed(scene.folder, scene.study, "approve", "Anna"))]


def same_person_with_blanks(scene: Scene) -> list[dict[str, object]]:
    key = key_of(scene.folder, "bob")
    again = [sign_decision(key, site="north", study=scene.study, kind="approve", by=name) for name in ("bob ", "BOB")]
    return [scene.lines[0], *map(entry_of, again)]


def end_cut_off(scene: Scene) -> list[dict[str, object]]:
    return scene.lines[:1]


REWRITES = (
    rejection_into_approval,
    rejection_relabelled,
    signature_from_another_study,
    signature_from_another_site,
    another_person,
    approval_by_the_requester,
    same_person_with_blanks,
    end_cut_off,
)


@pytest.mark.parametrize("with_index", [False, True], ids=["log", "log and index"])
@pytest.mark.parametrize("rewrite", REWRITES)
def test_rewritten_log_gains_no_approval(
    scene: Scene, rewrite: Callable[[Scene], list[dict[str, object]]], *, with_index: bool
) -> None:
    assert scene.status(scene.study) == "rejected"
    try:
        scene.rewrite(rewrite(scene), with_index=with_index)
    except DpcausalError:
        assert with_index  # the new index was refused already
    found = scene.status(scene.study)
    assert found in (("undecided", "refused") if with_index else ("refused",))


def test_rewriting_with_the_keys_of_two_people_does_approve(scene: Scene) -> None:
    """The same rewriting with valid signatures is believed: what the test above refuses is the missing signature."""
    fresh = [signed(scene.folder, scene.study, "approve", name) for name in ("bob", "dora")]
    scene.rewrite([*map(entry_of, fresh)], with_index=True)
    assert scene.status(scene.study) == "approved"


def test_mutant_that_does_not_verify_signatures_approves(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.rewrite(another_person(scene), with_index=True)
    assert scene.status(scene.study) == "undecided"
    monkeypatch.setattr("dpcausal.federation.site.decisions.opened", lambda *_: None)
    assert scene.status(scene.study) == "approved"


def test_people_file_with_one_key_for_two_names_is_refused(folder: Path, digest: str, north: Site) -> None:
    north.decide(signed(folder, digest, "approve", "bob"))
    file = folder / PEOPLE
    file.write_text(file.read_text() + file.read_text().split("people = ")[-1].replace("bob", "rob"))
    with pytest.raises(StudyError):
        north.status(digest)
    assert digest_of_text(north.inbox.text(digest)) == digest
