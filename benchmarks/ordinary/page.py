"""The tables of the page on ordinary tables, from stored results."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.ordinary.cells import TABLES
from benchmarks.ordinary.runs import ESTIMATORS
from benchmarks.ordinary.summary import NONE, Cell, proportion_error
from benchmarks.ordinary.targets import TARGETS, WIDTHS, judged
from benchmarks.parts import PUBLISHED

FILE = PUBLISHED / "ordinary.json"
PAGE = Path(__file__).parents[2] / "docs" / "ordinary-tables.md"
STAGES = ("before", "after")
_BEGIN, _END = "<!-- results begin -->", "<!-- results end -->"
_COLUMNS = (
    *("table", "runs", "given, %", "coverage, %"),
    *("half width / AIPW", "half width / AIPW of main effects", "bias / sd", "plan / realised", "wrong sign, %"),
)

Stored = Mapping[str, Mapping[str, Any]]
"""By stage: which code ran, and its summaries."""


def as_text(stored: Stored) -> str:
    """Return results as JSON, with one line for each cell."""
    stages = []
    for stage, of in stored.items():
        cells = (
            f'  "{at}": {{\n'
            + ",\n".join(f'   "{estimator}": {json.dumps(cell)}' for estimator, cell in estimators.items())
            + "\n  }"
            for at, estimators in of["cells"].items()
        )
        stages.append(f' "{stage}": {{\n  "code": "{of["code"]}",\n  "cells": {{\n' + ",\n".join(cells) + "\n  }\n }")
    return "{\n" + ",\n".join(stages) + "\n}\n"


def page(stored: Stored, text: str) -> str:
    """Return the page's text with its tables written afresh."""
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    return before + _BEGIN + "\n\n" + "\n".join(_written(stored)) + "\n\n" + _END + after


def _written(stored: Stored) -> Iterator[str]:
    yield "## Targets\n"
    ran = (f"{stage} `{stored[stage]['code']}`" if stage in stored else f"{stage} {NONE}" for stage in STAGES)
    yield f"Version and digest of the code: {', '.join(ran)}.\n"
    yield from _targets(stored)
    for estimator in ESTIMATORS:
        yield f"\n## {estimator[0].upper()}{estimator[1:]}\n"
        yield f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"
        for at in _all(stored):
            found = [stored.get(stage, {}).get("cells", {}).get(at, {}).get(estimator) for stage in STAGES]
            if any(found):
                yield f"| {_label(at)} | {' | '.join(_pairs(found))} |"
    yield "\n## Without privacy, main effects\n"
    yield "| table | coverage, % | bias / sd | half width / AIPW |\n|---|---|---|---|"
    for at in _all(stored):
        stage = next(each for each in reversed(STAGES) if at in stored.get(each, {}).get("cells", {}))
        cell = stored[stage]["cells"][at].get("no privacy, main effects")
        if cell:
            bias = f"{cell['bias_over_sd']:.2f}" if "bias_over_sd" in cell else NONE
            yield f"| {_label(at)} | {_with_error(cell, 'coverage')} | {bias} | {cell['width']:.2f} |"


def _all(stored: Stored) -> list[str]:
    """Return all tables with their sizes, in the order of the suite."""
    found = {at for stage in STAGES for at in stored.get(stage, {}).get("cells", {})}
    order = list(TABLES)
    return sorted(found, key=lambda at: (order.index(at.rpartition(" ")[0]), int(at.rpartition(" ")[2])))


def _label(at: str) -> str:
    name, _, n = at.rpartition(" ")
    return name if int(n) == 20_000 else f"{name}, {int(n):,} units"


def _pairs(found: list[Cell | None]) -> Iterator[str]:
    """Yield each column, before and after."""

    def both(show: Any) -> str:  # noqa: ANN401 (a function of a summary)
        return " → ".join(NONE if cell is None else show(cell) for cell in found)

    yield both(lambda cell: f"{cell['runs']:.0f}")
    yield both(lambda cell: f"{100 * cell['given']:.0f}")
    yield both(lambda cell: _with_error(cell, "coverage"))
    yield both(lambda cell: f"{cell['width']:.2f}" if "width" in cell else NONE)
    yield both(lambda cell: f"{cell['width_over_main']:.2f}" if "width" in cell else NONE)
    yield both(lambda cell: f"{cell['bias_over_sd']:.2f}" if "bias_over_sd" in cell else NONE)
    yield both(lambda cell: f"{cell['plan_over_realised']:.2f}" if "plan_over_realised" in cell else NONE)
    yield both(lambda cell: f"{100 * cell['wrong_sign']:.1f}")


def _with_error(cell: Cell, name: str) -> str:
    if name not in cell:
        return NONE
    return f"{100 * cell[name]:.0f} ± {100 * proportion_error(cell[name], cell['runs'] * cell['given']):.0f}"


def _targets(stored: Stored) -> Iterator[str]:
    yield "| target | " + " | ".join(f"{stage}: met, unclear, missed | worst" for stage in STAGES) + " |"
    yield "|---|" + "---|---|" * len(STAGES)
    for target in (*TARGETS, *WIDTHS):
        shown = []
        for stage in STAGES:
            verdicts = judged(target, stored.get(stage, {}).get("cells", {}))
            if not verdicts:
                shown.append(f"{NONE} | {NONE}")
                continue
            counts = [sum(each.verdict == word for each in verdicts) for word in ("met", "unclear", "missed")]
            worst = max(verdicts, key=lambda each: each.distance)
            name = f"{_label(worst.at)}, {worst.estimator}: {worst.shown}" if worst.distance > 0 else NONE
            shown.append(f"{counts[0]}, {counts[1]}, {counts[2]} | {name}")
        yield f"| {target.about} | {' | '.join(shown)} |"
