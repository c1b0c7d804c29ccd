"""The page `The papers`: every item and every claim of the five papers, counted from `items.csv` and stored results."""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.papers.paper import VERDICTS, Claim, Paper, Result
from benchmarks.parts import PUBLISHED

PAPERS = {"private": "private", "dp-cate": "dp_cate", "multi-site": "multi_site", "pp-ipw": "pp_ipw"}
"""What the command calls a paper, and its package."""

PAGES = ("private", "dp-cate", "multi-site", "multi-site-preprint", "pp-ipw")
"""The papers; the preprint shares a command and a page with the paper that came of it."""

_PREPRINT = "SmoothDPMatching and MVAgg, preprint (Koga, Chaudhuri and Page 2023)", "multi-site.md#the-preprint"

STATUSES = ("same", "corrected", "replaced", "not reproduced")

FOLDER = Path(__file__).parents[2] / "docs" / "papers"


def paper_of(name: str) -> Paper:
    """Return the experiment that the command calls by this name."""
    paper: Paper = import_module(f"benchmarks.papers.{PAPERS[name]}").PAPER
    return paper


def stored(name: str) -> Result:
    """Return the figures that the documentation reports for a paper."""
    result: Result = json.loads((PUBLISHED / f"papers_{PAPERS[name]}.json").read_text(encoding="utf-8"))
    return result


def statuses(name: str) -> list[str]:
    """Return the status of each item of a paper, in their order."""
    with (FOLDER / "items.csv").open(encoding="utf-8", newline="") as file:
        found = [item for item in csv.DictReader(file) if item["paper"] == name]
    if [int(item["item"]) for item in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the items of {name} are not numbered from 1: {[item['item'] for item in found]}")
    return [item["status"] for item in found]


def index_tables() -> dict[str, Iterator[str]]:
    """Return the tables of the page `The papers`, from `items.csv` and the stored results."""
    claims = {name: paper_of(name).claims(stored(name)) for name in PAPERS}
    return {"items": _items(), "claims": _claims(claims)}


def _items() -> Iterator[str]:
    yield f"| paper | items | {' | '.join(STATUSES)} |"
    yield "|---" * (len(STATUSES) + 2) + "|"
    total: Counter[str] = Counter()
    for name in PAGES:
        counted = Counter(statuses(name))
        total += counted
        title, place = _PREPRINT if name == "multi-site-preprint" else (_title(name), f"{name}.md#every-item")
        yield _row(f"[{title}]({place})", counted, STATUSES)
    yield _row("all", total, STATUSES)


def _title(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]


def _row(name: str, counted: Counter[str], columns: Sequence[str]) -> str:
    return f"| {name} | {counted.total()} | {' | '.join(str(counted[column]) for column in columns)} |"


def _claims(claims: Mapping[str, Sequence[Claim]]) -> Iterator[str]:
    yield f"| paper | claims | {' | '.join(VERDICTS)} |"
    yield "|---" * (len(VERDICTS) + 2) + "|"
    total: Counter[str] = Counter()
    for name, each in claims.items():
        counted = Counter(claim.verdict for claim in each)
        total += counted
        yield _row(f"[{_title(name)}]({name}.md#what-the-paper-claims-what-we-measured)", counted, VERDICTS)
    yield _row("all", total, VERDICTS)
