"""Tables with names and codes of their own: what a schema declares is read from them, cell by cell, as declared."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from dpcausal import Binary, Budget, Category, DifferenceInMeans, Real, Schema, Treatment, Unit, Vault
from dpcausal.errors import SchemaError
from dpcausal.schema.mapping import ColumnMapping, LocalColumn
from dpcausal.vault.engines import MappedEngine, with_schema
from dpcausal.vault.table import open_table

SCHEMA = Schema(
    treatment=Treatment("arm", arms=("placebo", "drug", "other"), compare="drug"),
    outcome=Real("score", 0, 10),
    covariates=[
        Binary("sex", values=("female", "male"), indicator=True),
        Category("race", values=("white", "black", "unknown")),
        Real("age", 16, 60),
    ],
    unit=Unit("patient", by="visit"),
)
MAPPING = ColumnMapping(
    {
        "arm": LocalColumn(column="trt", codes={"placebo": "P", "drug": ["D", "D2"], "other": "O"}),
        "sex": LocalColumn(column="gender_concept_id", codes={"male": 8507, "female": 8532}),
        "race": LocalColumn(column="race_concept_id", codes={"white": 8527, "black": 8516, "unknown": 0}),
        "score": LocalColumn(column="result"),
        "patient": LocalColumn(column="person_id"),
        "visit": LocalColumn(column="visit_date"),
    }
)
COLUMNS = ["treatment", "outcome", *(f"covariate_{place}" for place in range(4))]
# Hostile cells and codes that nobody mapped, each beside what it is in the words of the schema.
ARMS = {"P": "placebo", "D": "drug", "D2": "drug", "O": "other", "d": None, " P": None, "placebo": None, None: None}
SEXES = {8507: "male", 8532: "female", 0: None, 1: None, -(2**62): None, 8508: None, None: None}
RACES = {8527: "white", 8516: "black", 0: "unknown", 8515: None, 2**62: None, None: None}


def tables() -> tuple[pa.Table, pa.Table]:
    """Return a table with local codes, and the same in the words of the schema."""
    draw = np.random.default_rng(3)
    local = {
        "trt": [[*ARMS][place] for place in draw.integers(0, len(ARMS), 400)],
        "gender_concept_id": [[*SEXES][place] for place in draw.integers(0, len(SEXES), 400)],
        "race_concept_id": [[*RACES][place] for place in draw.integers(0, len(RACES), 400)],
        "result": [[0.5, 3.25, -1e300, 1e300, 11.0, None][place] for place in draw.integers(0, 6, 400)],
        "age": draw.integers(0, 99, 400).tolist(),
        "person_id": draw.integers(0, 200, 400).tolist(),
        "visit_date": list(range(400)),
        "sex": ["male"] * 400,  # a column that the mapping hides
    }
    common = {
        "arm": [ARMS[each] for each in local["trt"]],
        "sex": [SEXES[each] for each in local["gender_concept_id"]],
        "race": [RACES[each] for each in local["race_concept_id"]],
        "score": local["result"],
        "age": local["age"],
        "patient": local["person_id"],
        "visit": local["visit_date"],
    }
    return pa.table(local), pa.table(common)


def as_csv(table: pa.Table, folder: Path) -> str:
    pa_csv.write_csv(table, folder / "table.csv")
    return str(folder / "table.csv")


def as_parquet(table: pa.Table, folder: Path) -> str:
    pq.write_table(table, folder / "table.parquet")
    return str(folder / "table.parquet")


def rows(table: object, schema: Schema, mapping: ColumnMapping, seen: Schema | None = None) -> list[tuple[int, ...]]:
    """Return the coerced table, sorted."""
    engine = MappedEngine(open_table(table, mapping.local(schema)), mapping)
    found = with_schema(engine, seen or schema).collect(COLUMNS, 10_000, whole=True)
    return sorted(zip(*(found[name].tolist() for name in COLUMNS), strict=True))


@pytest.mark.parametrize("stored", [as_csv, as_parquet, lambda table, _: table])
def test_every_cell_is_what_it_is_in_the_words_of_the_schema(
    stored: Callable[[pa.Table, Path], object], tmp_path: Path
) -> None:
    local, common = tables()
    wanted = rows(common, SCHEMA, ColumnMapping())
    assert len({each[:1] + each[2:5] for each in wanted}) > 20
    assert rows(stored(local, tmp_path), SCHEMA, MAPPING) == wanted
    narrower = SCHEMA.narrowed(2, 4)
    assert rows(stored(local, tmp_path), SCHEMA, MAPPING, narrower) == rows(common, narrower, ColumnMapping())


def test_one_record_moves_its_own_row_only() -> None:
    local, _ = tables()
    schema = replace(SCHEMA, unit=None)
    before = rows(local, schema, MAPPING)
    for column, code in (("trt", "nobody's"), ("gender_concept_id", 7), ("race_concept_id", -1)):
        place = local.column_names.index(column)
        cells = [code, *local[column].to_pylist()[1:]]
        after = rows(local.set_column(place, column, pa.array(cells, local[column].type)), schema, MAPPING)
        assert sum(each not in after for each in before) <= 1
        assert len(after) == len(before)


def test_a_mapping_that_reads_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: codes in the order of the table's own values, which is right for most tables."""
    local, common = tables()
    seen = sorted({each for each in local["gender_concept_id"].to_pylist() if each})
    guessed = LocalColumn(column="gender_concept_id", codes=dict(zip(("male", "female"), seen, strict=False)))
    mapping = ColumnMapping({**MAPPING.columns, "sex": guessed})
    assert rows(local, SCHEMA, mapping) != rows(common, SCHEMA, ColumnMapping())


