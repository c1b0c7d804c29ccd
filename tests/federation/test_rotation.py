"""Keys of sites are replaced by ones that they vouch for: what the old one signed in time counts, and nothing later."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.errors import RefusedError, StudyError, TransportError
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.rotation import claimed_rotation, sign_rotation, verified_rotation
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site import rotation
from dpcausal.federation.site.backup import backup_site, restore_site
from dpcausal.federation.site.policy import KEY
from dpcausal.federation.site.rotation import rotate_key
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from tests.federation.conftest import Federation

LATER = "2100-01-01T00:00:00+00:00"


def rotated(folder: Path, by: str = "Ann") -> str:
    return rotate_key(folder, by, lambda *_: None).read_text(encoding="ascii")


def key_check(folder: Path) -> tuple[int, str]:
    return next((check.level, check.words) for check in site_status(folder).checks if check.name == "key")


@pytest.fixture
def workspace(federation: Federation) -> Workspace:
    """The coordinator's folder, with comments in its roster."""
    made = Workspace.new(federation.folder / "workspace", "anna")
    lines = [f'[sites.{name}]\n# by telephone\nkey = "{each.key}"\n' for name, each in federation.roster.sites.items()]
    made.roster_file.write_text("# my words\n" + "\n".join(lines), encoding="utf-8")
    return made


def run(federation: Federation, study: Study, workspace: Workspace) -> dict[str, str]:
    """Ask the sites with the keys of the roster, and return what each did."""
    store = federation.folder / "store.db"
    federation.asked.clear()
    effect = federation.coordinator(study, roster=workspace.roster, store=store, attempts=1).run()
    return {share.site: share.status for share in effect.sites}


def test_rotated_key_signs_and_what_the_old_one_signed_in_time_counts(
    federation: Federation, workspace: Workspace
) -> None:
    first, second = federation.study(), federation.study(name="second")
    answered = dict.fromkeys(federation.tables, "answered")
    assert run(federation, first, workspace) == answered
    folder, thief = federation.folder / "north", federation.key("north")
    record = rotated(folder)
    federation.sites["north"] = federation.honest("north")
    assert not (folder / "site.next.key").exists()
    assert Site(folder).public_key == claimed_rotation(record).new != thief.public
    assert run(federation, second, workspace)["north"].endswith("not a message signed with this site's key")
    assert workspace.accept_key(record) == claimed_rotation(record)
    assert workspace.accept_key(record) is None
    text = workspace.roster_file.read_text(encoding="utf-8")
    assert text.startswith("# my words\n[sites.north]\n# by telephone\n")
    assert list(workspace.roster.sites["north"].former) == [thief.public]
    assert run(federation, first, workspace) == answered
    assert federation.asked == []  # its stored answer, under the former key, still counts
    assert run(federation, second, workspace) == answered
    # Whoever has the old key signs nothing that counts: neither an answer, nor another rotation.
    third = federation.study(name="third")
    honest = federation.sites["north"]
    federation.sites["north"] = lambda request: thief.seal(json.loads(honest(request))["body"])
    assert run(federation, third, workspace)["north"].endswith("not a message signed with this site's key")
    with pytest.raises(TransportError, match="signed with the key that is known"):
        workspace.accept_key(sign_rotation(thief, Key.make("north", federation.folder / "thief.key")))
    assert workspace.roster_file.read_text(encoding="utf-8") == text


def test_answer_that_was_stored_after_the_rotation_does_not_count_under_the_old_key(
    federation: Federation, workspace: Workspace
) -> None:
    study = federation.study()
    run(federation, study, workspace)
    workspace.accept_key(rotated(federation.folder / "north"))
    roster = workspace.roster
    before = replace(roster.sites["north"], former=dict.fromkeys(roster.sites["north"].former, "2000-01-01T00:00:00"))
    early = Roster({**roster.sites, "north": before})
    federation.sites["north"] = federation.honest("north")
    federation.asked.clear()
    federation.coordinator(study, roster=early, store=federation.folder / "store.db").run()
    assert federation.asked == ["north"]  # asked again: it answers the same, free of charge, under its new key
    assert Site(federation.folder / "north").ledger().spent.epsilon == 1.0


