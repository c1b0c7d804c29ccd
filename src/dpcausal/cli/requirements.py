"""Requirements of a command: an extra, or a folder that another command creates."""

import importlib.util
from pathlib import Path

import typer

from dpcausal.errors import StudyError


def require_extra(library: str, extra: str) -> None:
    """End with exit status 2 and a hint unless a library is installed."""
    if importlib.util.find_spec(library) is None:
        typer.echo(f'This command needs {library}.\n\nHint: pip install "dpcausal[{extra}]".', err=True)
        raise typer.Exit(2)


def check_folder_exists(folder: Path, hint: str) -> None:
    """Raise unless a folder exists."""
    if not folder.is_dir():
        raise StudyError(problem=f"There is no folder {folder}", hint=hint)
