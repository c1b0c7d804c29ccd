"""The cohort of docs/omop.md, in DuckDB and in PostgreSQL: the right people, one record each, made of them alone."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpcausal as dpc
from checks.documents import ROOT, blocks
from tests.support.omop_warehouse import warehouse
from tests.support.postgres import VARIABLE, fresh_database

Run = Callable[[str], list[Any]]
COLUMNS = ("drug", "stay", "age", "sex", "diabetes", "stay_before", "systolic")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The cohort and the schema of the page, with a warehouse that tries every rule of the cohort."""
    names: dict[str, Any] = {}
    text = (ROOT / "docs" / "omop.md").read_text(encoding="utf-8")
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("omop"))
    try:
        for block in [block for block in blocks(text) if block.language == "python"][:3]:
            exec(compile(block.body, "omop.md", "exec"), names)  # noqa: S102 (our own page)
    finally:
        os.chdir(before)
    return names | {"tables": warehouse(3_000)}


@contextmanager
def in_duckdb(tables: dict[str, pa.Table], folder: Path) -> Iterator[tuple[Run, str]]:
    """How to ask the warehouse's owner, and the address of the cohort."""
    path = folder / "warehouse.duckdb"
    with duckdb.connect(str(path)) as warehouse:
        for name, content in tables.items():
            warehouse.register("content", content)
            warehouse.execute(f"CREATE TABLE {name} AS SELECT * FROM content")

    def run(text: str) -> list[Any]:
        with duckdb.connect(str(path)) as connection:
            return connection.execute(text).fetchall()

    yield run, f"{path}#cohort"


@contextmanager
def in_postgresql(tables: dict[str, pa.Table], folder: Path) -> Iterator[tuple[Run, str]]:
    kinds = {pa.int64(): "bigint", pa.date32(): "date", pa.float64(): "double precision"}
    with fresh_database() as url, psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as server:
        for name, content in tables.items():
            declared = ", ".join(f"{field.name} {kinds[field.type]}" for field in content.schema)
            server.execute(f"CREATE TABLE {name} ({declared})".encode())
            with server.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for line in zip(*(column.to_pylist() for column in content.columns), strict=True):
                    copy.write_row(line)
            if "person_id" in content.column_names:  # as warehouses have it
                server.execute(f"CREATE INDEX ON {name} (person_id); ANALYZE {name}".encode())

        def run(text: str) -> list[Any]:
            cursor = server.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

        yield run, url.replace("+psycopg", "") + "#cohort"


no_server = pytest.mark.skipif(VARIABLE not in os.environ, reason=f"no PostgreSQL server: {VARIABLE} is not set")
ENGINES = [
    pytest.param(in_duckdb, id="duckdb"),
    pytest.param(in_postgresql, id="postgresql", marks=[no_server, pytest.mark.xdist_group("postgresql")]),
]


def records(run: Run) -> list[tuple[Any, ...]]:
    found = run(f"SELECT {', '.join(COLUMNS)} FROM cohort")
    return sorted((tuple(line) for line in found), key=str)


def expected(tables: dict[str, pa.Table]) -> dict[int, tuple[Any, ...]]:
    """The same cohort, person by person in plain Python."""
    told = {name: content.to_pylist() for name, content in tables.items()}

    def of(name: str, person: int) -> list[dict[str, Any]]:
        return by_person[name].get(person, [])

    by_person: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for name in set(told) - {"concept_ancestor"}:
        for event in told[name]:
            by_person.setdefault(name, {}).setdefault(event["person_id"], []).append(event)
    ingredient = {each["descendant_concept_id"]: each["ancestor_concept_id"] for each in told["concept_ancestor"]}
    cohort = {}
    for person in told["person"]:
        own = person["person_id"]
        drugs = of("drug_exposure", own)
        if not drugs:
            continue
        day_0 = min(each["drug_exposure_start_date"] for each in drugs)
        first = {ingredient[each["drug_concept_id"]] for each in drugs if each["drug_exposure_start_date"] == day_0}
        (period,) = of("observation_period", own)
        age = day_0.year - person["year_of_birth"]
        conditions = [
            (each["condition_concept_id"], (each["condition_start_date"] - day_0).days)
            for each in of("condition_occurrence", own)
        ]
        stays = [
            (each["visit_start_date"] - day_0).days
            for each in of("visit_occurrence", own)
            if each["visit_concept_id"] == 9201
        ]
        pressures = [
            each["value_as_number"]
            for each in of("measurement", own)
            if -180 <= (each["measurement_date"] - day_0).days <= -1
        ]
        watched = (day_0 - period["observation_period_start_date"]).days >= 365
        watched &= period["observation_period_end_date"] >= day_0
        ill = any(concept == 320128 and day <= 0 for concept, day in conditions)
        if len(first) == 1 and age >= 18 and 2017 <= day_0.year <= 2021 and watched and ill:
            cohort[own] = (
                "lisinopril" if first == {1308216} else "hydrochlorothiazide",
                int(any(1 <= day <= 90 for day in stays)),
                float(age),
                "female" if person["gender_concept_id"] == 8532 else "male",
                int(any(concept == 201826 and day < 0 for concept, day in conditions)),
                int(any(-365 <= day <= -1 for day in stays)),
                max(pressures, default=None),
            )
    return cohort


