"""Results as text."""

from collections.abc import Sequence

Line = dict[str, object]


def printed(lines: Sequence[Line], title: str) -> str:
    """Return a table as text; of a mean with its spread the mean."""
    shown = [
        {name: value["mean"] if isinstance(value, dict) else value for name, value in line.items()} for line in lines
    ]
    names = list(shown[0])
    texts = [names, *([str("-" if line[name] is None else line[name]) for name in names] for line in shown)]
    widths = [max(len(text[place]) for text in texts) for place in range(len(names))]
    table = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in texts]
    return "\n".join([title, *table])
