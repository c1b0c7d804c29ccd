"""No unit moves the moments of all groups beyond their joint bound; bounds for less than a unit can do are caught."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import catalogue_of, exact_answer
from dpcausal.audit.tables import table_of as made_of
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, Cells, ClusterMoments, Cut, Norm, Sensitivity, SubgroupMoments
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
NORMS: tuple[Norm, Norm] = ("l1", "l2")
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Category("k", ["p", "q", "r"]), dpc.Real("a", 0, 1)],
)
QUERY = SubgroupMoments(Cells([Cut("a", [0.5]), Cut("k")]))
CASES = list(itertools.product(PROTECTS, NORMS))
DATABASE = connect(threads=1)

Unit = dict[str, Any]


def unit(t: int, y: float | None, k: str | None = "p", a: float | None = 0.1) -> Unit:
    return {"t": t, "y": y, "k": k, "a": a}


# Ends, middle, next to the middle and where a proof's maximum may hide, in both arms of two groups.
UNITS = [
    unit(t, y, k, a)
    for t, y, (k, a) in itertools.product((0, 1), (0.0, 0.1, 0.25, 0.5, 0.9, 1.0), (("p", 0.1), ("q", 0.9)))
]
RESTS: list[list[Unit]] = [[], [unit(0, 0.3), unit(0, 1.0), unit(1, 0.77, "q", 0.9)], [unit(1, 0.123456)] * 3]


def answer(units: Sequence[Unit]) -> dict[str, int]:
    """What the query's own answer makes of a table, without noise, from units that the real engine has read."""
    return dict(exact_answer(QUERY, SCHEMA, catalogue_of(SCHEMA).assemble(units), ONE).ticks)


def moved(sensitivity: Sensitivity, one: dict[str, int], other: dict[str, int]) -> float:
    """The norm of the change between two answers, each number in units of its weight."""
    changes = np.array([(one[at.name] - other[at.name]) / float(at.weight or 0) for at in sensitivity.coordinates])
    return float(np.abs(changes).sum() if sensitivity.norm == "l1" else np.linalg.norm(changes))


PUBLIC: dict[Protects, str] = {"record": "", "record_within_arm": "t", "outcome": "tka"}
"""What a unit must keep."""


def may_replace(i: int, j: int, protects: Protects) -> bool:
    return all(UNITS[i][name] == UNITS[j][name] for name in PUBLIC[protects])


def worst(sensitivity: Sensitivity, protects: Protects) -> float:
    """The largest move over all pairs of the listed units, beside each of some other units."""
    pairs = [(i, j) for i, j in itertools.combinations(range(len(UNITS)), 2) if may_replace(i, j, protects)]
    return max(moved(sensitivity, answers[i], answers[j]) for answers in all_answers() for i, j in pairs)


@cache
def all_answers() -> list[list[dict[str, int]]]:
    """The answers of tables with each of the listed units, beside each of some other units."""
    return [[answer([each, *rest]) for each in UNITS] for rest in RESTS]


@pytest.mark.parametrize(("protects", "norm"), CASES)
def test_bound_holds_for_all_pairs(protects: Protects, norm: Norm) -> None:
    sensitivity = QUERY.sensitivity(SCHEMA, protects, norm)
    most = worst(sensitivity, protects)
    assert 0.999 * float(sensitivity.bound) < most <= float(sensitivity.bound)  # and the bound is not loose
    less = replace(sensitivity, bound=sensitivity.bound * Fraction(9, 10))
    assert most > float(less.bound)  # so one that is too small is caught


@settings(max_examples=40)
@given(
    st.sampled_from(CASES),
    st.lists(
        st.builds(unit, st.integers(0, 1), st.floats(), st.sampled_from(["p", "q", "?", None]), st.floats()),
        min_size=1,
        max_size=5,
    ),
    st.builds(unit, st.integers(0, 1), st.floats() | st.none(), st.sampled_from(["p", "r", None]), st.floats()),
)
def test_bound_holds_for_records_of_any_kind(case: tuple[Protects, Norm], units: list[Unit], new: Unit) -> None:
    protects, norm = case
    new = new | {name: units[0][name] for name in PUBLIC[protects]}
    sensitivity = QUERY.sensitivity(SCHEMA, protects, norm)
    one, other = (
        dict(exact_answer(QUERY, SCHEMA, open_table(DATABASE.from_arrow(whole), SCHEMA), ONE).ticks)
        for whole in (made_of(units, SCHEMA), made_of([new, *units[1:]], SCHEMA))
    )
    assert moved(sensitivity, one, other) <= float(sensitivity.bound)


