"""Koga, Chaudhuri and Page (2024): SmoothDPMatching and MVAgg, over sites. The preprint has the same experiment."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.papers.multi_site import experiment, page, sensitivity
from benchmarks.papers.multi_site.claims import claims
from benchmarks.papers.multi_site.figures import draw
from benchmarks.papers.multi_site.tables import Setting, settings
from benchmarks.papers.paper import Paper, Result, Task

SPLITS, RUNS = 10, 10
"""How often units are spread over sites, and how often each spread is run: 100 runs, as in the paper."""
QUICK_SPLITS, QUICK_RUNS, QUICK_ALPHAS = 1, 10, (1 / 8, 1.0, 8.0)
AT_ONCE = 20
QUICK = (
    ("Synth", "1:1"),
    ("Synth", "18:1:1"),
    ("IHDP", "1:1"),
    ("Lalonde", "1:1"),
    ("IST", "1:1"),
    ("STAR", "urbanity"),
)
DRAWS, QUICK_DRAWS = 30, 3
TABLES, QUICK_TABLES = 120, 4
QUICK_EPSILONS = (0.5, 1.0, 4.0)


def tasks(quick: bool, data: Path | None) -> list[Task]:
    """Return the runs of all settings, ten at a time and all settings in turn, then those of one site."""
    places = [each for each in settings(data) if not quick or (each.name, each.split) in QUICK]
    alphas, runs = (QUICK_ALPHAS, QUICK_RUNS) if quick else (experiment.ALPHAS, RUNS)
    found = [
        Task(f"experiment | {place.name} | {place.split} | {number}", experiment.block, (place, number, runs, alphas))
        for number in range(QUICK_SPLITS if quick else SPLITS)
        for place in places
    ]
    points = [("units", float(n)) for n in sensitivity.UNITS if not quick or n <= 10_000]
    points += [("imbalance", a) for a in sensitivity.IMBALANCES]
    draws = QUICK_DRAWS if quick else DRAWS
    found += [
        Task(f"sensitivity | {against} | {at:g}", sensitivity.sensitivities_at, (against, at, draws))
        for against, at in points
    ]
    epsilons = QUICK_EPSILONS if quick else sensitivity.EPSILONS
    tables = QUICK_TABLES if quick else TABLES
    for first in range(0, tables, AT_ONCE):
        numbers = list(range(first, min(first + AT_ONCE, tables)))
        found.append(Task(f"one site | {first}", sensitivity.estimates, (numbers, epsilons)))
    return found


def left_out(quick: bool, data: Path | None) -> Iterator[str]:
    """Return what this run leaves out."""
    if data is None:
        yield "IHDP, Lalonde and STAR (Figures 5, 8 and 9), which do not ship with the benchmarks: give --data FOLDER"
    if quick:
        yield "most ways to spread units over sites, four of seven alphas, 90 of 100 runs"
    yield "recurrent stroke, the paper's outcome of IST: it is not in the published subset; death takes its place"


def result(found: Mapping[str, Any]) -> Result:
    """Return the figures from what the tasks found."""
    parts: dict[Setting, list[Any]] = {}
    lines, sites = [], []
    for key, value in found.items():
        kind, *where = key.split(" | ")
        if kind == "experiment":
            parts.setdefault(Setting(where[0], where[1]), []).append(value)
        elif kind == "sensitivity":
            lines.append(value)
        else:
            sites.append(value)
    alphas = next(iter(parts.values()))[0]["alphas"]
    return {
        "alphas": alphas,
        "delta": experiment.DELTA,
        "settings": [experiment.summed(setting, each) for setting, each in parts.items()],
        "sensitivities": lines,
        "one_site": sensitivity.errors(sites),
    }


PAPER = Paper(
    name="multi-site",
    title="Koga, Chaudhuri and Page (2024), Differentially private multi-site treatment effect estimation, SaTML",
    tasks=tasks,
    left_out=left_out,
    result=result,
    text=page.text,
    draw=draw,
    tables=page.tables,
    claims=claims,
)
