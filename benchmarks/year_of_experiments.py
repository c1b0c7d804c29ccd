"""A year of experiments on one population: how much wider privacy makes their intervals, by how a team asks.

Twenty experiments with 30 metrics and eight weekly looks, each on 400,000 users in two arms, share one budget.
Everything goes through vaults and the ledger of a population, on users whose rates differ. Five ways of asking:

- `each look`: every look of every experiment is a query of its own, with an equal part of the budget.
- `schedule`: an experiment declares its weeks, and its first look pays for all.
- `layers`: the same looks as the first, in four layers of five exclusive experiments: a person pays for four of them.
- `both`: scheduled experiments in layers.
- `both, informed`: the same, with caps, linearised ratios and shares of the budget from a pilot, one experiment
  more that is paid for from the same budget.

`python -m benchmarks.year_of_experiments --epsilon 4 --json`
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.progress import progress
from dpcausal.experiment.scorecard import Scorecard

RESULTS = Path(__file__).parent / "results" / "year_of_experiments.json"
LOOKS, EXPERIMENTS, LAYERS, UNITS, DELTA = 8, 20, 4, 400_000, 1e-6
EXCLUSIVE, BUCKETS = EXPERIMENTS // LAYERS, 100
TREATMENT = dpc.Treatment("arm", arms=("old", "new"), labels=("old", "new"))
WEEKS = dpc.Category("week", list(range(1, LOOKS + 1)))
WAYS = ("each look", "schedule", "layers", "both", "both, informed")

RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95)
CAPS = (20, 50, 100, 200, 400)
MOMENTS = (0.5, 1.0, 2.0, 4.0, 8.0)
RATIOS = (0.02, 0.05, 0.1, 0.3, 0.6)
Columns = dict[str, NDArray[Any]]


def metrics() -> list[dpc.Metric]:
    """Return 30 metrics: ten proportions, five spendings with different caps, ten durations and counts, five ratios."""
    views = dpc.Real("views", 0, 60, missing=0)
    found = [dpc.Metric(dpc.Binary(f"did_{at}", missing=0)) for at in range(len(RATES))]
    found += [dpc.Metric(dpc.Real(f"spent_{at}", 0, cap, missing=0)) for at, cap in enumerate(CAPS)]
    found += [dpc.Metric(dpc.Real(f"seconds_{at}", 0, 10 * mean, missing=0)) for at, mean in enumerate(MOMENTS)]
    found += [dpc.Metric(dpc.Real(f"times_{at}", 0, 5 + 5 * mean, missing=0)) for at, mean in enumerate(MOMENTS[:-1])]
    found += [dpc.Metric(views)]
    found += [dpc.Metric(dpc.Real(f"clicks_{at}", 0, 60, missing=0), denominator=views) for at in range(len(RATIOS))]
    return found


METRICS = metrics()


def layer_of(experiment: int) -> int:
    """Return the layer of an experiment, counted from 0."""
    return experiment // EXCLUSIVE


def buckets_of(experiment: int) -> range:
    """Return the buckets of an experiment in its layer."""
    many = BUCKETS // EXCLUSIVE
    return range(many * (experiment % EXCLUSIVE), many * (experiment % EXCLUSIVE) + many)


def users(random: Generator, lift: float, experiment: int = 0) -> pa.Table:
    """Return an experiment's users, in the order in which they enter: habits and rates differ from user to user."""
    treated, habit = random.random(UNITS) < 0.5, random.lognormal(0, 0.8, UNITS)
    gain = np.where(treated, lift, 1.0)
    views = np.minimum(1.0 + random.poisson(8 * habit), 60.0)
    columns: Columns = {"arm": np.where(treated, "new", "old"), "views": views}
    for at, rate in enumerate(RATES):
        own = random.beta(2 * rate, 2 * (1 - rate), UNITS)
        columns[f"did_{at}"] = (random.random(UNITS) < np.minimum(own * gain, 1)).astype(np.int64)
    for at, cap in enumerate(CAPS):
        columns[f"spent_{at}"] = np.minimum(random.gamma(0.5, 12 * habit * gain), cap)
    for at, mean in enumerate(MOMENTS):
        columns[f"seconds_{at}"] = np.minimum(random.gamma(2, mean / 2 * gain, UNITS), 10 * mean)
    for at, mean in enumerate(MOMENTS[:-1]):
        columns[f"times_{at}"] = np.minimum(random.poisson(mean * habit * gain), 5 + 5 * mean).astype(float)
    for at, rate in enumerate(RATIOS):
        own = np.minimum(random.beta(5 * rate, 5 * (1 - rate), UNITS) * gain, 1)
        columns[f"clicks_{at}"] = random.binomial(views.astype(np.int64), own).astype(float)
    for at in range(LAYERS):
        buckets = buckets_of(experiment) if at == layer_of(experiment) else range(BUCKETS)
        columns[f"bucket_{at}"] = random.choice(np.asarray(buckets), UNITS)
    columns["week"] = np.sort(random.integers(1, LOOKS + 1, UNITS))
    return pa.table(columns)


