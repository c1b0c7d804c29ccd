"""Weekly looks at a growing table for a year: false claims, coverage and widths, by a schedule and by asking each week.

`python -m benchmarks.growing_tables --runs 2000 --json`. Tables are made up; noise has the vault's sizes and a seed.
"""

import argparse
import json
import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import Any, get_args

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.progress import progress
from dpcausal.guarantee import Rule
from dpcausal.inference.sequential import Spending
from dpcausal.queries import GRID, ArmMoments, LookMoments, Query
from dpcausal.queries.calibration import Noise, calibrate, epsilon_of_gaussian
from dpcausal.queries.look_moments import FINE, norm_of, running_weights, weights
from dpcausal.release import Noisy, Receipt, Release

WEEKS, A_WEEK = 52, 1_000
SHOWN = (1, 13, 26, 52)
EPSILON, DELTA = 1.0, 1e-6
EACH_WEEK = 0.1
"""The epsilon of each look where looks are paid for one by one and false claims are counted."""

_UNREMARKABLE = 2.3
"""Nearer to 0 than so many standard errors, no look leads to a claim that was adjusted; it is not estimated then."""

NAMES = ("total", "deficit", "size")
PLANS = {"Gaussian": (EPSILON, DELTA), "Laplace": (EPSILON, 0.0)}
WIDTHS = {"unadjusted": "one look alone"}
SCHEDULE = dpc.ScheduledDifference("week")


SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),  # complete
    covariates=[dpc.Category("week", list(range(1, WEEKS + 1)))],
    entry="week",
)
"""A trial with private arms, and the week in which each unit entered. With public arms the noise is the same."""


@cache
def noise_of(kind: type[Query], epsilon: float, delta: float) -> Noise:
    """Return the noise of a query, which is the same at every look."""
    query = LookMoments(dpc.Cut("week"), 1) if kind is LookMoments else ArmMoments()
    return calibrate(query, SCHEMA, dpc.Guarantee(epsilon=epsilon, delta=delta), "zcdp" if delta else "additive")


class GrowingSource:
    """A table that grows by a cohort a week, whose releases have noise from a seed; each look is answered once.

    Attributes:
        week: Which cohorts are in the table.
    """

    caveats: tuple[str, ...] = ()
    arm_sizes: tuple[int, int] | None = None

    def __init__(self, generator: Generator, rule: Rule = "additive") -> None:
        self.schema, self.rule, self.week = SCHEMA, rule, WEEKS
        units = WEEKS * A_WEEK
        arm, week = generator.integers(0, 2, units), np.repeat(np.arange(WEEKS), A_WEEK)
        ticks = np.floor((np.clip(generator.normal(0.45, 0.2, units), 0, 1) - 0.5) * 2 * GRID + 0.5).astype(np.int64)
        parts = (ticks, (GRID**2 - ticks**2) // GRID, np.ones_like(ticks))
        # Sums of whole numbers below 2^53 are exact in floating point.
        sums = [np.bincount(2 * week + arm, weights=part, minlength=2 * WEEKS).reshape(WEEKS, 2) for part in parts]
        self.sums = np.stack(sums, axis=2)  # week, arm, part
        shape = (WEEKS, len(NAMES) * 2)
        self.drawn = {"laplace": generator.laplace(0, 1, shape), "gaussian": generator.normal(0, 1, shape)}

    @property
    def n(self) -> int:
        """The number of units so far."""
        return self.week * A_WEEK

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        """Return the answer with noise of the vault's size."""
        if isinstance(query, LookMoments):
            look, used = query.look, weights(WEEKS, norm_of(guarantee))
            sums = np.tensordot(np.array(used[: query.look][::-1], dtype=float), self.sums[: query.look], axes=1)
        else:
            look, sums = self.week, self.sums[: self.week].sum(axis=0)
        noise = noise_of(type(query), guarantee.epsilon, guarantee.delta)
        exact = {f"{name}_{arm}": sums[arm, place] for place, name in enumerate(NAMES) for arm in (0, 1)}
        drawn = zip(noise.sensitivity.coordinates, noise.scales, self.drawn[noise.family][look - 1], strict=False)
        noisy = Noisy(tuple(round(exact[at.name] + (scale or 0.0) * each) for at, scale, each in drawn))
        receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta, 0, "made up")
        return Release.of(query, guarantee, noise, noisy=noisy, public_values=[], receipt=receipt)


def weekly(source: GrowingSource, look: int, epsilon: float, delta: float) -> dpc.Effect:
    """Return the effect at a look that is paid for by itself."""
    source.week = look
    return dpc.DifferenceInMeans().estimate(source, epsilon=epsilon, delta=delta)


def scheduled(source: GrowingSource, look: int, epsilon: float, delta: float) -> dpc.Effect:
    """Return the effect at a look of a schedule that is paid for once."""
    source.week = look
    return dpc.ScheduledDifference("week", look).estimate(source, epsilon=epsilon, delta=delta)


WAYS = {"each week": weekly, "schedule": scheduled}


