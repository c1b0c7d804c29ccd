import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.errors import SchemaError
from dpcausal.utils.plain_text import is_plain_text

names = st.text(min_size=1, max_size=8).filter(is_plain_text)
bounds = st.floats(-1e6, 1e6).map(lambda low: (low, low + 1.5))
reals = st.builds(lambda name, pair: dpc.Real(name, *pair), names, bounds)
texts = st.lists(names, min_size=2, max_size=4, unique=True)
categories = st.builds(dpc.Category, names, texts, strict=st.just(value=True))
columns = st.one_of(reals, categories, st.builds(dpc.Binary, names, st.just(("no", "yes"))))


@given(st.lists(columns, max_size=5, unique_by=lambda column: column.name), st.sampled_from(["record", "outcome"]))
def test_schema_is_the_same_after_a_round_trip_through_toml(
    covariates: list[dpc.Real | dpc.Category], protects: str
) -> None:
    taken = {column.name for column in covariates}
    schema = dpc.Schema(
        treatment=dpc.Treatment("".join(taken) + "t", arms=(1, 2), labels=("a", "b"), undeclared=2),
        outcome=dpc.Real("".join(taken) + "y", -1, 2, missing=0),
        covariates=covariates,
        unit=dpc.Unit("person", by="date", keep="last"),
        protects=protects,  # type: ignore[arg-type]
    )
    assert dpc.Schema.from_toml(schema.to_toml()) == schema
    growing = replace(schema, unit=replace(schema.unit, keep="first"), entry="date")  # type: ignore[type-var]
    assert dpc.Schema.from_toml(growing.to_toml()) == growing


def test_schema_is_read_from_a_file(schema: dpc.Schema, tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(schema.to_toml(), encoding="utf-8")
    assert dpc.Schema.from_toml(file) == schema


def test_numbers_may_come_from_numpy() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", arms=(np.int64(0), np.int64(1)), undeclared=np.int64(0)),  # type: ignore[arg-type]
        outcome=dpc.Real("y", np.float64(0), np.int32(9)),  # type: ignore[arg-type]
    )
    plain = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 9))
    assert schema == plain
    assert schema.to_toml() == plain.to_toml()


def test_equivalent_declarations_have_the_same_meaning() -> None:
    assert dpc.Real("y", 0, 10).meaning == dpc.Real("y", 0.0, 10, missing=5).meaning
    assert dpc.Binary("t").meaning == dpc.Binary("t", values=(False, True), labels=("a", "b"), missing=False).meaning
    assert dpc.Category("c", ["a", "b"]).meaning == dpc.Category("c", ("a", "b"), missing="b").meaning
    assert dpc.Binary("t").meaning != dpc.Binary("t", values=(1, 0)).meaning
    assert dpc.Binary("t").meaning != dpc.Binary("t", values=("0", "1")).meaning


def test_what_changes_how_cells_are_read_changes_the_meaning() -> None:
    real, category = dpc.Real("y", 0, 10), dpc.Category("c", ["a", "b"])
    others = [
        replace(real, decimal=","), replace(real, thousands=""), replace(real, strip=["mg"]),
        replace(real, missing_codes=[9]),
        replace(real, percent=True), replace(real, since="2020-01-01"), replace(real, since="2020-01-02"),
        replace(real, since="2020-01-01", date_format="%d.%m.%Y"),
    ]  # fmt: skip
    meanings = [str(each.meaning) for each in (real, *others)]
    assert len(set(meanings)) == len(meanings)
    assert replace(real, strip=["MG ", "kg"]).meaning == replace(real, strip=("kg", "mg", "mg")).meaning
    assert replace(real, thousands=",").meaning not in (real.meaning, replace(real, thousands="").meaning)
    assert replace(real, missing_codes=[-9, 9]).meaning == replace(real, missing_codes=(9.0, -9, 9)).meaning
    assert replace(real, decimal=",", thousands=".").meaning == replace(real, decimal=",").meaning
    assert replace(real, thousands=" ").meaning == replace(real, thousands="\u00a0").meaning
    assert replace(real, since=dt.date(2020, 1, 1)).meaning == replace(real, since="2020-01-01").meaning
    assert replace(real, indicator=True).meaning == real.meaning  # which is another column's
    assert category.meaning != replace(category, strict=True).meaning
    assert category.meaning != replace(category, aliases={"a": ["x"]}).meaning
    assert category.meaning == replace(category, aliases={"a": ["A", " a"]}).meaning


