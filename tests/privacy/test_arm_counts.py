"""No unit moves the counts of all bins beyond their joint bound; and bins that are the table's own are caught."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.audit.tables import catalogue_of, exact_answer, table_of
from dpcausal.errors import QueryError
from dpcausal.queries import Cells, Cut, Norm, Query, ScoreCounts, Sensitivity, StratumCounts
from dpcausal.schema import PROTECTS, Protects
from dpcausal.vault.engines import Engine
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[dpc.Category("k", ["p", "q"]), dpc.Real("a", 0, 1)],
)
STRATA = StratumCounts(Cells([Cut("a", [0.5]), Cut("k")]))
SCORES = ScoreCounts(["a", "k"], [0.3, -4.5, 1.0], [0.1, 0.5, 0.9])
QUERIES: list[Query] = [STRATA, SCORES]
NORMS: tuple[Norm, Norm] = ("l1", "l2")
DATABASE = connect(threads=1)

Unit = dict[str, Any]


def unit(t: int | None, k: str | None, a: float | None) -> Unit:
    return {"t": t, "y": 0.5, "k": k, "a": a}


UNITS = [unit(*each) for each in itertools.product((0, 1), ("p", "q"), (0.0, 0.4, 0.5, 1.0))]


def answer(query: Query, engine: Engine) -> dict[str, int]:
    return dict(exact_answer(query, SCHEMA, engine, ONE).ticks)


def of_units(query: Query, units: Sequence[Unit]) -> dict[str, int]:
    return answer(query, catalogue_of(SCHEMA).assemble(units))


def moved(sensitivity: Sensitivity, one: dict[str, int], other: dict[str, int]) -> float:
    changes = np.array([(one[at.name] - other[at.name]) / float(at.weight or 0) for at in sensitivity.coordinates])
    return float(np.abs(changes).sum() if sensitivity.norm == "l1" else np.linalg.norm(changes))


def worst(query: Query, sensitivity: Sensitivity, protects: Protects) -> float:
    """The largest move over all tables of three of the listed units, and all their neighbours."""
    answers = {units: of_units(query, [UNITS[i] for i in units]) for units in triples()}
    kept = {"record": "", "record_within_arm": "t", "outcome": "tka"}[protects]
    most = 0.0
    for i, j in itertools.combinations(range(len(UNITS)), 2):
        if all(UNITS[i][name] == UNITS[j][name] for name in kept):
            for rest in itertools.combinations_with_replacement(range(0, len(UNITS), 3), 2):
                pair = (answers[tuple(sorted((*rest, each)))] for each in (i, j))
                most = max(most, moved(sensitivity, *pair))
    return most


def triples() -> list[tuple[int, ...]]:
    rests = itertools.combinations_with_replacement(range(0, len(UNITS), 3), 2)
    return sorted({tuple(sorted((*rest, last))) for rest in rests for last in range(len(UNITS))})


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
@pytest.mark.parametrize(("protects", "norm"), list(itertools.product(PROTECTS, NORMS)))
def test_bound_holds_and_is_attained(query: Query, protects: Protects, norm: Norm) -> None:
    sensitivity = query.sensitivity(SCHEMA, protects, norm)
    most = worst(query, sensitivity, protects)
    if protects == "outcome":
        assert most == 0  # they do not read it
        return
    assert 0.999 * float(sensitivity.bound) < most <= float(sensitivity.bound)  # and the bound is not loose
    added = replace(sensitivity, bound=Fraction(1))  # as if a unit were added and not replaced
    assert most > 1.4 * float(added.bound)


@settings(max_examples=30)
@given(
    st.sampled_from(QUERIES),
    st.sampled_from(NORMS),
    st.lists(
        st.builds(unit, st.integers(0, 1) | st.none(), st.sampled_from(["p", "?", None]), st.floats() | st.none()),
        min_size=2,
        max_size=5,
    ),
)
def test_bound_holds_for_records_of_any_kind(query: Query, norm: Norm, units: list[Unit]) -> None:
    sensitivity = query.sensitivity(SCHEMA, "record", norm)
    one, other = (
        answer(query, open_table(DATABASE.from_arrow(table_of(each, SCHEMA)), SCHEMA))
        for each in (units[1:], [units[0], *units[2:]])
    )
    assert moved(sensitivity, one, other) <= float(sensitivity.bound)


def test_bins_of_equal_size_are_caught() -> None:
    """The mutant: quantiles of the table's own scores, which one unit moves for all others."""
    sensitivity = SCORES.sensitivity(SCHEMA, "record", "l1")
    names = [at.name for at in sensitivity.coordinates]

    def by_rank(first: float) -> dict[str, int]:
        scores, arms = np.array([first, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]), np.array([0, 0, 1, 1, 0, 0, 1, 1])
        bins = np.searchsorted(np.quantile(scores, [0.25, 0.5, 0.75]), scores, side="right")
        return dict(zip(names, np.bincount(2 * bins + arms, minlength=8).tolist(), strict=True))

    assert moved(sensitivity, by_rank(0.1), by_rank(0.9)) > 2 * float(sensitivity.bound)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_empty_bins_are_zeros_and_not_absent(query: Query) -> None:
    ticks = of_units(query, [unit(1, "p", 0.1)])
    assert list(ticks) == [at.name for at in query.sensitivity(SCHEMA, "record", "l1").coordinates]
    assert sorted(ticks.values()) == [0] * (len(ticks) - 1) + [1]


def test_counts_are_those_of_the_formulas() -> None:
    generator = np.random.default_rng(0)
    t, a, k = generator.integers(0, 2, 3_000), generator.uniform(0, 1, 3_000), generator.choice(["p", "q"], 3_000)
    engine = open_table(pa.table({"t": t, "a": a, "k": k, "y": a}), SCHEMA)
    strata, scores = (answer(query, engine) for query in QUERIES)
    assert strata["size_1 of a ≥ 0.5, k=q"] == ((t == 1) & (a >= 0.5) & (k == "q")).sum()
    # Two values are one feature, -1 or 1; features are divided by the root of one more than there are covariates.
    predictor = (0.3 - 4.5 * (2 * a - 1) + np.where(k == "q", 1.0, -1.0)) / np.sqrt(3)
    score = 1 / (1 + np.exp(-predictor))
    for arm in (0, 1):
        inside = ((t == arm) & (score >= 0.1) & (score < 0.5)).sum()
        assert abs(scores[f"size_{arm} of 0.1 ≤ score < 0.5"] - inside) <= 2  # at an edge the grid decides
    assert sum(scores.values()) == 3_000


@pytest.mark.parametrize("edges", [[], [0.0, 0.5], [0.5, 0.5], [0.5, 0.2], [1.0], [float("nan")], ["0.5"], [0.1] * 200])
def test_invalid_edges_are_refused(edges: list[Any]) -> None:
    with pytest.raises(QueryError, match="rising edges"):
        ScoreCounts(["a"], [0.0, 0.0], edges)


@pytest.mark.parametrize(("delta", "size"), [(0.0, 2.0), (1e-6, 2**0.5)])
def test_door_adds_noise_of_the_size_of_the_bound(delta: float, size: float) -> None:
    table = pa.table({"t": [0, 1] * 50, "a": [0.5] * 100, "k": ["p"] * 100, "y": [0.5] * 100})
    vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=3, delta=1e-5))
    release = vault.release(STRATA, dpc.Guarantee(epsilon=1.0, delta=delta))
    per_unit = 1.0 if delta == 0 else dpc.calibration.gaussian_sd(1.0, delta)
    assert release.scales == pytest.approx([size * per_unit] * 8, rel=1e-5)
