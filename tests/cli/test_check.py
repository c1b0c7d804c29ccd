"""`dpcausal check`: a look for whoever keeps the table, marked as such on every line."""

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import dpcausal as dpc
from checks.architecture import violations
from dpcausal import Study
from dpcausal.cli import app
from dpcausal.cli.check import MARK
from dpcausal.federation.site.policy_template import new_site

COST = dpc.Real("cost", 0, 10_000)
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm", arms=("placebo", "drug"), undeclared="placebo"),
    outcome=COST,
    covariates=[
        dpc.Category("sex", ["female", "male", "?"]),
        dpc.Real("age", 18, 100, indicator=True),
        dpc.Binary("ill"),
    ],
)
CSV = """arm,cost,sex,age,ill
placebo,9 135.61,F,44,yes
Drug ,12,female,17,no
drug,-5,M,,1
usual,20000,f,x,0
,1 000,F,nan,maybe
"""


def write(folder: Path, schema: dpc.Schema = SCHEMA, text: str = CSV) -> None:
    study = Study(name="a", question="b", schema=schema, estimator=dpc.DifferenceInMeans(), epsilon=1.0)
    (folder / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    (folder / "table.csv").write_text(text, encoding="utf-8")


def run(folder: Path, *words: object, table: str = "table.csv") -> Result:
    return CliRunner().invoke(
        app, ["check", str(folder / "study.toml"), "--table", str(folder / table), *map(str, words)]
    )


def test_check_reports_cells_that_do_not_read_as_declared(tmp_path: Path) -> None:
    write(tmp_path)
    done = run(tmp_path)
    assert done.exit_code == 0, done.output
    for told in (
        "records: 5",
        "treatment arm: 1 (20.0%) absent, 1 (20.0%) none of the declared values",
        "treatment arm: placebo 1 (20.0%), drug 2 (40.0%)",
        "treatment arm: most often 'usual' 1 times",
        "outcome cost: 0 (0.0%) absent, 2 (40.0%) not read as declared",
        "outcome cost: 1 (20.0%) below 0, 1 (20.0%) above 10,000",
        "outcome cost: most often '1 000' 1 times, '9 135.61' 1 times",
        'outcome cost: 2 more cells are numbers if you declare decimal = "." and thousands = " "',
        "covariate sex: 0 (0.0%) absent, 4 (80.0%) none of the declared values",
        "covariate sex: most often 'F' 2 times",
        "covariate age: 1 (20.0%) absent, 2 (40.0%) not read as declared",
        "covariate age: 1 (20.0%) below 18",
        "covariate ill: 0 (0.0%) absent, 1 (20.0%) none of the declared values",
        "covariate ill: 0 2 (40.0%), 1 2 (40.0%)",
        "unit: none is declared",
    ):
        assert f"{MARK} {told}" in done.output
    assert "is missing" not in done.output


@pytest.mark.parametrize(
    ("cells", "declare"),
    [
        (["1 234,5", "2 000,1", "3"], 'decimal = "," and thousands = " "'),
        (["1 234", "2 000", "3"], 'decimal = "." and thousands = " "'),
        (["1", "2", "about 3"], ""),
    ],
)
def test_check_suggests_the_signs_by_which_cells_are_numbers(tmp_path: Path, cells: list[str], declare: str) -> None:
    rows = "".join(f'drug,"{cell}",M,44,1\n' for cell in cells)
    write(tmp_path, text=f"arm,cost,sex,age,ill\n{rows}")
    told = [line for line in run(tmp_path).output.splitlines() if "more cells are numbers" in line]
    assert [line.partition(" if you declare ")[2] for line in told] == [declare] * bool(declare)


def test_check_counts_commas_that_nobody_declared(tmp_path: Path) -> None:
    """Those between thousands may be decimals in a file that writes 1.234 as 1,234, and none of them is unread."""
    rows = "".join(f'drug,"{cell}",M,44,1\n' for cell in ("1,234", "350", "2,000.5", "1,5"))
    write(tmp_path, text=f"arm,cost,sex,age,ill\n{rows}")
    output = run(tmp_path).output
    assert "outcome cost: 2 (50.0%) with a comma between thousands, read as in 1,234 = 1234" in output
    assert "outcome cost: 1 (25.0%) with a comma before decimals, read as in 1,5 = 1.5" in output
    write(tmp_path, replace(SCHEMA, outcome=replace(COST, thousands=",")), f"arm,cost,sex,age,ill\n{rows}")
    assert "with a comma" not in run(tmp_path).output


def test_check_counts_missing_codes_as_absent(tmp_path: Path) -> None:
    write(tmp_path, replace(SCHEMA, outcome=replace(COST, missing_codes=[-5, 20_000])))
    output = run(tmp_path).output
    assert "outcome cost: 2 (40.0%) absent, 2 (40.0%) not read as declared" in output
    assert "outcome cost: 0 (0.0%) below 0, 0 (0.0%) above 10,000" in output


def test_check_suggests_signs_in_place_of_declared_ones(tmp_path: Path) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("arm", arms=("placebo", "drug")),
        outcome=dpc.Real("cost", 0, 10_000, decimal=",", thousands="."),
        covariates=[dpc.Real("day", 0, 3650, since="2015-01-01")],
    )
    write(tmp_path, schema, 'arm,cost,day\ndrug,"1,234.5",2016-02-03\ndrug,"2,000",x\n')
    done = run(tmp_path)
    assert done.exit_code == 0, done.output
    assert 'outcome cost: 1 more cells are numbers if you declare decimal = "." and thousands = ","' in done.output


