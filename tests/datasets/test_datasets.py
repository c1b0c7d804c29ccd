"""The table that ships with the package is the trial's, and its schema reads every cell."""

from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app

ROOT = Path(__file__).parents[2]
WORDS = {"sex": {"F": "female", "M": "male"}, "aspirin": {"Y": "yes", "N": "no"}}
WORDS["heparin"] = {"N": "none", "L": "low", "H": "medium"}
COLUMNS = {"SEX": "sex", "AGE": "age", "RXASP": "aspirin", "RXHEP": "heparin", "DIED": "died", "TD": "days"}


def test_stroke_trial_holds_the_records_of_the_repository() -> None:
    original = pyarrow.csv.read_csv(ROOT / "benchmarks" / "data" / "ist" / "ist_prr_subset.csv.gz")
    columns = {
        name: [WORDS[name][cell] if name in WORDS else cell for cell in original[theirs].to_pylist()]
        for theirs, name in COLUMNS.items()
    }
    shipped = pq.read_table(dpc.datasets.stroke_trial().path).select(list(columns)).to_pydict()
    assert sorted(zip(*columns.values(), strict=True)) == sorted(zip(*shipped.values(), strict=True))


def test_stroke_trial_is_read_as_its_schema_declares(tmp_path: Path) -> None:
    trial = dpc.datasets.stroke_trial()
    assert pq.read_metadata(trial.path).num_rows == trial.n
    (tmp_path / "schema.toml").write_text(trial.schema.to_toml(), encoding="utf-8")
    told = CliRunner().invoke(app, ["check", str(tmp_path / "schema.toml"), "--table", str(trial.path)]).output
    columns = len(trial.schema.covariates) + 2
    assert told.count(" 0 (0.0%) absent, 0 (0.0%)") == columns  # and none that is not read as declared


def test_stroke_trial_is_small() -> None:
    assert dpc.datasets.stroke_trial().path.stat().st_size < 30_000
