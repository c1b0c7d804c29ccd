"""What pages share: lists in parts, filters from the address, and files for download."""

from collections.abc import Sequence
from typing import TypeVar

from flask import Response, request

SIZE = 100
"""The most items of a list that a page shows."""

Item = TypeVar("Item")


def part_of(items: Sequence[Item], size: int = SIZE) -> tuple[Sequence[Item], int, int]:
    """Return the part of a list that the address asks for, its place, and the number of parts."""
    parts = max(-(-len(items) // size), 1)
    asked = request.args.get("page", "1")
    place = min(max(int(asked), 1), parts) if asked.isdecimal() and len(asked) < 9 else 1
    return items[(place - 1) * size : place * size], place, parts


def filters(*names: str) -> dict[str, str]:
    """Return what the address asks for under these names."""
    return {name: request.args.get(name, "").strip() for name in names}


def text_file(text: str | bytes, name: str, kind: str) -> Response:
    """Return a file for download."""
    return Response(text, mimetype=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
