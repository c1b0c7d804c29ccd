"""The mailbox learns a site's new key from a record that the old key signs, and passes it on to the coordinator."""

import json
from pathlib import Path

from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.rotation import claimed_rotation, sign_rotation
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.transports.mailbox.calls import sign_call
from dpcausal.federation.transports.mailbox.transport import accept_rotations
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
