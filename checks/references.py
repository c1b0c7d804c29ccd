"""BibTeX beside each estimator, from docs/references.bib."""

import inspect
import re
from pathlib import Path

import dpcausal

FILE = Path(__file__).parents[1] / "docs" / "references.bib"
_FIELD = re.compile(r"^  estimators = \{([^}]*)\},\n", re.MULTILINE)
_NO_ESTIMATORS = ("EffectCurve", "Ranking")
"""Results and rankings that have a method `estimate` and estimate nothing themselves."""


def entries() -> list[tuple[str, tuple[str, ...]]]:
    """Return every entry as a reader copies it, and the estimators that rest on it."""
    found = []
    for entry in re.findall(r"^@\w+\{.*?^\}$", FILE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        field = _FIELD.search(entry)
        names = tuple(name.strip() for name in field[1].split(",")) if field else ()
        found.append((_FIELD.sub("", entry), names))
    return found


def estimators() -> list[str]:
    """Return the names of all public estimators."""
    kinds = {name: getattr(dpcausal, name) for name in dpcausal.__all__}
    return [
        name
        for name, kind in kinds.items()
        if inspect.isclass(kind) and callable(getattr(kind, "estimate", None)) and name not in _NO_ESTIMATORS
    ]


def block(name: str) -> str:
    """Return what an estimator's place in the reference shows: a box that opens, with a block to copy."""
    texts = [entry for entry, names in entries() if name in names]
    if not texts:
        return ""
    lines = "\n\n".join(texts).replace("\n", "\n    ")
    return f'\n\n??? quote "BibTeX for {name}"\n\n    ```bibtex\n    {lines}\n    ```\n'.replace("\n    \n", "\n\n")


def cited(markdown: str) -> str:
    """Return a page of the reference with the entries beside each estimator."""
    known = set(estimators())

    def replaced(match: re.Match[str]) -> str:
        return match[0].rstrip("\n") + (block(match[1]) if match[1] in known else "") + "\n"

    return re.sub(r"^::: dpcausal\.(\w+)\n(?:    .*\n|\n(?=    ))*", replaced, markdown + "\n", flags=re.MULTILINE)
