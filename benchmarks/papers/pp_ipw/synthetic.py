"""Figures 1 and 2: the paper's synthetic data, by Algorithm 1 as printed and by this library through real vaults."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.datasets import DataSet
from benchmarks.papers.pp_ipw.algorithm import (
    DELTA,
    EPSILONS,
    PENALTY,
    Floats,
    Units,
    bias_by_formula,
    fitted,
    score_draws,
    score_sd,
    sigmoid,
    sums_sd,
    weighted,
)
from benchmarks.papers.pp_ipw.bounds import hoeffding_printed, lemma_6
from dpcausal.planning.precision import wrong_sign

if TYPE_CHECKING:
    from dpcausal.results.effect import Estimator

DIMENSIONS = 50
SHORT = 5
"""How many covariates a list has that people choose by hand; each one costs accuracy."""
UNITS = 1000
EFFECTS = (0.1, 2.0)
FITTED_ON = (500, 1000, 1500, 2000, 2500)
FIXED_EPSILON = 0.2
"""The epsilon of Figures 2c and 2d; the paper does not say which it is."""
FIXED_FITTED_ON = 1000
SPREAD = 3.0
"""The standard deviation of a covariate before it is divided by a length."""
DRAWS = 100
"""Draws of noise for each trial."""
TRIAL_EFFECT, SHORT_EFFECT = 0.05, 0.1
"""Effects for which planned probabilities of the wrong sign are neither 0 nor one half."""

MEASURES = (
    "plain",
    "score_only",
    "fully",
    "score_only_wrong",
    "fully_wrong",
    "both_wrong",
    "bias",
    "printed_bias",
    "corrected_bias",
    "bias_of_debiased",
    "bound",
    "one_score_only",
    "one_fully",
)
"""What a trial finds for one epsilon and one number of units of the score: estimates, shares of wrong signs, biases."""


@dataclass(frozen=True)
class World:
    """One draw of the paper's coefficients: of the score, and of the outcome."""

    score: Floats
    outcome: Floats
    effect: float

    @classmethod
    def draw(cls, generator: Generator, dimensions: int, effect: float) -> "World":
        """Coefficients as the paper draws them."""
        return cls(generator.normal(size=dimensions), generator.normal(size=dimensions), effect)

    @property
    def length(self) -> float:
        """A length that covariates hardly ever have, known from how they are made and not from any table."""
        return SPREAD * (math.sqrt(len(self.score)) + 3)

    def units(self, generator: Generator, n: int, *, printed: bool = False) -> Units:
        """Return units of this world.

        As printed, covariates are divided by the largest length in the sample; otherwise by a public one, to which
        longer ones are shortened.
        """
        x = generator.normal(0, SPREAD, (n, len(self.score)))
        lengths = np.linalg.norm(x, axis=1, keepdims=True)
        x = x / (lengths.max() if printed else np.maximum(lengths, self.length))
        arm = (generator.random(n) < sigmoid(x @ self.score)).astype(float)
        return Units(x, arm, x @ self.outcome + self.effect * arm + generator.normal(0, 0.1, n))


def printed(effect: float, first: int, trials: int, settings: Sequence[tuple[float, int]]) -> list[list[list[float]]]:
    """Return, for each trial and each setting of epsilon and m, the measures of Algorithm 1 as printed."""
    return [_trial(np.random.default_rng((2019, place)), effect, settings) for place in range(first, first + trials)]


def _trial(generator: Generator, effect: float, settings: Sequence[tuple[float, int]]) -> list[list[float]]:
    world = World.draw(generator, DIMENSIONS, effect)
    units = world.units(generator, UNITS, printed=True)
    scores = {m: fitted(world.units(generator, m, printed=True)) for m in FITTED_ON}
    return [_measured(generator, units, scores[m], epsilon, m) for epsilon, m in settings]