def test_a_vault_asks_in_the_words_of_the_schema() -> None:
    local, common = tables()
    budget = Budget(epsilon=1000)
    mapped = Vault(local, SCHEMA, ledger="sqlite://", budget=budget, mapping=MAPPING)
    plain = Vault(common, SCHEMA, ledger="sqlite://", budget=budget)
    assert (mapped.n, mapped.schema) == (plain.n, SCHEMA)
    first, second = (DifferenceInMeans().estimate(vault, epsilon=100) for vault in (mapped, plain))
    assert first.estimate == pytest.approx(second.estimate, abs=0.5)
    assert first.contrasts == second.contrasts


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sex": {"column": "g", "codes": {"male": 1, "diverse": 2}}}, "no code for these values of 'sex': female"),
        ({"age": {"column": "years", "codes": {"16": 1, "17": 2}}}, "'age' is a number"),
        ({"race": {"column": "age"}}, "declared twice"),
        ({"race": {"column": "x"}, "sex": {"column": "X"}}, "two declared columns"),
        ({"sex": {"column": "g", "codes": {"male": [1, 2], "female": 3}}}, "must be texts"),
        ({"sex": {"column": "g", "codes": {"male": 1, "female": 1}}}, "different values"),
        ({"sex": {"column": "g", "codes": {"male": 1, "female": "F"}}}, "all be strings or all be finite"),
        ({"sex": {"column": "g", "codes": {"male": ["A"], "female": []}}}, "must be texts"),
        ({"sex": {"column": "g", "codes": [1, 2]}}, "how each value is written"),
        ({"sex": {"column": ""}}, "name"),
        ({"sex": {"name": "g"}}, "name"),
    ],
)
def test_a_mapping_that_cannot_hold_is_refused_before_a_table_is_opened(changes: dict[str, object], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        ColumnMapping.from_dict(changes).local(replace(SCHEMA, unit=None))


def test_numbers_are_mapped_by_value_and_the_digest_says_how() -> None:
    schema = Schema(Treatment("arm"), Binary("died"), protects="record_within_arm")
    document = {"died": {"column": "dead", "codes": {"0": "no", "1": "yes"}}, "arm": {"column": "trt"}}
    mapping = ColumnMapping.from_dict(document)
    assert mapping.local(schema).outcome.values == ("no", "yes")  # type: ignore[union-attr]
    assert mapping.local(schema).treatment.name == "trt"
    assert mapping.lines(schema) == ("arm from trt", "died from dead: no as 0, yes as 1; anything else is missing")
    swapped = ColumnMapping.from_dict({**document, "died": {"column": "dead", "codes": {"0": "yes", "1": "no"}}})
    assert len({mapping.digest, swapped.digest, ColumnMapping().digest}) == 3
    assert not ColumnMapping().digest


def test_long_numbers_are_mapped_digit_by_digit() -> None:
    answers = Category("answer", values=(45877994, 45877955, 0.1234567))
    codes = {"45877994": "yes", "45877955": "no", "0.1234567": "other"}
    assert LocalColumn(column="value", codes=codes).seen_as(answers).values == ("yes", "no", "other")
