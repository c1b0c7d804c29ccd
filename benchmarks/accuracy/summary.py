"""From runs to the table of results."""

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from benchmarks.accuracy.entries import ENTRIES
from benchmarks.accuracy.runs import Cell, Run

Line = dict[str, object]


def rounded(value: float, digits: int = 4) -> float:
    """Four digits, which is more than any of these is known to."""
    return float(f"{value:.{digits}g}")


def relative_error(estimates: Sequence[float], reference: float) -> dict[str, float]:
    """Return the mean distance from a reference as a share of it, as in the paper, and its spread."""
    errors = np.abs(np.array(estimates) - reference) / abs(reference)
    return {"mean": rounded(float(errors.mean())), "sd": rounded(float(errors.std(ddof=min(1, len(errors) - 1))))}


def line(cell: Cell, runs: Sequence[Run], references: Mapping[str, float]) -> Line:
    """One cell's result. `same_score` is matching without privacy on the very score that the library fits."""
    entry = ENTRIES[cell.entry]
    estimates = [run.estimate for run in runs]
    same = references["matching_same_score_not_private" if entry.not_private else "matching_same_score"]
    errors = np.array(estimates) - references["truth"]
    widths = [run.width for run in runs if run.width is not None]
    covered = [run.covered for run in runs if run.width is not None]
    return {
        "data": cell.data,
        "protects": entry.protects,
        "estimator": entry.label,
        "private": not entry.not_private,
        "epsilon": cell.epsilon,
        "delta": entry.delta,
        "runs": len(runs),
        "error_to_truth": relative_error(estimates, references["truth"]),
        "error_to_matching": relative_error(estimates, references["matching"]),
        "error_to_matching_same_score": relative_error(estimates, same),
        "mean": rounded(float(np.mean(estimates))),
        "bias": rounded(float(errors.mean())),
        "rmse": rounded(float(np.sqrt((errors**2).mean()))),
        "intervals": rounded(len(widths) / len(runs)),
        "coverage": rounded(float(np.mean(covered))) if widths else None,
        "mean_width": rounded(float(np.mean(widths))) if widths else None,
    }


def times(cell: Cell, runs: Sequence[Run]) -> Line:
    """Median seconds to open a vault and to estimate."""
    entry = ENTRIES[cell.entry]
    return {
        "data": cell.data,
        "protects": entry.protects,
        "estimator": entry.label,
        "opening_seconds": rounded(median(run.opening_seconds for run in runs)),
        "seconds": rounded(median(run.seconds for run in runs)),
    }


def printed(lines: Sequence[Line], title: str) -> str:
    """Return a table as text; of a mean with its spread the mean."""
    shown = [
        {name: value["mean"] if isinstance(value, dict) else value for name, value in line.items()} for line in lines
    ]
    names = list(shown[0])
    texts = [names, *([str("-" if line[name] is None else line[name]) for name in names] for line in shown)]
    widths = [max(len(text[place]) for text in texts) for place in range(len(names))]
    table = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in texts]
    return "\n".join([title, *table])
