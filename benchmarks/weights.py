"""Widths of 95 % intervals with fixed and with chosen weights of sums, planned and realised, on three tables.

`python -m benchmarks.weights --runs 15 --json`. For formulas, fixed weights are all 1, and chosen ones those that
`FormulaEstimator` takes from the schema alone. Estimators that ship have the weights that are written in their queries;
the chosen ones are what the same rule would take at the plan, with the table's own mean and spread.
"""

import argparse
import statistics
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np

import dpcausal as dpc
from benchmarks.datasets import DataSet, acic, lalonde, nhefs
from benchmarks.simulation import show
from dpcausal.estimators import narrower
from dpcausal.planning.precision import half_width
from dpcausal.queries import Sensitivity, summing
from dpcausal.queries.custom_sums import quoted
from dpcausal.queries.query import Coordinate, Norm
from dpcausal.queries.summing import SummingQuery
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.cases import Domain, domain_of
from dpcausal.sums.description import Sums
from dpcausal.sums.sensitivity import sensitivity_bound
from dpcausal.sums.weights import best_weights, drawn_moves

TABLES = {"Lalonde": lalonde, "NHEFS": nhefs, "ACIC": acic}
NUMBERS = {"Lalonde": "re75", "NHEFS": "wt71", "ACIC": "x_23"}
"""A covariate of each table that is a number."""

Key = tuple[str, tuple[str, ...], Norm]
"""A query by its name and its sums, and a norm."""

_STEP = Fraction(11, 10)