def estimates(source: GrowingSource, way: str, price: tuple[float, float]) -> np.ndarray:
    """Return the estimates at all looks at once, as the estimators make them of the same sums and noise."""
    noise = noise_of(LookMoments if way == "schedule" else ArmMoments, *price)
    coordinates = noise.sensitivity.coordinates
    drawn = source.drawn[noise.family][:, : len(coordinates)] * np.array([scale or 0.0 for scale in noise.scales])
    if way == "schedule":
        back = running_weights(weights(WEEKS, "l2" if price[1] else "l1"))
        drawn = np.array([np.convolve(back, each)[:WEEKS] / FINE for each in drawn.T]).T
    noisy = source.sums.cumsum(axis=0)
    for at, each in zip(coordinates, drawn.T, strict=True):
        part, _, arm = at.name.partition("_")
        noisy[:, int(arm), NAMES.index(part)] += each
    if way != "schedule":
        noisy[:, 0, 2] = A_WEEK * np.arange(1, WEEKS + 1) - noisy[:, 1, 2]
    means = noisy[:, :, 0] / np.maximum(noisy[:, :, 2], 1.0) / (2 * GRID)
    found: np.ndarray = means[:, 1] - means[:, 0]
    return found


def levels_of(way: str, planned: Sequence[dpc.Effect], spending: Spending) -> list[float]:
    """Return the levels of all looks, from the errors of one study; other studies have nearly the same."""
    delta = planned[0].guarantee.delta
    known = SCHEDULE.noise_correlations(SCHEMA, delta) if way == "schedule" else None
    looks = dpc.sequential_looks(planned, planned_n=WEEKS * A_WEEK, spending=spending, noise_correlations=known)
    return [look.level for look in looks]


def claims(way: str, price: tuple[float, float], runs: int) -> dict[str, object]:
    """Return how often a year without an effect leads to any claim, and how wide intervals are, look by look."""
    rule: Rule = "zcdp" if price[1] else "additive"
    first = GrowingSource(np.random.default_rng(1), rule=rule)
    planned = [WAYS[way](first, look, *price) for look in range(1, WEEKS + 1)]
    levels = {spending: levels_of(way, planned, spending) for spending in get_args(Spending)}
    errors = np.array([effect.standard_error for effect in planned])
    found: dict[str, list[bool]] = {name: [] for name in ("anytime", *levels, "unadjusted")}
    for run in progress(range(runs), runs, f"years, {way}"):
        source = GrowingSource(np.random.default_rng((2, run)), rule=rule)
        far = np.abs(estimates(source, way, price)) / errors
        effects = {int(at) + 1: WAYS[way](source, int(at) + 1, *price) for at in np.flatnonzero(far > _UNREMARKABLE)}
        found["anytime"].append(any(_excludes(effect, look) for look, effect in effects.items()))
        found["unadjusted"].append(bool((far > 1.96).any()))
        if run < runs // 4:  # p-values take longer
            p_values = {look: effect.p_value() for look, effect in effects.items()}
            for name, each in levels.items():
                found[name].append(any(p <= each[look - 1] for look, p in p_values.items()))
    shown = {look: planned[look - 1] for look in SHOWN}
    widths = {"one look alone": {look: _width(each.interval()) for look, each in shown.items()}}
    widths |= {name: {look: _wide(shown[look], each[look - 1]) for look in SHOWN} for name, each in levels.items()}
    widths["anytime"] = {look: _width(_anytime(each, look)) for look, each in shown.items()}
    return {
        "looks": way,
        "epsilon": f"{price[0]:g} {'in all' if way == 'schedule' else 'each'}",
        "delta": price[1],
        "runs": {name: len(each) for name, each in found.items()},
        "any_claim": {name: round(sum(each) / max(len(each), 1), 4) for name, each in found.items()},
        "width": {
            name: {str(look): round(wide, 4) if math.isfinite(wide) else None for look, wide in each.items()}
            for name, each in widths.items()
        },
    }


def _anytime(effect: dpc.Effect, look: int) -> tuple[float, float]:
    return dpc.anytime_interval(effect, look=look, tuned_n=WEEKS * A_WEEK)


def _excludes(effect: dpc.Effect, look: int) -> bool:
    low, high = _anytime(effect, look)
    return not low <= 0 <= high


def _width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]


def _wide(effect: dpc.Effect, level: float) -> float:
    """Return the width of an interval at a level; infinite where a look has next to nothing to spend."""
    return -2 * NormalDist().inv_cdf(level / 2) * (effect.standard_error or 0.0) if level > 1e-12 else math.inf


