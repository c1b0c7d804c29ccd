"""Private survival curves of published tables beside those without privacy, and the figure of docs/survival.md.

The tables and the curves without privacy are those of lifelines, which is no dependency of this package:
`pip install lifelines`, and then `python -m benchmarks.survival_tables`.
"""

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib import rc_context
from matplotlib.figure import Figure

import dpcausal as dpc
from benchmarks.datasets import connection
from benchmarks.pictures import BLUE, STYLE, VERMILLION, keep
from dpcausal.audit.tables import Unmetered
from tests.support.engines import CachedEngine
from tests.support.noise import seeded

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "survival.svg"


@dataclass(frozen=True)
class Table:
    """A published table.

    Attributes:
        name: Its name in lifelines.
        arm: The column of the arm.
        arms: Its two values, control first.
        labels: What they are called.
        time: The column of the time.
        event: The column that is 1 where the event happened.
        grid: The grid.
    """

    name: str
    arm: str
    arms: tuple[Any, Any]
    labels: tuple[str, str]
    time: str
    event: str
    grid: tuple[float, ...]


TABLES = (
    Table(
        "gbsg2",
        "horTh",
        ("no", "yes"),
        ("no hormone therapy", "hormone therapy"),
        "time",
        "cens",
        tuple(range(250, 2001, 250)),
    ),
    Table("rossi", "fin", (0, 1), ("no aid", "aid"), "week", "arrest", (13, 26, 39, 52)),
    Table("lung", "sex", (1, 2), ("men", "women"), "time", "status", tuple(range(100, 601, 100))),
)


def frame(table: Table) -> Any:  # noqa: ANN401 (a data frame)
    """Return the three columns of a table."""
    from lifelines import datasets  # noqa: PLC0415 (no dependency)

    data = getattr(datasets, f"load_{table.name}")()[[table.arm, table.time, table.event]].copy()
    data[table.event] = data[table.event].astype(int)
    if data[table.event].max() == 2:  # lung: 1 is censored, 2 died
        data[table.event] -= 1
    data[table.time] = data[table.time].astype(float)
    return data


def reference(table: Table) -> dict[str, Any]:
    """Return survival at the grid, the restricted means and the log-rank p-value without privacy, by lifelines."""
    from lifelines import KaplanMeierFitter  # noqa: PLC0415
    from lifelines.statistics import logrank_test  # noqa: PLC0415
    from lifelines.utils import restricted_mean_survival_time  # noqa: PLC0415

    data = frame(table)
    data[table.event] = data[table.event].where(data[table.time] < table.grid[-1], 0)
    parts = [data[data[table.arm] == arm] for arm in table.arms]
    fits = [KaplanMeierFitter().fit(part[table.time], part[table.event]) for part in parts]
    (time, event), (other, other_event) = ((part[table.time], part[table.event]) for part in parts)
    return {
        "fits": fits,
        "survival": np.array([[float(fit.predict(at - 1e-6)) for at in table.grid] for fit in fits]),
        "rmst": [float(restricted_mean_survival_time(fit, t=table.grid[-1])) for fit in fits],
        "log_rank": float(logrank_test(time, other, event, other_event).p_value),
    }


def private(table: Table, seed: int) -> dpc.Effect:
    """Return the private effect."""
    schema = dpc.Schema(
        treatment=dpc.Treatment(table.arm, arms=table.arms, labels=table.labels, undeclared=table.arms[0]),
        outcome=dpc.Real(table.time, 0, table.grid[-1]),
        covariates=[dpc.Binary(table.event)],
    )
    engine = CachedEngine(connection().from_arrow(pa.Table.from_pandas(frame(table), preserve_index=False)), schema)
    with seeded(seed):
        return dpc.Survival(table.event, table.grid).estimate(Unmetered(engine, schema), epsilon=1.0)


def compare(table: Table, runs: int) -> dict[str, object]:
    """Return how far private curves are from those without privacy, over so many draws of the noise."""
    without, found = reference(table), [private(table, seed) for seed in range(runs)]
    curves = np.array([[effect.curves[0].values(arm) for arm in effect.arms] for effect in found])
    difference = without["rmst"][1] - without["rmst"][0]
    errors = np.array([effect.estimate - difference for effect in found])
    limits = [replace(effect, no_interval="").interval() for effect in found]
    return {
        "table": table.name,
        "units": len(frame(table)),
        "intervals": len(table.grid),
        "runs": runs,
        "curve rmse": round(float(np.sqrt(((curves - without["survival"]) ** 2).mean())), 4),
        "rmst without privacy": round(difference, 3),
        "rmst bias": round(float(errors.mean()), 3),
        "rmst privacy rmse": round(float(np.sqrt((errors**2).mean())), 3),
        "rmst sampling sd": round(float(np.median([effect.sampling_sd for effect in found])), 3),
        "rmst width": round(float(np.median([high - low for low, high in limits])), 3),
        "refused": round(float(np.mean([bool(effect.no_interval) for effect in found])), 3),
        "log-rank p without privacy": round(without["log_rank"], 4),
        "log-rank p, median": round(float(np.median([_log_rank(effect) for effect in found[:20]])), 4),
    }


def _log_rank(effect: dpc.Effect) -> float:
    assert effect.contrasts is not None
    return effect.contrasts.p_value(effect.contrasts.names[-1])


def draw(table: Table) -> None:
    """Draw both arms' curves with bands, over those without privacy."""
    effect, without = private(table, 1), reference(table)
    curves = effect.curves[0]
    with rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.subplots()
        for place, (arm, colour, mark) in enumerate(zip(effect.arms, (VERMILLION, BLUE), ("s", "o"), strict=True)):
            steps = without["fits"][place].survival_function_
            axes.step(
                steps.index, steps.iloc[:, 0], where="post", color=colour, linewidth=0.9, linestyle=(":", "--")[place]
            )
            low, high = curves.band(arm, 0.95, simultaneous=False)
            at, values = (0.0, *curves.grid), np.r_[1.0, curves.values(arm)]
            axes.fill_between(at, np.r_[1.0, low], np.r_[1.0, high], color=colour, alpha=0.15, linewidth=0)
            axes.plot(at, values, marker=mark, color=colour, markersize=5, linewidth=1.6, label=arm)
        axes.set(xlim=(0, table.grid[-1] * 1.01), ylim=(0, 1.02), xlabel="days", ylabel="without recurrence or death")
        axes.legend(
            frameon=False, loc="lower left", title="epsilon 1, 95 % at each time; thin and broken: without privacy"
        )
        keep(figure, FIGURE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--figure", action="store_true", help="also draw the figure")
    chosen = parser.parse_args()
    print(json.dumps({"tables": [compare(table, chosen.runs) for table in TABLES]}, indent=1))
    if chosen.figure:
        draw(TABLES[0])


if __name__ == "__main__":
    main()
