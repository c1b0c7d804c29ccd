"""Learners run among private records: nothing of theirs gets out but bounded numbers, nor from block to block."""

import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit.fuzz import DEEDS
from dpcausal.audit.learners import scribbler
from dpcausal.audit.spy import SpyVault
from dpcausal.testing import hostile_tables, standard_schema, synthetic_table
from dpcausal.vault.numerics.learners import LEARNERS, Learn

SCHEMA = standard_schema()
PROFILES = {"age": [18.0, 90.0]}


def _asked(table: object, learner: str, own: dict[str, Learn] | None = None, epsilon: float = 1.0) -> dpc.EffectCurve:
    learners = {name: dpc.Learner(function, version="1") for name, function in (own or {}).items()}
    ensemble = dpc.BlockEnsemble(
        covariates=["age", "ward"], learner=learner, at=PROFILES | {"ward": ["a", "c"]}, blocks=3
    )
    return ensemble.estimate(SpyVault(table, SCHEMA, learners), epsilon=epsilon)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What an application's own handler, made before, would write into its log file."""
    lines = io.StringIO()
    handler, root = logging.StreamHandler(lines), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.mark.parametrize("deed", DEEDS)
def test_whatever_a_learner_does_is_not_seen(deed: str, logged: io.StringIO, capfd: pytest.CaptureFixture[str]) -> None:
    table = synthetic_table(SCHEMA, 30)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        curve = _asked(table, "unruly", {"unruly": lambda *_: DEEDS[deed]("a secret")})  # type: ignore[dict-item]
    assert np.isfinite(curve.effect(PROFILES | {"ward": ["a", "c"]})).all()
    assert not warned
    assert "secret" not in logged.getvalue()
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_learner_on_hostile_tables_is_not_seen(
    learner: str, logged: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    _asked(synthetic_table(SCHEMA, 9), learner)  # libraries that log what they load do so the first time only
    logged.truncate(0)
    for name, table in hostile_tables(SCHEMA, 9).items():
        curve = _asked(table, learner)
        assert np.isfinite(curve.effect(PROFILES | {"ward": ["a", "c"]})).all(), name
    assert logged.getvalue() == ""
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_audited_learner_finds_the_effect(learner: str) -> None:
    """One that fails says 0 and nothing else, so somebody has to ask."""
    random = np.random.default_rng(0)
    covariates, arms = random.uniform(-1, 1, (400, 2)), random.integers(0, 2, 400).astype(float)
    outcomes = 3 * arms + covariates[:, 0] + random.normal(0, 0.1, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = LEARNERS[learner](covariates, arms, outcomes, np.array([[-0.5, 0.0], [0.5, 0.0]]))
    assert said.shape == (2,)
    assert np.abs(said - 3).max() < 1


def test_a_block_cannot_leave_word_for_another() -> None:
    """The scribbler overwrites all that it gets; only its own block may say something else for that."""
    seen: list[Any] = []

    def nosy(covariates: Any, arms: Any, outcomes: Any, at: Any) -> Any:
        seen.append(at.copy())
        return scribbler(covariates, arms, outcomes, at)

    _asked(synthetic_table(SCHEMA, 30), "nosy", {"nosy": nosy})
    assert len(seen) == 3
    assert all(np.array_equal(each, seen[0]) for each in seen)