def test_check_counts_lines_that_are_not_in_utf_8(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "table.csv").write_bytes((CSV + "drug,1,f\xfcr,1,0\nplacebo,2,m\xe4nnlich,2,0\n").encode("latin-1"))
    lines = run(tmp_path).output
    assert "lines: 2 have letters that are not in UTF-8" in lines
    assert "iconv -f WINDOWS-1252 -t UTF-8" in lines
    assert "records: 7" in lines
    assert "none of the declared values" in lines
    assert "'f�r' 1 times" in lines


def test_check_reads_a_schema_alone(tmp_path: Path) -> None:
    write(tmp_path)
    of_study = run(tmp_path).output
    (tmp_path / "study.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    assert run(tmp_path).output == of_study
    (tmp_path / "study.toml").write_text("no toml", encoding="utf-8")
    assert run(tmp_path).exit_code == 2


def test_every_line_is_marked_as_not_private(tmp_path: Path) -> None:
    write(tmp_path)
    lines = run(tmp_path).output.splitlines()
    assert len(lines) > 10
    assert all(line.startswith("[not private, not for sharing] ") for line in lines)


def test_output_contains_no_control_characters(tmp_path: Path) -> None:
    write(tmp_path, text="arm,cost,sex,age,ill\n\x1b[31mred\x07,1,F,44,yes\nplacebo,1," + "x" * 999 + ",44,yes\n")
    output = run(tmp_path).output
    assert not re.search("[\x00-\x09\x0b-\x1f]", output)
    assert "x" * 50 not in output


def test_check_inspects_units_and_types(tmp_path: Path) -> None:
    schema = dpc.Schema(
        dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 10, since="2020-01-01"), unit=dpc.Unit("who{}", by="y")
    )
    write(tmp_path, schema)
    days = pa.array([18_262, 18_263, 0, None], pa.int32()).view(pa.date32())
    pq.write_table(pa.table({"t": [0, 1, 2, None], "y": days, "who{}": ["a", "a", "b", None]}), tmp_path / "t.parquet")
    output = run(tmp_path, table="t.parquet").output
    assert "unit who{}: 3 units in 4 records; 1 units have several, at most 2; 1 (25.0%) of the records name" in output
    assert "outcome y: 1 (25.0%) below 0" in output
    assert "treatment t: most often '2' 1 times" in output


