"""A year of experiments on one population: how much wider privacy makes their intervals, by how a team asks.

Twenty experiments with 30 metrics and eight weekly looks, each on 400,000 users in two arms, share one budget.
Everything goes through vaults and the ledger of a population, on users whose rates differ. Five ways of asking:

- `each look`: every look of every experiment is a query of its own, with an equal part of the budget.
- `schedule`: an experiment declares its weeks, and its first look pays for all.
- `layers`: the same looks as the first, in four layers of five exclusive experiments: a person pays for four of them.
- `both`: scheduled experiments in layers.
- `both, informed`: the same, with caps, linearised ratios and shares of the budget from a pilot. It is one experiment
  more, and a tenth of what each of the others costs is paid for it from the same budget.

Every way is tried on the same users.

`python -m benchmarks.year_of_experiments --epsilon 4 --json` prints the result as it is stored; without `--json` it
prints the tables of docs/population.md, and with `--stored` those of the stored result.
"""

import argparse
import itertools
import json
import math
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
PILOTS = 10  # so many pilots cost as much as an experiment
EXCLUSIVE, BUCKETS = EXPERIMENTS // LAYERS, 100
TREATMENT = dpc.Treatment("arm", arms=("old", "new"), labels=("old", "new"))
WEEKS = dpc.Category("week", list(range(1, LOOKS + 1)))
WAYS = ("each look", "schedule", "layers", "both", "both, informed")

RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95)
CAPS = (20, 50, 100, 200, 400)
MOMENTS = (0.5, 1.0, 2.0, 4.0, 8.0)
RATIOS = (0.02, 0.05, 0.1, 0.3, 0.6)
Columns = dict[str, NDArray[Any]]
Truths = dict[str, tuple[float, float]]


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


def truths(lift: float) -> Truths:
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


class Team:
    """A team that asks in one way, with a budget for the year.

    Attributes:
        found: Every line of every scorecard that it has read.
    """

    def __init__(self, way: str, epsilon: float, folder: str) -> None:
        self.way, self.epsilon, self.found = way, epsilon, list[dict[str, Any]]()
        self.layered, self.scheduled = way not in ("each look", "schedule"), way not in ("each look", "layers")
        named = {f"layer-{at}": dpc.Layer(f"bucket_{at}", BUCKETS) for at in range(LAYERS)} if self.layered else {}
        self.budget = _zcdp(epsilon)
        address = f"sqlite:///{folder}/{WAYS.index(way)}-{epsilon:g}.db"
        self.everyone = dpc.Population.create(address, "users", self.budget, layers=named)
        self.pilot: Scorecard | None = None
        self.part = self.budget.part(LAYERS if self.layered else EXPERIMENTS)

    def learns(self, table: pa.Table) -> None:
        """Run a pilot, where it goes with the way of asking, and divide what is left."""
        if "informed" in self.way:
            ledger = self.everyone.allocate(
                "pilot", _zcdp(self.budget.part(PILOTS * LAYERS + 1).epsilon), as_of="week 1"
            )
            *_, self.pilot = asked(METRICS, ledger, table, scheduled=True)
            self.part = _zcdp(self.everyone.remaining.epsilon).part(LAYERS)

    def asks(self, table: pa.Table, at: int, true: Truths) -> None:
        """Run one of the twenty experiments, look by look."""
        place: dict[str, Any] = {"layer": f"layer-{layer_of(at)}", "buckets": buckets_of(at)} if self.layered else {}
        ledger = self.everyone.allocate(f"experiment-{at}", _zcdp(self.part.epsilon), as_of="week 1", **place)
        cards = asked(METRICS, ledger, table, scheduled=self.scheduled, pilot=self.pilot)
        for look, card in enumerate(cards, start=1):
            self.found += [
                {"experiment": at, "look": look} | read(card, metric, look, true[metric.label][0]) for metric in METRICS
            ]


def _zcdp(epsilon: float) -> dpc.Budget:
    return dpc.Budget(epsilon=epsilon, delta=DELTA, rule="zcdp")


def year(  # noqa: PLR0913 (all but two have names)
    ways: Sequence[str], epsilons: Sequence[float], *, experiments: int, lift: float, seed: int, true: Truths
) -> Iterator[tuple[str, float, list[dict[str, Any]]]]:
    """Yield what teams read in a year, of so many of their twenty experiments: all of them on the same users."""
    with tempfile.TemporaryDirectory() as folder:
        teams = [Team(way, epsilon, folder) for epsilon, way in itertools.product(epsilons, ways)]
        table = users(np.random.default_rng((seed, EXPERIMENTS)), 1.0)
        for team in teams:
            team.learns(table)
        for at in progress(range(experiments), experiments, "experiments"):
            table = users(np.random.default_rng((seed, at)), lift, at)
            for team in teams:
                team.asks(table, at, true)
    yield from ((team.way, team.epsilon, team.found) for team in teams)


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