@pytest.mark.parametrize("engine", ENGINES)
def test_the_cohort_is_the_protocol(engine: Any, page: dict[str, Any], tmp_path: Path) -> None:
    with engine(page["tables"], tmp_path) as (run, address):
        run(page["COHORT"])
        found = records(run)
        assert len(found) > 800
        assert found == sorted(expected(page["tables"]).values(), key=str)
        vault = dpc.Vault(address, page["schema"], ledger="sqlite://", budget=dpc.Budget(epsilon=20))
        assert vault.n == len(found)
        treated, control = (
            [line[1] for line in found if line[0] == drug] for drug in ("lisinopril", "hydrochlorothiazide")
        )
        effect = dpc.DifferenceInMeans().estimate(vault, epsilon=20.0)
        assert effect.estimate == pytest.approx(np.mean(treated) - np.mean(control), abs=0.02)
        del vault


HOSTILE = [
    "UPDATE person SET year_of_birth = -9223372036854775808 WHERE person_id = {who}",
    "UPDATE person SET year_of_birth = NULL, gender_concept_id = 9223372036854775807 WHERE person_id = {who}",
    "UPDATE drug_exposure SET drug_exposure_start_date = DATE '-infinity' WHERE person_id = {who}",
    "UPDATE drug_exposure SET drug_exposure_start_date = DATE 'infinity' WHERE person_id = {who}",
    "UPDATE visit_occurrence SET visit_start_date = DATE '-infinity' WHERE person_id = {who}",
    "UPDATE measurement SET measurement_date = NULL, value_as_number = 'NaN' WHERE person_id = {who}",
    "UPDATE measurement SET value_as_number = 'infinity' WHERE person_id = {who}",
    "UPDATE observation_period SET observation_period_start_date = DATE '-infinity' WHERE person_id = {who}",
    "INSERT INTO condition_occurrence SELECT * FROM condition_occurrence WHERE person_id = {who}",
    "DELETE FROM visit_occurrence WHERE person_id = {who}",
]


def most_that_changes(engine: Any, page: dict[str, Any], cohort: str, folder: Path) -> int:
    """How many records differ at most, when the events of one person of the cohort do, over all hostile changes."""
    few = {
        name: content.filter(pc.less(content["person_id"], 300)) if "person_id" in content.column_names else content
        for name, content in page["tables"].items()
    }
    people = list(expected(few))
    assert len(people) > len(HOSTILE)
    most = []
    with engine(few, folder) as (run, _):
        run(cohort)
        for who, change in zip(people, HOSTILE, strict=False):
            before = Counter(map(str, records(run)))
            run(change.format(who=who))
            after = Counter(map(str, records(run)))
            most.append(max((before - after).total(), (after - before).total()))
    return max(most)


@pytest.mark.parametrize("engine", ENGINES)
def test_whatever_one_persons_events_are_no_other_record_changes(
    engine: Any, page: dict[str, Any], tmp_path: Path
) -> None:
    assert most_that_changes(engine, page, page["COHORT"], tmp_path) == 1


def test_a_view_that_looks_at_others_is_caught(page: dict[str, Any], tmp_path: Path) -> None:
    centred = page["COHORT"].replace("\n    age,\n", "\n    age - AVG(age) OVER () AS age,\n")
    assert centred != page["COHORT"]
    assert most_that_changes(in_duckdb, page, centred, tmp_path) > 1


def test_a_view_that_one_value_stops_is_caught(page: dict[str, Any], tmp_path: Path) -> None:
    narrow = page["COHORT"].replace("DOUBLE PRECISION", "BIGINT")
    with pytest.raises(duckdb.OutOfRangeException):
        most_that_changes(in_duckdb, page, narrow, tmp_path)