def test_two_rotations_follow_each_other_and_none_is_played_again(federation: Federation, workspace: Workspace) -> None:
    folder, keys = federation.folder / "south", [federation.key("south").public]
    records = []
    for _ in range(2):
        records.append(rotated(folder))
        keys.append(Site(folder).public_key)
    assert len(set(keys)) == 3
    with pytest.raises(TransportError):
        workspace.accept_key(records[1])  # out of order
    for record in records:
        assert workspace.accept_key(record)
    member = workspace.roster.sites["south"]
    assert (member.key, list(member.former)) == (keys[2], keys[:2])
    assert "# by telephone" in workspace.roster_file.read_text(encoding="utf-8")
    assert [workspace.accept_key(record) for record in records] == [None, None]
    assert workspace.roster.sites["south"] == member
    entries = [entry for entry in Site(folder).audit_log.entries() if entry.kind == "key"]
    assert [(entry.who, entry.what) for entry in entries] == [
        ("Ann", f"{old} replaced by {new}") for old, new in pairwise(keys)
    ]
    assert not Site(folder).changes.unconfirmed()
    assert key_check(folder)[0] == 0
    assert key_check(folder)[1].startswith(keys[2][:12])


def forged(federation: Federation, kind: str) -> str:
    old, new = federation.key("north"), Key.make("north", federation.folder / "new.key")
    other, south = Key.make("north", federation.folder / "other.key"), federation.key("south")
    body = json.loads(json.loads(sign_rotation(old, new))["body"])["body"]
    return {
        "without the old key": sign_rotation(Key("north", other.private), new),
        "without the new key": old.seal(other.seal(body)),
        "for another site": sign_rotation(Key("north", south.private), new).replace("north", "south"),
        "to another site's key": sign_rotation(old, Key("north", south.private)),
        "to the same key": sign_rotation(old, old),
        "of a stranger": sign_rotation(Key("nobody", other.private), Key("nobody", new.private)),
        "an answer": old.seal(new.seal("{}")),
        "no text": "north",
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        *("without the old key", "without the new key", "for another site", "to another site's key", "to the same key"),
        *("of a stranger", "an answer", "no text"),
    ],
)
def test_forged_rotation_changes_no_roster(federation: Federation, workspace: Workspace, kind: str) -> None:
    before = workspace.roster_file.read_text(encoding="utf-8")
    with pytest.raises((StudyError, TransportError)):
        workspace.accept_key(forged(federation, kind))
    assert workspace.roster_file.read_text(encoding="utf-8") == before


