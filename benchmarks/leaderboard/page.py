"""The stored result and the page that reports it: what a run replaces, and every table and number on the page."""

import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.leaderboard import data
from benchmarks.leaderboard.contestants import NO_PRIVACY
from benchmarks.leaderboard.figures import draw
from benchmarks.leaderboard.summary import Line
from benchmarks.papers.paper import written
from benchmarks.parts import PUBLISHED

Key = tuple[str, float, str]
"""Table, epsilon and contestant."""

RESULT = PUBLISHED / "leaderboard.json"
DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("leaderboard.md", "estimators.md")

MAIN = "20000/10/1"
SMALLER = "5000/10/1"
NONE = "\N{EN DASH}"
OWNERS = {"ours": "dpcausal", "paper": "paper", "peer": "peer", "reference": NONE}
PAPERS = {
    "weighting": "Lee et al. 2019, IPW, public bounds",
    "exact matching": "Koga et al. 2024, smooth matching, corrected",
    "matching": "Yuan et al. 2025, sample level, corrected",
}

BY_SIZE = {
    "no privacy, for comparison": NO_PRIVACY,
    "`InverseWeighting`, ATO": "overlap weighting",
    "`RegressionAdjustment`": "regression adjustment",
    "`InverseWeighting`, ATE": "weighting",
    "`DoublyRobust`": "doubly robust",
    "what `rank_estimators` picks": "what rank_estimators picks",
    "`Stratification` by two of the four": "stratification",
    "`DifferenceInMeans`": "difference in means",
    "best private estimator of the papers": PAPERS["weighting"],
}


def merged(stored: Mapping[str, Any], new: Mapping[str, Any], date: dt.date) -> dict[str, Any]:
    """Return the stored result with the lines of a new run in the place of theirs."""
    lines = {_key(line): line for line in stored["lines"]}
    lines |= {_key(line): line | {"date": date.isoformat()} for line in new["lines"]}
    dated = [each | {"date": date.isoformat()} for each in new["choices"]]
    kept = {(each["table"], each["epsilon"]): each for each in (*stored["choices"], *dated)}
    order = [lines[key] for key in sorted(lines, key=lambda key: (key[0], key[1], lines[key]["error"]))]
    return {**stored, "lines": order, "choices": [kept[key] for key in sorted(kept)]}


def publish(new: Mapping[str, Any]) -> None:
    """Put a run into the stored result, and write pages and figures from it."""
    today = dt.datetime.now(tz=dt.UTC).date()
    result = merged(json.loads(RESULT.read_text(encoding="utf-8")), new, today)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    draw(result, DOCS / "figures")
    data.write(result, DOCS)
    for name in PAGES:
        page = DOCS / name
        page.write_text(rewritten(page.read_text(encoding="utf-8"), result), encoding="utf-8")


def rewritten(page: str, result: Mapping[str, Any]) -> str:
    """Return a page with what it reports of the result written afresh."""
    return written(page, {name: text for name, text in tables(result).items() if f"<!-- {name} begin -->" in page})