def test_rules_are_the_same_after_a_round_trip_through_toml() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", aliases={1: ["drug"]}, undeclared=0),
        outcome=dpc.Real("y", 0, 1, decimal=",", thousands=".", strip=["€"], percent=True, missing_codes=[-9]),
        covariates=[
            dpc.Real("day", 0, 9, since="2020-01-31", date_format=["%d.%m.%Y", "%Y-%m-%d"], indicator=True),
            dpc.Binary("b", values=(False, True), aliases={True: ["ja"]}),
            dpc.Category("c", ["a", "b"], strict=True, aliases={"a": ["x y"]}),
        ],
    )
    assert [column.name for column in schema.covariates] == ["day", "day is missing", "b", "c"]
    assert dpc.Schema.from_toml(schema.to_toml()) == schema
    assert hash(schema) == hash(dpc.Schema.from_toml(schema.to_toml()))
    assert "date" not in dpc.Schema(dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 1)).to_toml()
    assert replace(schema, protects="outcome").public_columns == ("b", "c", "day", "t")
    given = dpc.Schema.from_toml(schema.to_toml().replace('since = "2020-01-31"', "since = 2020-01-31"))
    assert given == schema


def test_unit_cannot_be_ordered_by_the_column_of_an_indicator() -> None:
    parts = {"treatment": dpc.Treatment("t", undeclared=0), "outcome": dpc.Real("y", 0, 1)}
    with pytest.raises(SchemaError, match="which is not public, while"):
        dpc.Schema(
            **parts,  # type: ignore[arg-type]
            covariates=[dpc.Real("x", 0, 1, indicator=True)],
            unit=dpc.Unit("who", by="x"),
            protects="record_within_arm",
        )


def test_data_handling_says_how_cells_of_the_outcome_are_read() -> None:
    schema = dpc.Schema(
        dpc.Treatment("t", undeclared=0), dpc.Real("y", 0, 60, decimal=",", thousands=".", strip=["mg"])
    )
    assert schema.data_handling[-1] == "outcomes were read as numbers as in 1.234,5, without mg"
    answer = dpc.Binary("y", values=("no", "yes"), aliases={"yes": ["ja", "si"]})
    assert (
        dpc.Schema(dpc.Treatment("t", undeclared=0), answer).data_handling[-1]
        == "outcomes were read as ja or si for yes"
    )


def test_protected_column_must_not_decide_which_record_counts() -> None:
    """Else the public arm, and with it the arms' sizes, would tell of it."""
    parts = {
        "treatment": dpc.Treatment("t", undeclared=0),
        "outcome": dpc.Real("y", 0, 1),
        "covariates": [dpc.Real("x", 0, 1)],
    }
    for by, protects in (("y", "record_within_arm"), ("x", "record_within_arm"), ("y", "outcome")):
        with pytest.raises(SchemaError, match="which is not public, while"):
            dpc.Schema(**parts, unit=dpc.Unit("who", by=by), protects=protects)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="says whose a record is, and is also"):
        dpc.Schema(**parts, unit=dpc.Unit("y", by="when"))  # type: ignore[arg-type]
    schema = dpc.Schema(**parts, unit=dpc.Unit("who", by="when"), protects="outcome")  # type: ignore[arg-type]
    assert schema.public_columns == ("t", "when", "x")
    assert dpc.Schema(**parts, unit=dpc.Unit("who", by="y")).public_columns == ()  # type: ignore[arg-type]


