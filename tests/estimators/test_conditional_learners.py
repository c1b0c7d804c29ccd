"""Learners of effects that vary: what they find, what they refuse, and what asking them costs."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.errors import QueryError
from dpcausal.estimators.conditional.posterior import hidden_variation
from dpcausal.estimators.conditional.scaled_basis import error_of_shapes
from dpcausal.estimators.covariate_scales import ScaledCovariates
from dpcausal.estimators.scale_fit import FittedScale
from dpcausal.queries.models import Learner
from dpcausal.results.curve import CurveEstimator
from dpcausal.schema.scale import Transform
from dpcausal.source import SummedSource
from tests.support.slow import marked

COVARIATES = [dpc.Real("a", -1, 1), dpc.Real("b", -1, 1)]
SCHEMA = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", -5, 5), covariates=COVARIATES)
Array = NDArray[np.float64]


def effect(a: Array, b: Array) -> Array:
    return 0.5 + a - 0.5 * b


def table_of(n: int, confounded: bool = True) -> pa.Table:
    generator = np.random.default_rng(11)
    a, b = generator.uniform(-1, 1, (2, n))
    arm = generator.random(n) < 1 / (1 + np.exp(-confounded * (a + b)))
    outcome = a + b + effect(a, b) * arm + generator.normal(0, 0.5, n)
    return pa.table({"t": arm.astype(int), "y": outcome, "a": a, "b": b})


def vault_of(n: int, confounded: bool = True) -> dpc.Vault:
    table = table_of(n, confounded)
    return dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=50, delta=1e-3))


def profiles() -> dict[str, Array]:
    a, b = np.meshgrid(np.linspace(-0.9, 0.9, 7), np.linspace(-0.9, 0.9, 7))
    return {"a": a.ravel(), "b": b.ravel()}


def off(curve: dpc.EffectCurve) -> float:
    """The root mean squared error over all profiles."""
    at = profiles()
    return float(np.sqrt(np.mean((curve.effect(at) - effect(at["a"], at["b"])) ** 2)))


OF = ["a", "b"]
LEARNERS: list[tuple[CurveEstimator, float]] = [
    (dpc.RLearner(OF, dpc.Polynomial(OF)), 0.1),
    (dpc.DRLearner(OF, dpc.Polynomial(OF)), 0.15),
    (dpc.RLearner(OF, dpc.Spline(OF, 1)), 0.2),
    (dpc.RLearner(OF, dpc.Fourier(OF, width=2.0, n_features=4)), 0.25),
    (dpc.KernelLearner(OF, width=2.0), 0.35),
    (dpc.KernelLearner(OF, width=2.0, meta_learner="DR"), 0.35),
]


@pytest.mark.parametrize(
    ("learner", "most"),
    [*LEARNERS[:-1], marked(LEARNERS[-1])],
    ids=[type(learner).__name__ for learner, _ in LEARNERS],
)
def test_effects_are_found_under_confounding(learner: CurveEstimator, most: float) -> None:
    """The effect has a standard deviation of 0.6 over these profiles."""
    assert off(learner.estimate(vault_of(40_000), epsilon=8.0, delta=1e-6)) < most


@pytest.mark.parametrize("kind", [dpc.RLearner, dpc.DRLearner])
def test_default_functions_are_lines_and_nearer_than_a_constant(kind: type[dpc.RLearner] | type[dpc.DRLearner]) -> None:
    """The best constant misses by the effects' standard deviation of 0.6, whatever its noise."""
    vault = vault_of(20_000)
    curve = kind(OF).estimate(vault, epsilon=1.0, delta=1e-6)
    assert curve.basis == dpc.Polynomial(OF)
    at = profiles()
    assert off(curve) < 0.5 * float(np.std(effect(at["a"], at["b"])))
    given = kind(OF, dpc.Polynomial(OF)).estimate(vault, epsilon=1.0, delta=1e-6)
    assert curve == replace(given, estimator=curve.estimator)