def tables(result: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return all that the pages report, by the name of its place."""
    found = Found(result)
    return {
        "short": [*_short(found), *_short_of_choices(result["choices"])],
        MAIN: list(_table(found)),
        "ratios": list(_ratios(found)),
        "luck": list(_luck(found)),
        "sizes": list(_sizes(found)),
    }


class Found:
    """Lines of the result by table, epsilon and contestant."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.lines: Sequence[Line] = result["lines"]
        self._by: dict[Key, Line] = {_key(line): line for line in self.lines}
        self.newest = max(line["date"] for line in self.lines)

    def line(self, table: str, epsilon: float, contestant: str) -> Line | None:
        """Return a line, if there is one."""
        return self._by.get((table, epsilon, contestant))

    def __getitem__(self, key: Key) -> Line:
        return self._by[key]

    def error(self, contestant: str, table: str = MAIN, epsilon: float = 1.0) -> float:
        """Return the mean relative error of a line that there is."""
        return float(self[table, epsilon, contestant]["error"])

    def at(self, table: str, epsilon: float) -> list[Line]:
        """Return the lines of a table and an epsilon, the smallest error first."""
        lines = [line for line in self.lines if (line["table"], line["epsilon"]) == (table, epsilon)]
        return sorted(lines, key=lambda line: float(line["error"]))

    def nearest_peer(self, epsilon: float = 1.0) -> Line:
        """Return the private peer with the smallest error on the main table."""
        return next(line for line in self.at(MAIN, epsilon) if line["group"] == "peer" and line["private"])


def _key(line: Line) -> Key:
    return line["table"], line["epsilon"], line["contestant"]


def number(value: float) -> str:
    """Return an error with as many digits as it deserves."""
    digits = 4 if value < 0.01 else 3 if value < 1 else 2 if value < 10 else 0
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value < 1 else text


def percent(value: float) -> str:
    """Return a share in percent, with two digits where it is small."""
    return f"{100 * value:.{1 if value < 0.0995 else 0}f} %"


def _short(found: Found) -> Iterator[str]:
    main, peer = found.error, found.nearest_peer()
    papers = {name: main(label) for name, label in PAPERS.items()}
    listed = ", ".join(f"{percent(error)} ({name})" for name, error in papers.items())
    best = min(("doubly robust", "regression adjustment"), key=main)
    yield (
        f"- **20,000 units, ten covariates, epsilon 1** ({found[MAIN, 1.0, best]['runs']} repeats). "
        f"`DoublyRobust` has a mean error of {percent(main('doubly robust'))}, `RegressionAdjustment` of "
        f"{percent(main('regression adjustment'))}, what `rank_estimators` picks of "
        f"{percent(main('what rank_estimators picks'))}. "
        f"The papers' private estimators have {listed}. The nearest peer is {peer['contestant']}. "
        f"{_against(found, best, peer)}"
    )
    for n in (5_000, 1_000):
        table = f"{n}/10/1"
        first = [line for line in found.at(table, 1.0) if line["private"]]
        ours = next(line for line in first if line["group"] == "ours")
        theirs = next(line for line in first if line["group"] != "ours")
        yield (
            f"- **{n:,} units, epsilon 1**: our best ({ours['contestant']}) {percent(ours['error'])}, the best private "
            f"one of others ({theirs['contestant']}) {percent(theirs['error'])}, without privacy "
            f"{percent(main(NO_PRIVACY, table))}."
        )


def _short_of_choices(choices: Sequence[Line]) -> Iterator[str]:
    near, nearer = (sum(each["ratio"] <= 1.25 for each in choices), sum(each["below_matching"] for each in choices))
    yield (
        "- **Small classic sets**: a plain private difference in means is hard to beat. `rank_estimators` picks from "
        f"public numbers only. Its choice has at most 1.25 times the error of our best in {near} of {len(choices)} "
        f"cells, and less error than the paper's sample-level matching in {nearer} "
        f"(run of {min(each['date'] for each in choices)})."
    )


def _when(found: Found, line: Line) -> str:
    return f" (run of {line['date']})" if line["date"] < found.newest else ""


def _against(found: Found, name: str, peer: Line) -> str:
    """Whether the better of two of ours differs from the nearest peer by more than chance."""
    ours = found[MAIN, 1.0, name]
    gap = peer["error"] - ours["error"]
    if abs(gap) < 2 * math.hypot(peer["error_se"], ours["error_se"]):
        return f"The repeats show no difference between {name} and that peer."
    return f"Its error is {'above' if gap > 0 else 'below'} that of {name} by more than two standard errors."


def _table(found: Found) -> Iterator[str]:
    yield '<div class="sortable" markdown>'
    yield ""
    yield "| estimator | from | error | given, % | covers, % | 5,000 units: error | covers, % |"
    yield "|---|---|---|---|---|---|---|"
    for line in found.at(MAIN, 1.0):
        if not (line["private"] or line["group"] == "reference"):
            continue
        name, given = line["contestant"], f"{100 * line['intervals']:.0f}"
        cells = [_cell(found, MAIN, name), given, _covers(line)]
        cells += [_cell(found, SMALLER, name), _covers(found.line(SMALLER, 1.0, name))]
        yield f"| {_named(line)} | {' | '.join(cells)} |"
    yield ""
    yield "</div>"


def _covers(line: Line | None) -> str:
    return NONE if line is None or line["coverage"] is None else f"{100 * line['coverage']:.0f}"


def _named(line: Line) -> str:
    note = "" if line["private"] or line["group"] == "reference" else " (**not private**)"
    return f"{line['contestant']}{note} | {OWNERS[line['group']]}"


def _cell(found: Found, table: str, contestant: str) -> str:
    line = found.line(table, 1.0, contestant)
    if line is None:
        return NONE
    return f"{number(line['error'])}{'†' if line['date'] < found.newest else ''}"


def _ratios(found: Found) -> Iterator[str]:
    sizes = (1_000, 5_000, 20_000)
    yield f"| estimator | {' | '.join(f'{n:,} units' for n in sizes)} |"
    yield f"|---|{'---|' * len(sizes)}"
    enough = []
    for name in ("regression adjustment", "doubly robust", "overlap weighting", "weighting", "difference in means"):
        lines = [found.line(f"{n}/10/1", 1.0, name) for n in sizes]
        shown = [
            NONE if line is None else f"{line['privacy_to_sampling']:.2f}{'†' if line['date'] < found.newest else ''}"
            for line in lines
        ]
        yield f"| {name} | {' | '.join(shown)} |"
        units = 20_000 * found[MAIN, 1.0, name]["privacy_to_sampling"] ** 2
        enough.append(f"{float(f'{units:.2g}'):,.0f} for {name}")
    yield ""
    yield (
        f"The ratio falls with √n. By that rule it reaches 1 near this many units: {', '.join(enough[:-1])} "
        f"and {enough[-1]}."
    )


def _luck(found: Found) -> Iterator[str]:
    def bias(contestant: str, table: str) -> str:
        value = found[table, 4.0, contestant]["bias"]
        return f"{100 * value:+.{0 if abs(value) > 0.02 else 1}f} %"

    turned = "20000/10/-1"
    yield (
        f"At epsilon 4, sample-level matching has a bias of {bias(PAPERS['matching'], MAIN)} where confounding adds a "
        f"fifth, and of {bias(PAPERS['matching'], turned)} where it subtracts a fifth. It hardly adjusts, and shrinks "
        f"every effect. The bias of `DoublyRobust` is {bias('doubly robust', MAIN)} and {bias('doubly robust', turned)}"
        f"{_when(found, found[turned, 4.0, 'doubly robust'])}."
    )


def _sizes(found: Found) -> Iterator[str]:
    sizes = (1_000, 5_000, 20_000, 100_000)
    yield f"| | {' | '.join(f'{n:,} units' for n in sizes)} |"
    yield f"|---|{'---|' * len(sizes)}"
    for shown, name in BY_SIZE.items():
        lines = [found[f"{n}/10/1", 1.0, name] for n in sizes]
        cells = [percent(line["error"]) + _given(line) for line in lines]
        yield f"| {shown} | {' | '.join(cells)} |"


def _given(line: Line) -> str:
    if line["group"] == "reference":
        return ""
    return (
        " (all)" if line["intervals"] == 1 else f" ({100 * line['intervals']:.0f} %)" if line["intervals"] else " (0)"
    )
