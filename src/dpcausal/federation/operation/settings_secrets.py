"""Secrets in settings files: passwords in addresses, and values whose names say that they are secret."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import tomli_w

LEFT_OUT = "LEFT-OUT-OF-THE-BACKUP"
"""Stands in a backup where a secret was."""

_NAME = r"(?:secret|password|passwd|pwd|passphrase|token|credentials?|(?:api|access|private)_?key)"
_IS_SECRET = re.compile(rf"(?:^|.*[_-]){_NAME}", re.IGNORECASE)
_IN_VALUE = (
    re.compile(r"(://[^:/@\s]*:).*(?=@)"),  # of an address: up to the last @, since a password may hold one
    re.compile(rf"({_NAME}\s*=\s*)[^&#;]+", re.IGNORECASE),
)
_NAMES_OF_OTHERS = ("requesters", "sites")
"""Tables whose keys are names that people chose."""


def without_secrets(value: object, name: str = "") -> object:
    """Return a value of a settings file with a placeholder in place of every secret.

    Example:
        >>> without_secrets({"table": "postgresql://ann:4711@host/db#visits", "client_secret": "4711"})
        {'table': 'postgresql://ann:LEFT-OUT-OF-THE-BACKUP@host/db#visits', 'client_secret': 'LEFT-OUT-OF-THE-BACKUP'}
    """
    if isinstance(value, dict):
        named = name not in _NAMES_OF_OTHERS
        return {key: without_secrets(each, key if named else "") for key, each in value.items()}
    if isinstance(value, list):
        return [without_secrets(each, name) for each in value]
    if _IS_SECRET.fullmatch(name):
        return LEFT_OUT
    return _masked(value) if isinstance(value, str) else value


def copy_settings(source: Path, target: Path, names: Sequence[str]) -> Iterator[str]:
    """Copy settings files without their secrets, and yield what is left out, in words.

    A file with a secret is written anew, without its comments: these may hold others.
    """
    for name in names:
        text = (source / name).read_text(encoding="utf-8")
        try:
            document = tomllib.loads(text)
        except ValueError:
            yield f"{name}, which cannot be read"
            continue
        plain = without_secrets(document)
        if plain != document or _masked(text) != text:
            text = tomli_w.dumps(plain)  # type: ignore[arg-type]
            yield f"secrets in {name}"
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")


def missing_secrets(folder: Path) -> list[str]:
    """Return where in the settings files of a folder a secret was left out."""
    found = []
    for file in sorted((*folder.glob("*.toml"), *folder.glob("mailbox/*.toml"))):
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        found += [f"{place} in {file.relative_to(folder)}" for place in _placeholders(document)]
    return found


def _placeholders(value: object, place: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _placeholders(each, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for each in value:
            yield from _placeholders(each, place)
    elif isinstance(value, str) and LEFT_OUT in value:
        yield place


def _masked(text: str) -> str:
    for pattern in _IN_VALUE:
        text = pattern.sub(rf"\g<1>{LEFT_OUT}", text)
    return text