def test_check_finds_codes_and_repeated_persons(tmp_path: Path) -> None:
    lines = [f"{('placebo', 'drug')[at % 2]},{50 + at % 30},female,{30 + at % 40},yes,{at // 2}" for at in range(200)]
    codes = [f"drug,{9_999 if at < 3 else 60},male,{'' if at % 2 else 99},no,{200 + at}" for at in range(20)]
    head = "arm,cost,sex,age,ill,patient_id"
    write(tmp_path, text="\n".join([head, *lines, *codes]))
    output = run(tmp_path).output
    assert "outcome cost: far from all others: 9,999 3 times (half of the others are within" in output
    assert "covariate age: far from all others: 99 10 times" in output  # the next is 69
    assert "unit: 'patient_id' has 120 different values in 220 records. If it names persons, declare a Unit" in output
    write(tmp_path, text="\n".join([head.replace("patient_id", "visit"), *lines]))
    output = run(tmp_path).output
    assert "far from all others" not in output
    assert "declare a Unit" not in output


def test_check_finds_codes_near_other_values_and_beside_many_zeros(tmp_path: Path) -> None:
    lines = [f"{('placebo', 'drug')[at % 2]},{max(at - 180, 0)},female,{at % 25},yes" for at in range(200)]
    codes = ["drug,999,male,-9,no"] * 3
    write(tmp_path, text="\n".join(["arm,cost,sex,age,ill", *lines, *codes]))
    output = run(tmp_path).output
    assert "outcome cost: far from all others: 999 3 times" in output
    assert "covariate age: far from all others: -9 3 times" in output
    old = [f"{('placebo', 'drug')[at % 2]},{at % 20},female,{30 + at % 68},yes" for at in range(200)]
    write(tmp_path, text="\n".join(["arm,cost,sex,age,ill", *old, *["drug,3,male,99,no"] * 3]))
    assert "far from all others" not in run(tmp_path).output  # 99 is an age: the next is 97


def test_check_does_not_compare_records_with_bounds_of_totals(tmp_path: Path) -> None:
    unit = dpc.Unit("who", by="day", sum=["y"], count=["order"])
    write(tmp_path, dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 10), [dpc.Real("order", 0, 9)], unit=unit))
    days = pa.array([18_262, None], pa.int32()).view(pa.date32())
    pq.write_table(
        pa.table({"t": [0, 1], "y": [-5.0, 99.0], "order": days, "who": [1, 1], "day": [1, 2]}), tmp_path / "t.parquet"
    )
    output = run(tmp_path, table="t.parquet").output
    assert "outcome y: added up for each unit" in output
    assert "below" not in output
    assert "covariate order: 1 (50.0%) absent; the others are counted" in output


def test_check_reports_duplicate_column_names(tmp_path: Path) -> None:
    write(tmp_path, text="arm,cost,sex,age,ill,x,x\n")
    assert f"{MARK} header: names that stand twice" in run(tmp_path).output


@pytest.mark.parametrize("where", ["given", "beside"])
def test_policy_that_forbids_check_is_enforced_before_anything_is_read(where: str, tmp_path: Path) -> None:
    write(tmp_path)
    site = tmp_path / "site" if where == "given" else tmp_path
    new_site(site, "north")
    policy = site / "policy.toml"
    words = ["--policy", policy] if where == "given" else []
    assert run(tmp_path, *words).exit_code == 0
    policy.write_text(policy.read_text().replace("allow_check = true", "allow_check = false"))
    done = run(tmp_path, *words)
    assert done.exit_code == 2
    assert "allow_check = false" in done.output
    assert MARK not in done.output
    policy.write_text("nonsense")
    assert run(tmp_path, *words).exit_code == 2


def test_check_leaves_no_ledger_and_no_file(tmp_path: Path) -> None:
    write(tmp_path)
    before = sorted(tmp_path.iterdir())
    run(tmp_path)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "line", ["from dpcausal.vault.readers.inspection import inspect", "source.engine.look('SELECT 1')"]
)
def test_no_other_code_may_inspect_cells(line: str, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "door.py").write_text(f"{line}\n")
    assert any("may not appear here" in each for each in violations(tmp_path))


