from pathlib import Path

import pytest

from dpcausal.errors import StudyError
from dpcausal.federation.coordinator.roster import Member, Roster

KEY = "ab" * 32
ROSTER = Roster({"north": Member(KEY, units=1200), "south": Member("cd" * 32, revoked=True)})


def test_roster_survives_a_round_trip(tmp_path: Path) -> None:
    file = tmp_path / "roster.toml"
    file.write_text(ROSTER.to_toml(), encoding="utf-8")
    assert Roster.from_toml(file) == ROSTER
    assert ROSTER.keys == {"north": KEY}


def test_empty_roster_is_valid() -> None:
    assert Roster.from_toml("# nobody yet") == Roster({})


WRONG = {
    "no TOML": "[sites",
    "no table": 'sites = "north"',
    "another name": 'sitez = "north"',
    "a site that is no table": '[sites]\nnorth = "ab"',
    "no key": "[sites.north]\nunits = 3",
    "half a key": f'[sites.north]\nkey = "{KEY[:20]}"',
    "a key in capitals": f'[sites.north]\nkey = "{KEY.upper()}"',
    "one unit": f'[sites.north]\nkey = "{KEY}"\nunits = 1',
    "half a unit": f'[sites.north]\nkey = "{KEY}"\nunits = 2.5',
    "units that are true": f'[sites.north]\nkey = "{KEY}"\nunits = true',
    "revoked by a word": f'[sites.north]\nkey = "{KEY}"\nrevoked = "yes"',
    "something more": f'[sites.north]\nkey = "{KEY}"\nweight = 3',
    "a name that is a path": f'[sites."../north"]\nkey = "{KEY}"',
    "one key twice": f'[sites.north]\nkey = "{KEY}"\n[sites.south]\nkey = "{KEY}"',
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_invalid_roster_is_refused(text: str) -> None:
    with pytest.raises(StudyError, match="Hint"):
        Roster.from_toml(text)


def test_missing_roster_hints_at_init(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="federation init"):
        Roster.from_toml(tmp_path / "roster.toml")
