"""No unit moves the moments with a treatment received beyond their bound; a bound that forgets it is caught."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, InstrumentMoments, Norm
from dpcausal.queries.instrument_moments import InstrumentMoment
from dpcausal.queries.regression_moments import FINE
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.engines import ExactInts, exact_ints
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
POWERS: dict[Norm, int] = {"l1": 1, "l2": 2}
CASES = list(itertools.product((True, False), PROTECTS, POWERS))

Array = NDArray[np.float64]


def schema_with(features: int, *, two_arms: bool = True) -> dpc.Schema:
    numbers = [dpc.Real(f"x{place}", 0, 1) for place in range(features)]
    treatment = dpc.Treatment("t", undeclared=0) if two_arms else dpc.Treatment("t")
    return dpc.Schema(
        treatment=treatment, outcome=dpc.Real("y", 0, 1, missing=0.5), covariates=[dpc.Binary("d", missing=0), *numbers]
    )


def asking(features: int, *, interaction: bool) -> InstrumentMoments:
    return InstrumentMoments("d", [f"x{place}" for place in range(features)], interaction)


class Few:
    """An engine over a few units: arm, outcome, treatment received and features."""

    def __init__(self, units: NDArray[np.int64]) -> None:
        names = ("treatment", "outcome", *(f"covariate_{place}" for place in range(units.shape[1] - 2)))
        self.batch = dict(zip(names, units.T, strict=True))

    def fold(self, columns: Sequence[str], kernel: Callable[[Mapping[str, Any]], Any]) -> ExactInts:
        return exact_ints(kernel({name: self.batch[name] for name in columns}))


def vectors(query: InstrumentMoments, schema: dpc.Schema, units: NDArray[np.int64]) -> Array:
    """What each unit adds to the answer, each number in units of its weight."""
    weights = [float(at.weight or 0) for at in query.sensitivity(schema, "record", "l1").coordinates]
    engines: list[Any] = [Few(unit[None]) for unit in units]
    answers = [exact_answer(query, schema, engine, ONE).ticks for engine in engines]
    return np.array([list(answer.values()) for answer in answers], dtype=float) / weights


def farthest(points: Array, units: NDArray[np.int64], protects: Protects, norm: Norm) -> float:
    """The largest move between two units that may replace each other."""
    public: dict[Protects, list[int]] = {"record": [], "record_within_arm": [0]}
    kept, most = public.get(protects, [0, *range(2, units.shape[1])]), 0.0
    for point, unit in zip(points, units, strict=True):
        changes = points[(units[:, kept] == unit[kept]).all(axis=1)] - point
        lengths = np.abs(changes).sum(axis=1) if norm == "l1" else np.linalg.norm(changes, axis=1)
        most = max(most, float(lengths.max()))
    return most


def corners(features: int) -> NDArray[np.int64]:
    """All units whose numbers are at the ends of their ranges."""
    ends = (-GRID, GRID)
    return np.array(list(itertools.product((0, 1), ends, (0, 1), *[ends] * features)))


@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize(("interaction", "protects", "norm"), CASES)
def test_bound_on_products_is_attained_at_corners(
    features: int, interaction: bool, protects: Protects, norm: Norm
) -> None:
    schema, units, query = schema_with(features), corners(features), asking(features, interaction=interaction)
    bound = float(query.sensitivity(schema, protects, norm).bound)
    most = farthest(vectors(query, schema, units), units, protects, norm)
    assert {"l1": 0.86, "l2": 0.98}[norm] * bound < most <= bound
    lacking = [place for place in (1, *range(3, 3 + features)) if place == 1 or protects != "outcome"]
    deficits = [InstrumentMoment(at, at, signed=sign).weight for at in lacking for sign in (True, False)]
    slack = sum((0.5 / weight) ** POWERS[norm] for weight in deficits)
    assert most ** POWERS[norm] == pytest.approx(bound ** POWERS[norm] - slack)
    assert most > 1.7 * bound / 2  # half the bound is caught


@pytest.mark.parametrize(("interaction", "protects", "norm"), CASES)
def test_search_finds_no_pair_beyond_the_bound(interaction: bool, protects: Protects, norm: Norm) -> None:
    """Among units anywhere, at the middle, next to ends, and where the grid of products rounds."""
    schema, query, generator = schema_with(2), asking(2, interaction=interaction), np.random.default_rng(2)
    ends = [-GRID, -GRID + FINE // 2, -1, 0, FINE // 2, GRID // 2, GRID - FINE // 2 - 1, GRID]
    numbers = np.where(generator.random((120, 3)) < 0.2, generator.integers(-GRID, GRID + 1, (120, 3)), 0)
    numbers = np.where(numbers == 0, generator.choice(ends, (120, 3)), numbers)
    arms, received = generator.integers(0, 2, (2, 120))
    units = np.column_stack([arms, numbers[:, 0], received, numbers[:, 1:]])
    if protects == "outcome":
        units[:, 2:] = units[generator.integers(0, 5, 120), 2:]  # so that units share their covariates
    bound = float(query.sensitivity(schema, protects, norm).bound)
    assert farthest(vectors(query, schema, units), units, protects, norm) <= bound


@pytest.mark.parametrize("norm", POWERS)
@pytest.mark.parametrize("interaction", [True, False])
def test_bound_without_the_treatment_received_is_caught(interaction: bool, norm: Norm) -> None:
    """The mutant: what regression moments are charged for the same covariates."""
    schema, units, query = schema_with(1), corners(1), asking(1, interaction=interaction)
    bound = float(query.regression.sensitivity(schema, "record", norm).bound)
    assert farthest(vectors(query, schema, units), units, "record", norm) > 1.01 * bound


@pytest.mark.parametrize("norm", POWERS)
@pytest.mark.parametrize("features", [1, 3])
def test_bound_holds_where_a_unit_leaves_the_comparison(features: int, norm: Norm) -> None:
    schema, units, query = schema_with(features, two_arms=False), corners(features), asking(features, interaction=True)
    points = vectors(query, schema, units)
    bound = float(query.sensitivity(schema, "record", norm).bound)
    alone = np.abs(points).sum(axis=1) if norm == "l1" else np.linalg.norm(points, axis=1)
    assert alone.max() <= bound
    assert farthest(points, units, "record", norm) <= bound


@pytest.mark.parametrize("interaction", [True, False])
def test_sums_are_those_of_the_formulas(interaction: bool) -> None:
    generator, n = np.random.default_rng(0), 2_000
    t, d = generator.integers(0, 2, (2, n))
    y, x = generator.random((2, n))
    schema, query = schema_with(1), asking(1, interaction=interaction)
    table = pa.table({"t": t, "y": y, "d": d, "x0": x})
    sums = exact_answer(query, schema, open_table(table, schema), ONE).ticks
    sign, received = 2 * t - 1, 2 * d - 1
    wanted = {"d": received, "arm * d": sign * received, "outcome * d": (2 * y - 1) * received}
    wanted["d * x0"] = received * (2 * x - 1)
    if interaction:
        wanted |= {f"arm * {name}": sign * wanted[name] for name in ("outcome * d", "d * x0")}
    assert set(sums) == {at.name for at in query.sensitivity(schema, "record", "l1").coordinates}
    assert set(sums) == set(wanted) | set(query.names_for(schema, 1))
    for name, each in wanted.items():
        assert sums[name] / FINE**2 == pytest.approx(each.sum(), abs=0.2)  # numbers are rounded to 1 / 1024


def test_received_among_the_covariates_is_refused() -> None:
    with pytest.raises(QueryError, match="without the treatment received"):
        InstrumentMoments("d", ["x0", "d"])