def test_default_functions_are_those_of_all_declared_columns() -> None:
    columns: list[dpc.Real | dpc.Category | dpc.Binary] = [
        dpc.Real("age", 18, 90),
        dpc.Category("ward", ["a", "b", "c"]),
        dpc.Binary("smoker"),
    ]
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=columns)
    plan = dpc.RLearner("age + ward + smoker").estimate(dpc.Rehearsal(schema, n=50_000), epsilon=1.0, delta=1e-6)
    assert plan.basis.names(schema) == ("constant", "age", "ward=b", "ward=c", "smoker")


def hidden(curve: dpc.EffectCurve) -> list[str]:
    return [note for note in curve.notes if "privacy noise" in note]


@pytest.mark.parametrize("kind", [dpc.RLearner, dpc.DRLearner])
def test_plan_and_curve_say_where_noise_hides_how_effects_vary(kind: type[dpc.RLearner] | type[dpc.DRLearner]) -> None:
    learner = kind(OF)
    assert hidden(learner.estimate(dpc.Rehearsal(SCHEMA, n=20_000), epsilon=1.0, delta=1e-6)) == []
    for source in (dpc.Rehearsal(SCHEMA, n=2_000), vault_of(2_000)):
        (note,) = hidden(learner.estimate(source, epsilon=1.0, delta=1e-6))
        assert "one average effect for all is as near" in note
    assert "however much" in hidden(learner.estimate(dpc.Rehearsal(SCHEMA, n=100), epsilon=0.1, delta=1e-6))[0]


@pytest.mark.parametrize(("n", "epsilon", "limit"), [(200, 8.0, 4.0), (1_000, 8.0, 4.0), (40, 1.2, 0.5)])
@pytest.mark.parametrize(("learner", "seen"), [("augmented", 1.0), ("residual", 0.25)])
def test_hidden_variation_of_two_groups_is_that_of_the_closed_form(
    n: int, epsilon: float, limit: float, learner: Learner, seen: float
) -> None:
    """A group's mean is its sum of scores over its size, both noisy; effects of two vary by half of what they differ.

    Half of that is hidden where its own variance is that of its noise. Residuals show at most a quarter of an effect.
    The size is found to within a fifth.
    """
    column = dpc.Binary("group")
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=[column])
    basis = dpc.Cells([dpc.Cut("group")])
    query = dpc.queries.EffectMoments(["group"], [0.0] * 2, [0.0] * 2, [0.0] * 2, basis, learner, 0.05, limit)
    release = dpc.Rehearsal(schema, n=n).release(query, dpc.Guarantee(epsilon=epsilon, delta=1e-6))
    of_sum, of_size = (release.variance(f"{name} group=0") / (seen * n / 2) ** 2 for name in ("effect *", "group=0 by"))
    least = np.sqrt(of_sum / 2 / (1 - of_size / 2))
    assert least < 1.0
    assert 1.0 < hidden_variation(release, schema, n) / least < 1.25


def test_binary_outcome_is_not_cut_off_by_default() -> None:
    """What it misses is up to two half ranges, and the default limits allow for that."""
    generator = np.random.default_rng(5)
    a, arm = generator.uniform(-1, 1, 20_000), generator.integers(0, 2, 20_000)
    yes = generator.random(20_000) < 0.1 + 0.1 * arm
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Binary("y"), covariates=COVARIATES[:1])
    table = pa.table({"t": arm, "y": yes.astype(int), "a": a})
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=50, delta=1e-3))
    for learner in (dpc.RLearner(["a"], dpc.Polynomial(["a"])), dpc.DRLearner(["a"], dpc.Polynomial(["a"]))):
        curve = learner.estimate(vault, epsilon=10.0, delta=1e-6)
        assert not curve.no_interval
        assert curve.ate({"a": [-0.5, 0.0, 0.5]}) == pytest.approx(0.1, abs=0.04)


