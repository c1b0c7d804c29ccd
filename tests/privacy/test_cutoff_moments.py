"""No unit moves the sums around a cutoff beyond their bound; units outside of the window move nothing."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import CutoffMoments, Norm
from dpcausal.queries.cutoff_moments import FINE
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Real("r", 0, 1)],
)
QUERY = CutoffMoments("r", 0.5, 0.25)

Array = NDArray[np.float64]


def table_of(running: Array, outcomes: Array) -> pa.Table:
    return pa.table({"t": (running >= 0.5).astype(int), "y": outcomes, "r": running})


def sums_of(query: CutoffMoments, table: pa.Table, schema: dpc.Schema = SCHEMA) -> dict[str, int]:
    return dict(exact_answer(query, schema, open_table(table, schema), ONE).ticks)


UNITS = np.array(list(itertools.product((0.2, 0.25, 0.375, 0.4999999, 0.5, 0.7, 0.75), (0.0, 0.5, 0.7, 1.0))))
"""Running variables at, beyond and between the ends of both windows, with outcomes at and between the ends."""


@pytest.fixture(scope="module")
def points() -> Array:
    """What each unit adds to the answer, each number in units of its weight."""
    weights = [float(at.weight or 0) for at in QUERY.sensitivity(SCHEMA, "record", "l1").coordinates]
    names = [at.name for at in QUERY.sensitivity(SCHEMA, "record", "l1").coordinates]
    found = [sums_of(QUERY, table_of(unit[:1], unit[1:])) for unit in UNITS]
    return np.array([[each[name] for name in names] for each in found], dtype=float) / weights


def farthest(points: Array, protects: Protects, norm: Norm) -> float:
    most = 0.0
    for point, unit in zip(points, UNITS, strict=True):
        allowed = UNITS[:, 0] == unit[0] if protects == "outcome" else np.ones(len(UNITS), dtype=bool)
        changes = points[allowed] - point
        lengths = np.abs(changes).sum(axis=1) if norm == "l1" else np.linalg.norm(changes, axis=1)
        most = max(most, float(lengths.max()))
    return most


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("protects", PROTECTS)
def test_bound_holds_and_is_nearly_attained(points: Array, protects: Protects, norm: Norm) -> None:
    bound = float(QUERY.sensitivity(SCHEMA, protects, norm).bound)
    most = farthest(points, protects, norm)
    assert 0.95 * bound < most <= bound  # so that nine tenths of the bound would be caught


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_search_finds_no_pair_beyond_the_bound(norm: Norm) -> None:
    """Among the proof's numbers: both sides and outside, distances and outcomes anywhere, ends included."""
    random = np.random.default_rng(0)
    shape = (2, 1500)
    u, z = np.where(random.random(shape) < 0.5, random.choice([-1, 0, 1], shape), random.uniform(-1, 1, shape))
    part = np.column_stack([z / 2, u * z, u / 2, np.full(1500, 0.25), (1 - u**2) / 4, (1 - z**2) / 2])
    side = random.integers(0, 3, 1500)
    whole = np.concatenate([part * (side == each)[:, None] for each in (0, 1)], axis=1)
    bound = float(QUERY.sensitivity(SCHEMA, "record", norm).bound)
    for point in whole:
        changes = whole - point
        lengths = np.abs(changes).sum(axis=1) if norm == "l1" else np.linalg.norm(changes, axis=1)
        assert lengths.max() <= bound + 1e-12


def test_bound_for_outcomes_is_caught_where_records_change(points: Array) -> None:
    assert farthest(points, "record", "l1") > 1.4 * float(QUERY.sensitivity(SCHEMA, "outcome", "l1").bound)


def test_distances_beyond_the_window_would_be_caught() -> None:
    """The mutant: a unit twice as far away as the bandwidth, and counted."""
    u, z = 3.0, 1.0
    part = [z / 2, u * z, u / 2, 0.25, (u**2 - 1) / 4, 0.0]
    assert sum(part) > float(QUERY.sensitivity(SCHEMA, "record", "l1").bound)


@pytest.mark.parametrize("treated_below", [True, False])
def test_sums_are_those_of_the_formulas(treated_below: bool) -> None:
    random = np.random.default_rng(1)
    running, outcomes = random.random(3_000), random.random(3_000)
    found = sums_of(replace(QUERY, treated_below=treated_below), table_of(running, outcomes))
    z, beyond = 2 * outcomes - 1, running - 0.5
    for above, inside in ((False, (beyond < 0) & (beyond >= -0.25)), (True, (beyond >= 0) & (beyond <= 0.25))):
        u, own = 2 * np.abs(beyond[inside]) / 0.25 - 1, z[inside]
        arm, slack = int(above != treated_below), inside.sum() / FINE
        assert found[f"size_{arm}"] == inside.sum()
        assert found[f"total_{arm}"] / FINE == pytest.approx(own.sum(), abs=slack)
        assert found[f"distance_{arm}"] / FINE == pytest.approx(u.sum(), abs=slack)
        assert found[f"product_{arm}"] / FINE**2 == pytest.approx((u * own).sum(), abs=2 * slack)
        assert found[f"spread_{arm}"] / FINE**2 == pytest.approx((1 - u**2).sum(), abs=2 * slack)
        assert found[f"deficit_{arm}"] / FINE**2 == pytest.approx((1 - own**2).sum(), abs=2 * slack)


def test_units_outside_of_the_window_or_of_the_comparison_add_nothing() -> None:
    running, outcomes = np.array([0.1, 0.2499, 0.7501, 0.9]), np.ones(4)
    assert set(sums_of(QUERY, table_of(running, outcomes)).values()) == {0}
    schema = replace(SCHEMA, treatment=dpc.Treatment("t"))
    other = pa.table({"t": [2, 2], "y": [1.0, 0.0], "r": [0.5, 0.4]})
    assert set(sums_of(QUERY, other, schema).values()) == {0}


@pytest.mark.parametrize(("name", "cutoff", "bandwidth"), [("y", 0.5, 0.2), ("r", 1.5, 0.2), ("r", 0.5, 1e-5)])
def test_wrong_windows_are_refused(name: str, cutoff: float, bandwidth: float) -> None:
    with pytest.raises(QueryError):
        CutoffMoments(name, cutoff, bandwidth).sensitivity(SCHEMA, "record", "l1")


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, float("nan"), "wide"])
def test_wrong_bandwidths_are_refused(bandwidth: object) -> None:
    with pytest.raises(QueryError):
        CutoffMoments("r", 0.5, bandwidth)  # type: ignore[arg-type]
