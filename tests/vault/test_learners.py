"""What a learner raises stays inside, and which learner was asked is part of the question."""

import os
import signal
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError
from dpcausal.queries import BlockEffects
from dpcausal.rehearsal.pricing import outstanding_cost
from dpcausal.vault.numerics.learners import LEARNERS, run_silenced

N = 400
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0), covariates=[dpc.Real("x", 0, 1)]
)


class PanicError(BaseException):
    """As pyo3_runtime.PanicException: a BaseException that is no Exception."""


class Trap:
    """A result that raises when it is read."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise PanicError("0.97")


def table(last: float) -> pa.Table:
    outcomes = np.linspace(0.1, 0.2, N)
    outcomes[-1] = last
    return pa.table({"t": np.arange(N) % 2, "y": outcomes, "x": np.linspace(0, 1, N)})


def vault(last: float = 0.15, **learners: Any) -> dpc.Vault:
    return dpc.Vault(table(last), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=100), learners=learners)


def ask(source: dpc.Source, learner: str = "mine") -> dpc.EffectCurve:
    ensemble = dpc.BlockEnsemble(covariates=["x"], learner=learner, at={"x": [0.5]}, blocks=4)
    return ensemble.estimate(source, epsilon=20.0)


def raising(error: type[BaseException]) -> Any:
    def learner(covariates: Any, arms: Any, outcomes: Any, at: Any) -> Any:
        if (outcomes > 0.9).any():
            raise error(f"an outcome of {outcomes.max()}")
        return np.zeros(len(at))

    return learner


def always(effect: float, version: str = "1") -> dpc.Learner:
    return dpc.Learner(lambda _, __, ___, at: np.full(len(at), effect), version)


@pytest.mark.parametrize("error", [PanicError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, ValueError])
@pytest.mark.parametrize("last", [0.15, 0.97])
def test_nothing_that_a_learner_raises_gets_out(error: type[BaseException], last: float) -> None:
    curve = ask(vault(last, mine=dpc.Learner(raising(error), "1")))
    assert len(curve.weights) == 1


def test_nothing_that_a_result_raises_when_it_is_read_gets_out() -> None:
    assert run_silenced(Trap, 2).tolist() == [0.0, 0.0]  # type: ignore[arg-type]


def test_what_a_failed_learner_leaves_behind_is_cleared_away_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    class Last:
        def __del__(self) -> None:
            print("an outcome of 0.97")  # noqa: T201

    def work() -> Any:
        held = Last()
        raise PanicError(held)

    assert run_silenced(work, 1).tolist() == [0.0]
    assert capfd.readouterr() == ("", "")


def test_the_users_own_interrupt_takes_effect_after_the_block() -> None:
    ended: list[bool] = []

    def work() -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            ended[:] = [True]
        return np.ones(1)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_silenced(work, 1)
        assert ended
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_learners_work_in_other_threads() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(run_silenced(lambda: np.ones(1), 1)))
    thread.start()
    thread.join()
    assert found[0].tolist() == [1.0]


@pytest.mark.statistical
def test_another_version_is_another_question() -> None:
    first = vault(mine=always(0.0))
    before = ask(first).weights[0]
    assert abs(before) < 0.15
    second = dpc.Vault(table(0.15), SCHEMA, ledger=first.ledger, learners={"mine": always(0.2, "2")})
    assert [event.epsilon for event in outstanding_cost(second, ask).values()] == [
        18.0
    ]  # counts of the covariate are stored
    assert ask(second).weights[0] == pytest.approx(0.2, abs=0.15)
    assert ask(second).weights[0] > before + 0.05
    assert second.ledger.spent.epsilon == 38


def test_the_same_version_gives_the_stored_answer() -> None:
    first = vault(mine=always(0.0))
    stored = ask(first)
    again = dpc.Vault(table(0.15), SCHEMA, ledger=first.ledger, learners={"mine": always(0.0)})
    assert outstanding_cost(again, ask) == {}
    assert ask(again) == stored
    assert again.ledger.spent.epsilon == 20


@pytest.mark.parametrize("name", LEARNERS)
def test_names_of_built_in_learners_are_reserved(name: str) -> None:
    with pytest.raises(QueryError, match="reserved"):
        vault(0.15, **{name: always(0.2)})


@pytest.mark.parametrize("learner", [lambda *_: 0.0, None, "linear"])
def test_a_learner_without_a_version_is_refused(learner: Any) -> None:
    with pytest.raises(QueryError, match="version"):
        vault(mine=learner)


@pytest.mark.parametrize("version", ["", " ", 1, None, "1\x1b[2J"])
def test_a_version_is_a_text(version: Any) -> None:
    with pytest.raises(QueryError, match="version"):
        dpc.Learner(lambda *_: np.zeros(1), version)


@pytest.mark.parametrize("name", LEARNERS)
def test_questions_to_built_in_learners_hold_their_version(name: str) -> None:
    query = BlockEffects(name, ["x"], [[0.5]], 4, 0.5)
    assert vault().question(query, dpc.Guarantee(epsilon=1.0))["learner"] == LEARNERS[name].version
