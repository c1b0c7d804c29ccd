"""What runs of one estimator on one table come to, with Monte Carlo errors."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.ordinary.cells import TABLES
from benchmarks.ordinary.records import read, sizes
from benchmarks.ordinary.runs import ESTIMATORS, NO_REPORT, Run
from benchmarks.ordinary.truth import truths

NONE = "-"
_ENOUGH = 5
"""From so many runs on there is a standard deviation to speak of."""

Cell = Mapping[str, float]
Cells = Mapping[str, Mapping[str, Cell]]
"""Summaries by table with its size, and by estimator."""


def truth_of(table: str, run: Run) -> float | None:
    """Return the true value of the estimand that a run printed; None where the words are not known."""
    if run["of"] == "strata":
        return truths()[table]["compared"]["ATE"] + float(run["shift"])
    return truths()[table]["compared"].get(run["of"])


def summary(table: str, runs: Sequence[Run]) -> dict[str, float]:
    """Return what runs of one estimator on one table come to."""
    failed = sum("error" in run for run in runs)
    known = [(run, truth) for run in runs if "error" not in run and (truth := truth_of(table, run)) is not None]
    found: dict[str, float] = {"runs": len(runs)}
    if failed:
        found["failed"] = failed
    if len(known) < len(runs) - failed:
        found["estimand_unknown"] = len(runs) - failed - len(known)
    given = [(run, truth) for run, truth in known if "half" in run]
    found["given"] = round(len(given) / len(runs), 4)
    errors = np.array([run["estimate"] - truth for run, truth in known])
    if len(errors) >= _ENOUGH:
        found["bias_over_sd"] = round(float(errors.mean() / errors.std(ddof=1)), 3)
    wrong = sum((_direction(run), truth > 0) in {("higher", False), ("lower", True)} for run, truth in known)
    found["wrong_sign"] = round(wrong / len(runs), 4)
    if unreported := sum(run["verdict"] == NO_REPORT for run, _ in known):
        found["no_report"] = unreported
    if given:
        covered = [abs(_middle(run) - truth) <= run["half"] for run, truth in given]
        widths = np.array([run["half"] / 1.96 / _reference(run) for run, _ in given])
        found["coverage"] = round(float(np.mean(covered)), 4)
        found["width"], found["width_error"] = _median(widths)
        found["width_over_main"], _ = _median(np.array([run["half"] / 1.96 / run["plain"][1] for run, _ in given]))
        halves = np.array([run["half"] for run, _ in given])
        found["half_width"] = float(f"{np.median(halves):.4g}")
        if plans := [run["plan"] for run, _ in given if run["plan"]]:
            found["plan_over_realised"] = float(f"{np.median(plans) / np.median(halves):.4g}")
    found["cpu"] = float(f"{np.mean([run['cpu'] for run in runs]):.3g}")
    return found


def _direction(run: Run) -> str:
    """Return what the report concluded; without a report, what its interval would have said."""
    if run["verdict"] != NO_REPORT or "half" not in run:
        return str(run["verdict"])
    middle = _middle(run)
    return "higher" if middle > run["half"] else "lower" if middle < -run["half"] else "inconclusive"


def _middle(run: Run) -> float:
    """Return the middle of an interval."""
    return float(run["middle"] if "middle" in run else run["estimate"])


def _reference(run: Run) -> float:
    """Return the standard error of AIPW with the right features for the same estimand; of strata, for the average."""
    return float(run["aipw"].get(run["of"], run["aipw"]["ATE"])[1])


def _median(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Return a median and its Monte Carlo error."""
    spread = 1.2533 * float(np.std(values)) / math.sqrt(len(values))
    return float(f"{np.median(values):.4g}"), float(f"{spread:.2g}")


def proportion_limits(share: float, runs: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a proportion."""
    z = 1.96
    middle = (share + z**2 / (2 * runs)) / (1 + z**2 / runs)
    half = z / (1 + z**2 / runs) * math.sqrt(share * (1 - share) / runs + z**2 / (4 * runs**2))
    return middle - half, middle + half


def proportion_error(share: float, runs: float) -> float:
    """Return the Monte Carlo error of a proportion, which is not 0 where all runs agree."""
    low, high = proportion_limits(share, runs)
    return (high - low) / 2 / 1.96


def summaries(folder: Path, version: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return the summaries of all runs of one version of the code."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for table in TABLES:
        for estimator in ESTIMATORS:
            for n in sizes(folder, table, estimator):
                if runs := read(folder, table, n, estimator, version):
                    found.setdefault(f"{table} {n}", {})[estimator] = summary(table, runs)
                    if estimator == "first ranked":
                        found[f"{table} {n}"]["no privacy, main effects"] = _plain(table, runs)
    return found


def _plain(table: str, runs: Sequence[Run]) -> dict[str, float]:
    """Return how AIPW with main effects does without privacy, on the same tables as they are recorded."""
    truth = truths()[table]["compared"]["ATE"]
    errors = np.array([run["plain"][0] - truth for run in runs])
    ratios = np.array([run["plain"][1] / run["aipw"]["ATE"][1] for run in runs])
    width, error = _median(ratios)
    covered = np.abs(errors) <= 1.96 * np.array([run["plain"][1] for run in runs])
    found = {"runs": len(runs), "given": 1.0, "coverage": round(float(covered.mean()), 4)}
    if len(errors) >= _ENOUGH:
        found["bias_over_sd"] = round(float(errors.mean() / errors.std(ddof=1)), 3)
    return found | {"width": width, "width_error": error}


def lines(cells: Cells) -> list[str]:
    """Return summaries as lines for people."""
    head = f"{'table':22} {'estimator':26} {'runs':>4} {'given':>12} {'coverage':>12} {'width':>14} {'/main':>6} "
    text = [head + f"{'bias/sd':>14} {'plan/real':>9} {'wrong':>6} {'cpu s':>6}"]
    for at, estimators in cells.items():
        for estimator, cell in estimators.items():
            text.append(f"{at:22} {estimator:26} {cell['runs']:4.0f} " + " ".join(_numbers(cell)))
    return text


def _numbers(cell: Cell) -> list[str]:
    runs = cell["runs"]
    shown = [
        f"{_share(cell.get('given'), runs):>12}",
        f"{_share(cell.get('coverage'), runs * cell['given']):>12}",
        f"{cell['width']:7.2f} ± {cell['width_error']:4.2f}" if "width" in cell else f"{NONE:>14}",
        f"{cell['width_over_main']:6.2f}" if "width_over_main" in cell else f"{NONE:>6}",
        f"{cell['bias_over_sd']:7.2f} ± {runs**-0.5:4.2f}" if "bias_over_sd" in cell else f"{NONE:>14}",
        f"{cell['plan_over_realised']:9.2f}" if "plan_over_realised" in cell else f"{NONE:>9}",
        f"{100 * cell['wrong_sign']:5.1f}%" if "wrong_sign" in cell else f"{NONE:>6}",
        f"{cell['cpu']:6.2f}" if "cpu" in cell else f"{NONE:>6}",
    ]
    troubles = [f"{name} {cell[name]:.0f}" for name in ("failed", "estimand_unknown", "no_report") if name in cell]
    return shown + troubles


def _share(share: float | None, runs: float) -> str:
    """Return a share in percent with its Monte Carlo error."""
    if share is None:
        return NONE
    return f"{100 * share:.0f} ± {100 * proportion_error(share, runs):.0f} %"
