"""Code that is written for EconML runs with a curve in place of EconML's own estimator, and EconML runs on blocks."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError

pytest.importorskip("econml")
from econml.dml import CausalForestDML, LinearDML
from sklearn.linear_model import LinearRegression, LogisticRegression

# EconML and what it is made of warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("drug", undeclared=0),
    outcome=dpc.Real("score", 0, 100),
    covariates=[dpc.Real("age", 18, 90), dpc.Real("dose", 0, 1)],
)
MODELS: dict[str, Any] = {
    "model_y": LinearRegression(),
    "model_t": LogisticRegression(),
    "discrete_treatment": True,
    "random_state": 0,
}
PROFILES = pd.DataFrame({"age": [30.0, 50.0, 70.0, 70.0], "dose": [0.0, 0.5, 0.5, 1.0]})


def table(n: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    age, dose, drug = random.uniform(18, 90, n), random.uniform(0, 1, n), random.integers(0, 2, n)
    score = 40 + gain(pd.DataFrame({"age": age, "dose": dose})) * drug + random.normal(0, 8, n)
    return pd.DataFrame({"drug": drug, "score": np.clip(score, 0, 100), "age": age, "dose": dose})


def gain(at: pd.DataFrame) -> Any:
    return 5 + 0.1 * (at["age"] - 54) + 4 * at["dose"]


@pytest.fixture(scope="module")
def curve() -> dpc.EffectCurve:
    vault = dpc.Vault(table(8_000), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=8, delta=1e-5))
    learner = dpc.RLearner(covariates=["age", "dose"], basis=dpc.Polynomial(["age", "dose"]), propensity=0.5)
    return learner.estimate(vault, epsilon=8.0, delta=1e-6)


@pytest.fixture(scope="module", params=["curve", "linear", "forest"])
def learned(request: pytest.FixtureRequest, curve: dpc.EffectCurve) -> Any:
    """A curve of ours and two estimators of theirs, from the same table."""
    if request.param == "curve":
        return curve
    kinds: dict[str, Any] = {
        "linear": LinearDML(**MODELS),
        "forest": CausalForestDML(**MODELS, n_estimators=48, n_jobs=1),
    }
    known = table(8_000)
    return kinds[request.param].fit(known["score"], known["drug"], X=known[["age", "dose"]])


@pytest.mark.parametrize("profiles", [PROFILES, PROFILES.to_numpy()], ids=["frame", "array"])
def test_the_same_calls_give_the_same_shapes(learned: Any, profiles: Any) -> None:
    effect = learned.effect(profiles)
    low, high = learned.effect_interval(profiles, alpha=0.1)
    assert effect.shape == low.shape == high.shape == (4,)
    assert effect == pytest.approx(gain(PROFILES), abs=3)
    assert (low < effect).all()
    assert (effect < high).all()
    assert np.array_equal(learned.effect(profiles, T0=0, T1=1), effect)
    assert learned.ate(profiles) == pytest.approx(effect.mean())
    low, high = learned.ate_interval(profiles, T0=0, T1=1, alpha=0.1)
    assert np.ndim(low) == np.ndim(high) == 0
    assert low < effect.mean() < high


def test_wider_where_less_may_be_missed(learned: Any) -> None:
    narrow, wide = (np.diff(learned.ate_interval(PROFILES, alpha=alpha)) for alpha in (0.5, 0.01))
    assert narrow < wide


def test_the_interval_of_a_mean(curve: dpc.EffectCurve) -> None:
    """That of one profile is that of the profile; means of several are surer than the profiles are on average."""
    one = {"age": [30.0], "dose": [0.5]}
    assert curve.ate_interval(one) == tuple(float(side[0]) for side in curve.effect_interval(one))
    low, high = curve.effect_interval(PROFILES)
    assert np.diff(curve.ate_interval(PROFILES))[0] < (high - low).mean()


@pytest.mark.parametrize("arms", [{"T0": 1, "T1": 0}, {"T1": 2}, {"T0": [0, 0, 0, 0]}, {"T0": "usual care"}])
@pytest.mark.parametrize("method", ["effect", "effect_interval", "ate", "ate_interval"])
def test_a_curve_compares_its_own_arms_only(curve: dpc.EffectCurve, method: str, arms: dict[str, object]) -> None:
    with pytest.raises(QueryError, match="compares 1 with 0"):
        getattr(curve, method)(PROFILES, **arms)


def test_a_mean_has_no_interval_where_effects_have_none() -> None:
    rehearsal = dpc.Rehearsal(SCHEMA, n=20_000)
    kernel = dpc.KernelLearner(covariates=["age", "dose"]).estimate(rehearsal, epsilon=1.0, delta=1e-6)
    with pytest.raises(RefusedError, match="ridge"):
        kernel.ate_interval(PROFILES)
