"""The page of the reference about the command line, from the commands' own help: `python -m checks.commands`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from dpcausal.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
HEAD = """# The command line

`dpcausal COMMAND --help` prints what this page says of a command.
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


def described(command: Any, words: tuple[str, ...]) -> Iterator[str]:  # noqa: ANN401
    """Yield what a command's help says, as Markdown: its paragraphs, its usage, and a table of what it takes."""
    context = command.context_class(command, info_name=words[-1])
    takes = [
        record for each in command.params if (record := each.get_help_record(context)) and "--help" not in record[0]
    ]
    yield "\n\n".join(escaped(" ".join(part.split())) for part in (command.help or "").split("\n\n"))
    if not getattr(command, "commands", None):
        pieces = [piece.strip("{}").upper() for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        yield f"`{' '.join([*words, *pieces])}{' [OPTIONS]' if any('--' in name for name, _ in takes) else ''}`"
    if takes:
        rows = [f"| `{name}` | {escaped(' '.join(text.split()))} |" for name, text in takes]
        yield "\n".join(["| argument or option | meaning |", "|---|---|", *rows])


def escaped(text: str) -> str:
    """Return text in which Markdown finds nothing but code."""
    parts = text.split("`")
    for place in range(0, len(parts), 2):
        for mark in "\\*_[]<>|":
            parts[place] = parts[place].replace(mark, f"\\{mark}")
    return "`".join(parts)


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for words in all_commands():
        if len(words) == 2 and words[1] in SECTIONS:
            parts.append(SECTIONS[words[1]])
        command: Any = get_command(app)
        for word in words[1:]:
            command = command.commands[word]
        if len(words) > 1:
            parts.append(f"### {' '.join(words)}\n")
        parts += [f"{part}\n" for part in described(command, words)]
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
