"""Signs in released numbers that a table does not read as declared."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators.outcome_regression import unread_covariates
from dpcausal.estimators.plausibility import Measured, Signs, warned, warned_of_width
from dpcausal.release import Receipt
from dpcausal.results.effect import Estimator
from dpcausal.schema.scale import Scale
from dpcausal.uncertainty.interval import NoiseTerm

OUTCOME = dpc.Real("score", 0, 100)
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("treat", labels=("usual care", "training"), undeclared=0),
    outcome=OUTCOME,
    covariates=[dpc.Real("age", 18, 90), dpc.Binary("sex", values=("f", "m"))],
)
ESTIMATORS: dict[str, Estimator] = {
    "difference": dpc.DifferenceInMeans(),
    "regression": dpc.RegressionAdjustment(covariates=["age"]),
    "weighting": dpc.InverseWeighting(covariates=["age"]),
    "doubly robust": dpc.DoublyRobust(covariates=["age"]),
    "strata": dpc.Stratification(by=["sex"]),
}


def effect(estimate: float = 0.0, noise: float = 1.0, **changes: object) -> dpc.Effect:
    made = dpc.Effect(
        estimand="average treatment effect",
        arms=("usual care", "training"),
        outcome="score",
        estimate=estimate,
        sampling_sd=0.5,
        noise=(NoiseTerm("gaussian", noise),),
        n=1_000,
        method="difference in means",
        guarantee=dpc.Guarantee(epsilon=1.0),
        assumptions=(),
        receipts=(Receipt("arm_moments", 1.0, 0.0, 2, "ab" * 32),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def cells(n: int, seed: int = 0, **columns: object) -> pa.Table:
    random = np.random.default_rng(seed)
    treat = random.integers(0, 2, n)
    table = {
        "treat": treat,
        "score": np.clip(random.normal(40 + 3 * treat, 15), 0, 100),
        "age": np.clip(random.normal(50, 15, n), 18, 90),
        "sex": random.choice(["f", "m"], n),
    }
    return pa.table(table | columns)


def released(table: pa.Table, estimator: Estimator, epsilon: float = 1.0) -> dpc.Effect:
    vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=epsilon))
    return estimator.estimate(vault, epsilon=epsilon)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_unreadable_outcome_gives_a_warning(name: str) -> None:
    """Noise hides the sign in about one table of fifty; in all of four it does so once in ten million."""
    n, epsilon = 20_000, 12.0 if name == "strata" else 1.0
    unread = cells(n, score=["12,5 mg"] * n)
    texts = (" ".join(released(unread, ESTIMATORS[name], epsilon).warnings) for _ in range(4))
    told = next((text for text in texts if "decimal or thousands signs, units, spelling" in text), "")
    assert "dpcausal check STUDY --table TABLE" in told
    assert "cost no privacy" in told


@pytest.mark.parametrize("name", ESTIMATORS)
def test_many_missing_outcomes_give_a_warning(name: str) -> None:
    table = cells(20_000)
    scores = [None if place % 5 == 0 else score for place, score in enumerate(table["score"].to_pylist())]
    lacking = table.set_column(1, "score", pa.array(scores))
    told = " ".join(released(lacking, ESTIMATORS[name], epsilon=8.0).warnings)
    assert "about 20 % of units are outside the comparison" in told
    assert "units that lack score" in told


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n", [2_000, 8_000])
def test_table_that_matches_its_schema_gives_no_warning(name: str, n: int) -> None:
    assert not any(released(cells(n, seed), ESTIMATORS[name]).warnings for seed in range(3))


@pytest.mark.parametrize("name", ["difference", "regression"])
def test_table_on_another_scale_gives_a_warning(name: str) -> None:
    """Percentages where a share is declared: every outcome is moved to 1, and the interval around 0 is tight."""
    schema = replace(SCHEMA, outcome=dpc.Real("score", 0, 1))
    found = []
    for seed in range(4):
        percentages = np.random.default_rng(seed).uniform(20, 80, 20_000)
        table = cells(20_000, seed + 10, score=percentages)
        vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
        found.append(" ".join(ESTIMATORS[name].estimate(vault, epsilon=1.0).warnings))
    assert any("every outcome equals 1, within noise. Unless this is by design" in text for text in found)
    assert any("another scale in the table" in text for text in found)


def test_codes_of_a_binary_outcome_that_are_not_declared_give_a_warning() -> None:
    table = cells(20_000, score=np.random.default_rng(9).integers(1, 3, 20_000))  # 1 for yes and 2 for no
    schema = replace(SCHEMA, outcome=dpc.Binary("score"))
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=4))
    found = [dpc.DifferenceInMeans().estimate(vault, epsilon=0.9 + each / 100).warnings for each in range(4)]
    assert any("every outcome equals 1, within noise" in text for texts in found for text in texts)
    assert any("values in the table that are not the two declared" in text for texts in found for text in texts)


def test_rare_outcome_that_noise_does_not_hide_gives_no_warning() -> None:
    rare = (np.random.default_rng(9).random(20_000) < 0.02).astype(int)
    schema = replace(SCHEMA, outcome=dpc.Binary("score"))
    vault = dpc.Vault(cells(20_000, score=rare), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    assert not dpc.DifferenceInMeans().estimate(vault, epsilon=1.0).warnings


def test_misspelled_covariate_gives_a_warning_that_names_it() -> None:
    """Noise hides it less often than once in a hundred tables; in all of four, once in a hundred million."""
    misspelled, estimator = cells(20_000, sex=["F"] * 20_000), dpc.RegressionAdjustment(covariates=["age", "sex"])
    found = (" ".join(released(misspelled, estimator).warnings) for _ in range(4))
    assert any("every sex equals f" in text and "every age" not in text for text in found)


def test_empty_arm_gives_a_warning_that_names_it() -> None:
    empty = cells(2_000, treat=["active"] * 2_000)
    found = (" ".join(released(empty, ESTIMATORS["difference"]).warnings) for _ in range(4))
    assert any("almost no unit is in the arm training" in text for text in found)


THREE_ARMS = cells(9_000, treat=np.arange(9_000) % 3)


@pytest.mark.parametrize("name", ["difference", "regression"])
def test_units_in_an_undeclared_arm_give_a_warning(name: str) -> None:
    schema = replace(SCHEMA, treatment=dpc.Treatment("treat"))
    vault = dpc.Vault(THREE_ARMS, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=8))
    told = " ".join(ESTIMATORS[name].estimate(vault, epsilon=8.0).warnings)
    assert "about 33 % of units are outside the comparison" in told
    assert "arms that are missing or not declared" in told


def test_units_in_a_declared_third_arm_give_no_warning() -> None:
    schema = replace(SCHEMA, treatment=dpc.Treatment("treat", arms=(0, 1, 2), compare=1))
    vault = dpc.Vault(THREE_ARMS, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=8))
    assert not ESTIMATORS["difference"].estimate(vault, epsilon=8.0).warnings


def signs(mean: float = 50.0, variance: float = 0.0, noise: float = 0.1) -> Signs:
    return Signs(means=(Measured(mean, noise), Measured(mean, noise)), variance=Measured(variance, 10 * noise))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (signs(), True),
        (signs(mean=50.3), True),
        (signs(mean=50.5), False),  # beyond four standard deviations of the noise
        (signs(variance=2.5), True),
        (signs(variance=3.5), False),  # outcomes differ
        (signs(noise=1.1), False),  # noise could hide a mean 4 % of the range away
        (replace(signs(), variance=None), False),
    ],
)
def test_outcome_warning_needs_both_means_at_the_missing_value_and_no_variance(found: Signs, expected: bool) -> None:
    constant = replace(SCHEMA, outcome=replace(OUTCOME, missing=50))
    assert bool(warned(effect(), constant, found).warnings) is expected
    assert not warned(effect(), SCHEMA, found).warnings  # where such units are outside, no mean is made of them


@pytest.mark.parametrize(("highest", "expected"), [(10_000.0, True), (100.0, True), (99.0, False)])
def test_outcomes_at_their_bounds_give_a_warning(highest: float, expected: bool) -> None:
    random = np.random.default_rng(1)
    coded = np.where(random.random(5_000) < 0.3, highest, 0.0)
    partly = np.where(random.random(5_000) < 0.3, random.uniform(0, 99, 5_000), coded)
    found = released(cells(5_000, score=coded if expected else partly), dpc.DifferenceInMeans())
    assert any("every outcome equals 0 or 100, within noise" in text for text in found.warnings) == expected


def test_outcome_warning_uses_the_declared_missing_value() -> None:
    schema = replace(SCHEMA, outcome=dpc.Real("score", 0, 100, missing=10))
    assert warned(effect(), schema, signs(mean=10)).warnings
    assert not warned(effect(), schema, signs(mean=50)).warnings


def test_centred_outcome_gives_a_warning_only_without_hidden_variance() -> None:
    changes = replace(SCHEMA, outcome=dpc.Real("score", -50, 50, missing=0))
    constant = replace(SCHEMA, outcome=replace(OUTCOME, missing=50))
    hidden = Signs(means=(Measured(0.0, 0.5),) * 2, variance=Measured(0.0, 100.0))
    assert not warned(effect(), changes, hidden).warnings
    assert warned(effect(), constant, replace(hidden, means=(Measured(50.0, 0.5),) * 2)).warnings


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (Measured(5.0, 4.0), True),
        (Measured(50.0, 4.0), False),
        (Measured(1.0, 0.0), True),
        (Measured(50.0, 40.0), False),
    ],
)
def test_arm_size_within_noise_of_0_gives_a_warning(size: Measured, expected: bool) -> None:
    found = warned(effect(), SCHEMA, Signs(sizes=(Measured(900.0, 4.0), size))).warnings
    assert any("the arm training" in text for text in found) is expected
    assert not any("the arm usual care" in text for text in found)


def test_impossible_estimate_gives_a_warning() -> None:
    assert "beyond 100.0" in warned(effect(estimate=-101.0), SCHEMA, Signs()).warnings[0]
    assert not warned(effect(estimate=100.0), SCHEMA, Signs()).warnings


def test_a_rehearsal_has_no_warnings() -> None:
    rehearsed = effect(estimate=-101.0, receipts=(Receipt("arm_moments", 1.0, 0.0),))
    assert not warned(rehearsed, SCHEMA, signs()).warnings


@pytest.mark.parametrize(
    ("planned", "informed", "expected"),
    [(0.9, True, "2.4 times"), (5.0, True, "0.44 times"), (5.0, False, ""), (0.9, False, "2.4 times"), (2.0, True, "")],
)
def test_width_far_from_the_plan_gives_a_warning(planned: float, informed: bool, expected: str) -> None:
    (*_, text) = ("", *warned_of_width(effect(), planned, informed=informed).warnings)
    assert (expected in text) if expected else not text


def test_warnings_are_printed_first_and_saved() -> None:
    found = warned(effect(estimate=200.0), SCHEMA, Signs())
    assert str(found).splitlines()[2].startswith("WARNING           the estimate is beyond")
    assert "WARNING" in found._repr_html_()
    assert dpc.Effect.from_json(found.to_json()) == found


def test_no_interval_names_spelling_before_epsilon() -> None:
    """What used to say only: use more epsilon or more units."""
    n = 3_000
    runs = (released(cells(n, sex=["F"] * n), dpc.RegressionAdjustment(covariates=["age", "sex"])) for _ in range(20))
    found = next(effect for effect in runs if effect.no_interval)  # most are
    assert found.no_interval.index("spelled in the table as declared") < found.no_interval.index("more epsilon")


@pytest.mark.parametrize(
    ("column", "sd", "noise_sd", "expected"),
    [
        (dpc.Real("creatinine", 0, 15, missing=1.1), 0.0, 0.01, False),  # noise could hide how a narrow one varies
        (dpc.Real("creatinine", 0, 15, missing=1.1), 0.0, 1e-5, True),
        (dpc.Real("creatinine", 0, 15, missing=1.1), 0.5, 1e-5, False),
        (dpc.Real("creatinine", 0, 15), 0.0, 0.01, True),  # every value is exactly in the middle
        (dpc.Real("creatinine", 0, 15, missing=1.1, scale=Scale([(0.2, -1), (1.1, 0), (4, 1)])), 0.0, 0.01, True),
        (dpc.Real("creatinine", 0, 15, missing=1.1, scale=Scale([(0.2, -1), (1.1, 0), (4, 1)])), 0.5, 0.01, False),
    ],
)
def test_narrow_covariate_is_not_taken_for_an_unread_one(
    column: dpc.Real, sd: float, noise_sd: float, *, expected: bool
) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Binary("died"), covariates=[column])
    half, middle = (column.high - column.low) / 2, (column.high + column.low) / 2
    values = column.missing_value + sd * np.array([-1.0, 1.0])
    scores = [column.scale.score_at(value) if column.scale else (value - middle) / half for value in values]
    means = {"creatinine": np.mean(scores), "deficit of creatinine": 1 - np.mean(np.square(scores))}

    def mean(name: str) -> Measured:
        return Measured(float(means[name]), noise_sd)

    assert unread_covariates(["creatinine"], schema, mean) == (("creatinine",) if expected else ())


def test_effect_names_covariates_that_may_not_have_been_read() -> None:
    found = warned(effect(), SCHEMA, Signs(unread=("sex",)))
    assert found.unadjusted == ("sex",)
    assert "The effect is then not adjusted for sex" in found.warnings[0]