def test_known_propensity_saves_a_query_and_noise() -> None:
    vault = vault_of(40_000, confounded=False)
    learned = dpc.RLearner(OF, dpc.Polynomial(OF)).estimate(vault, epsilon=2.0, delta=1e-6)
    known = dpc.RLearner(OF, dpc.Polynomial(OF), propensity=0.5).estimate(vault, epsilon=2.0, delta=1e-6)
    assert len(known.receipts) == len(learned.receipts) - 1
    assert known.standard_errors(profiles())[1].mean() < 0.8 * learned.standard_errors(profiles())[1].mean()
    assert "randomised with probability 0.5" in " ".join(known.assumptions)


def test_where_noise_drowns_everything_the_band_is_wider_than_the_curve_varies() -> None:
    curve = dpc.RLearner(OF, dpc.Polynomial(OF, 2)).estimate(vault_of(1_000), epsilon=0.2, delta=1e-6)
    low, high = replace(curve, no_interval="").effect_interval(profiles())
    assert (high - low).mean() > 1
    assert np.std(curve.effect(profiles())) < (high - low).mean()


def test_a_limit_that_cuts_off_many_gives_no_interval() -> None:
    vault = vault_of(40_000)
    assert not dpc.DRLearner(OF, dpc.Polynomial(OF)).estimate(vault, epsilon=8.0, delta=1e-6).no_interval
    cut = dpc.DRLearner(OF, dpc.Polynomial(OF), limit=0.5).estimate(vault, epsilon=8.0, delta=1e-6)
    assert "raise limit" in cut.no_interval


def test_a_million_questions_cost_nothing() -> None:
    vault = vault_of(20_000)
    curve = dpc.RLearner(OF, dpc.Spline(["a"])).estimate(vault, epsilon=1.0, delta=1e-6)
    spent, entries = vault.ledger.spent, len(vault.ledger.entries())
    effects = curve.effect({"a": np.linspace(-1, 1, 1_000_000)})
    assert len(effects) == 1_000_000
    assert (vault.ledger.spent, len(vault.ledger.entries())) == (spent, entries)


@pytest.mark.parametrize(
    "wrong",
    [
        dpc.RLearner(OF, dpc.Polynomial(OF), propensity=1.0),
        dpc.RLearner(OF, dpc.Polynomial(OF), clip=0.7),
        dpc.RLearner(OF, dpc.Polynomial(["c"])),
        dpc.RLearner("a:b", dpc.Polynomial(["a"])),
        dpc.RLearner(OF, "spline"),  # type: ignore[arg-type]
        dpc.KernelLearner(OF, width=0.0),
        dpc.KernelLearner(OF, limit=1000.0),
        dpc.KernelLearner(OF, clip=0.6),
        dpc.KernelLearner(OF, ridge=-1.0),
        dpc.KernelLearner(OF, ridge="x"),  # type: ignore[arg-type]
        dpc.RLearner(OF, dpc.Polynomial(OF), propensity=0.03),
        dpc.KernelLearner(OF, effect_of=["c"]),
        dpc.KernelLearner(OF, meta_learner="X"),  # type: ignore[arg-type]
        dpc.SubgroupEffects(by=[dpc.Cut("a", [0.0])], propensity=0.5),
    ],
    ids=str,
)
def test_invalid_learners_are_refused_before_anything_is_spent(wrong: CurveEstimator) -> None:
    vault = vault_of(500)
    with pytest.raises(QueryError):
        wrong.estimate(vault, epsilon=1.0, delta=1e-6)
    assert vault.ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    "basis", [dpc.Polynomial(OF), dpc.Spline(OF), dpc.Fourier(OF, n_features=5), dpc.Cells([dpc.Cut("a", [0.0])])]
)
def test_functions_have_names_of_their_own(basis: dpc.queries.Basis) -> None:
    names = basis.names(SCHEMA)
    assert len(set(names)) == len(names)


RESTARTED = """
import sys
import dpcausal as dpc
schema = dpc.Schema.from_toml(sys.argv[1])
vault = dpc.Vault(sys.argv[2], schema, ledger=sys.argv[3], as_of="2026-06-30")
curve = dpc.KernelLearner(["a", "b"], n_features=5).estimate(vault, epsilon=1.0, delta=1e-6)
print(curve.effect({"a": [0.3], "b": [-0.2]})[0], vault.ledger.spent.epsilon)
"""


