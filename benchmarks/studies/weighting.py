"""The evaluation of Lee et al. (2019) on synthetic data, done again.

First a simulation of the paper's formulas, without a vault: only the score is noisy, which protects one half of the
units and not the other. It shows what noise in the score does to the estimate, against what the paper's Lemma 3 says.
Then this library's `InverseWeighting` on data of the same kind, through real vaults.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.datasets import DataSet
from benchmarks.progress import progress
from benchmarks.studies.setup import Setup
from benchmarks.studies.tables import Floats, sigmoid

DELTA = 1e-6
PENALTY = 0.1
DIMENSIONS = 50
SHORT = 5
"""How many covariates a list has that people choose by hand; each one costs accuracy."""
UNITS = 1000
EFFECTS = (0.1, 2.0)
EPSILONS = (0.2, 0.4, 0.6, 0.8, 0.99)
FITTED_ON = (500, 1000, 1500, 2000, 2500)
SPREAD = 3.0
"""The standard deviation of a covariate."""


@dataclass(frozen=True)
class Units:
    """Covariates divided by a public bound on their length, arms and outcomes."""

    x: Floats
    arm: Floats
    y: Floats


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

    def units(self, generator: Generator, n: int) -> Units:
        """Units of this world; longer covariates than the bound are shortened to it."""
        x = generator.normal(0, SPREAD, (n, len(self.score))) / self.length
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
        arm = (generator.random(n) < sigmoid(x @ self.score)).astype(float)
        return Units(x, arm, x @ self.outcome + self.effect * arm + generator.normal(0, 0.1, n))


@dataclass(frozen=True)
class Noisy:
    """What noise in the score alone does, over draws of data and noise; biases are against the score without noise."""

    effect: float
    epsilon: float
    fitted_on: int
    trials: int
    sign_error: float
    bias: float
    bias_se: float
    printed_bias: float
    corrected_bias: float
    bias_of_debiased: float
    bias_of_debiased_se: float


@dataclass(frozen=True)
class Through:
    """What one estimator gave through vaults."""

    estimator: str
    dimensions: int
    effect: float
    epsilon: float
    repeats: int
    sign_error: float
    rmse: float
    bias: float


def fitted(units: Units) -> Floats:
    """Return the penalised logistic regression without a constant, by Newton's method."""
    w = np.zeros(units.x.shape[1])
    for _ in range(8):
        p = sigmoid(units.x @ w)
        gradient = units.x.T @ (p - units.arm) / len(p) + PENALTY * w
        curvature = (units.x.T * (p * (1 - p))) @ units.x / len(p) + PENALTY * np.eye(len(w))
        w = w - np.linalg.solve(curvature, gradient)
    return w


def noise_sd(epsilon: float, fitted_on: int) -> float:
    """Return the paper's standard deviation of the noise in each coefficient."""
    return math.sqrt(2 * math.log(1.25 / DELTA)) * 2 / (fitted_on * PENALTY) / epsilon


def weighted(units: Units, coefficients: Floats, shrink: float = 0.0) -> Floats:
    """Return the inverse-weighted difference for each column of coefficients, an exponent's shrinkage taken off."""
    sign = 2 * units.arm - 1
    exponent = -sign[:, None] * (units.x @ coefficients) - shrink * (units.x**2).sum(axis=1)[:, None]
    means: Floats = ((sign * units.y)[:, None] * (1 + np.exp(exponent))).mean(axis=0)
    return means


def bias_by_formula(units: Units, coefficients: Floats, sd: float, *, printed: bool) -> float:
    """Lemma 3: as printed with (-1)^t in the exponent, or with the plus that E exp(z.x) = exp(sd² |x|² / 2) has."""
    sign = 2 * units.arm - 1
    alpha = sign * units.y * np.exp(-sign * (units.x @ coefficients))
    exponent = sd**2 / 2 * (units.x**2).sum(axis=1)
    return float((alpha * np.expm1(-sign * exponent if printed else exponent)).mean())


def noisy(generator: Generator, effect: float, epsilon: float, fitted_on: int, trials: int) -> Noisy:
    """Trials draw data, and many noises each, in pairs of opposite sign so that their mean is exact sooner."""
    sd = noise_sd(epsilon, fitted_on)
    found = []
    for _ in range(trials):
        world = World.draw(generator, DIMENSIONS, effect)
        w = fitted(world.units(generator, fitted_on))
        units = world.units(generator, UNITS)
        half = generator.normal(0, sd, (DIMENSIONS, 50))
        coefficients = w[:, None] + np.hstack([half, -half])
        plain = float(weighted(units, w[:, None])[0])
        estimates = weighted(units, coefficients)
        found.append(
            (
                float((np.sign(estimates) != np.sign(plain)).mean()),
                float(estimates.mean()) - plain,
                bias_by_formula(units, w, sd, printed=True),
                bias_by_formula(units, w, sd, printed=False),
                float(weighted(units, coefficients, sd**2 / 2).mean()) - plain,
            )
        )
    sign_error, bias, printed, corrected, debiased = np.array(found).mean(axis=0).tolist()
    # Formulas and simulation share their data, so that only the noise keeps them apart.
    _, bias_se, _, _, debiased_se = (np.std(_apart(found), axis=0) / math.sqrt(trials)).tolist()
    numbers = (sign_error, bias, bias_se, printed, corrected, debiased, debiased_se)
    return Noisy(effect, epsilon, fitted_on, trials, *(float(f"{number:.4g}") for number in numbers))


