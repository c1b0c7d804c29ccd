"""A writer of readable YAML for plain values. JSON would not do: PyYAML reads its 1e-06 as a string."""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 _,()/.-]*")
_NOT_TEXT = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
# Characters that YAML forbids in double quotes and JSON does not escape.
_ODD = re.compile(r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def to_yaml(document: Mapping[str, Any]) -> str:
    r"""Write mappings, lists, strings and numbers as a YAML document.

    Example:
        >>> print(to_yaml({"name": "scores", "price": {"epsilon": 1.0, "delta": 1e-6}, "by": ["a: b"]}), end="")
        name: scores
        price:
          epsilon: 1.0
          delta: 1.0e-06
        by:
          - "a: b"
    """
    return "\n".join(_map(document, "")) + "\n"


def _map(values: Mapping[str, Any], indent: str) -> list[str]:
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            lines += [f"{indent}{key}:", *_map(value, indent + "  ")]
        elif isinstance(value, list | tuple) and value:
            lines += [f"{indent}{key}:", *_list(value, indent + "  ")]
        else:
            lines.append(f"{indent}{key}: {_one(value, indent + '  ')}")
    return lines


def _list(values: Sequence[Any], indent: str) -> list[str]:
    lines = []
    for value in values:
        if isinstance(value, Mapping) and value:
            first, *more = _map(value, indent + "  ")
            lines += [f"{indent}- {first.removeprefix(indent + '  ')}", *more]
        else:
            lines.append(f"{indent}- {_one(value, indent + '  ')}")
    return lines


def _one(value: Any, indent: str) -> str:  # noqa: ANN401 (any plain value)
    if isinstance(value, str):
        return _text(value, indent)
    if isinstance(value, float):
        written = repr(value)
        return written.replace("e", ".0e") if "e" in written and "." not in written else written
    return json.dumps(value)


def _text(text: str, indent: str) -> str:
    """Write a string plain where that is unambiguous, folded where it is long, and otherwise in quotes."""
    if _PLAIN.fullmatch(text) and not text.endswith(" ") and text.lower() not in _NOT_TEXT and len(text) <= _WIDTH:
        return text
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    if len(text) > _WIDTH and " ".join(lines) == text and not _ODD.search(text):
        return "\n".join([">-", *(indent + line for line in lines)])
    return _ODD.sub(lambda found: f"\\U{ord(found.group()):08x}", json.dumps(text, ensure_ascii=False))
