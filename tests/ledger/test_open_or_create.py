"""A notebook may run its cells again; a ledger that was lost, or replaced, is noticed."""

import json
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import dpcausal as dpc

BUDGET = dpc.Budget(epsilon=2)


def run_cells(folder: Path, as_of: str = "2026") -> dpc.Effect:
    """What a notebook does each time it is run."""
    schema = dpc.Schema(dpc.Treatment("arm"), dpc.Binary("died"))
    table = pa.table({"arm": [0, 1] * 50, "died": [0, 1] * 50})
    ledger = dpc.Ledger.open_or_create(folder / "trial.db", BUDGET, as_of=as_of)
    effect = dpc.DifferenceInMeans().estimate(dpc.Vault(table, schema, ledger=ledger, as_of=as_of), epsilon=1.0)
    assert ledger.spent.epsilon == 1.0
    return effect


def test_notebook_that_is_run_again_opens_its_ledger_and_gets_its_answer(tmp_path: Path) -> None:
    first, second = run_cells(tmp_path), run_cells(tmp_path)
    assert first.estimate == second.estimate


def test_another_budget_or_version_is_refused(tmp_path: Path) -> None:
    run_cells(tmp_path)
    with pytest.raises(dpc.DpcausalError, match="cannot be raised"):
        dpc.Ledger.open_or_create(tmp_path / "trial.db", dpc.Budget(epsilon=3), as_of="2026")
    with pytest.raises(dpc.DpcausalError, match="declare the version"):
        run_cells(tmp_path, as_of="2027")


def test_new_ledger_beside_older_results_warns(tmp_path: Path) -> None:
    """The record of what was spent was removed; a file that is no result, or of a rehearsal, is no sign of that."""
    (tmp_path / "notes.json").write_text('[{"receipts": 1}]', encoding="utf-8")
    (tmp_path / "rehearsed.json").write_text(json.dumps({"receipts": [{"entry": None}]}), encoding="utf-8")
    (tmp_path / "effect.json").write_text(run_cells(tmp_path).to_json(), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_cells(tmp_path)
    (tmp_path / "trial.db").unlink()
    with pytest.warns(UserWarning, match=r"trial.db is new, but effect.json beside it was paid for"):
        dpc.Ledger.open_or_create(tmp_path / "trial.db", BUDGET, as_of="2026")