def test_missing_values_count_as_declared() -> None:
    assert dpc.Real("age", 16, 60).missing_value == 38
    assert dpc.Real("age", 16, 60, missing=20).missing_value == 20
    assert dpc.Binary("t", values=("no", "yes")).missing_value == "no"
    assert dpc.Category("race", ["a", "b", "c"]).missing_value == "c"


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: dpc.Real("age", "-50", 60), "write numbers without quotation marks"),  # type: ignore[arg-type]
        (lambda: dpc.Real("age", -50, "60"), "write numbers without quotation marks"),  # type: ignore[arg-type]
        (lambda: dpc.Real("seen", "2020-01-31", "2021-01-31"), "count days"),  # type: ignore[arg-type]
        (lambda: dpc.Real("seen", "31.1.2020", 3650), "count days"),  # type: ignore[arg-type]
        (lambda: dpc.Real("age", (18, 100)), "the two without brackets"),  # type: ignore[arg-type]
        (
            lambda: dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1), unit="patient"),  # type: ignore[arg-type]
            r"unit=Unit\('patient', by=",
        ),
        (lambda: dpc.Real("age", 60, -50), "swap them: low=-50, high=60"),
        (lambda: dpc.Real("age", float("-inf"), 60), "the least and the greatest value"),
        (lambda: dpc.Real("age"), r"Real\('age', low=0, high=100\)"),
        (lambda: dpc.Real("age", low=16), r"Real\('age', low=0, high=100\)"),
        (lambda: dpc.Real("age", 16, 16), "two numbers that are apart"),
        (lambda: dpc.Binary("arm", values=(0, 1, 2)), "any other value is missing"),  # type: ignore[arg-type]
    ],
)
def test_hint_fits_the_mistake(wrong: Callable[[], object], hint: str) -> None:
    with pytest.raises(SchemaError, match=f"Hint: .*{hint}"):
        wrong()


def test_misspelt_name_is_suggested() -> None:
    text = dpc.Schema(treatment=dpc.Treatment("arm", undeclared=0), outcome=dpc.Real("y", 0, 1)).to_toml()
    with pytest.raises(SchemaError, match="Hint: did you mean 'high'"):
        dpc.Schema.from_toml(text.replace("high", "hihg"))
    with pytest.raises(SchemaError, match="Hint: correct the names"):
        dpc.Schema.from_toml(text.replace("high", "zzz"))


