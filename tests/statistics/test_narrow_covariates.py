"""Estimates and intervals where a confounder is narrow within its bounds, and acts by itself or by its logarithm.

Nothing is drawn: what is left of the difference to a regression on the right shape, of the same units, is bias.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import Unmetered
from dpcausal.estimators import plausibility, scale_fit, score_noise
from dpcausal.results.effect import Estimator
from dpcausal.source import SummedSource
from tests.statistics.samplers import Undrawn
from tests.support.engines import CachedEngine
from tests.support.noise import seeded

pytestmark = pytest.mark.xdist_group("statistics")

Shape = Literal["value", "logarithm"]

NAMES = ["age", "creatinine"]
ESTIMATORS: dict[str, Estimator] = {
    "regression": dpc.RegressionAdjustment(NAMES),
    "weighting, ATE": dpc.InverseWeighting(NAMES),
    "weighting, ATO": dpc.InverseWeighting(NAMES, "ATO"),
    "doubly robust": dpc.DoublyRobust(NAMES),
}


@cache
def _schema(creatinine: dpc.Real) -> dpc.Schema:
    return dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 100), covariates=[dpc.Real("age", 18, 100), creatinine])


@cache
def _table(shape: Shape, n: int) -> tuple[pa.Table, float]:
    """Return a table, and the effect by a regression on the right shape."""
    random = np.random.default_rng(8)
    creatinine, age = np.exp(0.05 + 0.4 * random.normal(size=n)), np.clip(random.normal(62, 14, n), 18, 100)
    z = (creatinine - 1.14) / 0.47 if shape == "value" else np.log(creatinine) / 0.4
    z, a = np.clip(z, -4, 6), (age - 62) / 14
    t = (random.random(n) < 1 / (1 + np.exp(0.8 - 0.6 * z - 0.4 * a))).astype(int)
    y = np.clip(50 + 4 * z + 3 * a + 2 * t + 8 * random.normal(size=n), 0, 100)
    design = np.column_stack([np.ones(n), t, z, a])
    effect = float(np.linalg.lstsq(design, y, rcond=None)[0][1])
    return pa.table({"t": t, "y": y, "age": age, "creatinine": creatinine}), effect


def _estimated(name: str, shape: Shape, creatinine: dpc.Real, n: int = 20_000) -> tuple[dpc.Effect, float]:
    table, effect = _table(shape, n)
    schema = _schema(creatinine)
    source = Unmetered(CachedEngine.of(table, schema), schema, Undrawn())
    found = ESTIMATORS[name].estimate(source, epsilon=1.0, delta=1e-6)
    assert isinstance(found, dpc.Effect)
    return found, abs(found.estimate - effect)


BOUNDS = dpc.Real("creatinine", 0, 15)
LOGARITHM = dpc.Real("creatinine", 0.1, 15, typical=(0.55, 2.0), transform="log")
WITHIN = 0.2
"""How far an estimate may be off beyond what its interval allows for, in standard errors."""

WEIGHTED_WITHIN = 0.27
"""The same of weights: a score of bounded influence counts units less that are far out, and where its shape is wrong,
that shows."""


def _is_allowed_for(effect: dpc.Effect, off: float, within: float = WITHIN) -> bool:
    return off <= effect.bias_bound + within * (effect.standard_error or math.inf)


@pytest.mark.parametrize("shape", ["value", "logarithm"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_scale_from_the_data_adjusts_and_its_shape_is_allowed_for(name: str, shape: Shape) -> None:
    effect, off = _estimated(name, shape, BOUNDS)
    assert not effect.no_interval
    assert _is_allowed_for(effect, off, WEIGHTED_WITHIN if "weighting" in name else WITHIN)
    assert effect.bias_bound < 0.6 * (effect.standard_error or 0.0)


def test_an_interval_without_the_allowance_for_the_shape_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_fit.FittedScale, "shape_share", 0.0)
    assert not _is_allowed_for(*_estimated("weighting, ATO", "value", BOUNDS), WEIGHTED_WITHIN)


def test_a_declared_shape_needs_no_allowance() -> None:
    effect, off = _estimated("weighting, ATO", "logarithm", LOGARITHM)
    assert _is_allowed_for(effect, off)
    assert effect.bias_bound < 0.05 * (effect.standard_error or 0.0)


def test_the_ridge_of_a_score_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few units the ridge leaves a tenth of the confounding in; what is left is within what is allowed for."""
    effect, off = _estimated("weighting, ATO", "logarithm", LOGARITHM, n=2_000)
    assert off <= effect.bias_bound + 0.05
    monkeypatch.setattr(score_noise, "_MOST_ENLARGED", 1.0)  # a ridge that is not undone
    effect, off = _estimated("weighting, ATO", "logarithm", LOGARITHM, n=2_000)
    assert off > effect.bias_bound + 0.2
    assert "hides" in effect.no_interval  # and the interval is refused where undoing it is not possible


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_hidden_confounder_without_a_scale_has_no_interval(name: str) -> None:
    """Answers that are added up over sites have no scales: nobody knows how a number varies on far too wide bounds."""
    table, _ = _table("value", 20_000)
    schema = _schema(dpc.Real("creatinine", 0, 150))
    source = SummedSource(Unmetered(CachedEngine.of(table, schema), schema, Undrawn()))
    effect = ESTIMATORS[name].estimate(source, epsilon=1.0, delta=1e-6)
    assert isinstance(effect, dpc.Effect)
    assert "hides how creatinine varies" in effect.no_interval
    assert effect.unadjusted == ("creatinine",)