def coverage(price: tuple[float, float], runs: int) -> list[dict[str, object]]:
    """Return how often 95 % intervals of a schedule cover the truth, no effect, in the middle and at the end.

    Intervals of all runs have as many standard errors as that of the first: the share of noise is the same in all.
    """
    covered: dict[int, list[bool]] = {look: [] for look in SHOWN[-2:]}
    errors: dict[int, float] = {}
    for run in progress(range(runs), runs, f"coverage, delta {price[1]:g}"):
        source = GrowingSource(np.random.default_rng((3, run)), rule="zcdp" if price[1] else "additive")
        for look, each in covered.items():
            effect = scheduled(source, look, *price)
            if look not in errors:
                errors[look] = _width(effect.interval()) / 2 / (effect.standard_error or 1.0)
            each.append(abs(effect.estimate) <= errors[look] * (effect.standard_error or 0.0))
    return [
        {
            "delta": price[1],
            "look": look,
            "runs": runs,
            "coverage": round(float(np.mean(each)), 4),
        }
        for look, each in covered.items()
    ]


def prices() -> list[dict[str, object]]:
    """Return the noise of a year of looks for one total, by a schedule and by asking each week."""
    part = dpc.Budget(epsilon=EPSILON, delta=DELTA, rule="zcdp").part(WEEKS)
    asked: dict[str, tuple[str, float, float, Rule]] = {
        "schedule, Gaussian": ("schedule", EPSILON, DELTA, "zcdp"),
        "each week, Gaussian": ("each week", part.epsilon, part.delta, "zcdp"),
        "schedule, Laplace": ("schedule", EPSILON, 0.0, "additive"),
        "each week, Laplace": ("each week", EPSILON / WEEKS, 0.0, "additive"),
    }
    lines: list[dict[str, object]] = []
    for name, (way, epsilon, delta, rule) in asked.items():
        source = GrowingSource(np.random.default_rng(4), rule=rule)
        effects = {str(look): WAYS[way](source, look, epsilon, delta) for look in SHOWN}
        lines.append(
            {
                "way": name,
                "privacy_sd": {look: round(each.privacy_sd, 5) for look, each in effects.items()},
                "width": {look: round(_width(each.interval()), 4) for look, each in effects.items()},
            }
        )
    return lines


def same_noise() -> dict[str, float]:
    """Return the total epsilon at which asking each week has the noise in totals that the schedule has at the end."""
    found = {}
    for name, (epsilon, delta) in PLANS.items():
        back = np.array(running_weights(weights(WEEKS, "l2" if delta else "l1")))
        look = noise_of(LookMoments, epsilon, delta)
        sd = (look.scales[0] or 0.0) / FINE * float(np.linalg.norm(back))  # in the ticks of ArmMoments
        alone = noise_of(ArmMoments, epsilon, delta)
        ratio = (alone.scales[0] or 0.0) / sd
        if delta:
            one = 1 / alone.event.mu  # the sd for sensitivity 1 at this epsilon
            found[name] = round(epsilon_of_gaussian(one / ratio / WEEKS**0.5, delta), 2)
        else:
            found[name] = round(epsilon * ratio * WEEKS, 2)
    return found


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Return the tables of docs/growing-tables.md, by the names of their places there."""
    first, last = SHOWN[1], SHOWN[-1]
    alike = result["epsilon_for_the_same_noise"]
    prices_table = _table(
        ["way", *(f"{what}, look {look}" for look in (first, last) for what in ("noise", "width"))],
        [
            [line["way"], *(f"{line[of][str(at)]:.4f}" for at in (first, last) for of in ("privacy_sd", "width"))]
            for line in result["prices"]
        ],
    )
    more = " or ".join(f"{alike[name]:g} ({name})" for name in alike)
    claims_table = _table(
        ["intervals", *(f"{_way(line)}: any claim, width" for line in result["claims"])],
        [
            [name.replace("_", " ")]
            + [
                f"{100 * line['any_claim'][name]:.1f} %, {_number(line['width'][WIDTHS.get(name, name)][str(last)])}"
                for line in result["claims"]
            ]
            for name in result["claims"][0]["any_claim"]
        ],
    )
    covered, least = (
        [100 * line["coverage"] for line in result["coverage"]],
        min(line["runs"] for line in result["coverage"]),
    )
    coverage_words = f"cover in {min(covered):.1f} to {max(covered):.1f} % of {least:,} years"
    same = f"Separate weekly queries would take a total epsilon of {more} for the schedule's noise at the last look.\n"
    return {"prices": f"{prices_table}\n{same}", "claims": claims_table, "coverage": coverage_words}


def _way(line: dict[str, Any]) -> str:
    noise = "Gaussian" if line["delta"] else "Laplace"
    return f"{line['looks']}, {noise}"


def _number(width: float | None) -> str:
    return "none" if width is None else f"{width:.4f}"


def _table(head: list[str], lines: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="simulated years")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    result = {
        "weeks": WEEKS,
        "units_a_week": A_WEEK,
        "total_epsilon": EPSILON,
        "total_delta": DELTA,
        "claims": [
            claims("each week", (EACH_WEEK, 0.0), chosen.runs),
            *(claims("schedule", price, chosen.runs) for price in PLANS.values()),
        ],
        "coverage": [line for price in PLANS.values() for line in coverage(price, chosen.runs)],
        "prices": prices(),
        "epsilon_for_the_same_noise": same_noise(),
    }
    print(json.dumps(result, indent=1) if chosen.json else result)


if __name__ == "__main__":
    main()