def test_a_kernel_learner_answers_the_same_after_a_restart(tmp_path: Path) -> None:
    """Questions one after another, in this process and in the next, are answered by one and the same function."""
    path, ledger = tmp_path / "table.parquet", f"sqlite:///{tmp_path}/ledger.db"
    pq.write_table(table_of(2_000), path)
    dpc.Ledger.create(ledger, dpc.Budget(epsilon=3, delta=1e-5), as_of="2026-06-30")
    vault = dpc.Vault(path, SCHEMA, ledger=ledger, as_of="2026-06-30")
    learner = dpc.KernelLearner(OF, n_features=5)
    first = learner.estimate(vault, epsilon=1.0, delta=1e-6)
    both = first.effect({"a": [0.9, 0.3], "b": [0.1, -0.2]})
    again = learner.estimate(vault, epsilon=1.0, delta=1e-6)
    assert again == first
    command = [sys.executable, "-c", RESTARTED, SCHEMA.to_toml(), str(path), ledger]
    answer, spent = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()  # noqa: S603
    assert float(answer) == both[1]
    assert float(spent) == vault.ledger.spent.epsilon <= 1.0


def test_answers_one_by_one_have_the_joint_distribution_of_answers_at_once() -> None:
    """What a Gaussian process says of a profile, given what it said of others before, is the released function's law.

    The recursion is written out here by itself: an answer is the exact effect, plus what earlier noise foretells, plus
    new noise of what is left. One after another, such answers must have the covariance that the released weights give.
    """
    curve = dpc.KernelLearner(OF, n_features=5).estimate(dpc.Rehearsal(SCHEMA, n=2_000), epsilon=1.0, delta=1e-6)
    at = {"a": np.array([-0.8, -0.1, 0.4, 0.9]), "b": np.array([0.3, -0.6, 0.0, 0.7])}
    values = np.array([curve_values(curve, {name: line[[place]] for name, line in at.items()}) for place in range(4)])
    size = curve.privacy[0][0]
    kernel = values @ values.T
    drawn = np.zeros((4, 4))  # how each answer depends on the new noise of each step
    for step in range(4):
        before = drawn[:step]
        foretold = np.linalg.solve(kernel[:step, :step], kernel[:step, step]) if step else np.zeros(0)
        drawn[step] = foretold @ before
        drawn[step, step] = np.sqrt(size * max(kernel[step, step] - kernel[:step, step] @ foretold, 0.0))
    assert drawn @ drawn.T == pytest.approx(size * kernel, rel=1e-6)
    sampled = curve.standard_errors(at)[1]
    assert sampled == pytest.approx(np.sqrt(np.diag(size * kernel)), rel=1e-6)


def curve_values(curve: dpc.EffectCurve, at: dict[str, Array]) -> Array:
    """The functions at one profile, asked of the curve with one weight at a time."""
    count = len(curve.weights)
    ones = [tuple(float(place == each) for each in range(count)) for place in range(count)]
    return np.array([replace(curve, weights=weights).effect(at)[0] for weights in ones])


@pytest.mark.parametrize("kind", [dpc.RLearner, dpc.DRLearner])
def test_trial_without_outcome_models_asks_for_scales_and_effects_alone(kind: type[CurveEstimator]) -> None:
    learner = kind(OF, dpc.Polynomial(OF), propensity=0.5, outcome_models=False)  # type: ignore[call-arg]
    vault = vault_of(40_000, confounded=False)
    summed = learner.estimate(SummedSource(vault), epsilon=5.0, delta=1e-6)
    assert [receipt.query for receipt in summed.receipts] == ["effect_moments"]
    curve = learner.estimate(vault, epsilon=5.0, delta=1e-6)
    assert [receipt.query for receipt in curve.receipts] == ["covariate_counts", "effect_moments", "missing_outcomes"]
    assert off(curve) < 0.2
    assert not curve.no_interval
    with pytest.raises(QueryError, match="propensity must be known"):
        kind(OF, dpc.Polynomial(OF), outcome_models=False).estimate(vault_of(100), epsilon=1.0)  # type: ignore[call-arg]


