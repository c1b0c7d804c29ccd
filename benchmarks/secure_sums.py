"""Secure sums over sites beside one table: privacy error, coverage, widths: `python -m benchmarks.secure_sums --json`.

Sites' exact answers get their shares of noise from the vault's sampler and are added up. There are no masks and no
ledger here: masks cancel out, and the law of the sum does not depend on them.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.array_engine import ArrayEngine, ticks
from benchmarks.coverage import STRATA, Columns, Study, confounded, even, risky, skewed, varied, yes_or_no
from dpcausal.audit.tables import Unmetered, exact_answer
from dpcausal.federation.coordinator.aggregate import summed_release
from dpcausal.guarantee import Guarantee, Rule
from dpcausal.queries import ArmTotals, Query
from dpcausal.queries.calibration import Asked, NoiseShare, calibrate, share_of
from dpcausal.release import Receipt, Release
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.schema import Protects
from dpcausal.utils.arrays import Int64s
from dpcausal.vault.door import Sampler

EPSILON = 1.0

SITES = (3, 12, 50)

BLOCK = 50
"""How many sums of shares are drawn at once."""

HARDLY_ANY_NOISE = 100.0
"""An epsilon at which the noise is a hundredth: what stands for no noise."""

OUTCOME, X = dpc.Real("y", 0, 1), dpc.Real("x", 0, STRATA - 1)
PLAIN = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=OUTCOME)
NUMBER = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=OUTCOME, covariates=[X])
STRATUM = dpc.Schema(
    treatment=dpc.Treatment("arm"), outcome=OUTCOME, covariates=[dpc.Category("x", list(map(str, range(STRATA))))]
)


def varied_in_population(generator: Generator, n: int, protects: Protects) -> Study:
    """Return a table with effects from 0 to 0.2, and their mean in the population, which a regression estimates."""
    return varied(generator, n, protects)[0], 0.1


CASES: dict[str, tuple[Estimator, dpc.Schema, int, tuple[Any, ...]]] = {
    "difference_in_means": (dpc.DifferenceInMeans(), PLAIN, 3_000, (even, skewed, yes_or_no)),
    "stratification": (dpc.Stratification(by=["x"], cap=4), STRATUM, 24_000, (confounded, risky)),
    "regression_adjustment": (
        dpc.RegressionAdjustment(covariates=["x"]),
        NUMBER,
        6_000,
        (confounded, varied_in_population),
    ),
}
"""For each estimator, what its tables declare, the units of all sites together, and how tables are drawn."""


def honest_of(sites: int) -> int:
    """Return how many sites' shares are the whole noise here: two thirds of them, rounded up."""
    return math.ceil(2 * sites / 3)


class ShareSums:
    """Sums of one share of noise from each site, drawn in blocks: one call for each sum would take far longer.

    Args:
        sites: How many sites there are.
    """

    def __init__(self, sites: int) -> None:
        self._sites, self._left = sites, dict[NoiseShare, list[Int64s]]()

    def draw(self, share: NoiseShare) -> Int64s:
        """Return the sum of so many sites' shares, in ticks. No sum is returned twice."""
        left = self._left.setdefault(share, [])
        if not left:
            every = NoiseShare(share.family, share.scales * self._sites * BLOCK, share.honest)
            noise = np.array(Sampler().add_noise_share([0] * len(every.scales), every), dtype=np.int64)
            left.extend(noise.reshape(BLOCK, self._sites, -1).sum(axis=1))
        return left.pop()


