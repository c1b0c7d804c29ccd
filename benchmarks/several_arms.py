"""How often simultaneous 95 % intervals of all contrasts cover, for several arms, factorial designs and strata.

Each run draws a table, from a known law or with replacement from a published trial, adds up its cells as a vault does,
adds noise of the vault's own law and size from a seed, and asks the estimator. The truth is that of the law, or the
published table's own value without noise, from which the run was drawn: sampling error and noise both count.

`python -m benchmarks.several_arms --runs 500 --json`
"""

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.data.files import add_data_option, data_file
from benchmarks.progress import progress
from dpcausal.guarantee import Rule
from dpcausal.queries import GRID, ArmRegressionMoments, CellMoments, MissingOutcomes, Query
from dpcausal.queries.calibration import calibrate
from dpcausal.queries.regression_moments import FINE
from dpcausal.release import Noisy, Receipt, Release
from dpcausal.results.effect import Estimator
from dpcausal.schema.schema import Protects
from dpcausal.uncertainty import joint_estimate
from dpcausal.uncertainty.interval import Family, simulated
from dpcausal.uncertainty.joint_estimate import JointEstimate

EPSILON = 1.0
SHARES = {3: (0.5, 0.3, 0.2), 4: (0.4, 0.3, 0.2, 0.1), 5: (0.3, 0.25, 0.2, 0.15, 0.1)}
"""How many of all units are in each arm: uneven."""

Codes = NDArray[Any]


@dataclass(frozen=True)
class Units:
    """Units as codes: the place of the arm and of the stratum or level, the outcome, and features from -1 to 1."""

    arm: Codes
    stratum: Codes
    outcome: Codes
    features: Codes | None = None


@dataclass(frozen=True)
class Design:
    """What is asked of which tables.

    Attributes:
        name: What to call it.
        schema: What is public.
        estimator: The estimator.
        draw: What draws a table of so many units.
        truth: The true contrasts, in the estimator's order.
    """

    name: str
    schema: dpc.Schema
    estimator: Estimator
    draw: Callable[[Generator, int], Units]
    truth: tuple[float, ...]