LAB = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 100),
    covariates=[dpc.Real("age", 18, 100), dpc.Real("creatinine", 0.05, 50, transform="log")],
)
"""A laboratory value on the bounds of its codebook: nearly all values are between 0.5 and 2."""

CUT = dpc.Cut("creatinine", [1.0, 20.0])


def laboratory(n: int = 20_000, share_missing: float = 0.0) -> tuple[dpc.Vault, Array]:
    """A vault, and the effect of each unit; without adjustment for creatinine effects seem larger by 3."""
    generator = np.random.default_rng(23)
    age, z = np.clip(generator.normal(62, 14, n), 18, 100), generator.normal(0, 1, n)
    creatinine = np.exp(0.05 + 0.4 * z)
    arm = generator.random(n) < 1 / (1 + np.exp(0.5 - 0.8 * z - 0.3 * (age - 62) / 14))
    effects = 2 + (age - 62) / 14
    outcome = 48 + 5 * z + 2 * (age - 62) / 14 + effects * arm + generator.normal(0, 8, n)
    creatinine[generator.random(n) < share_missing] = np.nan
    table = pa.table({"t": arm.astype(int), "y": np.clip(outcome, 0, 100), "age": age, "creatinine": creatinine})
    return dpc.Vault(table, LAB, ledger="sqlite://", budget=dpc.Budget(epsilon=50, delta=1e-3)), effects


BOTH = ["age", "creatinine"]
OF_AGE = {"age": [48.0, 62.0, 76.0]}
AT = OF_AGE | {"creatinine": [1.05] * 3}
IN_LABORATORY: list[tuple[CurveEstimator, dict[str, list[float]]]] = [
    (dpc.RLearner(BOTH, dpc.Polynomial(["age"])), OF_AGE),
    (dpc.DRLearner(BOTH, dpc.Polynomial(BOTH)), AT),
]


@pytest.mark.parametrize(("learner", "at"), IN_LABORATORY, ids=[type(each).__name__ for each, _ in IN_LABORATORY])
def test_laboratory_value_on_wide_bounds_is_adjusted_for(learner: CurveEstimator, at: dict[str, list[float]]) -> None:
    curve = learner.estimate(laboratory()[0], epsilon=8.0, delta=1e-6)
    low, high = curve.effect_interval(at)
    truth = np.array([1.0, 2.0, 3.0])
    assert ((low - 0.5 < truth) & (truth < high + 0.5)).all()
    assert abs(float(np.mean(curve.effect(at))) - 2.0) < 1.2
    assert curve.receipts[0].query == "covariate_counts"


def test_kernel_learner_adjusts_for_a_laboratory_value() -> None:
    curve = dpc.KernelLearner(BOTH, effect_of=["age"]).estimate(laboratory()[0], epsilon=4.0, delta=1e-6)
    assert abs(float(curve.effect({"age": [62.0]})[0]) - 2.0) < 1.5


def test_groups_of_a_scaled_number_are_those_of_its_values() -> None:
    """An edge far beyond nearly all values still divides units, and effects are those of the groups."""
    vault, effects = laboratory()
    groups = dpc.SubgroupEffects(by=[CUT], covariates=BOTH).estimate(vault, epsilon=4.0, delta=1e-6)
    assert groups.effect({"creatinine": [0.7, 1.5]}) == pytest.approx([effects.mean()] * 2, abs=1.0)
    column = next(each for each in groups.schema.covariates if each.name == "creatinine")
    assert isinstance(column, dpc.Real)
    assert column.reach == (0.05, 50.0)
    low, high = groups.effect_interval({"creatinine": [30.0]})
    assert high - low > 50  # nobody is there


