import shutil
from pathlib import Path

import pytest

import dpcausal as dpc
from dpcausal.ledger import running_total, verification
from tests.ledger.long_ledgers import AS_OF, BUDGET, SMOOTH, answer, checkpoints


def bring_checkpoints_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_total, "CHECKPOINT_EVERY", 10)
    monkeypatch.setattr(verification, "PIECE", 7)


@pytest.fixture
def close_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    bring_checkpoints_close(monkeypatch)


@pytest.fixture(scope="session")
def eleven_answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "eleven.db"
    with pytest.MonkeyPatch.context() as monkeypatch:
        bring_checkpoints_close(monkeypatch)
        ledger = dpc.Ledger.create(f"sqlite:///{path}", BUDGET, as_of=AS_OF)
        answer(ledger, "r0", SMOOTH)
        for place in range(1, 11):
            answer(ledger, f"r{place}")
        assert checkpoints(ledger) == [10, 20, 30]
        assert [entry.request for entry in ledger.entries()[4:7]] == ["r1"] * 3
    return path


@pytest.fixture
def url(close_checkpoints: None, eleven_answers: Path, tmp_path: Path) -> str:
    """A ledger that answered r0 to r10: r1 is entries 4 to 6, checkpoints are 10, 20 and 30, the last entry is 36."""
    return f"sqlite:///{shutil.copy(eleven_answers, tmp_path / 'ledger.db')}"
