"""How often intervals of an experiment's metrics cover, and what many metrics cost.

Coverage: each run draws users with replacement from a fixed population with skewed outcomes, assigns arms at random,
adds up the metrics as a vault does, adds noise of the vault's own law and size from a seed, and asks for the scorecard.
The truth is the population's own value of the capped metric.

Cost: CPU time of the whole job (opening, query, ledger in a file, scorecard, page and JSON), and of DuckDB's float sums
of the same columns beside it.

`python -m benchmarks.experiments --runs 400 --json`
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.several_arms import Simulated, Units
from dpcausal.experiment.scorecard import Scorecard
from dpcausal.queries import GRID, MetricMoments
from dpcausal.queries.metric_moments import half_range, middle_of
from dpcausal.schema.columns import Binary
from dpcausal.schema.schema import Protects

RESULTS = Path(__file__).parent / "results" / "experiments.json"
POPULATION, SHARES = 1_000_000, (0.6, 0.4)
METRICS = [
    dpc.Metric(dpc.Real("revenue", 0, 100, missing=0)),
    dpc.Metric(dpc.Real("revenue", 0, 100, missing=0), covariate=dpc.Real("before", 0, 100), name="revenue, CUPED"),
    dpc.Metric(dpc.Binary("bought", missing=0)),
    dpc.Metric(dpc.Real("clicks", 0, 20, missing=0), denominator=dpc.Real("views", 0, 60, missing=0)),
]
Columns = dict[str, NDArray[Any]]


def population(random: Generator) -> tuple[Columns, Columns]:
    """Return a population without and with treatment: log-normal spending, rare purchases, views and clicks."""
    habit = random.lognormal(1.5, 1.0, POPULATION)
    before, after = (habit * random.gamma(4, 0.25, POPULATION) for _ in range(2))
    views = 1.0 + random.negative_binomial(1, 0.1, POPULATION)
    rate = random.beta(1, 9, POPULATION)

    def world(lift: float) -> Columns:
        return {
            "revenue": np.minimum(after * lift, 100.0),
            "before": np.minimum(before, 100.0),
            "bought": (random.random(POPULATION) < 0.05 * lift).astype(float),
            "clicks": np.minimum(random.binomial(views.astype(int), np.minimum(rate * lift, 1)), 20).astype(float),
            "views": np.minimum(views, 60.0),
        }

    return world(1.0), world(1.08)


class SimulatedUsers(Simulated):
    """A source over users in memory, for metrics."""

    def __init__(self, schema: dpc.Schema, arm: NDArray[Any], columns: Columns, random: Generator) -> None:
        super().__init__(schema, Units(arm, arm, arm), random)
        self._arm, self._columns = arm, columns

    def exact(self, query: MetricMoments) -> dict[str, int]:  # type: ignore[override]
        """Return the sums in all arms, in ticks, as the vault adds them up."""
        ticks, values = {}, {"size": np.ones(self.n, dtype=np.int64)}
        for name, (_, column) in query.columns(self.schema).items():
            apart = (self._columns[name] - middle_of(column)) * (GRID / half_range(column))
            ticks[name] = np.floor(apart + 0.5).astype(np.int64)
            values[f"total of {name}"] = ticks[name]
            if not isinstance(column, Binary):
                values[f"deficit of {name}"] = (GRID**2 - ticks[name] ** 2) >> 20
        for one, other in query.products:
            values[f"product of {one} and {other}"] = ((ticks[one] * ticks[other] + GRID**2) >> 20) - GRID
        sums = {name: np.bincount(self._arm, each, len(self.schema.treatment.arms)) for name, each in values.items()}
        parts = {name: name.partition(" ") for name in sums}
        return {
            f"{parts[name][0]}_{arm} {parts[name][2]}".rstrip(): int(value)
            for name, each in sums.items()
            for arm, value in enumerate(each)
        }


def experiment(delta: float, protects: Protects) -> dpc.Experiment:
    """Return the experiment of the simulation; intervals are those of each metric by itself."""
    return dpc.Experiment(
        name="simulated",
        treatment=dpc.Treatment("arm", labels=("control", "treated")),
        metrics=METRICS,
        epsilon=1.0,
        delta=delta,
        allocation=SHARES,
        method="benjamini_hochberg",
        protects=protects,
    )


def truths(worlds: tuple[Columns, Columns]) -> dict[str, tuple[float, float]]:
    """Return the true difference and lift of each metric."""
    found = {}
    for metric in METRICS:
        below = None if metric.denominator is None else metric.denominator.name
        values = [world[metric.column.name].mean() / (world[below].mean() if below else 1.0) for world in worlds]
        found[metric.label] = float(values[1] - values[0]), float(values[1] / values[0] - 1)
    return found


def coverage(runs: int) -> list[dict[str, Any]]:
    """Return how often intervals cover, metric by metric."""
    worlds = population(np.random.default_rng(1))
    truth, lines = truths(worlds), []
    cells = [(n, delta, protects) for n in (5_000, 50_000) for delta, protects in NOISE]
    for n, delta, protects in cells:
        asked, random = experiment(delta, protects), np.random.default_rng(n)
        cards = []
        for _ in range(runs):
            chosen, arm = random.integers(0, POPULATION, n), random.choice(2, n, p=SHARES)
            columns = {
                name: np.where(arm == 1, worlds[1][name][chosen], each[chosen]) for name, each in worlds[0].items()
            }
            source = SimulatedUsers(asked.schema, arm, columns, random)
            source.rule = "zcdp" if delta else "additive"
            cards.append(asked.run(source))
        for metric, (difference, lift) in truth.items():
            lines.append({"n": n, "delta": delta, "protects": protects, "metric": metric, "runs": runs})
            lines[-1] |= _covered(cards, metric, difference, lift)
    return lines


NOISE: tuple[tuple[float, Protects], ...] = ((0.0, "record"), (1e-6, "record"), (0.0, "record_within_arm"))


def _covered(cards: list[Scorecard], metric: str, difference: float, lift: float) -> dict[str, float]:
    found = [line for card in cards for line in card.lines if line.metric == metric]
    known = [line for line in found if line.low is not None and line.high is not None]
    lifts = [line for line in known if line.lift_low is not None and line.lift_high is not None]
    return {
        "intervals": len(known) / len(found),
        "covered": float(np.mean([line.low <= difference <= line.high for line in known])),  # type: ignore[operator]
        "lift_intervals": len(lifts) / len(found),
        "lift_covered": float(np.mean([line.lift_low <= lift <= line.lift_high for line in lifts])),  # type: ignore[operator]
        "half_width": float(np.mean([line.high - line.low for line in known])) / 2,  # type: ignore[operator]
        "sampling_sd": median(line.sampling_sd for line in found),
        "privacy_sd": median(line.privacy_sd for line in found),
        "mismatch_alarms": float(np.mean([card.sample_ratio.p_value < 0.05 for card in cards])),
    }


def cost(metrics: int, n: int, delta: float, turns: int) -> dict[str, Any]:
    """Return CPU milliseconds a metric: the whole job, its parts, and float sums of the same columns by DuckDB."""
    random = np.random.default_rng(0)
    table: Columns = {"arm": random.integers(0, 2, n)}
    table |= {f"m{at}": random.gamma(2, 10, n) for at in range(metrics)}
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/users.parquet"
        pq.write_table(pa.table(table), file)
        del table
        parts = [_parts(file, f"{folder}/{turn}.db", metrics, delta) for turn in range(turns)]
        floats = [_timed(lambda: _float_sums(file, metrics)) for _ in range(turns)]
    whole = [sum(each.values()) for each in parts]
    named = {name: 1e3 * min(each[name] for each in parts) / metrics for name in parts[0]}
    return {
        "metrics": metrics,
        "n": n,
        "delta": delta,
        "ms_a_metric": 1e3 * min(whole) / metrics,
        "float_ms_a_metric": 1e3 * min(floats) / metrics,
        "parts": named,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def large(files: int, folder: str, turns: int, metrics: int = 50) -> dict[str, Any]:
    """Return CPU seconds and the peak of memory for files of a million users each, in a process of its own."""
    users = Path(folder)
    users.mkdir(parents=True, exist_ok=True)
    # Another process makes the files, so that the peak of memory is that of the experiment.
    making = get_context("spawn").Process(target=make_users, args=(users, files, metrics))
    making.start()
    making.join()
    with tempfile.TemporaryDirectory() as chosen:
        for place in range(files):
            Path(chosen, f"{place}.parquet").symlink_to(_piece(users, place).resolve())
        size = sum(_piece(users, place).stat().st_size for place in range(files))
        with tempfile.TemporaryDirectory() as ledgers:
            begin = time.perf_counter()
            parts = [_parts(chosen, f"{ledgers}/{turn}.db", metrics, 1e-6) for turn in range(turns)]
            wall = (time.perf_counter() - begin) / turns
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        floats = [_timed(lambda: _float_sums(f"{chosen}/*.parquet", metrics)) for _ in range(turns)]
    best = min(parts, key=lambda each: sum(each.values()))
    return {
        "metrics": metrics,
        "n": files * PIECE,
        "megabytes": size / 1e6,
        "turns": turns,
        "seconds": sum(best.values()),
        "wall_seconds": wall,
        "float_seconds": min(floats),
        "parts": best,
        "peak_mb": peak,
    }


PIECE = 1_000_000


def _piece(users: Path, place: int) -> Path:
    return users / f"{place}.parquet"


def make_users(users: Path, files: int, metrics: int) -> None:
    """Write the files that are not there yet: counts in 8 bits and amounts in 32, in turns, with long tails."""
    count, amount = "LEAST(FLOOR(-4 * LN(1 - RANDOM())), 100)", "FLOOR(-160 * LN(1 - RANDOM())) / 8"
    columns = [f"CAST({count if at % 2 else amount} AS {'UTINYINT' if at % 2 else 'FLOAT'})" for at in range(metrics)]
    made = ", ".join(f"{column} AS m{at}" for at, column in enumerate(columns))
    connection = duckdb.connect()
    for place in range(files):
        if not _piece(users, place).exists():
            text = f"SELECT CAST(FLOOR(2 * RANDOM()) AS UTINYINT) AS arm, {made} FROM range({PIECE})"  # noqa: S608
            connection.execute(f"COPY ({text}) TO '{_piece(users, place)}'")


def jobs(n: int, turns: int) -> list[dict[str, Any]]:
    """Return CPU seconds of whole jobs of one metric, and of DuckDB's float sums in the same turn."""
    random, kinds = np.random.default_rng(0), {"arm": pa.int64(), "y": pa.float64(), "before": pa.float64()}
    y, before = dpc.Real("y", 0, 100), dpc.Real("before", 0, 100)
    treatment = dpc.Treatment("arm")
    mean, squares = dpc.Schema(treatment=treatment, outcome=y), "SUM(y), SUM(y * y)"
    cuped = dpc.Schema(treatment=treatment, outcome=y, covariates=[before])
    asked: dict[str, tuple[dpc.Schema, Any, str]] = {
        "DifferenceInMeans": (mean, dpc.DifferenceInMeans(), squares),
        "RegressionAdjustment, 1 covariate": (
            cuped,
            dpc.RegressionAdjustment(covariates=["before"]),
            f"{squares}, SUM(before), SUM(y * before), SUM(before * before)",
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/users.parquet"
        with pq.ParquetWriter(file, pa.schema(kinds)) as writer:
            for _ in range(n // 100_000):
                habit = random.gamma(2, 10, 100_000)
                columns = {"arm": random.integers(0, 2, 100_000), "y": habit * random.gamma(4, 0.25, 100_000)}
                writer.write_table(pa.table(columns | {"before": habit}))

        def job(name: str, turn: int) -> None:
            schema, estimator, _ = asked[name]
            address = f"sqlite:///{folder}/{type(estimator).__name__} {turn}.db"
            ledger = dpc.Ledger.create(address, dpc.Budget(epsilon=1), as_of="1")
            estimator.estimate(dpc.Vault(file, schema, ledger=ledger, as_of="1"), epsilon=1.0)

        def floats(name: str) -> None:
            duckdb.connect().execute(f"SELECT arm, COUNT(*), {asked[name][2]} FROM '{file}' GROUP BY ALL").fetchall()  # noqa: S608

        found: dict[str, list[tuple[float, float]]] = {name: [] for name in asked}
        for turn in range(turns + 1):
            for name, each in found.items():
                each.append((_timed(lambda: job(name, turn)), _timed(lambda: floats(name))))  # noqa: B023 (called at once)
    return [
        {
            "job": name,
            "n": n,
            "turns": turns,
            "seconds": median(own for own, _ in each[1:]),  # the first turn loads libraries
            "float_seconds": median(plain for _, plain in each[1:]),
            "ratio": median(own / plain for own, plain in each[1:]),
        }
        for name, each in found.items()
    ]


def _parts(file: str, ledger_file: str, metrics: int, delta: float) -> dict[str, float]:
    made: dict[str, Any] = {}

    def open_vault() -> None:
        columns = [dpc.Metric(dpc.Real(f"m{at}", 0, 100, missing=0)) for at in range(metrics)]
        made["asked"] = asked = dpc.Experiment(
            name="cost", treatment=dpc.Treatment("arm"), metrics=columns, epsilon=1.0, delta=delta
        )
        ledger = dpc.Ledger.create(f"sqlite:///{ledger_file}", dpc.Budget(epsilon=1, delta=delta), as_of="1")
        made["vault"] = dpc.Vault(file, asked.schema, ledger=ledger, as_of="1")

    def ask() -> None:
        made["card"] = made["asked"].run(made["vault"])

    def show() -> None:
        made["card"].to_html()
        made["card"].to_json()

    return {"open": _timed(open_vault), "release": _timed(ask), "scorecard": _timed(show)}


def _timed(job: Callable[[], object]) -> float:
    begin = time.process_time()
    job()
    return time.process_time() - begin


def _float_sums(file: str, metrics: int) -> None:
    sums = ", ".join(f"SUM(CAST(m{at} AS DOUBLE)), SUM(CAST(m{at} AS DOUBLE) * m{at})" for at in range(metrics))
    duckdb.connect().execute(f"SELECT arm, COUNT(*), {sums} FROM '{file}' GROUP BY ALL").fetchall()  # noqa: S608


NAMED = {(0.0, "record"): "Laplace", (1e-6, "record"): "Gaussian", (0.0, "record_within_arm"): "Laplace, public arms"}


def coverage_table(result: dict[str, Any]) -> str:
    """Return the coverage as docs/experiments.md shows it."""
    return _table(
        ("users", "noise", "metric", "difference", "lift", "sampling error", "privacy noise"),
        [
            (
                f"{each['n']:,}",
                NAMED[each["delta"], each["protects"]],
                each["metric"],
                f"{each['covered']:.1%}",
                f"{each['lift_covered']:.1%}",
                f"{each['sampling_sd']:.2g}",
                f"{each['privacy_sd']:.2g}",
            )
            for each in result["coverage"]
        ],
    )


def cost_table(result: dict[str, Any]) -> str:
    """Return the cost as docs/experiments.md shows it."""
    return _table(
        ("metrics", "users", "noise", "CPU a metric", "float sums", "ratio"),
        [
            (
                str(each["metrics"]),
                f"{each['n']:,}",
                NAMED[each["delta"], "record"],
                f"{each['ms_a_metric']:,.1f} ms",
                f"{each['float_ms_a_metric']:,.1f} ms",
                f"{each['ms_a_metric'] / each['float_ms_a_metric']:.1f}",
            )
            for each in result["cost"]
        ],
    )


def jobs_table(result: dict[str, Any]) -> str:
    """Return what whole jobs of one metric cost, as docs/scaling-measured.md shows it."""
    return _table(
        ("whole job of one metric", "users", "CPU", "float sums", "ratio"),
        [
            (
                f"`{each['job']}`",
                f"{each['n']:,}",
                f"{each['seconds']:.2f} s",
                f"{each['float_seconds']:.2f} s",
                f"{each['ratio']:.1f}",
            )
            for each in result["jobs"]
        ],
    )


PROJECTED = 10**9


def bill_table(result: dict[str, Any]) -> str:
    """Return CPU time by the number of users, as docs/scaling-measured.md shows it; the last line is projected.

    The projection goes on from the largest size as CPU time grew from the second largest to it.
    """
    lines = sorted(result["large"], key=lambda each: each["n"])
    before, last = lines[-2:]
    slope = (last["seconds"] - before["seconds"]) / (last["n"] - before["n"])
    ahead = last["seconds"] + slope * (PROJECTED - last["n"])

    def line(users: str, n: int, seconds: float, floats: float | None, peak: str) -> tuple[str, ...]:
        total = f"{seconds:,.1f} s" if n < PROJECTED else f"{seconds / 3600:.1f} hours"
        each, plain = (None if time is None else time / last["metrics"] / n * 1e9 for time in (seconds, floats))
        beside = ("", "") if plain is None else (f"{plain:,.0f} s", f"{seconds / floats:.1f}")  # type: ignore[operator]
        return (users, total, f"{each:,.0f} s", *beside, peak)

    measured = [
        line(f"{each['n']:,}", each["n"], each["seconds"], each.get("float_seconds"), f"{each['peak_mb']:,.0f} MB")
        for each in lines
    ]
    return _table(
        ("users", "CPU, 50 metrics", "for a metric and a billion users", "float sums likewise", "ratio", "peak memory"),
        [*measured, line(f"{PROJECTED:,}, projected", PROJECTED, ahead, None, "")],
    )


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *lines))


def main() -> None:
    """Print and store coverage and cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=0, help="runs of the simulation; 0 leaves coverage as stored")
    parser.add_argument("--turns", type=int, default=0, help="turns of each cost; 0 leaves costs as stored")
    parser.add_argument("--files", type=int, default=0, help="add 50 metrics of so many million users to the result")
    parser.add_argument("--folder", help="where their files are, or are made; a temporary folder if left out")
    parser.add_argument(
        "--jobs", type=int, default=0, help="turns of whole jobs of one metric; 0 leaves them as stored"
    )
    parser.add_argument("--json", action="store_true", help="store the result")
    options = parser.parse_args()
    result = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if options.turns and not options.files:
        cells = ((200, 1_000, 0.0), (200, 1_000, 1e-6), (20, 1_000_000, 1e-6))
        result["cost"] = [cost(*cell, options.turns) for cell in cells]
    if options.files:
        with tempfile.TemporaryDirectory() as folder:
            made = large(options.files, options.folder or folder, options.turns or 1)
        rest = [each for each in result.get("large", []) if each["n"] != made["n"]]
        result["large"] = sorted([*rest, made], key=lambda each: each["n"])
    if options.jobs:
        result["jobs"] = jobs(10_000_000, options.jobs)
    if options.runs:
        result["coverage"] = coverage(options.runs)
    print(json.dumps(result, indent=1))
    if options.json:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