def test_check_counts_dots_that_may_be_between_thousands(tmp_path: Path) -> None:
    def told(*cells: str, outcome: dpc.Real = COST) -> list[str]:
        rows = "".join(f'drug,"{cell}",M,44,1\n' for cell in cells)
        write(tmp_path, replace(SCHEMA, outcome=outcome), f"arm,cost,sex,age,ill\n{rows}")
        return [line for line in run(tmp_path).output.splitlines() if "exactly three digits" in line]

    (line,) = told("3.140", "980", "1.234.567", "1.250,5", "12.000")
    assert "outcome cost: 2 (40.0%) with a dot before exactly three digits, read as in 3.140 = 3.14." in line
    assert 'declare decimal = "," and thousands = "."' in line
    assert told("3.140 pg/ml", "980", outcome=replace(COST, strip=["pg/ml"]))
    for cells in (("3.140", "2.5"), ("3.140", "0.125"), ("3140", "980"), ("3.1400",)):
        assert not told(*cells), cells
    assert not told("3.140", outcome=replace(COST, decimal=",", thousands="."))


def test_check_lists_no_rare_outcome_as_a_code(tmp_path: Path) -> None:
    days = [*[90] * 150, *[89] * 30, *[88] * 20, *(45, 24, 34) * 2, *(71, 60, 52, 40, 29, 18, 11, 5)]
    lines = [f"{('placebo', 'drug')[at % 2]},{day},female,{30 + at % 40},yes" for at, day in enumerate(days)]
    write(tmp_path, text="\n".join(["arm,cost,sex,age,ill", *lines]))
    assert "far from all others" not in run(tmp_path).output
    write(tmp_path, text="\n".join(["arm,cost,sex,age,ill", *lines, *["drug,-1,male,,no", "drug,998,male,999,no"] * 2]))
    output = run(tmp_path).output
    assert "outcome cost: far from all others: -1 2 times, 998 2 times (" in output
    assert "covariate age: far from all others: 999 2 times (" in output


def test_check_shows_the_arms_as_undeclared_ones_count(tmp_path: Path) -> None:
    write(tmp_path)
    line = "treatment arm: with missing and undeclared arms as placebo: placebo 3 (60.0%), drug 2 (40.0%)"
    assert f"{MARK} {line}" in run(tmp_path).output
    write(tmp_path, replace(SCHEMA, treatment=dpc.Treatment("arm", arms=("placebo", "drug"))))
    assert "with missing and undeclared arms" not in run(tmp_path).output


@pytest.mark.parametrize(
    ("days", "count"),
    [(["03.02.2021", "11.01.2021"], 2), (["2021-3-5", "2021-11-05"], 1), (["2021-03-05 10:00", "7"], 0)],
)
def test_check_finds_dates_that_are_not_sorted_as_text(tmp_path: Path, days: list[str], count: int) -> None:
    for date_format in (None, "%d.%m.%Y"):
        unit = dpc.Unit("who", by="day", date_format=date_format)
        schema = dpc.Schema(dpc.Treatment("arm", arms=("placebo", "drug")), COST, unit=unit)
        write(tmp_path, schema, "arm,cost,who,day\n" + "".join(f"drug,1,a,{day}\n" for day in days))
        told = f"unit who: {count} ({count / 2:.1%}) of day are dates that are not sorted as text"
        assert (told in run(tmp_path).output) == (count > 0 and date_format is None)


@pytest.mark.parametrize(
    ("days", "declare"),
    [(["24.12.2025", "01.02.2025"], "%d.%m.%Y"), (["12/24/2025"], "%m/%d/%Y"), (["24/12/2025"], "%d/%m/%Y")],
)
def test_check_suggests_the_format_of_dates(tmp_path: Path, days: list[str], declare: str) -> None:
    seen = dpc.Real("seen", 0, 3650, since="2020-01-01")
    schema = dpc.Schema(dpc.Treatment("arm", arms=("placebo", "drug")), COST, [seen])
    write(tmp_path, schema, "arm,cost,seen\n" + "".join(f"drug,1,{day}\n" for day in days))
    told = f'covariate seen: {len(days)} more cells are dates if you declare date_format = "{declare}"'
    assert told in run(tmp_path).output
    write(tmp_path, schema, "arm,cost,seen\ndrug,1,2025-12-24\ndrug,1,soon\n")
    assert "more cells are dates" not in run(tmp_path).output
