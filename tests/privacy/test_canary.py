"""A value planted in a table turns up in no text that the product makes."""

import io
import logging
import pickle
import pprint
import sqlite3
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcausal as dpc
from dpcausal.queries import (
    ArmMoments,
    ArmRegressionMoments,
    AugmentedScores,
    EventCounts,
    OutcomeCounts,
    Query,
    RegressionMoments,
)

TEXT, NUMBER, PERSON = "xyzzy-bird-77", 7.123456789, "patient-4711-xyzzy"


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "who": [PERSON, *(f"patient-{place}" for place in range(99))],
            "when": range(100),
            "treat": [TEXT, *[0, 1] * 49, 1],
            "y": pd.Series([NUMBER, TEXT, *[1.5, 2.5] * 49], dtype=object),
            "race": [TEXT, *["a", "b"] * 49, "a"],
        }
    )


SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("treat", undeclared=0),
    outcome=dpc.Real("y", 0, 10, missing=5),
    covariates=[dpc.Category("race", ["a", "b"])],
    unit=dpc.Unit("who", by="when"),
)

MODELS: list[Query] = [
    RegressionMoments(["race"]),
    ArmRegressionMoments(["race"]),
    AugmentedScores(["race"], [0.0, 1.0], [0.2, 0.1], [0.3, 0.1], "ATE", 0.1, 5.0),
    OutcomeCounts([2.5, 5.0]),
    EventCounts([2.5, 5.0], "race"),
]


def complaint(failing: Callable[[], object], *, with_locals: bool = True) -> str:
    """The whole traceback of something that must fail, with what each frame holds."""
    try:
        failing()
    except Exception as error:  # noqa: BLE001 (whatever is raised is what is read)
        trace = traceback.TracebackException.from_exception(error, capture_locals=with_locals)
        return "".join(trace.format())
    pytest.fail("this should have been refused")


def spoken(table: object, ledger: Path) -> str:
    """Everything that opening, asking, printing, storing and failing says, in one text."""
    out, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    said: list[object] = []
    with warnings.catch_warnings(record=True) as warned, redirect_stdout(out), redirect_stderr(out):
        warnings.simplefilter("always")
        url = f"sqlite:///{ledger}"
        dpc.Ledger.create(url, dpc.Budget(epsilon=3), as_of="2026-06-30")
        vault = dpc.Vault(table, SCHEMA, ledger=url, as_of="2026-06-30")
        effect = dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)
        release = vault.release(ArmMoments(), dpc.Guarantee(epsilon=1.0))
        said += [vault.release(query, dpc.Guarantee(epsilon=0.2)).to_json() for query in MODELS]
        said += [effect, repr(effect), effect._repr_html_(), effect.to_json(), pickle.dumps(effect)]
        said += [release, release.to_json(), pickle.dumps(release), vault, vault.ledger, vault.ledger.entries()]
        said += [pprint.pformat(vault), dir(vault), [getattr(vault, name) for name in vault.__slots__]]
        said.append(complaint(lambda: pickle.dumps(vault)))
        said.append(complaint(lambda: dpc.DifferenceInMeans().estimate(vault, epsilon=3.0)))
        for treatment, budget in (
            (dpc.Treatment("who", arms=("a", "b")), None),
            (dpc.Treatment("absent"), dpc.Budget(epsilon=3)),
        ):
            wrong = dpc.Schema(treatment=treatment, outcome=dpc.Binary("race"))
            # Frames that still hold the caller's own table are the caller's; what is said must be clean.
            opening = partial(dpc.Vault, table, wrong, ledger="sqlite://", budget=budget)
            said.append(complaint(opening, with_locals=False))
    logging.getLogger().removeHandler(handler)
    said += [out.getvalue(), log.getvalue(), [str(warning.message) for warning in warned]]
    with sqlite3.connect(ledger) as connection:
        said.append(connection.execute("SELECT * FROM dpcausal_ledger").fetchall())
    connection.close()
    return "\n".join(map(str, said))


def test_no_output_contains_the_canary(frame: pd.DataFrame, tmp_path: Path) -> None:
    as_text = frame.assign(treat=frame["treat"].astype(str), y=frame["y"].astype(str))
    as_text.to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.Table.from_pandas(as_text), tmp_path / "t.parquet")
    ways: list[object] = [frame, pa.Table.from_pandas(as_text), tmp_path / "t.csv", tmp_path / "t.parquet"]
    ways.append(duckdb.connect().from_arrow(pa.Table.from_pandas(as_text)))
    for place, way in enumerate(ways):
        text = spoken(way, tmp_path / f"ledger-{place}.db")
        assert "xyzzy" not in text
        assert str(NUMBER) not in text


def test_search_finds_a_canary(frame: pd.DataFrame) -> None:
    """The mutant: a vault that showed its relation, as DuckDB's own objects do, would be caught."""
    shown = duckdb.connect().from_df(frame[["who", "race"]])
    assert "xyzzy" in str(shown)
