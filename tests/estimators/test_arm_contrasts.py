"""All contrasts of several arms are as NumPy gives them, intervals hold together, and noise does not grow."""

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.study.study import Study

N = 12_000
ARMS = ("none", "low", "high")


def columns(seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    arm, site = random.choice(3, N, p=[0.5, 0.3, 0.2]), random.integers(0, 3, N)
    y = np.clip(30 + 5 * arm + 8 * site + random.normal(0, 10, N), 0, 100)
    return {"dose": np.array(ARMS)[arm], "site": site, "y": y}


def schema_for(protects: Protects = "record", **more: Any) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("dose", arms=ARMS, compare="high", **more),
        outcome=dpc.Real("y", 0, 100),
        covariates=[dpc.Category("site", [0, 1, 2])],
        protects=protects,
    )


def vault(table: dict[str, Any], schema: dpc.Schema) -> dpc.Vault:
    return dpc.Vault(pa.table(table), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1_000, delta=0.1))


@pytest.mark.parametrize("protects", PROTECTS)
def test_contrasts_and_errors_are_those_of_numpy_where_noise_vanishes(protects: Protects) -> None:
    table = columns()
    effect = dpc.ArmContrasts(contrasts="pairs").estimate(vault(table, schema_for(protects)), epsilon=100.0)
    arms = [table["y"][table["dose"] == arm] for arm in ARMS]
    means, errors = [each.mean() for each in arms], [each.var(ddof=1) / len(each) for each in arms]
    assert effect.arm_means is not None
    assert effect.arm_sizes is not None
    assert effect.contrasts is not None
    assert effect.arm_means.values == pytest.approx(means, abs=2e-2)
    assert effect.arm_sizes.values == pytest.approx([len(each) for each in arms], abs=0.5)
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert effect.contrasts.values == pytest.approx([means[b] - means[a] for a, b in pairs], abs=2e-2)
    variances = [errors[a] + errors[b] for a, b in pairs]
    assert np.diag(effect.contrasts.sampling) == pytest.approx(variances, rel=1e-2)
    assert effect.contrasts.sampling[0][1] == pytest.approx(errors[0], rel=1e-2)  # the reference, in both
    assert effect.estimate == pytest.approx(means[2] - means[0], abs=2e-2)
    assert effect.sampling_sd == pytest.approx((errors[0] + errors[2]) ** 0.5, rel=1e-2)


def test_two_arms_give_what_a_difference_in_means_gives() -> None:
    plans = []
    for estimator in (dpc.DifferenceInMeans(), dpc.ArmContrasts()):
        trial = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 10, missing=0), protects="record_within_arm")
        plans.append(estimator.estimate(dpc.Rehearsal(trial, n=1_000), epsilon=1.0))
    assert plans[1].sampling_sd == pytest.approx(plans[0].sampling_sd)
    assert plans[1].privacy_sd == pytest.approx(plans[0].privacy_sd, rel=1e-2)


def test_noise_is_the_same_for_three_and_for_thirty_declared_arms() -> None:
    found = []
    for arms in (3, 30):
        treatment = dpc.Treatment("t", arms=tuple(range(arms)), compare=1)
        schema = dpc.Schema(treatment, dpc.Real("y", 0, 1))
        plan = dpc.ArmContrasts().estimate(dpc.Rehearsal(schema, n=100 * arms), epsilon=1.0)  # as many in each arm
        found.append(plan.privacy_sd)
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_strata_standardise_to_their_shares_and_remove_what_they_explain() -> None:
    table = columns()
    # Sites take part in uneven arms, so that plain means are confounded.
    random = np.random.default_rng(1)
    shares = np.array([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3], [0.2, 0.3, 0.5]])
    arm = np.array([random.choice(3, p=shares[site]) for site in table["site"]])
    table |= {"dose": np.array(ARMS)[arm], "y": 30 + 5.0 * arm + 8 * table["site"] + random.normal(0, 5, N)}
    source = vault(table, schema_for())
    effect = dpc.ArmContrasts(by=["site"]).estimate(source, epsilon=100.0)
    of_site = np.bincount(table["site"]) / N
    means = [
        sum(of_site[site] * table["y"][(arm == a) & (table["site"] == site)].mean() for site in range(3))
        for a in range(3)
    ]
    assert effect.arm_means is not None
    assert effect.arm_means.values == pytest.approx(means, abs=1e-2)
    assert effect.estimate == pytest.approx(10, abs=0.5)
    plain = dpc.ArmContrasts().estimate(source, epsilon=99.0)
    assert plain.estimate > 13
    assert effect.sampling_sd is not None
    assert plain.sampling_sd is not None
    assert effect.sampling_sd < plain.sampling_sd