@dataclass
class Weighing:
    """Other weights for queries that are sums, and what was asked.

    Attributes:
        weights: The weights, by query.
        louder: A sum whose noise is larger by a tenth, by query; its bound stays.
        asked: The descriptions that were asked.
    """

    weights: Mapping[Key, Mapping[str, Fraction]] = field(default_factory=dict)
    louder: Mapping[Key, str] = field(default_factory=dict)
    asked: dict[Key, tuple[Sums, Domain]] = field(default_factory=dict)
    _found: dict[object, Sensitivity] = field(default_factory=dict)

    def sensitivity(self, query: SummingQuery, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return the sensitivity of a query with other weights, computed as ever."""
        asked = query, schema, protects, norm
        if asked not in self._found:
            self._found[asked] = self._computed(*asked)
        return self._found[asked]

    def _computed(self, query: SummingQuery, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        described = query.sums(schema, protects, norm)
        if len(described) > 1:
            return _FIXED(query, schema, protects, norm)
        (sums,), domain = described, domain_of(schema, protects)
        key = query.name, tuple(sums.weights), norm
        self.asked[key] = sums, domain
        sums = replace(sums, weights=self.weights.get(key, sums.weights))
        bound = sensitivity_bound(sums, domain, norm).bound or Fraction(1)
        ticks, louder = query.ticks(schema), self.louder.get(key)
        noise = {each: weight * (_STEP if each == louder else 1) for each, weight in sums.weights.items()}
        coordinates = (Coordinate(name, ticks.get(each, 1.0), noise[each]) for name, each in sums.keys.items())
        return Sensitivity(norm, tuple(coordinates), bound)


_FIXED = summing._sensitivity  # noqa: SLF001


@contextmanager
def weighing(other: Weighing) -> Iterator[None]:
    """Let queries have other weights meanwhile."""
    narrower.noise_sd.cache_clear()
    with patch.object(summing, "_sensitivity", other.sensitivity), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    narrower.noise_sd.cache_clear()


def chosen(estimator: Estimator, plan: dpc.Rehearsal, epsilon: float, delta: float) -> Weighing:
    """Return the weights that are best at a plan, to first order in the noise."""
    first = Weighing()
    with weighing(first):
        before = estimator.estimate(plan, epsilon=epsilon, delta=delta).privacy_sd ** 2
    weights: dict[Key, dict[str, Fraction]] = {}
    for key, (sums, domain) in first.asked.items():
        names, parts = (*sums.numbers, *sums.whole), []
        if len(names) == 1:
            continue
        for name in names:
            with weighing(Weighing(louder={key: name})):
                after = estimator.estimate(plan, epsilon=epsilon, delta=delta).privacy_sd ** 2
            parts.append(max(after - before, 0.0) / float(_STEP**2 - 1) / float(sums.weights[name]) ** 2)
        moved = drawn_moves(sums, domain, key[2])
        if any(parts) and moved.any():
            own = [float(sums.weights[name]) for name in names]
            best = np.where(moved.any(axis=0), best_weights(moved, parts, key[2]), own)
            weights[key] = {name: Fraction(f"{float(each):.2g}") for name, each in zip(names, best, strict=True)}
    return Weighing(weights)


def width(effect: Effect) -> float:
    """Return half the width of an interval, also of one that is refused."""
    return half_width(replace(effect, no_interval="", sampling_sd=effect.sampling_sd or 0.0))


def formulas(data: DataSet) -> dict[str, dpc.FormulaEstimator]:
    """Return formulas for a table."""
    arm, y, x = data.treatment.name, quoted(data.outcome.name), quoted(NUMBERS[data.name])
    slope = f"covariance({x}, {y}) / variance({x})"
    rest = f"(variance({y}) - estimate * covariance({x}, {y})) / variance({x}) / (n - 2)"
    within = f"total((n[1] + n[0]) * (mean({y})[1] - mean({y})[0])) / total(n)"
    error = f"total((n[1] + n[0])**2 * (variance({y})[1] / n[1] + variance({y})[0] / n[0])) / total(n)**2"
    column = next(each for each in data.covariates if each.name == NUMBERS[data.name])
    middle = [(column.low + column.high) / 2]  # type: ignore[union-attr]
    return {
        "formula: difference in means": dpc.FormulaEstimator(
            estimand="difference in means",
            cells=[arm],
            formula=f"mean({y})[1] - mean({y})[0]",
            variance=f"variance({y})[1] / n[1] + variance({y})[0] / n[0]",
        ),
        "formula: slope": dpc.FormulaEstimator(estimand="slope", formula=slope, variance=rest),
        "formula: within strata": dpc.FormulaEstimator(
            estimand="effect within strata",
            cells=[arm, dpc.Cut(NUMBERS[data.name], middle)],
            formula=within,
            variance=error,
        ),
    }


def shipped(data: DataSet) -> dict[str, Estimator]:
    """Return the estimators that ask for sums with several weights, for a table."""
    x = next(each for each in data.covariates if each.name == NUMBERS[data.name])
    low, high = x.low, x.high  # type: ignore[union-attr]
    listed = next(each.name for each in data.covariates if isinstance(each, dpc.Binary))
    covariates = [NUMBERS[data.name], listed]
    return {
        "difference in means": dpc.DifferenceInMeans(),
        "difference in differences": dpc.DifferenceInDifferences(before=NUMBERS[data.name]),
        "regression discontinuity": dpc.RegressionDiscontinuity(x.name, (low + high) / 2, (high - low) / 4),
        "inverse weighting": dpc.InverseWeighting(covariates),
        "regression adjustment": dpc.RegressionAdjustment(covariates),
        "stratification": dpc.Stratification([dpc.Cut(x.name, [(low + high) / 2])]),
    }


def compared(data: DataSet, epsilon: float, runs: int) -> Iterator[dict[str, object]]:
    """Yield the results of all estimators on a table."""
    schema, y = data.schema("record"), np.array(data.table[data.outcome.name])
    arm = np.array(data.table[data.treatment.name]) == 1
    sd = float(np.sqrt(np.mean([y[arm].var(), y[~arm].var()])))
    for delta in (0.0, 1e-6):
        budget = dpc.Budget(epsilon=1_000, delta=0.4, rule="zcdp" if delta else "additive")
        mean, share = float(y.mean()), float(arm.mean())
        plan = dpc.Rehearsal(schema, len(y), treated_share=share, outcome_mean=mean, outcome_sd=sd, rule=budget.rule)
        for name, estimator in {**formulas(data), **shipped(data)}.items():
            tried: dict[str, tuple[dpc.Estimator, Weighing]]
            if isinstance(estimator, dpc.FormulaEstimator):
                ones = dict.fromkeys(estimator.query(schema).texts, 1.0)
                tried = {"fixed": (replace(estimator, weights=ones), Weighing()), "chosen": (estimator, Weighing())}
            else:
                tried = {"fixed": (estimator, Weighing())}
                tried["chosen"] = (estimator, chosen(estimator, plan, epsilon, delta))
            line: dict[str, object] = {
                "table": data.name,
                "estimator": name,
                "noise": "gaussian" if delta else "laplace",
            }
            for weights, (weighted, other) in tried.items():
                with weighing(other):
                    # Another vault for other weights: of shipped estimators they are not part of the question.
                    vault = dpc.Vault(data.table, schema, ledger="sqlite://", budget=budget)
                    planned = weighted.estimate(plan, epsilon=epsilon, delta=delta)
                    found = [
                        weighted.estimate(vault, epsilon=epsilon * (1 + 1e-6 * run), delta=delta) for run in range(runs)
                    ]
                line |= {
                    f"planned_{weights}": float(f"{width(planned):.4g}"),
                    f"realised_{weights}": float(f"{statistics.median(map(width, found)):.4g}"),
                    f"refused_{weights}": round(statistics.fmean(bool(each.no_interval) for each in found), 2),
                }
            yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="draws of noise for each width")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--table", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    given = parser.parse_args()
    show([each for name in given.table for each in compared(TABLES[name](), given.epsilon, given.runs)], given)


if __name__ == "__main__":
    main()
