"""The mailbox learns a site's new key from a record that the old key signs, and passes it on to the coordinator."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.rotation import claimed_rotation, sign_rotation
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.transports.mailbox.calls import sign_call
from dpcausal.federation.transports.mailbox.transport import accept_rotations, admit_joined
from tests.federation.transports.mailbox.conftest import ADDRESS, Desk

ROTATIONS = "/rotations"


class Calls:
    """Calls of anna in place of a client."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def call(self, method: str, path: str) -> dict[str, object]:
        return self.desk.call("anna", method, path)[1]


def post(desk: Desk, key: Key, record: str) -> int:
    body = json.dumps({"text": record}).encode()
    header = sign_call(key, ADDRESS, "POST", ROTATIONS, body)
    return desk.send("POST", ROTATIONS, body, {"Authorization": header})[0]


def fresh(desk: Desk, name: str = "new") -> Key:
    return Key.make("north", desk.folder / f"{name} {len(list(desk.folder.iterdir()))}")


def roster_of(folder: Path, key: Key) -> Workspace:
    made = Workspace.new(folder / "workspace", "anna")
    made.roster_file.write_text(Roster({"north": Member(key.public, 300)}).to_toml(), encoding="utf-8")
    return made


def test_new_key_calls_the_old_one_does_not_and_the_coordinator_learns_it(desk: Desk) -> None:
    desk.joined("north")
    old, first, second = desk.key("north"), fresh(desk), fresh(desk)
    workspace = roster_of(desk.folder, old)
    record = sign_rotation(old, first)
    assert post(desk, old, record) == 200
    assert post(desk, first, record) == 200  # again, since a reply was lost
    assert desk.call("north", "GET", "/requests?after=0")[0] == 401
    assert post(desk, first, sign_rotation(first, second)) == 200
    found = accept_rotations(Calls(desk), workspace)  # type: ignore[arg-type]
    assert found == {"north": "has a new key, signed with its old one"}
    member = workspace.roster.sites["north"]
    assert (member.key, member.units, list(member.former)) == (second.public, 300, [old.public, first.public])
    assert accept_rotations(Calls(desk), workspace) == {}  # type: ignore[arg-type]
    assert desk.call("ben", "GET", ROTATIONS) == (200, {"rotations": []})
    assert [line for line in desk.lines if "rotation" in line] == ["event=rotation site=north"] * 2


def test_record_counts_once_and_only_from_the_key_that_is_known(desk: Desk) -> None:
    desk.joined("north", "south")
    old, new, other = desk.key("north"), fresh(desk), fresh(desk)
    record = sign_rotation(old, new)
    south = desk.key("south")
    assert post(desk, south, record) == 400  # another site may not pass it on
    assert post(desk, old, sign_rotation(other, new)) == 400
    assert post(desk, old, old.seal(other.seal("{}"))) == 400
    assert post(desk, old, record) == 200
    assert post(desk, old, record) == 401
    assert post(desk, old, sign_rotation(old, other)) == 401  # whoever has the old key
    assert post(desk, new, sign_rotation(old, other)) == 400
    assert desk.call("anna", "POST", ROTATIONS, {"text": record})[0] == 401
    listed = desk.call("anna", "GET", ROTATIONS)[1]["rotations"]
    assert [claimed_rotation(each["text"]).new for each in listed] == [new.public]


def test_server_that_makes_up_or_repeats_records_changes_no_roster(desk: Desk) -> None:
    desk.joined("north")
    old, new, thief = desk.key("north"), fresh(desk), fresh(desk)
    workspace = roster_of(desk.folder, old)
    workspace.accept_key(sign_rotation(old, new))
    before = workspace.roster_file.read_text(encoding="utf-8")
    records = [sign_rotation(old, new), sign_rotation(old, thief), sign_rotation(thief, old), "none"]

    class Lying:
        def call(self, *_: str) -> dict[str, object]:
            names = ["north", "north", "north", "\x1b[2J"]
            return {"rotations": [{"site": name, "text": text} for name, text in zip(names, records, strict=True)]}

    found = accept_rotations(Lying(), workspace)  # type: ignore[arg-type]
    assert set(found) == {"north", "a site"}
    assert all(words.startswith("sent a new key that does not count") for words in found.values())
    assert workspace.roster_file.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("rotations", [0, 1, 2])
