"""No unit moves the sums of all covariates beyond their joint bound; bounds for less than a unit can do are caught."""

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
from dpcausal.audit.tables import catalogue_of, exact_answer, table_of
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, CovariateSums, Norm, Sensitivity, WeightedCovariates
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.answers.covariate_sums import parts
from dpcausal.vault.engines import Engine
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Category("k", ["p", "q", "r"]), dpc.Real("a", 0, 1), dpc.Binary("s")],
)
OF = ["a", "k", "s"]
PLAIN = CovariateSums(OF)
WEIGHTED = WeightedCovariates(OF, ["a"], [0.0, 20.0], "ATE", 0.1)
QUERIES = [PLAIN, CovariateSums(["a"]), WEIGHTED]
NORMS: tuple[Norm, Norm] = ("l1", "l2")
CASES = list(itertools.product(PROTECTS, NORMS))
DATABASE = connect(threads=1)

Unit = dict[str, Any]


def unit(t: int | None, k: str | None, a: float | None, s: int | None) -> Unit:
    return {"t": t, "y": 0.5, "k": k, "a": a, "s": s}


UNITS = [unit(*each) for each in itertools.product((0, 1), "pr", (0.0, 0.3, 0.5, 1.0), (0, 1))]
RESTS: list[list[Unit]] = [[], [unit(0, "q", 0.3, 1), unit(1, "p", 0.77, 0)]]


def answer(query: CovariateSums, engine: Engine) -> dict[str, int]:
    return dict(exact_answer(query, SCHEMA, engine, ONE).ticks)


def moved(sensitivity: Sensitivity, one: dict[str, int], other: dict[str, int]) -> float:
    changes = np.array([(one[at.name] - other[at.name]) / float(at.weight or 0) for at in sensitivity.coordinates])
    return float(np.abs(changes).sum() if sensitivity.norm == "l1" else np.linalg.norm(changes))


@cache
def all_answers(place: int) -> list[list[dict[str, int]]]:
    """What a query says of tables with each of the listed units, beside each of some other units."""
    catalogue = catalogue_of(SCHEMA)
    return [[answer(QUERIES[place], catalogue.assemble([each, *rest])) for each in UNITS] for rest in RESTS]


def worst(place: int, sensitivity: Sensitivity, protects: Protects) -> float:
    kept = {"record": "", "record_within_arm": "t", "outcome": "tkas"}[protects]
    all_pairs = itertools.combinations(range(len(UNITS)), 2)
    pairs = ((i, j) for i, j in all_pairs if all(UNITS[i][name] == UNITS[j][name] for name in kept))
    return max(
        (moved(sensitivity, said[i], said[j]) for i, j in pairs for said in all_answers(place)),
        default=0.0,
    )


@pytest.mark.parametrize("place", range(len(QUERIES)))
@pytest.mark.parametrize(("protects", "norm"), CASES)
def test_bound_holds_for_all_pairs(place: int, protects: Protects, norm: Norm) -> None:
    sensitivity = QUERIES[place].sensitivity(SCHEMA, protects, norm)
    most = worst(place, sensitivity, protects)
    assert most <= float(sensitivity.bound)
    assert (most == 0) == (protects == "outcome")  # which they do not read


@pytest.mark.parametrize(
    ("place", "protects", "norm", "share"),
    [
        (0, "record", "l1", 0.999),
        (0, "record_within_arm", "l1", 0.999),
        (1, "record", "l1", 0.999),
        (1, "record", "l2", 0.999),
        (2, "record", "l1", 0.999),
        (0, "record", "l2", 0.91),  # a category moves by the root of 2, and is charged for 2
    ],
)
def test_bound_is_not_loose(place: int, protects: Protects, norm: Norm, share: float) -> None:
    sensitivity = QUERIES[place].sensitivity(SCHEMA, protects, norm)
    most = worst(place, sensitivity, protects)
    assert most > share * float(sensitivity.bound)
    less = replace(sensitivity, bound=sensitivity.bound * Fraction(9, 10))
    assert most > float(less.bound)  # so one that is too small is caught


def test_bound_for_public_arms_is_caught() -> None:
    """The mutant: what an arm's size adds is left out where the arm can change."""
    for place in (0, 2):
        honest = QUERIES[place].sensitivity(SCHEMA, "record", "l1")
        trial = QUERIES[place].sensitivity(SCHEMA, "record_within_arm", "l1")
        assert worst(place, replace(honest, bound=trial.bound), "record") > 1.15 * float(trial.bound)


def test_squares_in_place_of_deficits_are_caught() -> None:
    """The mutant: a unit that changes arms would move totals and squares fully at once."""
    sensitivity = QUERIES[1].sensitivity(SCHEMA, "record", "l1")

    def squares(each: Unit) -> dict[str, int]:
        honest = answer(QUERIES[1], catalogue_of(SCHEMA).assemble([each]))
        return honest | {
            f"deficit_{arm} of a": honest[f"size_{arm}"] * GRID - honest[f"deficit_{arm} of a"] for arm in (0, 1)
        }

    assert moved(sensitivity, squares(unit(0, "p", 1.0, 0)), squares(unit(1, "p", 0.0, 0))) > 1.3 * float(
        sensitivity.bound
    )


