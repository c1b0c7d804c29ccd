"""Codebooks become declarations in a study file."""

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcausal.cli import app
from dpcausal.errors import StudyError
from dpcausal.schema.codebook import CodebookColumn, read_codebook
from dpcausal.study.template import study_to_fill_in

REDCAP = """\
"Variable / Field Name","Form Name","Section Header","Field Type","Field Label","Choices, Calculations, OR Slider \
Labels","Field Note","Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max"
age,base,,text,Age in years,,,integer,18,90
sex,base,,radio,Sex,"1, Female | 2, Male",,,,
race,base,,checkbox,Race,"1, A | 2, B",,,,
smoker,base,,yesno,Smokes,,,,,
pain,base,,slider,Pain,,,,,
seen,base,,text,First visit,,,date_ymd,,
notes,base,,notes,Notes,,,,,
"""


def _written(folder: Path, text: str) -> Path:
    file = folder / "codebook.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_redcap_dictionary_gives_kinds_values_and_bounds(tmp_path: Path) -> None:
    found = read_codebook(_written(tmp_path, REDCAP))
    assert found["age"] == CodebookColumn("Age in years", "real", "18", "90")
    assert found["sex"] == CodebookColumn("Sex", "binary", values=("1", "2"))
    assert found["race___2"] == CodebookColumn("Race: B", "binary", values=("0", "1"))
    assert found["smoker"].values == ("0", "1")
    assert (found["pain"].low, found["pain"].high) == ("0", "100")
    assert found["seen"].kind == "date"
    assert not found["notes"].kind


def test_omop_field_file_gives_types(tmp_path: Path) -> None:
    header = "cdmTableName,cdmFieldName,isRequired,cdmDatatype,userGuidance\n"
    found = read_codebook(_written(tmp_path, f"{header}person,year_of_birth,Yes,integer,The year. More.\n"))
    assert found == {"year_of_birth": CodebookColumn("The year", "real")}


def test_declarations_of_a_codebook_are_valid_toml(tmp_path: Path) -> None:
    text = 'name,label,type,low,high,values\nage,Age,number,18,90,\nward,Ward,,,,a|b"c|3\nsex,,,,,1|2\n'
    known = read_codebook(_written(tmp_path, text))
    study = study_to_fill_in({"age": "number", "ward": "text", "sex": "integer", "other": "text"}, known)
    block = study.partition("# age:")[2]
    lines = [line.removeprefix("# ") for line in block.splitlines() if " = " in line or line.startswith("# [[")]
    age, ward, sex, other = tomllib.loads("\n".join(lines))["schema"]["covariates"]
    assert age == {"name": "age", "kind": "real", "low": 18, "high": 90}
    assert ward == {"name": "ward", "kind": "category", "values": ["a", 'b"c', "3"]}
    assert sex == {"name": "sex", "kind": "binary", "values": [1, 2]}
    assert other["values"] == "<fill in>"


@pytest.mark.parametrize("bound", ["eighteen", "18]", "1e999", '"'])
def test_bounds_that_are_no_numbers_are_left_blank(tmp_path: Path, bound: str) -> None:
    known = {"age": CodebookColumn("Age", "real", bound, "90")}
    assert 'low = "<fill in>"\n# high = 90' in study_to_fill_in({"age": "number"}, known)


def test_control_characters_in_a_codebook_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError):
        read_codebook(_written(tmp_path, "name,label\nage,\x1b[31mred\n"))


@pytest.mark.parametrize("text", ["", "column,label\nage,Age\n"])
def test_unknown_header_is_refused_with_the_header_to_write(tmp_path: Path, text: str) -> None:
    with pytest.raises(StudyError, match="name,label,type,low,high,values"):
        read_codebook(_written(tmp_path, text))


def test_init_says_how_many_columns_the_codebook_describes(tmp_path: Path) -> None:
    table, out = tmp_path / "visits.csv", tmp_path / "study.toml"
    table.write_text("age,ward\n54,a\n", encoding="utf-8")
    codebook = _written(tmp_path, "name,type,low,high\nage,real,18,90\nheight,real,100,220\n")
    result = CliRunner().invoke(app, ["init", str(table), "--codebook", str(codebook), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "The codebook describes 1 of them." in result.output
    assert "# low = 18" in out.read_text(encoding="utf-8")
    assert "54" not in out.read_text(encoding="utf-8")