def test_site_that_rotates_its_key_before_it_is_admitted_needs_no_new_invitation(desk: Desk, rotations: int) -> None:
    workspace, folder = Workspace.new(desk.folder / "workspace", "anna"), desk.folder / "invitations"
    folder.mkdir()
    invitation = desk.invite("north")
    (folder / "north.json").write_text(json.dumps(asdict(invitation)), encoding="ascii")
    assert desk.join(invitation) == 200
    first = last = desk.key("north")
    for _ in range(rotations):
        last, old = fresh(desk), last
        assert post(desk, old, sign_rotation(old, last)) == 200
    admitted = admit_joined(Calls(desk), folder, workspace)  # type: ignore[arg-type]
    assert admitted == {"north": first.public}
    accept_rotations(Calls(desk), workspace)  # type: ignore[arg-type]
    assert workspace.roster.sites["north"].key == last.public
    assert admit_joined(Calls(desk), folder, workspace) == {}  # type: ignore[arg-type]


def test_site_that_is_in_the_roster_already_is_admitted_as_it_is_there(desk: Desk) -> None:
    """After its mailbox was lost, or after it answered by files: its number of units and former keys stay."""
    workspace, folder = Workspace.new(desk.folder / "workspace", "anna"), desk.folder / "invitations"
    folder.mkdir()
    invitation = desk.invite("north")
    (folder / "north.json").write_text(json.dumps(asdict(invitation)), encoding="ascii")
    assert desk.join(invitation) == 200
    workspace.admit("north", desk.key("north").public, 1200)
    assert admit_joined(Calls(desk), folder, workspace) == {"north": desk.key("north").public}  # type: ignore[arg-type]
    assert workspace.roster.sites["north"].units == 1200
    assert not list(folder.iterdir())


def test_many_sites_are_admitted_with_two_calls(desk: Desk) -> None:
    """A call for each would exceed what a requester may ask in a second."""
    workspace, folder = Workspace.new(desk.folder / "workspace", "anna"), desk.folder / "invitations"
    calls = list[str]()
    folder.mkdir()
    for site in ("north", "south", "west"):
        invitation = desk.invite(site)
        (folder / f"{site}.json").write_text(json.dumps(asdict(invitation)), encoding="ascii")
        assert desk.join(invitation) == 200

    class Counted(Calls):
        def call(self, method: str, path: str) -> dict[str, object]:
            calls.append(path)
            return super().call(method, path)

    assert len(admit_joined(Counted(desk), folder, workspace)) == 3  # type: ignore[arg-type]
    assert sorted(calls) == ["/rotations", "/sites"]


def test_server_that_makes_up_a_rotation_admits_no_key(desk: Desk) -> None:
    """A key counts only with the secret of the invitation, and a record only with that key's signature."""
    workspace, folder = Workspace.new(desk.folder / "workspace", "anna"), desk.folder / "invitations"
    folder.mkdir()
    invitation = desk.invite("north")
    (folder / "north.json").write_text(json.dumps(asdict(invitation)), encoding="ascii")
    old, thief, other = desk.key("north"), fresh(desk, "thief"), fresh(desk, "other")
    forged = thief.seal(claimed_body(sign_rotation(old, thief)))  # it names the bound key, which did not sign it

    class Lying:
        def __init__(self, binding: str, record: str) -> None:
            self.binding, self.record = binding, record

        def call(self, _: str, path: str) -> dict[str, object]:
            if path == ROTATIONS:
                return {"rotations": [{"site": "north", "text": self.record}]}
            return {"sites": [{"site": "north", "key": thief.public, "binding": self.binding}]}

    for made_up in (sign_rotation(other, thief), forged):
        lying = Lying("0" * 64, made_up)
        assert admit_joined(lying, folder, workspace) == {}  # type: ignore[arg-type]
    lying = Lying(invitation.bind(old.public), forged)
    assert admit_joined(lying, folder, workspace) == {"north": old.public}  # type: ignore[arg-type]
    found = accept_rotations(lying, workspace)  # type: ignore[arg-type]
    assert found["north"].startswith("sent a new key that does not count")
    assert workspace.roster.sites["north"].key == old.public