def truths(lift: float) -> dict[str, tuple[float, float]]:
    """Return each metric's true difference, and its standard error without privacy in a whole experiment.

    They are those of sixteen million simulated users.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in progress(range(40), 40, "truths"):
        table = users(np.random.default_rng((7, seed)), lift)
        treated = table["arm"].to_numpy() == "new"
        for metric in METRICS:
            over, under = (
                table[column.name].to_numpy() if column is not None else np.ones(UNITS)
                for column in (metric.column, metric.denominator)
            )
            ratios, variance = [], 0.0
            for arm in (treated, ~treated):
                ratios.append(over[arm].sum() / under[arm].sum())
                variance += np.var((over - ratios[-1] * under)[arm]) / under[arm].mean() ** 2 / arm.sum()
            found.setdefault(metric.label, []).append((ratios[0] - ratios[1], variance))
    means = {label: np.mean(each, axis=0) for label, each in found.items()}
    return {label: (float(difference), float(variance**0.5)) for label, (difference, variance) in means.items()}


def year(way: str, epsilon: float, experiments: int, lift: float, seed: int) -> list[dict[str, Any]]:
    """Return every line of every scorecard that a team reads in a year, of so many of its twenty experiments."""
    budget = dpc.Budget(epsilon=epsilon, delta=DELTA, rule="zcdp")
    layered, scheduled = way not in ("each look", "schedule"), way not in ("each look", "layers")
    pays = (LAYERS if layered else EXPERIMENTS) + ("informed" in way)  # a pilot is one more experiment
    random, found, pilot = np.random.default_rng((seed, round(1_000 * epsilon))), [], None
    with tempfile.TemporaryDirectory() as folder:
        named = {f"layer-{at}": dpc.Layer(f"bucket_{at}", BUCKETS) for at in range(LAYERS)} if layered else {}
        everyone = dpc.Population.create(f"sqlite:///{folder}/users.db", "users", budget, layers=named)
        part = budget.part(pays)
        if "informed" in way:
            ledger = everyone.allocate(
                "pilot", dpc.Budget(epsilon=part.epsilon, delta=part.delta, rule="zcdp"), as_of="week 1"
            )
            *_, pilot = asked(METRICS, ledger, users(random, 1.0), scheduled=True)
        for at in progress(range(experiments), experiments, f"{way}, epsilon {epsilon:g}"):
            place: dict[str, Any] = {"layer": f"layer-{layer_of(at)}", "buckets": buckets_of(at)} if layered else {}
            share = dpc.Budget(epsilon=part.epsilon, delta=part.delta, rule="zcdp")
            ledger = everyone.allocate(f"experiment-{at}", share, as_of="week 1", **place)
            table = users(random, lift, at)
            for look, card in enumerate(asked(METRICS, ledger, table, scheduled=scheduled, pilot=pilot), start=1):
                found += [{"experiment": at, "look": look} | read(card, metric) for metric in METRICS]
    return found


def asked(
    wanted: Sequence[dpc.Metric],
    ledger: dpc.Ledger,
    table: pa.Table,
    *,
    scheduled: bool,
    pilot: Scorecard | None = None,
) -> Iterator[Scorecard]:
    """Yield an experiment's scorecards, week by week."""
    share = ledger.budget.part(1 if scheduled else LOOKS)
    planned = {"cohorts": WEEKS, "planned_n": UNITS} if scheduled else {"entry": WEEKS.name}
    experiment = dpc.Experiment(
        name="experiment", treatment=TREATMENT, metrics=wanted, epsilon=share.epsilon, delta=share.delta, **planned
    )
    experiment = experiment if pilot is None else experiment.informed_by(pilot)
    weeks = table["week"].to_numpy()
    for look in range(1, LOOKS + 1):
        if look > 1:
            ledger.add_version(f"week {look}")
        so_far = table.slice(0, int((weeks <= look).sum()))
        vault = dpc.Vault(so_far, experiment.schema, ledger=ledger, as_of=f"week {look}")
        yield experiment.run(vault, look=look if scheduled else None)


