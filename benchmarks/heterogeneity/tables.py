"""Tables whose effect is known for every profile, and the public functions that learners get for each.

Bounds are round numbers, wider than the outcomes. Functions were picked by what is public (how many covariates, of what
kind, how many units) and not by the true effect: additive splines of up to five numbers, which is what one would take
without knowing more; a linear function where covariates are many, or yes or no, or said to act linearly (the generated
table).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks import datasets
from benchmarks.accuracy.references import features_as_in_library
from benchmarks.datasets import DataSet
from dpcausal.queries import Basis

Vector = NDArray[np.float64]

PROFILES = 2_000


@dataclass(frozen=True)
class Table:
    """A table, public profiles, and what is true of them.

    Attributes:
        data: The table, and what is public about it.
        profiles: Profiles by whose effects learners are judged, by covariate.
        effects: The true effect of each profile.
        basis: The public functions that learners make the effect of.
    """

    data: DataSet
    profiles: dict[str, NDArray[Any]]
    effects: Vector
    basis: Basis

    @property
    def features(self) -> Vector:
        """The covariates of units as numbers from -1 to 1, for learners from elsewhere."""
        return features_as_in_library(self.data)

    @property
    def profile_features(self) -> Vector:
        """The same of profiles."""
        return features_as_in_library(replace(self.data, table=pa.table(self.profiles)))

    @property
    def arms(self) -> Vector:
        """The arm of each unit, 0 or 1."""
        return self.data.column(self.data.treatment.name).astype(float)

    @property
    def half(self) -> float:
        """Half the public range of the outcome."""
        low, high = self.data.schema("record").outcome_bounds
        return (high - low) / 2

    @property
    def outcomes(self) -> Vector:
        """The outcome of each unit, within its bounds, from the middle of these."""
        low, high = self.data.schema("record").outcome_bounds
        outcomes: Vector = np.clip(self.data.column(self.data.outcome.name), low, high) - (low + high) / 2
        return outcomes


def _named(x: Vector) -> dict[str, Vector]:
    return {f"x{place}": line for place, line in enumerate(x.T)}


def _simulated(  # noqa: PLR0913
    name: str, x: Vector, arms: NDArray[np.bool_], outcomes: Vector, *, low: float, bounds: tuple[float, float]
) -> DataSet:
    return DataSet(
        name=name,
        table=pa.table({"t": arms.astype(int), "y": outcomes, **_named(x)}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", *bounds),
        covariates=tuple(dpc.Real(each, low, 1) for each in _named(x)),
        truth=float("nan"),
    )


_PAPER: dict[int, tuple[int, Callable[[Vector], Vector], tuple[float, float]]] = {
    1: (2, lambda x: np.exp(2 * x[:, 0]) + 3 * np.sin(4 * x[:, 0]), (-5, 15)),
    2: (30, lambda x: np.exp(2 * x[:, 0]) + 3 * np.sin(4 * x[:, 1]), (-10, 20)),
}
"""By number: covariates, effect, and bounds of the outcome that hold all of [-2, 9] and of [-5, 17]."""

SUPPORT = 5


def paper(which: int, n: int, seed: int) -> Table:
    """Dataset 1 or 2 of Schröder, Melnychuk and Feuerriegel (2025), section H.1.

    Covariates X are even on [0, 1]; a unit is treated where X b is at least a number that is even on [-1, 1]; the
    outcome is the effect where treated, plus X c, plus a number that is even on [-1, 1]. b and c "have support with
    values drawn from" [0, 0.3] and [0, 1]. How large the support is the paper does not say. With all 30 covariates of
    Dataset 2, X b is about 2.25 and everybody is treated, so support is read as the first five. b and c are drawn again
    for each table.
    """
    dimensions, effect, bounds = _PAPER[which]
    generator = np.random.default_rng((which, n, seed))
    support = min(dimensions, SUPPORT)
    b, c = generator.uniform(0, 0.3, support), generator.uniform(0, 1, support)
    x = generator.uniform(0, 1, (n, dimensions))
    arms = x[:, :support] @ b >= generator.uniform(-1, 1, n)
    outcomes = effect(x) * arms + x[:, :support] @ c + generator.uniform(-1, 1, n)
    fresh = np.random.default_rng(which).uniform(0, 1, (PROFILES, dimensions))
    data = _simulated(f"Dataset {which}", x, arms, outcomes, low=0, bounds=bounds)
    basis = dpc.Spline(data.names) if which == 1 else dpc.Polynomial(data.names)
    return Table(data, _named(fresh), effect(fresh), basis)


def paper_short(n: int, seed: int) -> Table:
    """Dataset 2 for somebody who knows which five covariates can matter, and takes splines of these."""
    table = paper(2, n, seed)
    data = replace(table.data, covariates=table.data.covariates[:SUPPORT])
    profiles = {name: table.profiles[name] for name in data.names}
    return Table(data, profiles, table.effects, dpc.Spline(data.names))


SLOPES = np.array([1.4, -1.0, 0.8, 0.5, -0.4, 0.3])


def generated(n: int, seed: int) -> Table:
    """Return a confounded table with six even covariates and an effect that is linear in them: seven functions."""
    generator = np.random.default_rng((n, seed))
    x = generator.uniform(-1, 1, (n, len(SLOPES)))
    arms = generator.random(n) < 1 / (1 + np.exp(0.4 * x[:, 1] - 0.6 * x[:, 0]))
    mean = x @ [1.0, 0.5, -0.5, 0.3, 0.2, 0.1] + (1 + x @ SLOPES) * arms
    data = _simulated("generated", x, arms, mean + generator.normal(0, 1, n), low=-1, bounds=(-10, 10))
    fresh = np.random.default_rng(0).uniform(-1, 1, (PROFILES, len(SLOPES)))
    return Table(data, _named(fresh), 1 + fresh @ SLOPES, dpc.Polynomial(data.names))


def ihdp(folder: Path, realisation: int) -> Table:
    """Return a realisation of IHDP, with the short list of covariates that the leaderboard takes.

    Effects are known for the table's own units only, so these are the profiles here; outside a benchmark they would be
    private.
    """
    whole = datasets.ihdp(folder, realisation)
    data = replace(whole, covariates=tuple(column for column in whole.covariates if column.name in whole.short))
    means = np.loadtxt(folder / "ihdp" / f"ihdp_npci_{realisation}.csv", delimiter=",", usecols=(3, 4))
    profiles = {name: data.column(name) for name in data.names}
    return Table(data, profiles, means[:, 1] - means[:, 0], dpc.Polynomial(data.names))


GENERATED: dict[str, Callable[[int, int], Table]] = {
    "Dataset 1": lambda n, seed: paper(1, n, seed),
    "Dataset 2": lambda n, seed: paper(2, n, seed),
    "Dataset 2, five covariates": paper_short,
    "generated": generated,
}
IHDP = "IHDP"


@lru_cache(maxsize=2)
def table(name: str, n: int, repeat: int, folder: str | None) -> Table:
    """Return a table by its name. Generated ones are new for each repeat; IHDP has ten realisations and one size."""
    if name != IHDP:
        return GENERATED[name](n, repeat)
    if folder is None:
        raise ValueError("IHDP is read from files: say which folder they are in")
    return ihdp(Path(folder), repeat % 10 + 1)
