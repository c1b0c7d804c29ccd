import stat
from pathlib import Path

import pytest

from dpcausal.errors import StudyError
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.coordinator.workspace import Workspace

NORTH, SOUTH = "ab" * 32, "cd" * 32


def test_new_workspace_has_a_key_and_an_empty_roster(tmp_path: Path) -> None:
    workspace = Workspace.new(tmp_path / "workspace", "anna")
    assert workspace.roster == Roster({})
    assert workspace.key("anna").owner == "anna"
    assert stat.S_IMODE((tmp_path / "workspace").stat().st_mode) == 0o700
    with pytest.raises(StudyError, match="holds a workspace already"):
        Workspace.new(tmp_path / "workspace", "bob")
    with pytest.raises(StudyError, match="keys of anna"):
        workspace.key("bob")
    for name in ("../anna", "", "a b"):
        with pytest.raises(StudyError):
            Workspace.new(tmp_path / "other", name)
    assert not (tmp_path / "other").exists()


def test_admitted_sites_are_appended_to_the_roster(tmp_path: Path) -> None:
    workspace = Workspace.new(tmp_path, "anna")
    file = tmp_path / "roster.toml"
    file.write_text(f'# my words\n[sites.south]\nkey = "{SOUTH}"  # by telephone\n', encoding="utf-8")
    for _ in range(2):
        workspace.admit("north", NORTH, 1200)
    assert workspace.roster == Roster({"south": Member(SOUTH), "north": Member(NORTH, 1200)})
    assert file.read_text(encoding="utf-8").startswith("# my words\n[sites.south]")
    for site, key in (("north", "ef" * 32), ("east", NORTH), ("east", "ef"), ("../east", "ef" * 32)):
        before = file.read_text(encoding="utf-8")
        with pytest.raises(StudyError, match="Hint"):
            workspace.admit(site, key)
        assert file.read_text(encoding="utf-8") == before


def test_unwritable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="cannot be written"):
        Workspace.new(tmp_path / "file" / "workspace", "anna")
