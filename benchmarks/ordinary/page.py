"""What the page on ordinary tables says of stored results, and all of them as CSV."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ordinary.cells import GROUPS, TABLES
from benchmarks.ordinary.summary import NONE, Cell, proportion_error
from benchmarks.ordinary.targets import TARGETS, judged
from benchmarks.papers.paper import written
from benchmarks.parts import PUBLISHED

FILE = PUBLISHED / "ordinary.json"
PLANS = PUBLISHED / "ordinary_plans.json"
PAGE = Path(__file__).parents[2] / "docs" / "ordinary-tables.md"
CSV = PAGE.with_suffix(".csv")

Stored = Mapping[str, Any]
"""Which code ran, and its summaries by table with its size, and by estimator."""

Plans = Mapping[str, Mapping[str, float]]
"""By table, the half width of a plan from guesses, of a plan that knows arms and outcome, and the one that came."""

_FRESH = [table.name for table in GROUPS["not seen before"]]
_CURVED = "M"
_COLUMNS = (
    *("table", "units", "runs", "given", "coverage", "bias_over_sd", "wrong_sign"),
    *("half_width", "half_width_over_aipw", "half_width_over_aipw_of_main_effects"),
    *("plan_from_guesses_over_realised", "plan_that_knows_arms_and_outcome_over_realised"),
    *("without_privacy_coverage", "without_privacy_bias_over_sd"),
)


def as_text(stored: Stored) -> str:
    """Return results as JSON, with one line for each cell."""
    cells = (
        f'  "{at}": {{\n'
        + ",\n".join(f'   "{estimator}": {json.dumps(cell)}' for estimator, cell in estimators.items())
        + "\n  }"
        for at, estimators in stored["cells"].items()
    )
    return f'{{\n "code": "{stored["code"]}",\n "cells": {{\n' + ",\n".join(cells) + "\n }\n}\n"


def publish() -> None:
    """Write page and CSV from the stored results."""
    stored, plans = (json.loads(file.read_text(encoding="utf-8")) for file in (FILE, PLANS))
    PAGE.write_text(page(stored, plans, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    CSV.write_text(as_csv(stored, plans), encoding="utf-8")


def page(stored: Stored, plans: Plans, text: str) -> str:
    """Return the page's text with its tables written afresh."""
    tables = {"coverage": _coverage(stored["cells"]), "targets": _targets(stored), "plans": _plans(plans)}
    return written(text, tables)


def as_csv(stored: Stored, plans: Plans) -> str:
    """Return a line for each table, a cell without a value empty."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for name, table in TABLES.items():
        cell, plain = (
            stored["cells"][f"{name} {table.n}"][each] for each in ("first ranked", "no privacy, main effects")
        )
        plan = plans[name]
        writer.writerow(
            [name, table.n]
            + [cell.get(key) for key in ("runs", "given", "coverage", "bias_over_sd", "wrong_sign")]
            + [cell.get(key) for key in ("half_width", "width", "width_over_main")]
            + [f"{plan[key] / plan['realised']:.3f}" for key in ("guessed", "known")]
            + [plain.get(key) for key in ("coverage", "bias_over_sd")]
        )
    return held.getvalue()


def _coverage(cells: Mapping[str, Mapping[str, Cell]]) -> Iterator[str]:
    """Yield how often intervals were given and covered, and how wide they were."""
    yield (
        "| table | given | covered | coverage, % | wrong sign | half width / AIPW "
        "| AIPW of main effects without privacy: coverage, % |"
    )
    yield "|---|---|---|---|---|---|---|"
    others = [name for name in TABLES if name not in {*_FRESH, _CURVED}]
    groups = [([name], name) for name in _FRESH]
    groups += [(_FRESH, "**these four**"), ([_CURVED], _CURVED), (others, f"**the other {len(others)}**")]
    for names, shown in groups:
        found = [cells[f"{name} {TABLES[name].n}"] for name in names]
        runs, given, covered, wrong = (sum(each) for each in zip(*map(_counts, found), strict=True))
        share = covered / given
        error = 100 * proportion_error(share, given)
        widths = sorted(each["first ranked"]["width"] for each in found)
        plain = sorted(100 * each["no privacy, main effects"]["coverage"] for each in found)
        yield (
            f"| {shown} | {given:,} of {runs:,} | {covered:,} | {100 * share:.1f} ± {error:.1f} | {wrong} "
            f"| {_range(widths, 2)} | {_range(plain, 0)} |"
        )


def _counts(of: Mapping[str, Cell]) -> tuple[int, int, int, int]:
    cell = of["first ranked"]
    given = round(cell["runs"] * cell["given"])
    return int(cell["runs"]), given, round(given * cell["coverage"]), round(cell["runs"] * cell["wrong_sign"])


def _range(values: Sequence[float], digits: int) -> str:
    low, high = (f"{value:.{digits}f}" for value in (values[0], values[-1]))
    return low if len(values) == 1 else f"{low} to {high}"


def _targets(stored: Stored) -> Iterator[str]:
    met: list[str] = []
    yield "| target for what is ranked first | met | unclear | missed | furthest from it |"
    yield "|---|---|---|---|---|"
    for target in TARGETS:
        verdicts = judged(target, stored["cells"])
        counts = [sum(each.verdict == word for each in verdicts) for word in ("met", "unclear", "missed")]
        if not counts[1] + counts[2]:
            met.append(target.about)
            continue
        worst = max(verdicts, key=lambda each: each.distance)
        name = f"{worst.at.rpartition(' ')[0]}: {worst.shown}" if worst.distance > 0 else NONE
        yield f"| {target.about} | {' | '.join(map(str, counts))} | {name} |"
    yield f"\nThe other {len(met)} of {len(TARGETS)} targets were met on all of their tables."


def _plans(plans: Plans) -> Iterator[str]:
    """Yield how many plans were near what came, and the tables on which a plan that knows the most was not."""
    ratios = {name: [each[key] / each["realised"] for key in ("guessed", "known")] for name, each in plans.items()}
    near = [sum(0.8 <= each[place] <= 1.25 for each in ratios.values()) for place in (0, 1)]
    yield "| table | plan from guesses / realised | plan that knows arms and outcome / realised |"
    yield "|---|---|---|"
    yield f"| within 0.8 and 1.25 | {near[0]} of {len(ratios)} | {near[1]} of {len(ratios)} |"
    for name, both in ratios.items():
        if not all(0.75 <= each <= 1.33 for each in both):
            yield f"| {name} | {both[0]:.2f} | {both[1]:.2f} |"
