"""Requirements of a command: files that it can write, folders that another command creates, and a person's yes."""

import sys
from pathlib import Path

import typer

from dpcausal.errors import StudyError, require_library


def check_folder_exists(folder: Path, hint: str) -> None:
    """Raise unless a folder exists."""
    if not folder.is_dir():
        raise StudyError(problem=f"There is no folder {folder}", hint=hint)


def check_file_name(file: Path, suffix: str, option: str) -> None:
    """Raise unless a file has this ending and its folder exists."""
    if file.suffix != suffix or not file.absolute().parent.is_dir():
        raise typer.BadParameter(f"must be a {suffix} file in a folder that exists", param_hint=option)


def check_figure(file: Path | None) -> None:
    """Raise unless a figure can be drawn into a file, where one is wanted."""
    if file:
        require_library("matplotlib", "draws figures", "plots")
        check_file_name(file, ".png", "--figure")


def ask_to_confirm(question: str, otherwise: str, *, yes: bool) -> None:
    """Ask, unless that was done before; end the command where the answer is no, or there is nobody to ask."""
    if yes:
        return
    if not _is_terminal():
        typer.echo(f"{otherwise}: no terminal to confirm on.\n\nHint: pass --yes to do without confirmation.", err=True)
        raise typer.Exit(2)
    if not typer.confirm(question, err=True):
        typer.echo(f"{otherwise}.", err=True)
        raise typer.Exit(1)


def _is_terminal() -> bool:
    return sys.stdin.isatty()