class Simulated:
    """A source over units in memory, with noise from a seed: of the law and size of a vault's."""

    arm_sizes = None
    caveats: tuple[str, ...] = ()
    rule: Rule = "additive"

    def __init__(self, schema: dpc.Schema, units: Units, random: Generator) -> None:
        self.schema, self.n, self._units, self._random = schema, len(units.arm), units, random

    def exact(self, query: Query) -> dict[str, int]:
        """Return the sums in all cells, or of all products, in ticks, as the vault adds them up."""
        low, high = self.schema.outcome_bounds
        ticks = np.floor((self._units.outcome - (low + high) / 2) * (2 * GRID / (high - low)) + 0.5).astype(np.int64)
        if isinstance(query, ArmRegressionMoments):
            return self._products(query, ticks)
        if isinstance(query, MissingOutcomes):  # every unit has an outcome
            return {f"observed_{arm}": int((self._units.arm == arm).sum()) for arm in (0, 1)} | dict.fromkeys(
                ("missing_0", "missing_1"), 0
            )
        assert isinstance(query, CellMoments)
        arms = len(self.schema.treatment.arms)
        names = query.cells(self.schema)
        place = self._units.arm + arms * self._units.stratum * bool(query.by)
        each = {"total": ticks, "deficit": (GRID**2 - ticks**2) // GRID, "size": np.ones(self.n, dtype=np.int64)}
        sums = {part: np.bincount(place, values, len(names)) for part, values in each.items()}  # exact below 2^53
        return {f"{part}{cell}": int(sums[part][at]) for part in each for at, cell in enumerate(names)}

    def _products(self, query: ArmRegressionMoments, ticks: Codes) -> dict[str, int]:
        assert self._units.features is not None
        lines = np.vstack([ticks, np.floor(self._units.features * GRID + 0.5).astype(np.int64)])
        numbers = np.vstack([np.full(self.n, FINE), (lines + GRID // FINE // 2) // (GRID // FINE)]).astype(float)
        found = {}
        for arm in range(len(self.schema.treatment.arms)):
            here = numbers[:, self._units.arm == arm]
            sums = here @ here.T  # exact below 2^53
            for name, (first, second) in zip(query.names(self.schema, arm), query.products(self.schema), strict=True):
                total = int(sums[first, second])
                found[name] = int(sums[0, 0]) - total if first == second else total
            found[f"arm_{arm}"] = here.shape[1]
        return found

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        """Return a noisy answer."""
        noise = calibrate(query, self.schema, guarantee)
        exact = self.exact(query)
        draw = self._random.laplace if noise.family == "laplace" else self._random.normal
        drawn = draw(0.0, np.array(noise.scales, dtype=float))
        coordinates = noise.sensitivity.coordinates
        ticks = tuple(exact[at.name] + round(each) for at, each in zip(coordinates, drawn, strict=True))
        receipt = Receipt(query.name, guarantee.epsilon, guarantee.delta, 0, "00" * 32)
        return Release.of(query, guarantee, noise, noisy=Noisy(ticks), public_values=(), receipt=receipt)


def _schema(arms: int, protects: Protects, *, binary: bool, levels: int) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("arm", arms=tuple(range(arms)), compare=1),
        outcome=dpc.Binary("y", missing=0) if binary else dpc.Real("y", 0, 1, missing=0),
        covariates=[dpc.Category("level", list(range(levels)))],
        protects=protects,
    )


def _drawn(shares: tuple[float, ...], means: NDArray[Any], *, binary: bool) -> Callable[[Generator, int], Units]:
    """Return what draws units with uneven arms and even strata, whose outcome has a mean by stratum and arm."""

    def draw(random: Generator, n: int) -> Units:
        arm, stratum = random.choice(len(shares), n, p=shares), random.integers(0, len(means), n)
        mean = means[stratum, arm]
        outcome = random.binomial(1, mean) if binary else random.beta(6 * mean, 6 * (1 - mean))
        return Units(arm, stratum, outcome.astype(float))

    return draw


def _contrasts(means: NDArray[Any], *, pairs: bool) -> tuple[float, ...]:
    others = range(1, len(means))
    made = [means[b] - means[0] for b in others]
    made += [means[b] - means[a] for a in others for b in others if pairs and a < b]
    return tuple(map(float, made))


def _factorial(means: NDArray[Any]) -> tuple[float, ...]:
    """Return main effects of arms and of levels, and interactions; means are level by arm."""
    arms, levels = means.mean(axis=0), means.mean(axis=1)
    apart = means[:, 1:] - means[:, :1]
    return tuple(map(float, (*(arms[1:] - arms[0]), *(levels[1:] - levels[0]), *(apart[1:] - apart[0]).T.ravel())))


def _several(arms: int, protects: Protects, *, binary: bool, pairs: bool) -> Design:
    means = np.linspace(0.1, 0.25, arms)[None] if binary else np.linspace(0.35, 0.5, arms)[None]
    kind = "pairs" if pairs else "reference"
    return Design(
        f"{arms} arms, {'all pairs' if pairs else 'against reference'}, {'risks' if binary else 'means'}"
        + (", trial" if protects == "record_within_arm" else ""),
        _schema(arms, protects, binary=binary, levels=2),
        dpc.ArmContrasts(contrasts=kind),  # type: ignore[arg-type]
        _drawn(SHARES[arms], means, binary=binary),
        _contrasts(means[0], pairs=pairs),
    )


def _stratified(arms: int) -> Design:
    means = np.array([0.2, 0.35, 0.5, 0.65])[:, None] + np.linspace(0, 0.1, arms)
    return Design(
        f"{arms} arms, all pairs, 4 strata",
        _schema(arms, "record", binary=False, levels=4),
        dpc.ArmContrasts(contrasts="pairs", by=["level"]),
        _drawn(SHARES[arms], means, binary=False),
        _contrasts(means.mean(axis=0), pairs=True),
    )


def _adjusted(arms: int, *, confounded: bool, binary: bool = False) -> Design:
    """Return a design with a number and a binary covariate, which explain about a quarter of the outcome's variance."""
    shares, tilt = np.array(SHARES[arms]), np.linspace(-0.5, 0.5, arms) if confounded else np.zeros(arms)
    levels = np.linspace(0.2, 0.3, arms) if binary else np.linspace(0.35, 0.5, arms)
    slopes = np.array([[0.12], [0.06]]) * (0.5 if binary else 1.0) * np.linspace(1, 1.2, arms)

    def draw(random: Generator, n: int) -> Units:
        features = np.stack([2 * random.beta(4, 4, n) - 1, 2.0 * random.integers(0, 2, n) - 1])
        likely = shares * np.exp(np.outer(3 * features[0] + features[1], tilt))
        arm = (random.random(n) * likely.sum(axis=1) > np.cumsum(likely, axis=1).T).sum(axis=0)
        mean = levels[arm] + (slopes[:, arm] * features).sum(axis=0)
        outcome = random.binomial(1, mean) if binary else random.beta(8 * mean, 8 * (1 - mean))
        return Units(arm, np.zeros(n, dtype=np.int64), outcome.astype(float), features)

    schema = _schema(arms, "record", binary=binary, levels=2)
    return Design(
        f"{arms} arms, {'risks' if binary else 'means'} adjusted, {'confounded' if confounded else 'randomised'}",
        replace(schema, covariates=[dpc.Real("x", -1, 1), dpc.Binary("level")]),
        dpc.ArmContrasts(contrasts="pairs", covariates=["x", "level"]),
        draw,
        _contrasts(levels, pairs=True),
    )


def least_squares(units: Units, arms: int) -> JointEstimate:
    """Return what a table without noise gives: all pairs of means that a regression in each arm standardises."""
    assert units.features is not None
    n = len(units.arm)
    design = np.column_stack([np.ones(n), units.features.T])
    means, influence = np.zeros(arms), np.zeros((arms, n))
    for arm in range(arms):
        here = units.arm == arm
        gram = design[here].T @ design[here]
        fitted = design @ np.linalg.solve(gram, design[here].T @ units.outcome[here])
        means[arm] = fitted.mean()
        influence[arm] = (fitted - means[arm]) / n
        influence[arm] += here * (units.outcome - fitted) * (design @ np.linalg.solve(gram, design.mean(axis=0)))
    pairs = [(0, b) for b in range(1, arms)] + [(a, b) for a in range(1, arms) for b in range(a + 1, arms)]
    lines = np.array([np.eye(arms)[b] - np.eye(arms)[a] for a, b in pairs])
    covariance = lines @ (influence @ influence.T) @ lines.T
    names = tuple(map(str, pairs))
    return JointEstimate(names, tuple(lines @ means), tuple(map(tuple, covariance.tolist())), ())


def families() -> dict[str, Estimator]:
    """Return estimators that compare two arms at a time."""
    covariates = ["x", "level"]
    return {"regression": dpc.RegressionAdjustment(covariates), "doubly robust": dpc.DoublyRobust(covariates)}


def simulate_family(name: str, n: int, seed: tuple[int, int]) -> dict[str, Any]:
    """Return what one run of three confounded arms gave, compared two at a time from vaults with a divided epsilon.

    Each effect is that in the units of its two arms. Noise is the vaults' own, without a seed.
    """
    design, pairs = _adjusted(3, confounded=True), ((0, 1), (0, 2), (1, 2))
    units = design.draw(np.random.default_rng(seed), n)
    assert units.features is not None
    columns = {"arm": units.arm, "y": units.outcome, "x": units.features[0], "level": units.features[1] > 0}
    table = pa.table(columns | {"level": columns["level"].astype(int)})
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=EPSILON), as_of="simulated")
    sources = [
        dpc.Vault(
            table,
            replace(design.schema, treatment=dpc.Treatment("arm", arms=range(3), reference=a, compare=b)),
            ledger=ledger,
            as_of="simulated",
        )
        for a, b in pairs
    ]
    family = dpc.estimate_family(sources, families()[name], epsilon=EPSILON)
    effects, truth = list(family.effects.values()), pair_effects()
    errors = np.array([effect.estimate for effect in effects]) - truth
    shown = np.array([not effect.no_interval for effect in effects])
    halves, each = np.full((2, len(pairs)), np.nan)
    for place in np.flatnonzero(shown):
        low, high = effects[place].interval(0.95)
        each[place] = low <= truth[place] <= high
        low, high = effects[place].interval(1 - 0.05 / len(pairs))  # as family.intervals, which needs all of them
        halves[place] = (high - low) / 2
    return {"shown": shown, "errors": errors, "each": each, "halves": halves}


@cache
def pair_effects() -> Codes:
    """Return the effects in the units of two arms, of three confounded ones, from a million units."""
    design = _adjusted(3, confounded=True)
    units = design.draw(np.random.default_rng(0), 1_000_000)
    assert units.features is not None
    slopes = np.array([[0.12], [0.06]]) * np.linspace(1, 1.2, 3)
    found = []
    for level, (a, b) in zip(design.truth, ((0, 1), (0, 2), (1, 2)), strict=True):
        centre = units.features[:, (units.arm == a) | (units.arm == b)].mean(axis=1)
        found.append(level + float((slopes[:, b] - slopes[:, a]) @ centre))
    return np.array(found)


def family_summary(name: str, n: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one line of the table of comparisons of two arms at a time."""
    shown, errors, halves = (np.array([run[part] for run in runs]) for part in ("shown", "errors", "halves"))
    whole = shown.all(axis=1)
    return {
        "family": name,
        "n": n,
        "runs": len(runs),
        "without_interval": round(1 - float(shown.mean()), 4),
        "coverage_together": round(float((np.abs(errors) <= halves)[whole].all(axis=1).mean()), 4),
        "coverage_each": round(float(np.nanmean([run["each"] for run in runs])), 4),
        "rmse": round(float(np.sqrt((errors**2).mean())), 6),
        "mean_half_width": round(float(np.nanmean(halves)), 6),
    }


def _crossed(arms: tuple[float, ...], levels: int) -> Design:
    means = np.linspace(0.3, 0.4, len(arms)) + np.linspace(0, 0.1, levels)[:, None]
    means[-1, -1] += 0.05
    return Design(
        f"factorial {len(arms)} by {levels}",
        _schema(len(arms), "record", binary=False, levels=levels),
        dpc.FactorialEffects(factor="level"),
        _drawn(arms, means, binary=False),
        _factorial(means),
    )


def published(
    name: str,
    schema: dpc.Schema,
    estimator: Estimator,
    columns: tuple[str, str | None, Codes],
    table: Any,  # noqa: ANN401
) -> Design:
    """Return a published trial, of which runs are drawn with replacement."""
    arm_name, level_name, outcome = columns
    arms = list(schema.treatment.arms)
    arm = np.array([arms.index(value) for value in table[arm_name].to_pylist()])
    level = np.zeros(len(arm), dtype=np.int64)
    if level_name:
        values = list(schema.covariates[0].values)  # type: ignore[union-attr]
        level = np.array([values.index(value) for value in table[level_name].to_pylist()])
    means = np.array(
        [[outcome[(arm == a) & (level == at)].mean() for a in range(len(arms))] for at in range(level.max() + 1)]
    )

    def draw(random: Generator, n: int) -> Units:
        chosen = random.integers(0, len(arm), n)
        return Units(arm[chosen], level[chosen], outcome[chosen])

    return Design(name, schema, estimator, draw, _factorial(means) if level_name else _contrasts(means[0], pairs=True))


def trials(folder: Path | None) -> list[tuple[Design, int]]:
    """Return three published trials and their numbers of units."""
    read = pyarrow.csv.read_csv
    email, star, stroke = (
        read(data_file(path, folder))
        for path in ("hillstrom/hillstrom.csv", "star/star_ecdat_5748.csv", "ist/ist_prr_subset.csv.gz")
    )
    pairs = dpc.ArmContrasts(contrasts="pairs")
    mails = dpc.Treatment("segment", arms=("No E-Mail", "Mens E-Mail", "Womens E-Mail"), compare="Mens E-Mail")
    classes = dpc.Treatment("classk", arms=("regular", "small.class", "regular.with.aide"), compare="small.class")
    heparin = dpc.Treatment("RXHEP", arms=("N", "L", "H"), compare="L")
    visits, scores = email["visit"].to_numpy(), star["tmathssk"].to_numpy() + star["treadssk"].to_numpy()
    died = stroke["DIED"].to_numpy()
    designs = [
        published(
            "Hillstrom, 3 arms, all pairs",
            dpc.Schema(treatment=mails, outcome=dpc.Binary("visit")),
            pairs,
            ("segment", None, visits.astype(float)),
            email,
        ),
        published(
            "STAR, 3 arms, all pairs",
            dpc.Schema(treatment=classes, outcome=dpc.Real("total", 600, 1260)),
            pairs,
            ("classk", None, scores.astype(float)),
            star,
        ),
        published(
            "IST, heparin by aspirin",
            dpc.Schema(
                treatment=heparin, outcome=dpc.Binary("DIED"), covariates=[dpc.Binary("RXASP", values=("N", "Y"))]
            ),
            dpc.FactorialEffects(factor="RXASP"),
            ("RXHEP", "RXASP", died.astype(float)),
            stroke,
        ),
    ]
    return [(design, table.num_rows) for design, table in zip(designs, (email, star, stroke), strict=True)]


@cache
def designs(folder: Path | None) -> tuple[tuple[Design, int], ...]:
    """Return every design with its number of units."""
    made = [_several(arms, "record", binary=binary, pairs=not binary) for arms in SHARES for binary in (False, True)]
    made += [_several(arms, "record_within_arm", binary=False, pairs=True) for arms in (3, 5)]
    made += [_stratified(3), _crossed((0.5, 0.5), 2), _crossed((0.5, 0.25, 0.25), 2)]
    adjusted = [_adjusted(arms, confounded=confounded) for arms in SHARES for confounded in (False, True)]
    adjusted += [_adjusted(3, confounded=True, binary=True)]
    return (
        *((design, n) for design in made for n in (2_000, 20_000)),
        *(trials(folder) if folder else ()),
        *((design, n) for design in adjusted for n in (5_000, 20_000)),
    )


def _unit_draws(family: Family, scales: list[float], draws: int) -> NDArray[np.float64]:
    """Return the same draws as the package, which draws them anew for each interval."""
    return _draws(family, len(scales), draws)


@cache
def _draws(family: Family, count: int, draws: int) -> NDArray[np.float64]:
    return simulated(family, [1.0] * count, draws)


def _alone(contrasts: JointEstimate, place: int) -> tuple[float, float]:
    return contrasts.mapped([contrasts.names[place]], lambda every: every[place : place + 1]).intervals(0.95)[0]


def simulate(design: Design, n: int, seed: tuple[int, int]) -> dict[str, Any]:
    """Return what one run gave."""
    random = np.random.default_rng(seed)
    units = design.draw(random, n)
    source = Simulated(design.schema, units, random)
    effect = design.estimator.estimate(source, epsilon=EPSILON)
    contrasts, truth = effect.contrasts, np.array(design.truth)
    assert contrasts is not None
    adjusted = units.features is not None
    exact: dict[str, Any] = {}
    with mock.patch.object(joint_estimate, "simulated", _unit_draws):
        low, high = np.array(contrasts.intervals(0.95)).T
        # Each as effect.interval, from fewer draws.
        each = [_alone(contrasts, place) for place in range(len(truth) if adjusted else 1)]
        if adjusted:
            regression = np.array(least_squares(units, len(design.schema.treatment.arms)).intervals(0.95)).T
            exact = {
                "each": [bool(first <= truth[place] <= last) for place, (first, last) in enumerate(each)],
                "wider": (high - low).mean() / (regression[1] - regression[0]).mean(),
                "regression": bool(((regression[0] <= truth) & (truth <= regression[1])).all()),
            }
    covered = (low <= truth) & (truth <= high)
    first, last = each[0]
    return exact | {
        "together": bool(covered.all()),
        "errors": np.array(contrasts.values) - truth,
        "widths": high - low,
        "first": first <= truth[0] <= last,
        "refused": bool(effect.no_interval),
        "noise": effect.privacy_sd,
        "sampling": effect.sampling_sd,
    }


def summary(design: Design, n: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one line of the table."""
    share = float(np.mean([run["together"] for run in runs]))
    errors = np.array([run["errors"] for run in runs])
    adjusted = {}
    if "each" in runs[0]:
        adjusted = {
            "coverage_each": round(float(np.mean([run["each"] for run in runs])), 4),
            "lowest_coverage_each": round(float(np.mean([run["each"] for run in runs], axis=0).min()), 4),
            "coverage_least_squares": round(float(np.mean([run["regression"] for run in runs])), 4),
            "width_to_least_squares": round(float(np.mean([run["wider"] for run in runs])), 3),
        }
    return {
        "design": design.name,
        "n": n,
        "contrasts": len(design.truth),
        "runs": len(runs),
        "coverage_together": round(share, 4),
        "coverage_se": round(math.sqrt(share * (1 - share) / len(runs)), 4),
        "coverage_first": round(float(np.mean([run["first"] for run in runs])), 4),
        "refused": round(float(np.mean([run["refused"] for run in runs])), 4),
        "largest_bias_in_se": round(float(np.max(np.abs(errors.mean(axis=0)) / errors.std(axis=0))), 3),
        "rmse": round(float(np.sqrt((errors**2).mean())), 6),
        "mean_half_width": round(float(np.mean([run["widths"] for run in runs])) / 2, 6),
        "privacy_sd": round(float(np.median([run["noise"] for run in runs])), 6),
        "sampling_sd": round(float(np.median([run["sampling"] for run in runs])), 6),
    } | adjusted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="simulated studies for each design")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--family", choices=families(), help="compare three confounded arms two at a time instead")
    parser.add_argument("--place", type=int, nargs="+", help="the places of designs to run; all of them, if left out")
    add_data_option(parser)
    chosen = parser.parse_args()
    if chosen.family:
        n = 20_000
        found = [
            simulate_family(chosen.family, n, (77, run)) for run in progress(range(chosen.runs), chosen.runs, "runs")
        ]
        print(json.dumps(family_summary(chosen.family, n, found), indent=1))
        return
    lines, known = [], designs(chosen.data)
    places = range(len(known)) if chosen.place is None else chosen.place
    for place in progress(places, len(places), "designs"):
        design, n = known[place]
        runs = [simulate(design, n, (place, run)) for run in range(chosen.runs)]
        lines.append(summary(design, n, runs))
    if chosen.json:
        print(json.dumps({"epsilon": EPSILON, "level": 0.95, "cells": lines}, indent=1))
        return
    for line in lines:
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