def _measured(generator: Generator, units: Units, w: Floats, epsilon: float, fitted_on: int) -> list[float]:
    """Return the measures, over many draws of noise."""
    sd = score_sd(epsilon, fitted_on)
    coefficients = score_draws(generator, w, sd, DRAWS)
    plain = float(weighted(units, w[:, None])[0])
    score_only = weighted(units, coefficients)
    fully = score_only + generator.normal(0, sums_sd(units, coefficients, epsilon))
    wrong = [np.sign(each) != np.sign(plain) for each in (score_only, fully)]
    printed_bias, corrected_bias = (bias_by_formula(units, w, sd, printed=each) for each in (True, False))
    numbers = (
        plain,
        score_only.mean(),
        fully.mean(),
        wrong[0].mean(),
        wrong[1].mean(),
        (wrong[0] & wrong[1]).mean(),
        score_only.mean() - plain,
        printed_bias,
        corrected_bias,
        weighted(units, coefficients, sd**2 / 2).mean() - plain,
        hoeffding_printed(plain + printed_bias, lemma_6(units, w, sd)),
        score_only[0],
        fully[0],
    )
    return [float(f"{number:.6g}") for number in numbers]


def summary(
    effect: float, trials: Sequence[Sequence[Sequence[float]]], settings: Sequence[tuple[float, int]]
) -> list[dict[str, Any]]:
    """Return the mean of each measure over trials, with standard errors where a figure or a test needs them."""
    values = np.array(trials)
    lines = []
    for place, (epsilon, m) in enumerate(settings):
        at = dict(zip(MEASURES, values[:, place].T, strict=True))
        errors = {
            "bias_se": at["bias"] - at["corrected_bias"],  # formulas and simulation share their data
            "bias_of_debiased_se": at["bias_of_debiased"],
            **{f"{name}_se": at[name] for name in ("plain", "one_score_only", "one_fully")},
        }
        line = {name: float(each.mean()) for name, each in at.items()}
        line |= {name: float(each.std()) / math.sqrt(len(values)) for name, each in errors.items()}

        lines.append(
            {"effect": effect, "epsilon": epsilon, "fitted_on": m, "trials": len(values), "draws": DRAWS}
            | {name: float(f"{number:.4g}") for name, number in line.items()}
        )
    return lines


