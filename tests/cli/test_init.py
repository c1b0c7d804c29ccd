"""`dpcausal init`: a study file from names and types, which loads once a person has completed it."""

import json
import os
import re
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from dpcausal import Study
from dpcausal.cli import app
from dpcausal.errors import TableError
from dpcausal.study.template import study_to_fill_in
from dpcausal.utils.blanks import BLANK
from dpcausal.vault.table import column_families
from tests.support.postgres import VARIABLE, fresh_database

FAMILIES = {"arm": "text", "age": "number", "visits": "integer", "smoker": "boolean", "seen": "date", "tags": "other"}


def columns(*, secret: float = 41.5) -> pa.Table:
    return pa.table(
        {
            "arm": ["placebo", "drug"],
            "age": [secret, 30.25],
            "visits": pa.array([1, 2], pa.int32()),
            "smoker": [True, False],
            "seen": pa.array([1, 2], pa.date32()),
            "tags": [["x"], ["y"]],
        }
    )


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["init", *map(str, words)])


def test_all_table_formats_give_the_same_columns(tmp_path: Path) -> None:
    pq.write_table(columns(), tmp_path / "table.parquet")
    with duckdb.connect(tmp_path / "house.duckdb") as connection:
        connection.from_arrow(columns()).create("visits")
    (tmp_path / "table.csv").write_text(",arm,age\n1,placebo,41.5\n")
    for place in ("table.parquet", "house.duckdb#visits", "*.parquet", ""):
        assert dict(column_families(str(tmp_path / place))) == FAMILIES
    assert dict(column_families(str(tmp_path / "table.csv"))) == {"": None, "arm": None, "age": None}


@pytest.mark.xdist_group("postgresql")
@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"no PostgreSQL server: {VARIABLE} is not set")
def test_postgresql_gives_the_same_columns() -> None:
    kinds = "arm text, age numeric, visits integer, smoker boolean, seen date, tags text[]"
    with fresh_database() as url:
        address = url.replace("+psycopg", "")
        with psycopg.connect(address, autocommit=True) as server:
            server.execute(f"CREATE TABLE visits ({kinds})")
        found = column_families(f"{address}#visits")
        with pytest.raises(TableError, match="has no table or view"):
            column_families(f"{address}#nothing")
    assert found == FAMILIES | {"visits": "number"}  # PostgreSQL's integers are sent as numbers


@pytest.mark.parametrize("place", ["nothing.parquet", "table.xlsx", "ftp://bucket/secret", "postgresql://h/d", ""])
def test_error_for_a_missing_table_contains_no_password(place: str) -> None:
    with pytest.raises(TableError) as told:
        column_families(place)
    assert "secret" not in str(told.value)


def test_study_template_holds_no_value_of_the_table(tmp_path: Path) -> None:
    texts = []
    for place, secret in enumerate((41.5, 99.75)):
        pq.write_table(columns(secret=secret), tmp_path / "table.parquet")
        done = run(tmp_path / "table.parquet", "--out", tmp_path / str(place) / ".." / f"{place}.toml")
        assert done.exit_code == 2  # no such folder
        assert "check its folder" in done.output
        done = run(tmp_path / "table.parquet", "--out", tmp_path / f"{place}.toml")
        assert done.exit_code == 0, done.output
        texts.append((tmp_path / f"{place}.toml").read_text())
    assert texts[0] == texts[1]
    # In the comments "placebo" and "drug" are examples; nothing else of the table is there.
    assert "41.5" not in texts[0]
    assert "30.25" not in texts[0]


def test_init_overwrites_no_file(tmp_path: Path) -> None:
    pq.write_table(columns(), tmp_path / "table.parquet")
    (tmp_path / "study.toml").write_text("mine")
    done = run(tmp_path / "table.parquet", "--out", tmp_path / "study.toml")
    assert done.exit_code == 2
    assert "--out" in done.output
    assert (tmp_path / "study.toml").read_text() == "mine"


def test_json_output_lists_the_columns(tmp_path: Path) -> None:
    pq.write_table(columns(), tmp_path / "table.parquet")
    done = run(tmp_path / "table.parquet", "--out", tmp_path / "study.toml", "--json")
    assert json.loads(done.output) == {"written": str(tmp_path / "study.toml"), "columns": FAMILIES, "in_codebook": []}


VALUES = {
    "name": '"trial"',
    "design": '"trial"',
    "epsilon": "1.0",
    "[estimator] name": '"difference_in_means"',
    "[schema.treatment] name": '"arm"',
    "[schema.treatment] arms": '["placebo", "drug"]',
    "[schema.treatment] labels": '["usual", "new"]',
    "[schema.outcome] name": '"pressure"',
    "[schema.outcome] kind": '"real"',
    "[schema.outcome] low": "80",
    "[schema.outcome] high": "220",
}
"""What a person would write; a text for all the rest."""


