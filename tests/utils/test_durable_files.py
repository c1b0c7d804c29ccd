"""Durable files are whole, on disk and private, or they are not there."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from dpcausal.utils.durable_files import create_file, replace_file


@pytest.mark.parametrize("write", [create_file, replace_file])
def test_file_and_folder_are_on_disk_before_the_call_returns(
    write: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, list[str]]] = []

    def sync(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), [file.name for file in tmp_path.iterdir()]))

    monkeypatch.setattr("os.fsync", sync)
    write(tmp_path / "key", "größe\n")
    assert (tmp_path / "key").read_bytes() == "größe\n".encode()
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    (first, _), (second, names) = synced
    assert (first, second) == (False, True)
    assert names == ["key"]


def test_only_replacing_touches_a_file_that_exists(tmp_path: Path) -> None:
    create_file(tmp_path / "key", "first")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "key", "second")
    assert (tmp_path / "key").read_text() == "first"
    replace_file(tmp_path / "key", "third")
    assert (tmp_path / "key").read_text() == "third"
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("write", [create_file, replace_file])
def test_full_disk_leaves_nothing_behind(
    write: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "key", "text")
    assert list(tmp_path.iterdir()) == []