def read(card: Scorecard, metric: dpc.Metric) -> dict[str, Any]:
    """Return what a scorecard says of a metric: its noise and its interval, where it has one."""
    effect = card.effect(metric.label)
    if effect.no_interval:
        return {"metric": metric.label, "given": False}
    low, high = effect.interval(0.95)
    return {"metric": metric.label, "given": True, "noise": effect.privacy_sd, "low": low, "high": high}


def summary(lines: Sequence[dict[str, Any]], true: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Return errors over those without privacy, and how often intervals cover."""
    given = [line for line in lines if line["given"]]
    last = [line for line in given if line["look"] == LOOKS]
    at_last = {name: median(width(line, true) for line in last if line["metric"] == name) for name in true}
    missed = {(line["experiment"], line["metric"]) for line in given if not covers(line, true)}
    return {
        "lines": len(lines),
        "given": len(given),
        "median width": median(width(line, true) for line in given),
        "median width, last look": median(at_last.values()),
        "metrics within 5 %, last look": sum(each <= 1.05 for each in at_last.values()),
        "metrics over 2 times, last look": sum(each > 2 for each in at_last.values()),
        "metrics": len(at_last),
        "covered at the last look": sum(covers(line, true) for line in last),
        "covered at all looks": len(last) - len(missed),
        "of": len(last),
        "by metric, last look": at_last,
    }


def width(line: dict[str, Any], true: dict[str, tuple[float, float]]) -> float:
    """Return by what factor privacy noise makes the standard error of a line larger."""
    error = true[line["metric"]][1] * (LOOKS / line["look"]) ** 0.5
    return float(np.hypot(error, line["noise"]) / error)


def covers(line: dict[str, Any], true: dict[str, tuple[float, float]]) -> bool:
    """Return whether an interval contains the true difference."""
    return bool(line["low"] <= true[line["metric"]][0] <= line["high"])


def main() -> None:
    """Run the year by each way of asking, and print or store the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, action="append", help="of the population; may be repeated")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--experiments", type=int, default=EXPERIMENTS, help="how many of the twenty to run")
    parser.add_argument("--lift", type=float, default=1.01, help="by what factor treatment moves every metric")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help=f"store the result in {RESULTS.name}")
    chosen = parser.parse_args()
    true, rows = truths(chosen.lift), []
    for epsilon in chosen.epsilon or [4.0]:
        for way in chosen.way or WAYS:
            lines = year(way, epsilon, chosen.experiments, chosen.lift, chosen.seed)
            rows.append({"way": way, "epsilon": epsilon, "experiments": chosen.experiments} | summary(lines, true))
            print(json.dumps({key: each for key, each in rows[-1].items() if "by metric" not in key}), flush=True)
    if chosen.json:
        RESULTS.write_text(json.dumps({"rows": rows, "truths": true}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