def test_strata_without_units_in_an_arm_are_joined() -> None:
    table = columns()
    table["dose"] = np.where((table["site"] == 2) & (table["dose"] == "low"), "none", table["dose"])
    effect = dpc.ArmContrasts(by=["site"]).estimate(vault(table, schema_for()), epsilon=20.0)
    assert "2 strata with hardly any units in an arm were joined" in effect.notes
    assert not effect.no_interval
    assert 3 < effect.estimate < 20


def confounded() -> tuple[dict[str, Any], Any]:
    """A table in which the arm depends on a number and on the site, and what least squares in each arm make of it."""
    random = np.random.default_rng(2)
    x, site = random.uniform(-1, 1, N), random.integers(0, 3, N)
    likely = np.array([0.5, 0.3, 0.2]) * np.exp(np.outer(x + 0.3 * site, [-0.5, 0.0, 0.5]))
    arm = (random.random(N) * likely.sum(axis=1) > np.cumsum(likely, axis=1).T).sum(axis=0)
    y = 40 + 5.0 * arm + (8 + 3 * arm) * x + 4 * site + random.normal(0, 6, N)
    design = np.column_stack([np.ones(N), x, site == 1, site == 2])
    means, influence = np.zeros(3), np.zeros((3, N))
    for place in range(3):
        here = arm == place
        gram = design[here].T @ design[here]
        fitted = design @ np.linalg.solve(gram, design[here].T @ y[here])
        means[place] = fitted.mean()
        weights = design @ np.linalg.solve(gram, design.mean(axis=0))
        influence[place] = (fitted - means[place]) / N + here * (y - fitted) * weights
    return {"dose": np.array(ARMS)[arm], "site": site, "x": x, "y": y}, (means, influence @ influence.T)


def with_number(protects: Protects = "record") -> dpc.Schema:
    return replace(schema_for(protects), covariates=[dpc.Real("x", -1, 1), dpc.Category("site", [0, 1, 2])])


@pytest.mark.parametrize("protects", PROTECTS)
def test_adjusted_means_and_errors_are_those_of_least_squares_where_noise_vanishes(protects: Protects) -> None:
    table, (means, covariance) = confounded()
    effect = dpc.ArmContrasts(contrasts="pairs", covariates=["x", "site"]).estimate(
        vault(table, with_number(protects)), epsilon=100.0
    )
    assert effect.arm_means is not None
    assert effect.contrasts is not None
    assert effect.arm_means.values == pytest.approx(means, abs=0.05)
    assert np.array(effect.arm_means.sampling) == pytest.approx(covariance, rel=0.05, abs=2e-4)
    assert effect.contrasts.values[1] == pytest.approx(means[2] - means[0], abs=0.08)
    assert effect.estimate == pytest.approx(effect.contrasts.values[1])
    assert effect.contrasts.names[1] == "dose=high against dose=none"
    assert dpc.Effect.from_json(effect.to_json()) == effect


def test_adjusted_contrasts_of_two_arms_have_the_sampling_error_of_a_regression_adjustment() -> None:
    trial = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 10), covariates=[dpc.Real("x", 0, 1)])
    plans = [
        estimator.estimate(dpc.Rehearsal(trial, n=5_000), epsilon=1.0)
        for estimator in (dpc.RegressionAdjustment(covariates=["x"]), dpc.ArmContrasts(covariates=["x"]))
    ]
    assert plans[1].sampling_sd == pytest.approx(plans[0].sampling_sd, rel=0.05)
    assert plans[0].privacy_sd < plans[1].privacy_sd < 1.9 * plans[0].privacy_sd  # whose sums are for two arms alone