def test_study_loads_only_when_every_blank_is_filled_in(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    text = study_to_fill_in(FAMILIES)
    while True:
        file.write_text(text)
        told = CliRunner().invoke(app, ["plan", str(file), "--n", "1000"]).output
        blank = re.search(r"left blank: (.+?) in line (\d+)", " ".join(told.split()))
        if blank is None:
            break
        lines = text.splitlines(keepends=True)
        place = int(blank[2]) - 1
        assert f'"{BLANK}"' in lines[place]
        lines[place] = lines[place].replace(f'"{BLANK}"', VALUES.get(blank[1], '"in words"'))
        text = "".join(lines)
    assert "Plan (no data read, nothing spent): effect of new against usual on pressure" in told
    study = Study.from_toml(text)
    assert (study.name, study.design, study.schema.covariates) == ("trial", "trial", ())


def test_uncommented_diagnostics_are_required() -> None:
    text = study_to_fill_in({"age": "number"})
    required = re.findall(r"^# (\[requires[\s\S]*?)\n\n", text, re.MULTILINE)[0].replace("\n# ", "\n")
    for key, value in (("epsilon", "0.2"), ("covariates", '["age"]')):
        required = required.replace(f'{key} = "{BLANK}"', f"{key} = {value}")
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", undeclared=0),
        outcome=dpc.Real("score", 0, 1),
        covariates=[dpc.Real("age", 0, 99)],
    )
    made = Study(name="a", question="b", schema=schema, estimator=dpc.DifferenceInMeans(), epsilon=1.0)
    study = Study.from_toml(made.to_toml() + required)
    assert {name: epsilon for name, (_, epsilon) in study.diagnostics().items()} == {"overlap": 0.2, "balance": 0.2}


@pytest.mark.parametrize(("sign", "words"), [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")])
def test_other_signs_than_commas_between_columns_are_found_and_said(sign: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"arm{sign}age, years{sign}sex\n0{sign}41,5{sign}f\n")
    done = run(tmp_path / "table.csv", "--out", tmp_path / "study.toml")
    assert done.exit_code == 0
    assert f"separated by {words}" in " ".join(done.output.split())
    assert 'name = "age, years"' in (tmp_path / "study.toml").read_text()
    assert "41,5" not in done.output


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "the first line of a .csv file holds the names"),
        (",\n41.5,2\n", "the first line of a .csv file holds the names"),
    ],
)
def test_csv_with_ambiguous_columns_is_refused(text: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(text)
    done = run(tmp_path / "table.csv", "--out", tmp_path / "study.toml")
    assert done.exit_code == 2
    assert hint in done.output
    assert "41.5" not in done.output
    assert not (tmp_path / "study.toml").exists()


FIRST = [
    "41.5,placebo,7", "0,1,1", "Smith,2020-01-31,ward", "Smith,31.1.2020 10:00,ward", "Smith,3 May 2020,ward",
    "Smith,$41.50,ward", "Smith,41.5 mg,ward", "Smith,true,ward", "Smith,female,ward", "a@b.org,Smith,ward",
    "Smith,,ward", "Smith,ward,Smith", "Smith,12:30,ward", "Smith,1_000,ward", "Smith,-,ward,-", "Smith,1,234,ward",
]  # fmt: skip


@pytest.mark.parametrize("first", FIRST)
def test_first_line_that_looks_like_a_record_is_refused_and_not_shown(first: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"{first}\n{first}\n")
    done = run(tmp_path / "table.csv", "--out", tmp_path / "study.toml")
    assert done.exit_code == 2
    assert not (tmp_path / "study.toml").exists()
    cells = [cell for cell in first.split(",") if len(cell) > 2]
    assert not any(cell in done.output for cell in cells)


def test_duplicate_column_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("arm,age,Age\n0,1,2\n")
    assert "a name of its own for each column" in run(tmp_path / "table.csv", "--out", tmp_path / "study.toml").output


@pytest.mark.parametrize("header", ["arm,age", ",arm,age", "id,day_28,24h_mortality,q1,No", "größe (cm),BMI [kg/m2]"])
def test_header_is_accepted(header: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"{header}\n")
    done = run(tmp_path / "table.csv", "--out", tmp_path / "study.toml")
    assert done.exit_code == 0, done.output
    assert "Check that the first line" in done.output


def test_csv_leaves_the_kind_of_each_column_blank(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("arm,age\n")
    run(tmp_path / "table.csv", "--out", tmp_path / "study.toml")
    text = (tmp_path / "study.toml").read_text()
    assert '# kind = "real"' not in text
    assert text.count('# kind = "<fill in>"') == 2


@pytest.mark.parametrize("name", ["table.xlsx", "table.tsv"])
def test_unsupported_file_format_is_refused_with_a_hint(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("t")
    assert "save it as .csv or as .parquet" in run(tmp_path / name).output


def test_output_counts_columns_in_singular_and_plural(tmp_path: Path) -> None:
    for header, told in (("arm", "of 1 column."), ("arm,age", "of 2 columns.")):
        (tmp_path / "table.csv").write_text(f"{header}\n")
        assert told in run(tmp_path / "table.csv", "--out", tmp_path / f"{header}.toml").output


def test_uncommented_column_is_a_covariate() -> None:
    text = study_to_fill_in({"age": "number", "smoker": "boolean", "odd\nname": "text"})
    listed = text[text.index("# age: ") :]
    taken = "\n".join(line.removeprefix("# ") for line in listed.splitlines() if "# name" in line or " = " in line)
    assert taken.count("name = ") == 3
    assert 'name = "odd\\nname"' in taken  # on one line, whatever it is
    assert 'kind = "binary"\nvalues = [false, true]' in taken


def test_binary_file_called_csv_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"PAR1\x15\x00secret\n")
    done = run(tmp_path / "table.csv", "--out", tmp_path / "study.toml")
    assert done.exit_code == 2
    assert "secret" not in done.output
    assert not (tmp_path / "study.toml").exists()


def test_header_that_is_not_in_utf_8_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes("Größe;Straße\n1;2\n".encode("cp1252"))
    done = run(tmp_path / "table.csv", "--out", tmp_path / "study.toml")
    assert done.exit_code == 2
    assert "iconv -f WINDOWS-1252 -t UTF-8" in " ".join(done.output.split())
    assert "Gr" not in done.output