def test_bound_for_units_that_stay_in_their_group_is_caught() -> None:
    """Outcomes alone move the answer by 2; a unit that changes groups takes its number along and moves it by 3."""
    honest = QUERY.sensitivity(SCHEMA, "record", "l1")
    stays = replace(honest, bound=QUERY.sensitivity(SCHEMA, "outcome", "l1").bound)
    for protects in ("record", "record_within_arm"):
        assert worst(stays, protects) > 1.49 * float(stays.bound)


@pytest.mark.parametrize("norm", NORMS)
def test_bound_for_one_group_where_two_change_is_caught(norm: Norm) -> None:
    """As if a unit were added and not replaced: it leaves one group and joins another."""
    honest = QUERY.sensitivity(SCHEMA, "record", norm)
    nothing = dict.fromkeys(answer(UNITS[:1]), 0)
    alone = max(moved(honest, nothing, answer([each])) for each in UNITS)
    assert alone < 0.75 * float(honest.bound)
    assert worst(replace(honest, bound=Fraction(alone)), "record") > 1.3 * alone


@pytest.mark.parametrize("norm", NORMS)
def test_squares_in_place_of_deficits_are_caught(norm: Norm) -> None:
    """A unit that changes groups would move totals and squares fully at once."""
    sensitivity = QUERY.sensitivity(SCHEMA, "record", norm)

    def squares(each: Unit) -> dict[str, int]:
        honest = answer([each])
        lacking = {name: honest[name.replace("deficit", "size")] * GRID for name in honest if "deficit" in name}
        return honest | {name: most - honest[name] for name, most in lacking.items()}

    ends = squares(unit(1, 1.0)), squares(unit(1, 1.0, "q"))
    assert moved(sensitivity, *ends) > 1.2 * float(sensitivity.bound)


@pytest.mark.parametrize("norm", NORMS)
def test_deficits_of_half_the_weight_are_caught(norm: Norm) -> None:
    honest = QUERY.sensitivity(SCHEMA, "outcome", norm)
    coordinates = tuple(
        replace(at, weight=at.weight / 2) if at.weight and at.name.startswith("deficit") else at
        for at in honest.coordinates
    )
    assert worst(replace(honest, coordinates=coordinates), "outcome") > 1.1 * float(honest.bound)


