"""The page of the reference about the command line, from the commands' own help: `python -m checks.commands`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from dpcausal.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
HEAD = """# The command line

Each command with its `--help`. Exit status: 0 success, 1 refused, 2 usage error, with a hint.
"""
SECTIONS = {
    "init": "## A study\n\nIn this order; [how to read their output](../planning.md).\n",
    "audit": "## The audit\n\n[What it attacks](../audit.md), and its results.\n",
    "ledger": "## The ledger\n\nWhat was [spent](../proofs/ledger.md) on a table.\n",
    "experiment": "## Experiments\n\nMany metrics, one query: [experiments](../experiments.md).\n",
    "site": "## A site\n\nFor whoever keeps a table: [Federation quickstart](../federation-quickstart.md).\n",
    "federation": "## A federation\n\nFor whoever asks many sites: [how a federation works](../federation.md).\n",
}
"""What stands before the first command of each kind."""


def all_commands(command: Any = None, words: tuple[str, ...] = ("dpcausal",)) -> Iterator[tuple[str, ...]]:  # noqa: ANN401
    """Yield the words of every command, and of every group of commands before those in it."""
    yield words
    for name, each in getattr(command or get_command(app), "commands", {}).items():
        yield from all_commands(each, (*words, name))


def helped(words: tuple[str, ...]) -> str:
    """Return the help of a command on 80 columns."""
    environment = {**os.environ, "COLUMNS": "80", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}
    command = [sys.executable, "-m", *words, "--help"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines()).strip("\n")


def main() -> None:
    """Write the page."""
    parts = [HEAD]
    for words in all_commands():
        line = " ".join(words)
        parts += [SECTIONS[words[1]]] if len(words) == 2 and words[1] in SECTIONS else []
        parts += [] if words == ("dpcausal",) else [f"### {line}\n"]
        parts.append(f"```console\n$ {line} --help\n```\n\n```text\n{helped(words)}\n```\n")
    PAGE.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