def test_data_handling_says_what_counts_as_what() -> None:
    arm, number, answer = dpc.Treatment("arm"), dpc.Real("y", 0, 60_000), dpc.Binary("y", values=("no", "yes"))
    missing = {
        None: "outside the comparison: units whose outcome is missing or no number",
        0.0: "a missing outcome, or one that is no number, counted as 0",
    }
    for value, words in missing.items():
        assert dpc.Schema(treatment=arm, outcome=replace(number, missing=value)).data_handling[:2] == (
            "outside the comparison: units whose arm is missing or not declared",
            f"{words}; numbers in text were read as in 1,234.5 or 1234,5",
        )
    before = dpc.Schema(arm, answer, [dpc.Real("before", 0, 1)], required=["before"])
    assert before.data_handling[1:] == (
        "outside the comparison: units whose outcome is missing or unknown",
        "outside the comparison: units without before",
    )
    assert before.covariate_handling(["before"]) == ()
    kept = dpc.Treatment("arm", arms=("a", "b", "c"), reference="b", compare="c", undeclared="b")
    assert dpc.Schema(treatment=kept, outcome=replace(answer, missing="no")).data_handling == (
        "outside the comparison: arm=a; a missing or undeclared arm counted as arm=b",
        "a missing or unknown outcome counted as no",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: dpc.Real("age", 60, 16),
        lambda: dpc.Real("age", 16, 16),
        lambda: dpc.Real("age", float("-inf"), 60),
        lambda: dpc.Real("age", float("nan"), 60),
        lambda: dpc.Real("age", -1e308, 1e308),
        lambda: dpc.Real("age", "16", 60),  # type: ignore[arg-type]
        lambda: dpc.Real("age", low=False, high=True),
        lambda: dpc.Real("age", 2**60, 2**60 + 1),
        lambda: dpc.Real("age", 0, 10**400),
        lambda: dpc.Real("age", 0, 1e-101),
        lambda: dpc.Real("age", 16, 60, missing="20"),  # type: ignore[arg-type]
        lambda: dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1), dpc.Real("x", 0, 1)),  # type: ignore[arg-type]
        lambda: dpc.Schema.from_toml("schema.toml"),
        lambda: dpc.Real("age", 16, 60, missing=99),
        lambda: dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1), [dpc.Real("x", 0, 1, missing=0)], required=["x"]),
        lambda: dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1), required=["y"]),
        lambda: dpc.Real("", 16, 60),
        lambda: dpc.Real("a\0b", 16, 60),
        lambda: dpc.Binary("t", values=(0, 0)),
        lambda: dpc.Binary("t", values=(0, "1")),
        lambda: dpc.Binary("t", values=(0, 1, 2)),  # type: ignore[arg-type]
        lambda: dpc.Binary("t", labels=("a", "a")),
        lambda: dpc.Binary("t", missing=3),
        lambda: dpc.Category("c", "abc"),
        lambda: dpc.Category("c", ["only"]),
        lambda: dpc.Category("c", ["a", "b\0"]),
        lambda: dpc.Category("c", ["a", "b"], missing="z"),
        lambda: dpc.Category("c", ["a", "A"]),
        lambda: dpc.Category("c", ["a", "a "]),
        lambda: dpc.Category("c", ["Ä", "ä"]),
        lambda: dpc.Category("c", ["a", "b"], aliases={"a": ["B"]}),
        lambda: dpc.Category("c", ["a", "b"], aliases={"a": ["x"], "b": ["X"]}),
        lambda: dpc.Category("c", ["a", "b"], strict=True, aliases={"a": ["b"]}),
        lambda: dpc.Category("c", ["a", "b"], aliases={"z": ["x"]}),
        lambda: dpc.Category("c", ["a", "b"], aliases={"a": "x"}),
        lambda: dpc.Category("c", ["a", "b"], aliases=["a"]),  # type: ignore[arg-type]
        lambda: dpc.Category("c", [1, 2], aliases={1: ["3"]}),
        lambda: dpc.Binary("t", aliases={0: ["yes"]}),
        lambda: dpc.Real("x", 0, 1, decimal=";"),
        lambda: dpc.Real("x", 0, 1, decimal=",", thousands=","),
        lambda: dpc.Real("x", 0, 1, thousands="x"),
        lambda: dpc.Real("x", 0, 1, missing_codes=["-9"]),  # type: ignore[list-item]
        lambda: dpc.Real("x", 0, 1, missing_codes=[math.nan]),
        lambda: dpc.Real("x", 0, 1, missing_codes=[-9], since="2020-01-01"),
        lambda: dpc.Real("x", 0, 1, strip=["5"]),
        lambda: dpc.Real("x", 0, 1, strip=[" "]),
        lambda: dpc.Real("x", 0, 1, since="31.01.2020"),
        lambda: dpc.Real("x", 0, 1, date_format="%d.%m.%Y"),
        lambda: dpc.Real("x", 0, 1, since="2020-01-01", decimal=","),
        lambda: dpc.Real("x", 0, 1, since="2020-01-01", date_format="%d.%m.%y"),
        lambda: dpc.Real("x", 0, 1, since="2020-01-01", date_format=["%d/%m/%Y", "%m/%d/%Y"]),
        lambda: dpc.Real("x", 0, 1, since="2020-01-01", date_format=["%Y%m%d", "%d%m%Y"]),
        lambda: dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, indicator=True)),
        lambda: dpc.Unit("person", by="date", keep="any"),  # type: ignore[arg-type]
        lambda: dpc.Schema(treatment=dpc.Real("t", 0, 1), outcome=dpc.Real("y", 0, 1)),  # type: ignore[arg-type]
        lambda: dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Category("y", ["a", "b"])),  # type: ignore[arg-type]
        lambda: dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("t", 0, 1)),
        lambda: dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=["x"]),  # type: ignore[list-item]
        lambda: dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), protects="all"),  # type: ignore[arg-type]
        lambda: dpc.Schema.from_toml("treatment = 3"),
        lambda: dpc.Schema.from_toml('[treatment]\nname = "t"\n[outcome]\nkind = "date"\nname = "y"'),
        lambda: dpc.Schema.from_toml('[treatment]\nname = "t"\n[outcome]\nkind = "real"\nname = "y"\nlow = 0'),
    ],
)
def test_contradictions_are_refused_with_a_hint(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(SchemaError, match="Hint: "):
        wrong()
