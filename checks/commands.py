"""The page of the reference about the command line, from the commands' own help: `python -m checks.commands`."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from dpcausal.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
HEAD = """# The command line

`dpcausal COMMAND --help` prints what this page says of a command: its arguments in capitals, and its options.
Where nothing else is said, these mean the same in every command:
"""
SHARED = 3
"""What so many commands take is told once: an option for the page, an argument for its section."""
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


def taken(command: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    """Return what a command takes: each argument and option, and what its help says."""
    context = command.context_class(command)
    records = [each.get_help_record(context) for each in command.params]
    return [(spelled(name), " ".join(text.split())) for name, text in filter(None, records) if "--help" not in name]


def spelled(name: str) -> str:
    """Return an option as it is written with its value, and an argument as usage has it."""
    return (
        re.sub(r" <(\w+)[^>]*>", lambda kind: f"={kind[1].upper()}", name)
        if name.startswith("-")
        else name.split(maxsplit=1)[0].upper()
    )


def described_option(name: str, text: str) -> str:
    """Return what help says of an argument or an option; an argument is required unless it has a default."""
    return escaped(text if name.startswith("-") else text.removesuffix("[required]").rstrip())


def told_once(commands: Iterable[Any], *, options: bool) -> list[tuple[str, str]]:
    """Return the options, or the arguments, of which so many commands say the same, and the most say nothing else."""
    times = Counter(each for command in commands for each in taken(command) if each[0].startswith("-") == options)
    usual = {name: text for (name, text), _ in reversed(times.most_common())}
    return sorted(each for each in times if times[each] >= SHARED and usual[each[0]] == each[1])


def described(command: Any, words: tuple[str, ...], shared: Container[tuple[str, str]]) -> Iterator[str]:  # noqa: ANN401
    """Yield what a command's help says, as Markdown: its paragraphs, its usage, and a list of what is its own."""
    context, takes = command.context_class(command, info_name=words[-1]), taken(command)
    yield "\n\n".join(escaped(" ".join(part.split())) for part in (command.help or "").split("\n\n"))
    own = [each for each in takes if each not in shared]
    if not getattr(command, "commands", None):
        pieces = [
            piece.replace("{", "").replace("}", "").upper()
            for piece in command.collect_usage_pieces(context)
            if piece != "[OPTIONS]"
        ]
        options = [name.split("=")[0] for name, text in takes if (name, text) in shared and name.startswith("--")]
        if [*pieces, *options] and (options or len(own) < len(takes)):
            yield f"`{' '.join([*pieces, *options])}`"
    if own:
        yield listed(own)


def listed(takes: Iterable[tuple[str, str]]) -> str:
    """Return a list of arguments and options."""
    return "\n".join(f"- `{name}`: {described_option(name, text)}" for name, text in takes)


def escaped(text: str) -> str:
    """Return text in which Markdown finds nothing but code."""
    parts = text.split("`")
    for place in range(0, len(parts), 2):
        for mark in "\\*_[]<>|":
            parts[place] = parts[place].replace(mark, f"\\{mark}")
    return "`".join(parts)


def command_of(words: tuple[str, ...]) -> Any:  # noqa: ANN401
    """Return a command by its words."""
    command: Any = get_command(app)
    for word in words[1:]:
        command = command.commands[word]
    return command


def page() -> str:
    """Return the page."""
    shared = told_once(map(command_of, all_commands()), options=True)
    sections: dict[str, list[tuple[str, ...]]] = {"": []}
    for words in all_commands():
        if len(words) == 2 and words[1] in SECTIONS:
            sections[words[1]] = []
        list(sections.values())[-1].append(words)
    told: dict[str, tuple[str, ...]] = {}
    parts = [HEAD, f"{listed(shared)}\n"]
    for name, inside in sections.items():
        own = told_once(map(command_of, inside), options=False)
        parts += [part for part in (SECTIONS.get(name, ""), f"{listed(own)}\n" if own else "") if part]
        for words in inside:
            parts += [f"### {' '.join(words)}\n"] if len(words) > 1 else []
            body = "\n".join(f"{part}\n" for part in described(command_of(words), words, [*shared, *own]))
            same = told.setdefault(body, words)
            parts.append(body if same is words else f"As [{' '.join(same)}](#{'-'.join(same)}).\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
