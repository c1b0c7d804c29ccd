"""What a command needs before it can begin: an extra, or what another command makes."""

import importlib.util
from pathlib import Path

import typer

from dpcausal.errors import StudyError


def require_extra(library: str, extra: str) -> None:
    """End with exit code 2 and a hint unless a library is installed."""
    if importlib.util.find_spec(library) is None:
        typer.echo(f'This needs {library}.\n\nHint: install the extra: pip install "dpcausal[{extra}]".', err=True)
        raise typer.Exit(2)


def check_folder_exists(folder: Path, hint: str) -> None:
    """Raise unless a folder is there that another command makes."""
    if not folder.is_dir():
        raise StudyError(expected="a folder that was made before", got=f"no {folder}", hint=hint)
