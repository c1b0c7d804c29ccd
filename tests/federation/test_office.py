import stat
from pathlib import Path

import pytest

from dpcausal.errors import StudyError
from dpcausal.federation.office import Office
from dpcausal.federation.roster import Member, Roster

NORTH, SOUTH = "ab" * 32, "cd" * 32


def test_a_new_office_has_a_key_and_an_empty_roster(tmp_path: Path) -> None:
    office = Office.new(tmp_path / "office", "anna")
    assert office.roster == Roster({})
    assert office.key("anna").owner == "anna"
    assert stat.S_IMODE((tmp_path / "office").stat().st_mode) == 0o700
    with pytest.raises(StudyError, match="no coordinator yet"):
        Office.new(tmp_path / "office", "bob")
    with pytest.raises(StudyError, match="those of anna"):
        office.key("bob")
    for name in ("../anna", "", "a b"):
        with pytest.raises(StudyError):
            Office.new(tmp_path / "other", name)
    assert not (tmp_path / "other").exists()


def test_sites_are_entered_below_what_a_person_wrote(tmp_path: Path) -> None:
    office = Office.new(tmp_path, "anna")
    file = tmp_path / "roster.toml"
    file.write_text(f'# my words\n[sites.south]\nkey = "{SOUTH}"  # by telephone\n', encoding="utf-8")
    for _ in range(2):
        office.admit("north", NORTH, 1200)
    assert office.roster == Roster({"south": Member(SOUTH), "north": Member(NORTH, 1200)})
    assert file.read_text(encoding="utf-8").startswith("# my words\n[sites.south]")
    for site, key in (("north", "ef" * 32), ("east", NORTH), ("east", "ef"), ("../east", "ef" * 32)):
        before = file.read_text(encoding="utf-8")
        with pytest.raises(StudyError, match="Hint"):
            office.admit(site, key)
        assert file.read_text(encoding="utf-8") == before


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="can be written"):
        Office.new(tmp_path / "file" / "office", "anna")