@pytest.mark.parametrize("norm", NORMS)
def test_rounding_stays_inside_the_bound_for_every_outcome_on_the_grid(norm: Norm) -> None:
    """All 2^21 + 1 outcomes against adversarial ones, in one group and from group to group."""
    every = np.arange(-GRID, GRID + 1)
    deficit = (GRID * GRID - every * every) // GRID
    weights = {"l1": (2, GRID, 2 * GRID), "l2": (1, GRID, GRID)}[norm]
    sensitivity = QUERY.sensitivity(SCHEMA, "record", norm)
    assert [at.weight for at in sensitivity.coordinates[:3]] == list(weights)
    size, total, lacking = 1 / weights[0], every / weights[1], deficit / weights[2]

    def length(*parts: Any) -> Any:
        return sum(map(np.abs, parts)) if norm == "l1" else np.sqrt(sum(part * part for part in parts))

    within = {protects: float(QUERY.sensitivity(SCHEMA, protects, norm).bound) for protects in PROTECTS}
    for place in (0, 1, GRID // 2, GRID - 1, GRID, GRID + 1, GRID + 1023, 2 * GRID - 1, 2 * GRID):
        stays = length(total - total[place], lacking - lacking[place])
        assert stays.max() <= within["outcome"] * (1 + 1e-12)
        goes = length(size, size, total, total[place], lacking, lacking[place])
        assert goes.max() <= within["record_within_arm"] * (1 + 1e-12)
    assert within["record"] == within["record_within_arm"]


def test_bound_does_not_grow_with_the_number_of_groups() -> None:
    fine = SubgroupMoments(Cells([Cut("a", [place / 60 for place in range(1, 60)]), Cut("k")]))
    for protects, norm in CASES:
        wide, narrow = (query.sensitivity(SCHEMA, protects, norm) for query in (fine, QUERY))
        assert wide.bound == narrow.bound
        assert len(wide.coordinates) == 30 * len(narrow.coordinates)
    finer = SubgroupMoments(Cells([Cut("a", [place / 100 for place in range(1, 100)]), Cut("k")]))
    with pytest.raises(QueryError, match="at most 200"):
        finer.sensitivity(SCHEMA, "record", "l1")


def test_groups_without_units_are_zeros_and_not_absent() -> None:
    ticks = answer([unit(1, 1.0)])
    assert list(ticks) == [at.name for at in QUERY.sensitivity(SCHEMA, "record", "l1").coordinates]
    assert {name: value for name, value in ticks.items() if value} == {
        "size_1 of a < 0.5, k=p": 1,
        "total_1 of a < 0.5, k=p": GRID,
    }


def test_largest_sums_fit_into_64_bits() -> None:
    """Sums beyond 62 bits would be refused, and whether they are must not depend on units."""
    assert SubgroupMoments.most_units * GRID < 2**62


def table_of(n: int) -> pa.Table:
    generator = np.random.default_rng(0)
    columns = {"t": generator.integers(0, 2, n), "y": generator.uniform(0, 1, n), "a": generator.uniform(0, 1, n)}
    return pa.table(columns | {"k": generator.choice(["p", "q", "r"], n)})


def test_sums_are_those_of_the_formulas() -> None:
    table = table_of(3_000)
    ticks = exact_answer(QUERY, SCHEMA, open_table(table, SCHEMA), ONE).ticks
    t, y, a = (table[name].to_numpy() for name in "tya")
    k, z = np.array(table["k"].to_pylist()), 2 * y - 1
    for arm, value, high in itertools.product((0, 1), "pqr", (False, True)):
        own = (t == arm) & (k == value) & ((a >= 0.5) == high)
        group = f"{'a ≥ 0.5' if high else 'a < 0.5'}, k={value}"
        assert ticks[f"size_{arm} of {group}"] == own.sum()
        assert ticks[f"total_{arm} of {group}"] / GRID == pytest.approx(z[own].sum(), abs=1e-3)
        assert ticks[f"deficit_{arm} of {group}"] / GRID == pytest.approx((1 - z[own] ** 2).sum(), abs=1e-3)


def test_order_of_a_table_does_not_matter() -> None:
    table = table_of(3_000)
    shuffled = table.take(pa.array(np.random.default_rng(1).permutation(3_000)))
    one, other = (exact_answer(QUERY, SCHEMA, open_table(each, SCHEMA), ONE).ticks for each in (table, shuffled))
    assert one == other


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-6)])
def test_door_adds_noise_of_the_size_of_the_bound(epsilon: float, delta: float) -> None:
    vault = dpc.Vault(table_of(500), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=3, delta=1e-5))
    release = vault.release(QUERY, dpc.Guarantee(epsilon=epsilon, delta=delta))
    per_unit = 1.0 if delta == 0 else dpc.calibration.gaussian_sd(epsilon, delta)
    sizes = {"size": 2.0, "total": 1.0, "deficit": 0.5}
    if delta == 0:
        sizes = {"size": 6.0, "total": 1.5, "deficit": 1.5}
    for part, size in sizes.items():
        assert release.scale(f"{part}_0 of a < 0.5, k=p") == pytest.approx(size * per_unit, rel=1e-5)


CLUSTERS = ClusterMoments("k", ["q"])


def of_clusters(units: Sequence[Unit]) -> dict[str, int]:
    return dict(exact_answer(CLUSTERS, SCHEMA, catalogue_of(SCHEMA).assemble(units), ONE).ticks)