def read(card: Scorecard, metric: dpc.Metric, look: int, truth: float) -> dict[str, Any]:
    """Return what a scorecard says of a metric: its noise, and whether its interval, where it has one, covers."""
    effect = card.effect(metric.label)
    if effect.no_interval:
        return {"metric": metric.label, "given": False, "covers": True}
    near = abs(effect.estimate - truth) < math.hypot(effect.sampling_sd or 0.0, effect.privacy_sd)
    covered = near and look < LOOKS  # finding an interval takes long, and at the last look each is found
    if not covered:
        low, high = effect.interval(0.95)
        covered = low <= truth <= high
    return {"metric": metric.label, "given": True, "noise": effect.privacy_sd, "covers": bool(covered)}


def summary(lines: Sequence[dict[str, Any]], true: Truths) -> dict[str, Any]:
    """Return errors over those without privacy, and how often intervals cover: a line without one covers all."""
    last = [line for line in lines if line["look"] == LOOKS]
    at_last = {name: median(width(line, true) for line in last if line["metric"] == name) for name in true}
    missed = {(line["experiment"], line["metric"]) for line in lines if not line["covers"]}
    return {
        "lines": len(lines),
        "without interval": sum(not line["given"] for line in lines),
        "median width": _finite(median(width(line, true) for line in lines)),
        "median width, last look": _finite(median(at_last.values())),
        "metrics within 5 %, last look": sum(each <= 1.05 for each in at_last.values()),
        "metrics over 2 times, last look": sum(each > 2 for each in at_last.values()),
        "metrics": len(at_last),
        "covered at the last look": sum(line["covers"] for line in last),
        "covered at all looks": len(last) - len(missed),
        "of": len(last),
        "by metric, last look": {name: _finite(each) for name, each in at_last.items()},
    }


def _finite(number: float) -> float | None:
    """Return a number as JSON has it: none for a width of what mostly has no interval."""
    return number if math.isfinite(number) else None


def width(line: dict[str, Any], true: Truths) -> float:
    """Return by what factor privacy noise makes the standard error of a line larger; infinite without an interval."""
    if not line["given"]:
        return math.inf
    error = true[line["metric"]][1] * (LOOKS / line["look"]) ** 0.5
    return float(np.hypot(error, line["noise"]) / error)


SAID = {
    "each look": "every look by itself",
    "schedule": "a schedule of looks",
    "layers": "layers, every look by itself",
    "both": "a schedule in layers",
    "both, informed": "the same, informed by a pilot",
}


def width_table(result: dict[str, Any]) -> str:
    """Return widths by the population's epsilon, as docs/population.md shows them."""
    epsilons = sorted({row["epsilon"] for row in result["rows"]})
    cells = {
        (row["way"], row["epsilon"]): f"{_times(row['median width, last look'])}, "
        f"{row['metrics within 5 %, last look']} of {row['metrics']}"
        for row in result["rows"]
    }
    lines = [
        (SAID[way], *(cells.get((way, epsilon), "") for epsilon in epsilons))
        for way in WAYS
        if any(way == each for each, _ in cells)
    ]
    return _table(("way of asking", *(f"epsilon {epsilon:g}" for epsilon in epsilons)), lines)


def looks_table(result: dict[str, Any], epsilon: float = 4.0) -> str:
    """Return what one epsilon gives at all looks, as docs/population.md shows it."""
    head = ("way of asking", "width, all looks", "last look", "over twice", "covered, last look", "covered, all looks")
    lines = [
        (
            SAID[row["way"]],
            *(_times(row[f"median width{at}"]) for at in ("", ", last look")),
            f"{row['metrics over 2 times, last look']} of {row['metrics']}",
            *(f"{100 * row[f'covered at {at}'] / row['of']:.1f} %" for at in ("the last look", "all looks")),
        )
        for row in result["rows"]
        if row["epsilon"] == epsilon
    ]
    return _table(head, lines)


def _times(width: float | None) -> str:
    return "no interval" if width is None else f"{width:.2f}"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *lines))


def main() -> None:
    """Run the year by each way of asking, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, action="append", help="of the population; may be repeated")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--experiments", type=int, default=EXPERIMENTS, help="how many of the twenty to run")
    parser.add_argument("--lift", type=float, default=1.01, help="by what factor treatment moves every metric")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help=f"print the result as {RESULTS.name} has it")
    parser.add_argument("--stored", action="store_true", help="print the tables of the stored result, and run nothing")
    chosen = parser.parse_args()
    if chosen.stored:
        result = json.loads(RESULTS.read_text(encoding="utf-8"))
    else:
        true, epsilons = truths(chosen.lift), chosen.epsilon or [4.0]
        found = year(
            chosen.way or WAYS, epsilons, experiments=chosen.experiments, lift=chosen.lift, seed=chosen.seed, true=true
        )
        rows = [
            {"way": way, "epsilon": epsilon, "experiments": chosen.experiments} | summary(lines, true)
            for way, epsilon, lines in found
        ]
        result = {"rows": rows, "truths": true}
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    print(width_table(result))
    for epsilon in sorted({row["epsilon"] for row in result["rows"]}):
        print(f"\nepsilon {epsilon:g}\n\n{looks_table(result, epsilon)}")


if __name__ == "__main__":
    main()
