"""The site's search finds pages by the words that people type: the word, the page that comes first, and the check.

These are names of methods, arguments of other libraries, and terms whose page has another title. They are tags of
their page, which the theme's search ranks above titles. `ranked` is the theme's ranking: Lunr's without a correction
for length, over titles, texts and tags, and then more for pages than for sections, and for the share of words that are
found.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

NAMES: Mapping[str, tuple[str, ...]] = {
    "papers/private.md": ("PrivATE", "DPCI"),
    "papers/dp-cate.md": ("DP-CATE",),
    "papers/multi-site.md": ("SmoothDPMatching", "GlobalDPMatching", "MVAgg", "AggAll", "AggLargest"),
    "papers/pp-ipw.md": ("PP-IPW",),
    "how-to/csv.md": ("semicolon", "delimiter", "csv"),
    "how-to/missing.md": ("missing data", "NA", "imputation"),
    "ratios.md": ("p-value", "odds ratio", "conf_int"),
    "estimators.md": ("ATT", "ATE", "ATO", "AIPW"),
    "planning.md": ("power", "sample size"),
    "ledger.md": ("notebook", "budget exceeded"),
    "several-arms.md": ("Table 1",),
    "diagnostics.md": ("love plot", "positivity"),
    "interoperation.md": ("EconML", "scikit-learn"),
    "cells.md": ("decimal comma",),
}
"""What people type, by the page that must come first."""


def faults(index: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names for which another page comes first."""
    counts = counted(index)
    for page, names in NAMES.items():
        for name in names:
            first = next(iter(ranked(index, name, counts)), "no page")
            if first != page.removesuffix(".md") + "/":
                yield f"the search for {name} finds {first} first, and not {page}"


def counted(index: Mapping[str, Any]) -> list[dict[str, Counter[str]]]:
    """Return how often each field of each entry has each word; `index` is the theme's search_index.json."""
    separator, fields = index["config"]["separator"], index["config"]["fields"]
    return [{field: Counter(_words(entry.get(field, ""), separator)) for field in fields} for entry in index["docs"]]


def ranked(index: Mapping[str, Any], name: str, counts: Sequence[Mapping[str, Counter[str]]]) -> list[str]:
    """Return the pages that the theme's search finds for one word, best first; `counts` are those of the index."""
    separator = index["config"]["separator"]
    fields = {field: settings["boost"] for field, settings in index["config"]["fields"].items()}
    # A name with a hyphen is several words, of which the last may go on.
    *whole_words, beginning = _words(name, separator)
    rarities: dict[str, float] = {}
    for word in {word for entry in counts for words in entry.values() for word in words}:
        if word in whole_words or word.startswith(beginning):
            rarities[word] = _rarity(sum(word in words for entry in counts for words in entry.values()), len(counts))
    scores: dict[str, float] = {}
    for entry, words in zip(index["docs"], counts, strict=True):
        matched = rarities.keys() & set().union(*words.values())
        if not matched:
            continue
        page, _, section = entry["location"].partition("#")
        clauses = [word in matched for word in whole_words] + [any(word.startswith(beginning) for word in matched)]
        score = entry.get("boost", 1) * sum(
            boost * rarities[word] * 2.2 * words[field][word] / (1.2 + words[field][word])
            for field, boost in fields.items()
            for word in matched
        )
        score *= 1 + ((not section) + sum(clauses) / len(clauses)) ** 2
        scores[page] = max(scores.get(page, 0.0), score)
    return sorted(scores, key=scores.__getitem__, reverse=True)


def _words(text: str | list[str], separator: str) -> list[str]:
    """Return the words of a text without its markup, or of several texts."""
    texts = [text] if isinstance(text, str) else text
    pieces = [piece for each in texts for piece in re.split(r"<[^>]*>", each)]
    return [word for piece in pieces for word in re.split(separator, piece.lower()) if word]


def _rarity(fields: int, documents: int) -> float:
    return log(1 + abs((documents - fields + 0.5) / (fields + 0.5)))


def check(site: Path) -> list[str]:
    """Return what is wrong with the search of a site that was built."""
    return list(faults(json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))))
