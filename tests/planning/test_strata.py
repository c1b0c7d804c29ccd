"""Strata proposed from public facts."""

from collections.abc import Sequence

import dpcausal as dpc
from dpcausal.planning.strata import propose_strata
from dpcausal.schema.columns import Column

COVARIATES: list[Column] = [
    dpc.Real("age", 30, 100),
    dpc.Real("severity", 0, 24),
    dpc.Binary("sex"),
    dpc.Category("ward", ["a", "b", "c"]),
]
NAMES = [column.name for column in COVARIATES]


def schema_of(covariates: Sequence[Column]) -> dpc.Schema:
    return dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Real("score", 0, 100), covariates=covariates)


def test_all_covariates_are_strata_or_none_is() -> None:
    """Three numbers and six strata of listed values: four bins of each number need eight units to a stratum."""
    schema = schema_of([*COVARIATES, dpc.Real("dose", 0, 1)])
    names, least = [*NAMES, "dose"], 8 * 6 * 4**3
    assert propose_strata(schema, least, names) == tuple(names)
    assert propose_strata(schema, least - 1, names) == ()
    assert propose_strata(schema, least, names, treated_share=0.4) == ()


def test_most_units_are_expected_in_strata_with_both_arms() -> None:
    schema = schema_of(COVARIATES)
    for n in (8_000, 20_000):
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
