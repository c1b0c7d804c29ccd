"""A curve is a fitted regressor to scikit-learn, as far as that is true; scikit-learn need not be there."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import PartialDependenceDisplay, partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import dpcausal as dpc
from dpcausal.errors import RefusedError

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("drug", undeclared=0),
    outcome=dpc.Real("score", 0, 100),
    covariates=[dpc.Real("age", 18, 90), dpc.Category("ward", ["a", "b", "c"])],
)
PEOPLE = pd.DataFrame({"age": np.repeat(np.linspace(18, 90, 10), 3), "ward": np.tile(["a", "b", "c"], 10)})


@pytest.fixture(scope="module")
def curve() -> dpc.EffectCurve:
    random = np.random.default_rng(0)
    n = 4_000
    age, ward, drug = random.uniform(18, 90, n), random.choice(["a", "b", "c"], n), random.integers(0, 2, n)
    score = np.clip(40 + (5 + 0.2 * (age - 54)) * drug + random.normal(0, 8, n), 0, 100)
    frame = pd.DataFrame({"drug": drug, "score": score, "age": age, "ward": ward})
    vault = dpc.Vault(frame, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=8, delta=1e-5))
    learner = dpc.RLearner(covariates=["age", "ward"], basis=dpc.Polynomial(["age", "ward"]), propensity=0.5)
    return learner.estimate(vault, epsilon=8.0, delta=1e-6)


def test_it_is_a_fitted_regressor(curve: dpc.EffectCurve) -> None:
    assert is_regressor(curve)
    assert not get_tags(curve).requires_fit
    check_is_fitted(curve)
    assert np.array_equal(curve.predict(PEOPLE), curve.effect(PEOPLE))


def test_partial_dependence_over_public_profiles(curve: dpc.EffectCurve) -> None:
    found = partial_dependence(curve, PEOPLE, ["age"], grid_resolution=5, percentiles=(0, 1))
    for age, mean in zip(found["grid_values"][0], found["average"][0], strict=True):
        assert mean == pytest.approx(curve.ate(PEOPLE.assign(age=age)))
    display = PartialDependenceDisplay.from_estimator(curve, PEOPLE, ["age", "ward"], categorical_features=["ward"])
    assert display.axes_.size == 2


def test_the_end_of_a_pipeline(curve: dpc.EffectCurve) -> None:
    months = PEOPLE.assign(age=PEOPLE["age"] * 12)
    years = FunctionTransformer(lambda frame: frame.assign(age=frame["age"] / 12))
    assert make_pipeline(years, curve).predict(months) == pytest.approx(curve.effect(PEOPLE), abs=1e-3)


def test_fit_is_refused_unless_it_does_nothing(curve: dpc.EffectCurve) -> None:
    with pytest.raises(RefusedError, match="a fitted curve"):
        curve.fit(PEOPLE, np.zeros(len(PEOPLE)))
    frozen = clone(make_pipeline(FunctionTransformer(), FrozenEstimator(curve))).fit(PEOPLE, np.zeros(len(PEOPLE)))
    assert np.array_equal(frozen.predict(PEOPLE), curve.effect(PEOPLE))


def test_no_frame_and_no_learner_is_loaded_for_a_curve() -> None:
    """Of the libraries that these meet, a curve needs none until it is asked for."""
    code = (
        "import sys, dpcausal as dpc; dpc.EffectCurve; "
        "assert not {'sklearn', 'pandas', 'polars', 'econml'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