class SecureSites:
    """A source that adds up sites' answers, each with its share of the noise; it draws anew at each release.

    Args:
        engines: The sites' tables.
        schema: What is public about them.
        shares: Where sums of shares come from.
    """

    rule: Rule = "additive"
    arm_sizes = None
    caveats: tuple[str, ...] = ()

    def __init__(self, engines: Sequence[ArrayEngine], schema: dpc.Schema, shares: ShareSums) -> None:
        self._engines, self.schema, self._shares = engines, schema, shares
        self.n = sum(int(engine.aggregate({}, ["1"])[0]) for engine in engines)

    def many(self, query: Query, guarantee: Guarantee, runs: int) -> Int64s:
        """Return so many sums, in ticks, one line each: the same exact answers, shares of noise drawn anew."""
        noise = calibrate(query, self.schema, guarantee, "zcdp")
        exact = [exact_answer(query, self.schema, engine, guarantee).in_order(noise) for engine in self._engines]
        share = share_of(noise, honest_of(len(exact)))
        total = np.sum(np.array(exact, dtype=np.int64), axis=0)
        return np.array([total + self._shares.draw(share) for _ in range(runs)])

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the sum of the sites' answers."""
        sites = len(self._engines)
        return summed_release(
            Asked(query, guarantee),
            self.schema,
            self.many(query, guarantee, 1)[0].tolist(),
            sites=sites,
            honest=honest_of(sites),
            receipt=Receipt(query.name, guarantee.epsilon, guarantee.delta),
        )


def engine_of(columns: Columns, schema: dpc.Schema) -> ArrayEngine:
    """Return a table as an engine."""
    codes = {"treatment": columns["arm"].astype(np.int64)}
    if schema.covariates:
        codes["covariate_0"] = ticks(columns["x"].astype(float), X) if schema is NUMBER else columns["x"]
    return ArrayEngine(columns["y"], codes, OUTCOME)


def sources(
    study: Study, schema: dpc.Schema, sites: int, shares: ShareSums | None = None
) -> tuple[SecureSites, Unmetered]:
    """Return a table divided among sites, and all of it as one table."""
    columns = study[0]
    places = np.array_split(np.arange(len(columns["y"])), sites)
    engines = [engine_of({name: column[place] for name, column in columns.items()}, schema) for place in places]
    return SecureSites(engines, schema, shares or ShareSums(sites)), Unmetered(engine_of(columns, schema), schema)


def drawn(kind: Any, generator: Generator, units: int) -> Study:  # noqa: ANN401 (a maker of tables)
    study: Study = kind(generator, units, "record")
    return study


def privacy_errors(tables: int, draws: int, delta: float) -> Iterator[dict[str, Any]]:
    """Yield, for each number of sites, the privacy error of a difference in means over that of one table."""
    studies = [drawn(even, np.random.default_rng((1, table)), 3_000) for table in range(tables)]
    guarantee = Guarantee(epsilon=EPSILON, delta=delta)
    one_table = _error([sources(study, PLAIN, 1)[1] for study in studies], guarantee, 4 * draws)
    for sites in SITES:
        shares = ShareSums(sites)
        secure = _error([sources(study, PLAIN, sites, shares)[0] for study in studies], guarantee, draws)
        yield {
            "sites": sites,
            "honest": honest_of(sites),
            "delta": delta,
            "tables": tables,
            "draws": tables * draws,
            "privacy_sd_ratio": round(secure / one_table, 3),
            "expected_ratio": round(math.sqrt(sites / honest_of(sites)), 3),
            "own_noise_ratio": round(math.sqrt(sites), 3),
        }


def _error(tables: Sequence[SecureSites | Unmetered], guarantee: Guarantee, draws: int) -> float:
    """Return the standard deviation of privacy errors, in ticks of the outcome, of the treated total less the other."""
    totals = (source.many(ArmTotals(), guarantee, draws) for source in tables)
    return math.sqrt(float(np.mean([np.var(each[:, 1] - each[:, 0], ddof=1) for each in totals])))


def coverage(name: str, sites: int, runs: int) -> Iterator[dict[str, Any]]:
    """Yield how often the truth is not rejected at 5 %, intervals are refused, and how wide beside no noise they are.

    A 95 % interval covers the truth where its p-value is at least 5 %; the p-value is the faster of the two.
    """
    estimator, schema, units, kinds = CASES[name]
    sums = ShareSums(sites)
    for kind in kinds:
        covered, refused, widths, shares = [], 0, [], []
        for run in range(runs):
            study = drawn(kind, np.random.default_rng((2, sites, run)), units)
            secure, one = sources(study, schema, sites, sums)
            effect = estimator.estimate(secure, epsilon=EPSILON)
            if effect.no_interval:
                refused += 1
                continue
            covered.append(effect.p_value(study[1]) >= 0.05)
            shares.append(effect.privacy_sd / math.hypot(effect.privacy_sd, effect.sampling_sd or 0.0))
            if run % 10 == 0:
                exact = estimator.estimate(one, epsilon=HARDLY_ANY_NOISE)
                widths.append(_width(effect) / _width(exact))
        share = float(np.mean(covered)) if covered else 0.0
        yield {
            "estimator": name,
            "tables": kind.__name__,
            "sites": sites,
            "units": units,
            "runs": runs,
            "coverage": round(share, 4) if covered else None,
            "coverage_se": round(math.sqrt(share * (1 - share) / len(covered)), 4) if covered else None,
            "privacy_share_of_error": round(float(np.median(shares)), 3) if covered else None,
            "refused": round(refused / runs, 4),
            "width_over_no_noise": round(float(np.mean(widths)), 3) if widths else None,
        }