def test_record_that_nobody_verifies_is_caught(
    federation: Federation, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the signatures, anybody would replace a site's key."""
    monkeypatch.setattr(
        "dpcausal.federation.coordinator.workspace.verified_rotation", lambda text, *_: claimed_rotation(text)
    )
    assert workspace.accept_key(forged(federation, "without the new key"))


def test_revoked_site_does_not_come_back_by_a_rotation(federation: Federation, workspace: Workspace) -> None:
    text = workspace.roster_file.read_text(encoding="utf-8")
    workspace.roster_file.write_text(text.replace("# by telephone", "revoked = true", 1), encoding="utf-8")
    with pytest.raises(StudyError, match="or it is revoked"):
        workspace.accept_key(rotated(federation.folder / "north"))


class _KilledError(Exception):
    pass


def _stop(*_: object) -> None:
    raise _KilledError


POINTS: dict[str, tuple[object, str]] = {
    "before the record": (rotation, "sign_rotation"),
    "before it is announced": (None, ""),
    "before the key is replaced": (Path, "replace"),
}


@pytest.mark.parametrize("point", POINTS)
def test_interrupted_rotation_goes_on_with_the_same_key(
    federation: Federation, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    folder, (owner, name) = federation.folder / "north", POINTS[point]
    old = federation.key("north").public
    with monkeypatch.context() as killed:
        if owner:
            killed.setattr(owner, name, _stop)
        with pytest.raises(_KilledError):
            rotate_key(folder, "Ann", (lambda *_: None) if owner else _stop)
    assert Site(folder).public_key == old
    chosen = Key.read("north", folder / "site.next.key").public
    record = rotated(folder)
    assert claimed_rotation(record).new == chosen == Site(folder).public_key
    assert len([entry for entry in Site(folder).audit_log.entries() if entry.kind == "key"]) == 1
    assert workspace.accept_key(record)


def test_key_of_a_backup_from_before_is_named_and_signs_nothing(
    federation: Federation, workspace: Workspace, tmp_path: Path
) -> None:
    folder, old = federation.folder / "north", federation.key("north").public
    backup_site(folder, tmp_path / "b", with_keys=True)
    shutil.copy(folder / KEY, tmp_path / "old.key")
    workspace.accept_key(rotated(folder))
    backup_site(folder, tmp_path / "later", with_keys=True)
    assert key_check(folder)[0] == 0
    restored = restore_site(tmp_path / "b", tmp_path / "restored")
    assert restored.stopped  # its ledger and witness lack what came later
    with pytest.raises(TransportError, match="signed with the key that is known"):
        workspace.accept_key(rotated(tmp_path / "restored"))
    new = Site(folder).public_key
    restore_site(tmp_path / "later", tmp_path / "again")
    assert Site(tmp_path / "again").public_key == new
    assert list((tmp_path / "again").glob("*.rotation.json"))
    shutil.copy(tmp_path / "old.key", folder / KEY)  # an older file put back by hand
    assert Site(folder).public_key == old
    level, words = key_check(folder)
    assert (level, "is not the key since" in words) == (2, True)


def test_key_stays_while_a_secure_sum_is_not_finished(federation: Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "unfinished_sessions", lambda _: {"ab" * 32: 0.0})
    before = federation.key("north").public
    with pytest.raises(StudyError, match="Secure sums are not finished"):
        rotated(federation.folder / "north")
    assert federation.key("north").public == before


def test_commands_rotate_a_key_and_accept_it(federation: Federation, workspace: Workspace) -> None:
    def invoke(*words: object) -> str:
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.output

    folder = federation.folder / "north"
    assert "accept-key" in invoke("site", "rotate-key", folder, "--by", "Ann")
    (record,) = folder.glob("*.rotation.json")
    assert Site(folder).public_key in invoke("federation", "accept-key", workspace.folder, record)
    assert "has this key already" in invoke("federation", "accept-key", workspace.folder, record)
    assert "key" in invoke("site", "audit-log", folder)


def test_former_keys_of_a_roster_are_read_and_checked() -> None:
    former = {"ab" * 32: LATER}
    roster = Roster({"north": Member("cd" * 32, former=former), "south": Member("ef" * 32)})
    assert Roster.from_toml(roster.to_toml()) == roster
    assert roster.keys_at(LATER)[1:] == [{"north": "ab" * 32}]
    assert roster.keys_at("2100-01-01T00:00:01+00:00") == [roster.keys]
    with pytest.raises(StudyError, match="same key"):
        Roster({"north": Member("cd" * 32, former=former), "south": Member("ab" * 32)})
    with pytest.raises(StudyError):
        Member("cd" * 32, former={"north": LATER})


def test_verified_rotation_is_of_the_site_and_key_that_are_known(tmp_path: Path) -> None:
    old, new = (Key.make("north", tmp_path / name) for name in ("old", "new"))
    record = sign_rotation(old, new)
    assert verified_rotation(record, "north", old.public).new == new.public
    for site, key in (("south", old.public), ("north", new.public)):
        with pytest.raises(TransportError):
            verified_rotation(record, site, key)


def test_effect_needs_enough_sites_that_signed_with_a_key_that_is_known(
    federation: Federation, workspace: Workspace
) -> None:
    study = federation.study()
    for name in federation.tables:
        rotated(federation.folder / name)
        federation.sites[name] = federation.honest(name)
    with pytest.raises(RefusedError):
        run(federation, study, workspace)
