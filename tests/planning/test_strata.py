"""Strata proposed from public facts."""

import itertools
import math
from collections.abc import Sequence

import pytest

import dpcausal as dpc
from dpcausal.columns import Column
from dpcausal.planning.strata import propose_strata
from dpcausal.queries.cuts import bins, cuts_of

COVARIATES: list[Column] = [
    dpc.Real("age", 30, 100),
    dpc.Real("severity", 0, 24),
    dpc.Binary("sex"),
    dpc.Category("ward", ["a", "b", "c"]),
]
NAMES = [column.name for column in COVARIATES]


def schema_of(covariates: Sequence[Column]) -> dpc.Schema:
    return dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Real("score", 0, 100), covariates=covariates)


@pytest.mark.parametrize("n", [1_000, 5_000, 20_000, 1_000_000])
@pytest.mark.parametrize("share", [0.5, 0.13])
def test_strata_are_as_many_as_units_allow(n: int, share: float) -> None:
    schema = schema_of(COVARIATES)
    cuts = cuts_of(propose_strata(schema, n, NAMES, treated_share=share))
    assert [cut.name for cut in cuts] == NAMES
    assert math.prod(bins(cuts, schema)) <= n * 4 * share * (1 - share) / 3
    for cut, column in zip(cuts[:2], COVARIATES[:2], strict=True):
        assert isinstance(column, dpc.Real)
        edges = [column.low, *cut.edges, column.high]
        assert [high - low for low, high in itertools.pairwise(edges)] == pytest.approx(
            [(column.high - column.low) / (len(edges) - 1)] * (len(edges) - 1)
        )


def test_most_units_are_expected_in_strata_with_both_arms() -> None:
    schema = schema_of(COVARIATES)
    for n in (2_000, 20_000):
        by = propose_strata(schema, n, NAMES)
        effect = dpc.Stratification(by=by).estimate(dpc.Rehearsal(schema, n), epsilon=1.0)
        assert effect.estimand.startswith("average treatment effect")
        assert not effect.no_interval


def test_no_strata_where_units_are_too_few_for_all_covariates() -> None:
    many = schema_of([dpc.Real(f"x{place}", 0, 1) for place in range(12)])
    assert propose_strata(many, 20_000, [column.name for column in many.covariates]) == ()
    assert propose_strata(schema_of(COVARIATES), 200, NAMES) == ()
    assert propose_strata(schema_of(COVARIATES), 20_000, []) == ()


def test_listed_covariates_alone_need_no_edges() -> None:
    assert propose_strata(schema_of(COVARIATES), 500, ["sex", "ward"]) == ("sex", "ward")