def _warnings_of_weights(n: int, epsilon: float) -> list[str]:
    """Return what is said of a number without a scale by weights that have an interval."""
    table, _ = _table("value", n)
    vault = dpc.Vault(
        table, _schema(dpc.Real("creatinine", 0, 3.5)), ledger="sqlite://", budget=dpc.Budget(epsilon=20, delta=1e-3)
    )
    with seeded():
        effect = ESTIMATORS["weighting, ATO"].estimate(SummedSource(vault), epsilon=epsilon, delta=1e-6)
    assert not effect.no_interval
    return [text for text in effect.warnings if "varies by hardly more" in text]


def test_weights_on_a_number_that_hardly_varies_beyond_noise_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _warnings_of_weights(20_000, 8.0)
    (warning,) = _warnings_of_weights(5_000, 1.5)
    assert warning.startswith("creatinine")
    assert "typical=" in warning
    monkeypatch.setattr(plausibility, "_SURELY", 0.0)  # the mutant
    assert not _warnings_of_weights(5_000, 1.5)


def _complier_effect(shape: Shape) -> tuple[dpc.Effect, float]:
    """Return an effect of a treatment that two of three receive as assigned, and how far it is off the right one."""
    table, _ = _table(shape, 20_000)
    t, y, age, creatinine = (table.column(name).to_numpy() for name in ("t", "y", *NAMES))
    random = np.random.default_rng(3)
    received = np.where(random.random(len(t)) < 2 / 3, t, random.integers(0, 2, len(t)))
    z = (creatinine - 1.14) / 0.47 if shape == "value" else np.log(creatinine) / 0.4
    design = np.column_stack([np.ones(len(t)), t, np.clip(z, -4, 6), age])
    outcome, share = (np.linalg.lstsq(design, each, rcond=None)[0][1] for each in (y, received))
    schema = replace(_schema(BOUNDS), covariates=[*_schema(BOUNDS).covariates, dpc.Binary("received", missing=0)])
    engine = CachedEngine.of(table.append_column("received", pa.array(received)), schema)
    effect = dpc.ComplierEffect("received", NAMES).estimate(Unmetered(engine, schema, Undrawn()), epsilon=8.0)
    return effect, abs(effect.estimate - outcome / share)


def test_a_complier_effect_allows_for_the_shape_and_no_less_would_do() -> None:
    """The interval is Fieller's, wider on each side by what the allowance adds to a symmetric one."""
    found = {shape: _complier_effect(shape) for shape in ("value", "logarithm")}
    assert all(_is_allowed_for(*each) for each in found.values())
    assert not all(_is_allowed_for(replace(effect, bias_bound=0.0), off) for effect, off in found.values())
    effect, _ = found["value"]
    (low, high), (inner_low, inner_high) = effect.interval(), replace(effect, bias_bound=0.0).interval()
    assert inner_low - low == pytest.approx(high - inner_high)
    assert 0 < high - inner_high < effect.bias_bound