@pytest.mark.parametrize("norm", NORMS)
def test_bound_holds_for_all_weights_and_numbers_on_a_grid(norm: Norm) -> None:
    """Both arms, with weights and one number over a grid and at odd places; the score may give any weight at all."""
    query = WeightedCovariates(["a"], ["a"], [0.0, 0.0], "ATE", 0.1)
    sensitivity = query.sensitivity(SCHEMA, "record", norm)
    scale = {at.name: float(at.weight or 1) for at in sensitivity.coordinates}
    unit_of = [scale["weight_sum_0"], scale["weight_square_sum_0"], scale["total_0 of a"], scale["deficit_0 of a"]]
    weights, numbers = (np.array(each, dtype=np.int64) for each in zip(*_grid(), strict=True))
    added = parts(weights, numbers[None, :], [0])[1:] / np.array(unit_of)[:, None]
    most = 0.0
    for one in added.T:
        same = np.abs(added - one[:, None])
        other = np.vstack([np.abs(added), np.repeat(np.abs(one)[:, None], added.shape[1], axis=1)])
        for change in (same, other):
            lengths = change.sum(axis=0) if norm == "l1" else np.linalg.norm(change, axis=0)
            most = max(most, float(lengths.max()))
    assert 0.99 * float(sensitivity.bound) < most <= float(sensitivity.bound)
    heavy = parts(3 * weights, numbers[None, :], [0])[1:] / np.array(unit_of)[:, None]  # the mutant: without a clip
    assert np.abs(heavy).sum(axis=0).max() > float(sensitivity.bound)


def _grid() -> list[tuple[int, int]]:
    ends = [0, 1, GRID // 3, GRID - 1, GRID, *range(0, GRID, GRID // 8)]
    return [(weight, sign * number) for weight in ends for number in ends for sign in (-1, 1)]


@settings(max_examples=30)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(NORMS),
    st.lists(
        st.builds(
            unit,
            st.integers(0, 1) | st.none(),
            st.sampled_from(["p", "q", "?", None]),
            st.floats() | st.none(),
            st.integers(0, 1) | st.none(),
        ),
        min_size=2,
        max_size=5,
    ),
)
def test_bound_holds_for_records_of_any_kind(query: CovariateSums, norm: Norm, units: Sequence[Unit]) -> None:
    sensitivity = query.sensitivity(SCHEMA, "record", norm)
    one, other = (
        answer(query, open_table(DATABASE.from_arrow(table_of(each, SCHEMA)), SCHEMA))
        for each in (units[1:], [units[0], *units[2:]])
    )
    assert moved(sensitivity, one, other) <= float(sensitivity.bound)


def test_bound_grows_with_covariates_and_not_with_their_values() -> None:
    """A category of a hundred values is charged as a number is."""
    wide = replace(SCHEMA, covariates=[dpc.Category("k", list(range(100))), dpc.Real("a", 0, 1)])
    for protects, norm in CASES:
        category, number = (CovariateSums([name]).sensitivity(wide, protects, norm).bound for name in "ka")
        assert category == number < CovariateSums(["k", "a"]).sensitivity(wide, protects, norm).bound
    many = replace(SCHEMA, covariates=[dpc.Category("k", list(range(201)))])
    with pytest.raises(QueryError, match="at most 200"):
        CovariateSums(["k"]).sensitivity(many, "record", "l1")


def table(n: int) -> pa.Table:
    generator = np.random.default_rng(0)
    columns: dict[str, Any] = {name: generator.integers(0, 2, n) for name in "ts"}
    columns |= {"a": generator.uniform(0, 1, n), "y": generator.uniform(0, 1, n)}
    return pa.table(columns | {"k": generator.choice(["p", "q", "r"], n)})


def test_sums_are_those_of_the_formulas() -> None:
    whole = table(3_000)
    engine = open_table(whole, SCHEMA)
    t, a, s = (whole[name].to_numpy() for name in "tas")
    x = 2 * a - 1
    score = np.clip(1 / (1 + np.exp(-20 * x / np.sqrt(2))), 0.1, 0.9)
    for query, weights in ((PLAIN, np.ones(3_000)), (WEIGHTED, np.where(t == 1, 1 / score, 1 / (1 - score)) / 10)):
        ticks = answer(query, engine)
        for arm in (0, 1):
            own = np.where(t == arm, weights, 0.0)
            sums = {
                "weight_sum": own,
                "weight_square_sum": own**2,
                "total of a": own * x,
                "deficit of a": own * (1 - x**2),
            }
            sums |= {"total of s": own * (2 * s - 1), "total of k=q": own * (np.array(whole["k"].to_pylist()) == "q")}
            for label, each in sums.items():
                part, of, name = label.partition(" of ")
                assert ticks[f"{part}_{arm}{of}{name}"] / GRID == pytest.approx(each.sum(), abs=0.5)


def test_largest_sums_fit_into_64_bits() -> None:
    """Sums beyond 62 bits would be refused, and whether they are must not depend on units."""
    assert CovariateSums.most_units * GRID < 2**62


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_door_adds_noise_of_the_size_of_the_bound(delta: float) -> None:
    vault = dpc.Vault(table(500), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=3, delta=1e-5))
    release = vault.release(PLAIN, dpc.Guarantee(epsilon=1.0, delta=delta))
    bound = 7.0 if delta == 0 else 12**0.5 * dpc.calibration.gaussian_sd(1.0, delta)
    assert release.scale("size_1") == pytest.approx(bound, rel=1e-4)
    assert release.scale("total_0 of k=p") == pytest.approx(bound, rel=1e-4)
    assert release.scale("deficit_0 of a") == pytest.approx(bound * (1 if delta else 2), rel=1e-4)