def _apart(found: Sequence[tuple[float, ...]]) -> Floats:
    """Return the same with the simulated bias as a distance from the corrected formula."""
    values = np.array(found)
    values[:, 1] -= values[:, 3]
    return values


def simulated(setup: Setup) -> Iterator[Noisy]:
    trials = setup.times(200, quick=20)
    settings = [(effect, epsilon, 1000) for effect in EFFECTS for epsilon in EPSILONS]
    settings += [(effect, 0.2, m) for effect in EFFECTS for m in FITTED_ON]
    for setting in progress(settings, len(settings), "simulated settings"):
        yield noisy(np.random.default_rng(2019), *setting, trials)  # the same data, as far as it goes, in each


def table_of(units: Units, world: World) -> DataSet:
    """Return the units as the library gets them: each covariate, and the outcome, within four standard deviations."""
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


def estimates(
    first: DataSet, second: DataSet, whole: DataSet, epsilons: tuple[float, ...]
) -> dict[tuple[str, float], float]:
    """Every estimate of one draw: with the score from one half of the units and sums from the other, or no split."""
    halves, together = (first.vault(), second.vault()), whole.vault()
    found = {}
    for epsilon in epsilons:
        for estimator in (
            dpc.InverseWeighting(covariates=whole.names, scores="output", penalty=PENALTY),
            dpc.InverseWeighting(covariates=whole.names, scores="objective"),
        ):
            split = estimator.estimate(halves[1], epsilon=epsilon, delta=DELTA, scores_from=halves[0])
            found[f"{estimator.scores}, split", epsilon] = split.estimate
            whole_at_once = estimator.estimate(together, epsilon=epsilon, delta=DELTA)
            found[f"{estimator.scores}, no split", epsilon] = whole_at_once.estimate
        means = dpc.DifferenceInMeans().estimate(together, epsilon=epsilon, delta=DELTA)
        found["difference in means", epsilon] = means.estimate
    return found


def through_vaults(setup: Setup, dimensions: int, effect: float, repeats: int) -> Iterator[Through]:
    generator = np.random.default_rng(dimensions)
    epsilons = (1.0, 4.0) if setup.quick or dimensions > SHORT else (0.2, 0.5, 1.0, 4.0)
    draws = []
    for _ in progress(range(repeats), repeats, f"tables with {dimensions} covariates, effect {effect:g}"):
        world = World.draw(generator, dimensions, effect)
        whole = table_of(world.units(generator, 2 * UNITS), world)
        draws.append(estimates(_part(whole, 0), _part(whole, 1), whole, epsilons))
    for name, epsilon in draws[0]:
        values = np.array([draw[name, epsilon] for draw in draws])
        missed = values - effect
        numbers = ((values <= 0).mean(), np.sqrt((missed**2).mean()), missed.mean())
        yield Through(name, dimensions, effect, epsilon, repeats, *(float(f"{number:.4g}") for number in numbers))


def _part(whole: DataSet, place: int) -> DataSet:
    """One half of a table, told apart by position alone."""
    half = whole.n // 2
    return replace(whole, table=whole.table.slice(place * half, half))


def run(setup: Setup) -> dict[str, Any]:
    repeats = setup.times(30)
    small, large = EFFECTS
    through = list(through_vaults(setup, SHORT, small, repeats))  # many, for the sign of a small effect
    through += through_vaults(setup, SHORT, large, max(repeats * 2 // 5, 1))
    if not setup.quick:  # with so many covariates one estimate takes seconds
        through += through_vaults(setup, DIMENSIONS, large, max(repeats // 10, 1))
    return {
        "study": "weighting",
        "simulated": [asdict(each) for each in simulated(setup)],
        "through_vaults": [asdict(each) for each in through],
    }


def text(result: dict[str, Any]) -> Iterator[str]:
    """Yield the result as lines."""
    yield "Simulation of the paper's formulas, only the score noisy (no vault): sign error and bias"
    columns = ("sign_error", "bias", "bias_se", "printed_bias", "corrected_bias", "bias_of_debiased")
    yield f"{'effect':>8}{'eps':>6}{'m':>6}" + "".join(f"{name:>18}" for name in columns)
    for line in result["simulated"]:
        head = f"{line['effect']:>8g}{line['epsilon']:>6g}{line['fitted_on']:>6}"
        yield head + "".join(f"{line[name]:>18.3g}" for name in columns)
    yield ""
    through = result["through_vaults"]
    for dimensions, effect in dict.fromkeys((line["dimensions"], line["effect"]) for line in through):
        chosen = [line for line in through if (line["dimensions"], line["effect"]) == (dimensions, effect)]
        epsilons = dict.fromkeys(line["epsilon"] for line in chosen)
        repeats = chosen[0]["repeats"]
        yield f"Through vaults, {dimensions} covariates, effect {effect:g}, {repeats} tables: sign error / RMSE / bias"
        yield f"{'':>20}" + "".join(f"{f'eps {epsilon:g}':>24}" for epsilon in epsilons)
        for name in dict.fromkeys(line["estimator"] for line in chosen):
            lines = [line for line in chosen if line["estimator"] == name]
            parts = ("{sign_error:.2f} / {rmse:.3f} / {bias:+.3f}".format(**line) for line in lines)
            yield f"{name:>20}" + "".join(f"{part:>24}" for part in parts)
        yield ""