def _width(effect: Effect) -> float:
    low, high = effect.interval(0.95)
    return high - low


def curves(sites: int, runs: int, units: int = 24_000) -> dict[str, Any]:
    """Return how far curves over sites and of one table are from each other, in standard errors, and from the truth."""
    learner = dpc.RLearner(covariates=["x"], basis=dpc.Polynomial(["x"]), propensity=0.5)
    at = {"x": [2.0, 10.0, 17.0]}
    apart, errors = [], []
    for run in range(runs):
        generator = np.random.default_rng((3, run))
        x = generator.integers(0, STRATA, units)
        arm = generator.integers(0, 2, units)
        share = x / (STRATA - 1)
        y = 0.3 + 0.3 * share + 0.2 * share * arm + generator.uniform(-0.1, 0.1, units)
        secure, one = sources(({"arm": arm, "x": x, "y": y}, 0.0), NUMBER, sites)
        found = [learner.estimate(source, epsilon=EPSILON, delta=1e-6) for source in (secure, one)]
        (effects, other), sds = (each.effect(at) for each in found), [each.standard_errors(at) for each in found]
        privacy = np.hypot(sds[0][1], sds[1][1])
        apart += ((effects - other) / privacy).tolist()
        errors += (effects - 0.2 * np.array(at["x"]) / (STRATA - 1)).tolist()
    return {
        "sites": sites,
        "runs": runs,
        "rms_distance_in_privacy_sds": round(float(np.sqrt(np.mean(np.square(apart)))), 3),
        "rmse": round(float(np.sqrt(np.mean(np.square(errors)))), 4),
    }


def measure(runs: int, parts: Sequence[str], sites: Sequence[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the part that a line of the result belongs to, and the line."""
    if "privacy" in parts:
        for delta in (0.0, 1e-6):
            yield from (("privacy", line) for line in privacy_errors(200, max(runs // 8, 2), delta))
    if "curves" in parts:
        yield "curves", curves(12, max(runs // 4, 2))
    if "coverage" in parts:
        for each in sites:
            yield from (("coverage", line) for name in CASES for line in coverage(name, each, runs))


def coverage_table(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table for the documentation: coverage in percent, for each number of sites."""
    sites = sorted({line["sites"] for line in lines})
    yield f"| | {' | '.join('one table' if each == 1 else f'{each} sites' for each in sites)} |"
    yield "|---" * (1 + len(sites)) + "|"
    found = {(line["estimator"], line["tables"], line["sites"]): line for line in lines}
    for estimator, tables in dict.fromkeys((line["estimator"], line["tables"]) for line in lines):
        cells = (found[estimator, tables, each] for each in sites)
        shown = " | ".join(f"{100 * cell['coverage']:.1f}" for cell in cells)
        yield f"| `{estimator}`, {tables.replace('_', ' ')} | {shown} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="simulated tables for each setting")
    parser.add_argument("--part", nargs="+", default=["privacy", "curves", "coverage"], help="what to measure")
    parser.add_argument("--sites", type=int, nargs="+", default=(1, *SITES), help="the numbers of sites for coverage")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    result: dict[str, list[dict[str, Any]]] = {}
    for part, line in measure(chosen.runs, chosen.part, chosen.sites):
        result.setdefault(part, []).append(line)
        print(json.dumps({part: line}), file=sys.stderr, flush=True)
    if chosen.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
