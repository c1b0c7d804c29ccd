"""Dataset 1 and Dataset 2 of the paper: the effect is known for every profile.

Bounds are round numbers, wider than the outcomes. The public functions that learners get were picked by what is public
(how many covariates, of what kind, how many units) and not by the true effect: additive splines of up to five numbers,
which is what one would take without knowing more; a linear function where covariates are many.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.accuracy.references import features_as_in_library
from benchmarks.datasets import DataSet
from benchmarks.papers.dp_cate.influence import Rows, places_among
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
    def rows(self) -> Rows:
        """What the paper's finite version learns from."""
        low, high = self.data.schema("record").outcome_bounds
        outcomes = self.outcomes + (low + high) / 2
        return Rows(self.features, self.arms, outcomes, (low, high), places_among(self.data.covariates))

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


def named(x: Vector) -> dict[str, Vector]:
    """Return covariates by name."""
    return {f"x{place}": line for place, line in enumerate(x.T)}


def simulated(  # noqa: PLR0913
    name: str, x: Vector, arms: NDArray[np.bool_], outcomes: Vector, *, low: float, bounds: tuple[float, float]
) -> DataSet:
    """Return a simulated table with even covariates from low to 1 and a declared outcome."""
    return DataSet(
        name=name,
        table=pa.table({"t": arms.astype(int), "y": outcomes, **named(x)}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", *bounds),
        covariates=tuple(dpc.Real(each, low, 1) for each in named(x)),
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
    data = simulated(f"Dataset {which}", x, arms, outcomes, low=0, bounds=bounds)
    basis = dpc.Spline(data.names) if which == 1 else dpc.Polynomial(data.names)
    return Table(data, named(fresh), effect(fresh), basis)


def paper_short(n: int, seed: int) -> Table:
    """Dataset 2 for somebody who knows which five covariates can matter, and takes splines of these."""
    table = paper(2, n, seed)
    data = replace(table.data, covariates=table.data.covariates[:SUPPORT])
    profiles = {name: table.profiles[name] for name in data.names}
    return Table(data, profiles, table.effects, dpc.Spline(data.names))