def test_curve_of_scores_prints_values_and_says_where_it_changes() -> None:
    vault, _ = laboratory()
    curve = dpc.RLearner(BOTH, dpc.Polynomial(["creatinine"])).estimate(vault, epsilon=2.0, delta=1e-6)
    shown = curve.examples()[1]["creatinine"]
    assert len(shown) == 5
    assert all(0.3 < float(value) < 3 for value in shown)
    assert "change only within these values: creatinine" in str(curve)
    assert curve.effect({"creatinine": [10.0]}) == curve.effect({"creatinine": [50.0]})
    assert dpc.EffectCurve.from_json(curve.to_json()).effect({"creatinine": [0.7]}) == curve.effect(
        {"creatinine": [0.7]}
    )


def test_models_know_who_lacks_a_laboratory_value() -> None:
    vault, _ = laboratory(share_missing=0.2)
    curve = dpc.RLearner(BOTH, dpc.Polynomial(["age"])).estimate(vault, epsilon=2.0, delta=1e-6)
    assert "creatinine is missing" in [column.name for column in curve.schema.covariates]
    assert np.isfinite(curve.effect(AT)).all()


def test_hidden_laboratory_value_gives_no_interval() -> None:
    """Where answers are added up over sites nothing finds a scale."""
    learner = dpc.RLearner(BOTH, dpc.Polynomial(["age"]))
    curve = learner.estimate(SummedSource(laboratory(4_000)[0]), epsilon=1.0, delta=1e-6)
    assert "creatinine varies" in curve.no_interval


def skewed(transform: Transform | None = None) -> dpc.Vault:
    """A vault of a trial in which the effect is a line in a skewed value, which its score is not."""
    generator = np.random.default_rng(31)
    value = np.clip(np.exp(0.7 * generator.normal(size=20_000)), 0.05, 15)
    arm = generator.integers(0, 2, 20_000)
    outcome = 40 + 4 * value + (3 + 2 * value) * arm + generator.normal(0, 6, 20_000)
    typical = (0.3, 3.2) if transform else None
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 100, missing=50),
        covariates=[dpc.Real("value", 0.05, 15, typical=typical, transform=transform)],
    )
    table = pa.table({"t": arm, "y": np.clip(outcome, 0, 100), "value": value})
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=50, delta=1e-3))


@pytest.mark.parametrize("kind", [dpc.RLearner, dpc.DRLearner])
def test_band_of_a_straight_curve_allows_for_values_that_are_straight(
    kind: type[dpc.RLearner] | type[dpc.DRLearner],
) -> None:
    curve = kind(["value"], dpc.Polynomial(["value"]), propensity=0.5).estimate(skewed(), epsilon=8.0, delta=1e-6)
    low, high = curve.effect_interval({"value": [0.2, 0.6, 1.3, 3.0]})
    truth = 3 + 2 * np.array([0.2, 0.6, 1.3, 3.0])
    assert ((low < truth) & (truth < high)).all()
    assert abs(curve.effect({"value": [1.3]})[0] - 5.6) > 0.4  # which sampling error and noise would not cover
    assert "straight in the scores of value" in str(curve)


def test_only_straight_curves_of_shapes_that_nobody_declared_have_that_error() -> None:
    def of(basis: dpc.queries.Basis, transform: Transform | None = None) -> Array:
        schema = skewed(transform).schema
        scale = FittedScale(0.05, 15, 1.0, 0.7, 0.7, found=True, transform=transform)
        scales = ScaledCovariates(
            dpc.Rehearsal(schema, n=100), ("value",), dpc.Guarantee(epsilon=1.0), {"value": scale}
        )
        return np.diag(error_of_shapes(basis, scales, np.full(len(basis.names(schema)), 4.0)))

    constant, slope = of(dpc.Polynomial(["value"]))
    assert 0.05 < slope < 1
    assert 0.1 < (constant / slope) ** 0.5 < 0.3
    assert not of(dpc.Polynomial(["value"]), "linear").any()
    assert not of(dpc.Polynomial(["value"], degree=2)).any()
    assert not of(dpc.Spline(["value"])).any()