def table_of(units: Units, world: World) -> DataSet:
    """Return the units as the library gets them: each covariate within four standard deviations, the outcome in 6."""
    x = units.x * world.length
    names = [f"x{place}" for place in range(x.shape[1])]
    return DataSet(
        name="weighting",
        table=pa.table({**dict(zip(names, x.T, strict=True)), "t": units.arm.astype(int), "y": units.y}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", -3, 3 + world.effect),
        covariates=tuple(dpc.Real(name, -4 * SPREAD, 4 * SPREAD) for name in names),
        truth=world.effect,
    )


CORRECTED, OURS, MEANS = "PP-IPW, corrected", "InverseWeighting", "difference in means"

Estimate = tuple[str, float, int, float]
"""An estimator, epsilon, the number of units that the score was fitted on, and an estimate."""


def _table(effect: float, place: int) -> DataSet:
    generator = np.random.default_rng((DIMENSIONS, place))
    world = World.draw(generator, DIMENSIONS, effect)
    return table_of(world.units(generator, UNITS + max(FITTED_ON)), world)


def split_vaults(effect: float, place: int, settings: Sequence[tuple[float, int]]) -> list[Estimate]:
    """Return estimates from one table by the corrected PP-IPW: score and sums from different units, as in the paper."""
    whole = _table(effect, place)
    second = _part(whole, 0, UNITS).vault()
    estimator = dpc.InverseWeighting(covariates=whole.names, scores="output", penalty=PENALTY)
    found = []
    for epsilon, m in settings:
        first = _part(whole, UNITS, m).vault()
        effect_found = estimator.estimate(second, epsilon=epsilon, delta=DELTA, scores_from=first)
        found.append((CORRECTED, epsilon, m, effect_found.estimate))
    return found


def whole_vaults(effect: float, place: int, epsilons: Sequence[float]) -> list[Estimate]:
    """Return estimates from all 2,000 units of one table: InverseWeighting as it comes, and a difference in means."""
    whole = _part(_table(effect, place), 0, 2 * UNITS)
    vault = whole.vault()
    estimators: dict[str, Estimator] = {
        OURS: dpc.InverseWeighting(covariates=whole.names),
        MEANS: dpc.DifferenceInMeans(),
    }
    return [
        (name, epsilon, 2 * UNITS, estimator.estimate(vault, epsilon=epsilon, delta=DELTA).estimate)
        for epsilon in epsilons
        for name, estimator in estimators.items()
    ]


def _part(whole: DataSet, start: int, size: int) -> DataSet:
    """Return units of a table, told apart by position alone."""
    return replace(whole, table=whole.table.slice(start, size))


def vault_summary(effect: float, tables: Sequence[Sequence[Estimate]]) -> list[dict[str, Any]]:
    """Return share of wrong signs, mean, RMSE and bias over tables, for each estimator and setting."""
    values: dict[tuple[str, float, int], list[float]] = {}
    for estimator, epsilon, m, estimate in (each for table in tables for each in table):
        values.setdefault((estimator, epsilon, m), []).append(estimate)
    lines = []
    for (estimator, epsilon, m), found in values.items():
        at = np.array(found)
        numbers = {
            "wrong": (at <= 0).mean(),
            "mean": at.mean(),
            "mean_se": at.std() / math.sqrt(len(at)),
            "rmse": np.sqrt(((at - effect) ** 2).mean()),
        }
        lines.append(
            {"estimator": estimator, "effect": effect, "epsilon": epsilon, "fitted_on": m, "tables": len(at)}
            | {name: float(f"{number:.4g}") for name, number in numbers.items()}
        )
    return lines


SIGNS = {"a trial, by a difference in means": EPSILONS, "five confounders, by InverseWeighting": (1.0, 2.0, 4.0)}
"""Studies whose planned probability of the wrong sign is compared with what happens, and their epsilons."""
TRIAL = next(iter(SIGNS))


def _sign_world(kind: str, generator: Generator) -> World:
    world = World.draw(generator, SHORT, TRIAL_EFFECT if kind == TRIAL else SHORT_EFFECT)
    return replace(world, score=np.zeros(SHORT)) if kind == TRIAL else world


def signs(kind: str, first: int, tables: int) -> list[list[float]]:
    """Return, for each table and epsilon, an estimate from a vault."""
    found = []
    for place in range(first, first + tables):
        generator = np.random.default_rng((SHORT, place, kind == TRIAL))
        world = _sign_world(kind, generator)
        data = table_of(world.units(generator, 2 * UNITS), world)
        vault = data.vault()
        estimator = dpc.DifferenceInMeans() if kind == TRIAL else dpc.InverseWeighting(covariates=data.names)
        found.append([estimator.estimate(vault, epsilon=epsilon).estimate for epsilon in SIGNS[kind]])
    return found


def planned_signs(kind: str, tables: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Return planned probabilities of the wrong sign beside the measured shares.

    The plan knows what the simulation is made of: the spread of covariates and the outcome's standard deviation.
    """
    world = _sign_world(kind, np.random.default_rng(0))
    schema = table_of(Units(np.zeros((1, SHORT)), np.zeros(1), np.zeros(1)), world).schema("record")
    rehearsal = dpc.Rehearsal(
        schema,
        n=2 * UNITS,
        outcome_mean=world.effect / 2,
        outcome_sd=math.hypot(SPREAD / world.length * math.sqrt(SHORT), 0.1),
        confounding=0.0 if kind == TRIAL else 0.1,
        covariate_sd=0.25,
    )
    names = [column.name for column in schema.covariates]
    estimator = dpc.DifferenceInMeans() if kind == TRIAL else dpc.InverseWeighting(covariates=names)
    shares = (np.array(tables) <= 0).mean(axis=0).tolist()
    return [
        {
            "kind": kind,
            "effect": world.effect,
            "epsilon": epsilon,
            "planned": round(wrong_sign(estimator.estimate(rehearsal, epsilon=epsilon), world.effect), 4),
            "measured": round(share, 4),
            "tables": len(tables),
        }
        for epsilon, share in zip(SIGNS[kind], shares, strict=True)
    ]