@cache
def cluster_answers() -> list[list[dict[str, int]]]:
    return [[of_clusters([each, *rest]) for each in UNITS] for rest in RESTS]


def worst_of_clusters(sensitivity: Sensitivity, protects: Protects) -> float:
    pairs = [(i, j) for i, j in itertools.combinations(range(len(UNITS)), 2) if may_replace(i, j, protects)]
    return max(moved(sensitivity, answers[i], answers[j]) for answers in cluster_answers() for i, j in pairs)


@pytest.mark.parametrize(("protects", "norm"), CASES)
def test_cluster_bound_holds_for_all_pairs(protects: Protects, norm: Norm) -> None:
    sensitivity = CLUSTERS.sensitivity(SCHEMA, protects, norm)
    most = worst_of_clusters(sensitivity, protects)
    assert most <= float(sensitivity.bound)
    if protects != "record_within_arm":  # a unit that keeps its arm stays in a cluster of that arm, or is in none
        assert most > 0.999 * float(sensitivity.bound)
        assert most > 0.9 * float(sensitivity.bound)  # so a bound that is too small is caught


def test_cluster_bound_is_attained_within_an_arm_too() -> None:
    sensitivity = CLUSTERS.sensitivity(SCHEMA, "record_within_arm", "l1")
    ends = of_clusters([unit(0, 1.0, "p")]), of_clusters([unit(0, 1.0, "r")])
    assert moved(sensitivity, *ends) == pytest.approx(float(sensitivity.bound), rel=1e-5)


@settings(max_examples=30)
@given(
    st.sampled_from(CASES),
    st.lists(
        st.builds(unit, st.integers(0, 2), st.floats(), st.sampled_from(["p", "q", "?", None]), st.floats()),
        min_size=1,
        max_size=5,
    ),
    st.builds(unit, st.integers(0, 2), st.floats() | st.none(), st.sampled_from(["p", "r", None]), st.floats()),
)
def test_cluster_bound_holds_for_records_of_any_kind(case: tuple[Protects, Norm], units: list[Unit], new: Unit) -> None:
    protects, norm = case
    new = new | {name: units[0][name] for name in PUBLIC[protects]}
    sensitivity = CLUSTERS.sensitivity(SCHEMA, protects, norm)
    one, other = (
        dict(exact_answer(CLUSTERS, SCHEMA, open_table(DATABASE.from_arrow(whole), SCHEMA), ONE).ticks)
        for whole in (made_of(units, SCHEMA), made_of([new, *units[1:]], SCHEMA))
    )
    assert moved(sensitivity, one, other) <= float(sensitivity.bound)


def test_sums_of_clusters_add_up_over_tables() -> None:
    parts = UNITS[:9], UNITS[9:]
    summed = {name: sum(of_clusters(part)[name] for part in parts) for name in of_clusters(UNITS)}
    assert summed == of_clusters(UNITS)


def test_units_in_the_other_arm_than_their_cluster_count_nowhere() -> None:
    assert not any(of_clusters([unit(0, 1.0, "q"), unit(1, 0.0, "p")]).values())
    assert of_clusters([unit(1, 0.5, "q")])["size of k=q"] == 1


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        (ClusterMoments("a", ["p"]), "listed values"),
        (ClusterMoments("ward", ["p"]), "listed values"),
        (ClusterMoments("k", []), "some of the values"),
        (ClusterMoments("k", ["p", "q", "r"]), "some of the values"),
        (ClusterMoments("k", ["z"]), "some of the values"),
    ],
)
def test_clusters_that_are_not_declared_are_refused(query: ClusterMoments, wrong: str) -> None:
    with pytest.raises(QueryError, match=wrong):
        query.sensitivity(SCHEMA, "record", "l1")


@pytest.mark.parametrize(
    "parameters", [{"treated": "p"}, {"treated": ["p"], "icc": 1.0}, {"treated": ["p"], "icc": None}]
)
def test_parameters_of_clusters_are_checked(parameters: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="a list of treated clusters"):
        ClusterMoments("k", **parameters)
