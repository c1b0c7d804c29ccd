"""Folders that are made once, and copied for every further test that wants the same."""

import shutil
from collections.abc import Callable, Hashable
from pathlib import Path

_MADE: dict[Hashable, Path] = {}


def fill(folder: Path, key: Hashable, make: Callable[[], object]) -> None:
    """Fill a folder as it was filled when this key was first given; that first time `make` fills it.

    Args:
        folder: The folder. What is in it before must follow from the key.
        key: All that decides what `make` does.
        make: Fills the folder with files that serve wherever they are. A ledger names the place of its first witness,
            but looks where it is told.
    """
    if key in _MADE:
        shutil.copytree(_MADE[key], folder, dirs_exist_ok=True)
        return
    make()
    _MADE[key] = Path(shutil.copytree(folder, folder.with_name(f"{folder.name} as made, {len(_MADE)}")))


def is_as_made(folder: Path, key: Hashable) -> bool:
    """Return whether a folder holds the files with which it was filled, and no others."""
    return _contents(folder) == _contents(_MADE[key])


def _contents(folder: Path) -> dict[Path, bytes]:
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