def test_adjusted_noise_is_the_same_for_three_and_for_ten_declared_arms() -> None:
    found = []
    for arms in (3, 10):
        treatment = dpc.Treatment("t", arms=tuple(range(arms)), compare=1)
        schema = dpc.Schema(treatment, dpc.Real("y", 0, 1), covariates=[dpc.Real("x", 0, 1)])
        expected = dpc.Rehearsal(schema, n=1_000 * arms, confounding=0.0)  # as many in each arm
        found.append(dpc.ArmContrasts(covariates=["x"]).estimate(expected, epsilon=1.0).privacy_sd)
    assert found[1] == pytest.approx(found[0], rel=0.1)


def test_adjusted_contrasts_of_arms_without_units_have_no_interval() -> None:
    table, _ = confounded()
    table["dose"] = np.where(table["dose"] == "low", "elsewhere", table["dose"])
    estimator = dpc.ArmContrasts(covariates=["x"])
    effect = estimator.estimate(vault(table, with_number()), epsilon=1.0)
    assert any("dose=low" in note for note in effect.notes)
    assert not effect.no_interval
    table["dose"] = np.where(table["dose"] == "high", "elsewhere", table["dose"])
    assert estimator.estimate(vault(table, with_number()), epsilon=1.0).no_interval


def test_covariate_without_spread_has_no_interval() -> None:
    table, _ = confounded()
    schema = replace(with_number(), covariates=[dpc.Real("x", -1_000, 1_000)])
    effect = dpc.ArmContrasts(covariates=["x"]).estimate(vault(table, schema), epsilon=1.0)
    assert "hides how x varies" in effect.no_interval


def test_comparison_without_units_has_no_interval_and_the_other_contrasts_stay() -> None:
    table = columns()
    table["dose"] = np.where(table["dose"] == "low", "elsewhere", table["dose"])
    effect = dpc.ArmContrasts().estimate(vault(table, schema_for()), epsilon=1.0)
    assert not effect.no_interval
    assert any("dose=low" in note for note in effect.notes)
    table["dose"] = np.where(table["dose"] == "high", "elsewhere", table["dose"])
    assert dpc.ArmContrasts().estimate(vault(table, schema_for()), epsilon=1.0).no_interval


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (dpc.ArmContrasts(contrasts="all"), 'contrasts="pairs"'),  # type: ignore[arg-type]
        (dpc.ArmContrasts(by=["nobody"]), "nobody"),
        (dpc.ArmContrasts(by=["site"], covariates=["site"]), "strata, by, or covariates"),
        (dpc.FactorialEffects(factor="y"), "listed values"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_spent(estimator: Any, said: str) -> None:
    source = vault(columns(), schema_for())
    with pytest.raises(QueryError, match=said):
        estimator.estimate(source, epsilon=1.0)
    assert source.ledger.spent.epsilon == 0


def test_too_many_cells_are_refused() -> None:
    schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1), covariates=[dpc.Category("site", list(range(40)))])
    with pytest.raises(QueryError, match="at most 60 cells"):
        dpc.ArmContrasts(by=["site"]).estimate(dpc.Rehearsal(schema, n=1_000), epsilon=1.0)


def test_effect_prints_tidies_and_survives_json() -> None:
    effect = dpc.ArmContrasts(contrasts="pairs").estimate(vault(columns(), schema_for()), epsilon=1.0)
    assert "dose=high against dose=low" in str(effect)
    assert dpc.Effect.from_json(effect.to_json()) == effect
    frame = dpc.tidy(effect, full=True)
    assert frame["group"].tolist()[1:] == list(effect.contrasts.names if effect.contrasts else ())
    assert (frame["conf_low"] < frame["estimate"]).all()
    assert effect.relative_lift().estimate > 0
    assert "hold together" in dpc.Report.of(effect, date=date(2026, 1, 31)).to_html()


def test_study_file_holds_the_estimators_and_a_plan_works() -> None:
    for estimator in (dpc.ArmContrasts(contrasts="pairs", by=("site",)), dpc.FactorialEffects(factor="site")):
        study = Study(name="doses", question="Which dose?", schema=schema_for(), estimator=estimator, epsilon=1.0)
        assert Study.from_toml(study.to_toml()) == study
        assert study.rehearsed(3_000).contrasts is not None
