"""Weights of a formula's sums are chosen from public numbers alone, and make its noise small."""

from dataclasses import replace
from typing import cast, get_args

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError
from dpcausal.estimators.average import estimator_for
from dpcausal.planning.precision import half_width
from dpcausal.schema.schema import Protects
from dpcausal.source import RecordingSource
from tests.estimators.test_formula_estimator import BY_SUMS, SCHEMA, SLOPE, STRATIFIED, cells
from tests.support.slow import sampled

TRIAL = dpc.Schema(dpc.Treatment("treat"), dpc.Real("score", 0, 100))
DIFFERENCE = cast("dpc.FormulaEstimator", estimator_for("formula_estimator", TRIAL))


def equally(estimator: dpc.FormulaEstimator, schema: dpc.Schema) -> dpc.FormulaEstimator:
    """Return an estimator whose sums all have the default noise."""
    return replace(estimator, weights=dict.fromkeys(estimator.query(schema).texts, 1.0))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("mean", [50, 30])
def test_a_difference_in_means_of_own_sums_is_as_narrow_as_the_estimator_of_that_name(
    delta: float, mean: float
) -> None:
    plan = dpc.Rehearsal(TRIAL, 5_000, outcome_mean=mean, outcome_sd=15, rule="zcdp" if delta else "additive")
    own, known, equal = (
        each.estimate(plan, epsilon=1.0, delta=delta)
        for each in (DIFFERENCE, dpc.DifferenceInMeans(), equally(DIFFERENCE, TRIAL))
    )
    assert own.privacy_sd < 1.1 * known.privacy_sd
    assert half_width(own) < 1.02 * half_width(known)
    assert own.privacy_sd < 0.6 * equal.privacy_sd


@pytest.mark.parametrize(
    ("estimator", "schema", "protects"),
    sampled(
        [
            (estimator, schema, protects)
            for protects in get_args(Protects)
            for estimator, schema in [(DIFFERENCE, TRIAL), (SLOPE, SCHEMA), (STRATIFIED, SCHEMA)]
        ],
        every=4,
    ),
)
def test_noise_is_never_larger_than_with_equal_weights(
    estimator: dpc.FormulaEstimator, schema: dpc.Schema, protects: Protects
) -> None:
    schema = replace(schema, protects=protects, outcome=dpc.Real("score", 0, 100, missing=50))
    for delta in (0.0, 1e-6):
        plan = dpc.Rehearsal(schema, 5_000, rule="zcdp" if delta else "additive")
        chosen, equal = (
            each.estimate(plan, epsilon=0.5, delta=delta) for each in (estimator, equally(estimator, schema))
        )
        assert chosen.privacy_sd < 1.001 * equal.privacy_sd
        assert not chosen.no_interval or equal.no_interval


def test_no_table_has_a_part_in_weights() -> None:
    """Tables of other units, and of another number of them, are asked the very same query."""
    asked = []
    for units, shift in ((300, 0), (4_000, 40)):
        columns = cells(units, seed=shift)
        columns["score"] = np.clip(columns["score"] + shift, 0, 100)
        vault = dpc.Vault(pa.table(columns), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=9))
        for source in (vault, dpc.Rehearsal(SCHEMA, units, outcome_mean=80)):
            SLOPE.estimate(recording := RecordingSource(source), epsilon=1.0)
            asked += [release.query for release in recording.releases]
    assert len(asked) == 4
    assert len(set(asked)) == 1
    assert dict(asked[0].weights).keys() == SLOPE.query(SCHEMA).texts.keys()  # type: ignore[attr-defined]
    vault = dpc.Vault(pa.table(cells(300)), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=9))
    with pytest.raises(QueryError, match="which has no table"):
        SLOPE.weighted(vault, dpc.Guarantee(epsilon=1.0))  # type: ignore[arg-type]


def test_expectations_have_a_part_in_weights_and_own_weights_stay() -> None:
    guarantee = dpc.Guarantee(epsilon=1.0)
    middle, side = (DIFFERENCE.weighted(dpc.Rehearsal(TRIAL, 5_000, outcome_mean=mean), guarantee) for mean in (50, 95))
    assert middle.weights["n"] > 1.5 * side.weights["n"]  # far from the middle a mean needs the number of units
    assert middle.weighted(dpc.Rehearsal(TRIAL, 5_000, outcome_mean=95), guarantee) is middle


@pytest.mark.parametrize("formula", ["n - n", "n / 0"])
def test_a_formula_that_has_no_slopes_has_equal_weights(formula: str) -> None:
    bare = replace(BY_SUMS, formula=formula, variance="")
    assert set(bare.weighted(dpc.Rehearsal(SCHEMA, 5_000), dpc.Guarantee(epsilon=1.0)).weights.values()) == {1.0}


def test_no_cell_that_may_be_empty_keeps_weights_from_being_chosen() -> None:
    fine = replace(STRATIFIED, cells=["treat", dpc.Cut("dose", list(range(1, 40)))])
    assert fine.weighted(dpc.Rehearsal(SCHEMA, 5_000), dpc.Guarantee(epsilon=1.0)).weights["n"] > 2


def test_the_text_of_a_study_holds_its_weights() -> None:
    study = dpc.Study(name="doses", question="?", schema=SCHEMA, estimator=SLOPE, epsilon=1.0)
    assert "[estimator.weights]" in study.text
    again = dpc.Study.from_toml(study.text)
    assert again == study
    assert again.questions(n=99) == study.questions(n=10**6)
    query = study.questions()[0].query
    assert dict(query.weights) == study.estimator.weights  # type: ignore[attr-defined]
