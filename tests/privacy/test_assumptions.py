"""What proofs assume cannot be moved between vaults, versions, periods, sessions or schemas: each attempt is refused.

The attempts are rows of docs/assumptions.csv, by name. For each mechanism that refuses there is a mutant
without it, which lets the attempts through that rest on it.
"""

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal import queries
from dpcausal.errors import (
    BudgetExceededError,
    DpcausalError,
    GuaranteeError,
    LedgerError,
    QueryError,
    SchemaError,
)
from dpcausal.guarantee import Event
from dpcausal.ledger import DataSet, refusals
from dpcausal.ledger import allocation as allocations
from dpcausal.ledger import population as populations
from dpcausal.ledger.allocation import Allocation
from dpcausal.ledger.layers import Allocated
from dpcausal.queries import ArmMoments, Cut, LookMoments, Query
from dpcausal.queries.calibration import Asked
from dpcausal.schema import schema as schemas
from dpcausal.schema.scale import Scale
from dpcausal.study.secure_settings import SecureSettings
from dpcausal.vault import door

DOCS = Path(__file__).parents[2] / "docs"
LISTED = DOCS / "assumptions.csv"

SIZE = 60
TABLE = pa.table(
    {
        "who": list(range(SIZE)),
        "stay": list(range(SIZE)),
        "day": ["2026-01-01"] * SIZE,
        "hour": [1] * SIZE,
        "arm": [0, 1] * (SIZE // 2),
        "ward": [0, 0, 1, 1] * (SIZE // 4),
        "y": [0.2, 0.7] * (SIZE // 2),
        "x": [0.1, 0.4, 0.6] * (SIZE // 3),
        "week": [1, 2, 3] * (SIZE // 3),
    }
)
ARM, WARD, X = dpc.Treatment("arm"), dpc.Treatment("ward"), dpc.Real("x", 0, 1)
WEEK, UNIT = dpc.Category("week", [1, 2, 3]), dpc.Unit("who", by="day")
SCHEMA = dpc.Schema(ARM, dpc.Real("y", 0, 1), [X, WEEK], unit=UNIT, entry="week")
BUDGET, ONE = dpc.Budget(epsilon=1, delta=1e-5), dpc.Guarantee(epsilon=1.0)
AS_OF, LATER = "2026-06", "2026-07"
Move = Callable[[], object]


@dataclass(frozen=True)
class Attempt:
    """An attempt to move something that a proof assumes.

    Attributes:
        prepare: Does what is allowed in a new folder, and returns the move.
        error: How the move is refused.
        words: What the refusal says.
    """

    prepare: Callable[[Path], Move]
    error: type[DpcausalError]
    words: str

    def is_refused(self, folder: Path) -> bool:
        move = self.prepare(folder)
        try:
            move()
        except self.error as refused:
            return re.search(self.words, str(refused)) is not None
        return False


def new_ledger(place: Path | str = "sqlite://") -> dpc.Ledger:
    return dpc.Ledger.create(place, BUDGET, as_of=AS_OF)


def opened(ledger: dpc.Ledger, schema: dpc.Schema = SCHEMA, as_of: str = AS_OF, **more: Any) -> dpc.Vault:
    return dpc.Vault(TABLE, schema, ledger=ledger, as_of=as_of, **more)


def reopened(schema: dpc.Schema, first: dpc.Schema = SCHEMA, words: str = "another data set", **more: Any) -> Attempt:
    """Open another vault on the ledger, with another schema, on a later version of the data."""

    def prepare(_: Path) -> Move:
        ledger = new_ledger()
        opened(ledger, first)
        ledger.add_version(LATER)
        return lambda: opened(ledger, schema, LATER, **more)

    return Attempt(prepare, LedgerError, words)


def paid_again(schema: dpc.Schema, query: Query | None = None, first: dpc.Schema = SCHEMA) -> Attempt:
    """Ask the same query with another schema: it is another question, for which nothing is left."""

    def prepare(_: Path) -> Move:
        ledger = new_ledger()
        opened(ledger, first).release(query or ArmMoments(), ONE)
        return lambda: opened(ledger, schema).release(query or ArmMoments(), ONE)

    return Attempt(prepare, BudgetExceededError, "Budget exceeded")


def seen_otherwise(*views: Mapping[str, Scale]) -> Attempt:
    """Ask the same query of two views of a vault: they are different questions, and nothing is left for the second."""

    def prepare(_: Path) -> Move:
        vault, query = opened(new_ledger()), queries.CovariateSums(["x"])
        vault.scaled(views[0]).release(query, ONE)
        return lambda: vault.scaled(views[1]).release(query, ONE)

    return Attempt(prepare, BudgetExceededError, "Budget exceeded")


def asked(query: Query, guarantee: dpc.Guarantee, error: type[DpcausalError], words: str, **more: Any) -> Attempt:
    return Attempt(lambda _: lambda: opened(new_ledger(), **more).release(query, guarantee), error, words)


def declared(words: str, **changes: Any) -> Attempt:
    return Attempt(lambda _: lambda: replace(SCHEMA, **changes), SchemaError, words)


def session(guarantee: dpc.Guarantee = ONE, **changes: Any) -> Attempt:
    """Ask a session of secure sums a second question."""

    def prepare(_: Path) -> Move:
        vault = opened(new_ledger())
        usual: dict[str, Any] = {"session": "a" * 64, "members": "b" * 64, "honest": 2, "mask": [7] * 6}
        vault.contribute([Asked(ArmMoments(), ONE)], **usual)
        return lambda: vault.contribute([Asked(ArmMoments(), guarantee)], **usual | changes)

    return Attempt(prepare, QueryError, "the question that this session")


def drawn(words: str, schema: dpc.Schema = SCHEMA, vault: Mapping[str, Any] | None = None, **people: Any) -> Attempt:
    """Open a vault on an experiment's ledger."""

    def prepare(folder: Path) -> Move:
        place = f"sqlite:///{folder / 'population.db'}"
        usual: dict[str, Any] = {"unit": "who"} | people
        ledger = dpc.Population.create(place, "people", BUDGET, **usual).allocate("e", BUDGET, as_of=AS_OF)
        return lambda: opened(ledger, schema, **vault or {})

    return Attempt(prepare, LedgerError, words)


def _other_table(_: Path) -> Move:
    ledger = new_ledger()
    opened(ledger)
    return lambda: dpc.Vault(TABLE.slice(1), SCHEMA, ledger=ledger, as_of=AS_OF)


def _other_budget(budget: dpc.Budget) -> Callable[[Path], Move]:
    return lambda _: lambda: opened(new_ledger(), budget=budget)


def _second_look(_: Path) -> Move:
    vault = opened(new_ledger())
    return lambda: vault.release(LookMoments(Cut("week"), 2), ONE)


def _other_price(_: Path) -> Move:
    ledger = new_ledger()
    ledger.grant("request", Event(family="laplace", epsilon=0.5, delta=0.0, mu=0.0), {})
    return lambda: ledger.grant("request", Event(family="laplace", epsilon=0.1, delta=0.0, mu=0.0), {})


def _restored(folder: Path) -> Move:
    ledger = new_ledger(folder / "ledger.db")
    copy = folder / "copy.db"
    copy.write_bytes((folder / "ledger.db").read_bytes())
    receipt = opened(ledger).release(ArmMoments(), dpc.Guarantee(epsilon=0.5)).receipt
    (folder / "ledger.db").unlink()
    again = dpc.Ledger.restore(
        folder / "ledger.db", copy=f"sqlite:///{copy}", by="bob", reason="why", receipts=[receipt], lost_epsilon=0.0
    )
    return lambda: opened(again, replace(SCHEMA, unit=dpc.Unit("stay", by="day")))


def _allocated(folder: Path, **people: Any) -> tuple[dpc.Population, dpc.Ledger]:
    place = f"sqlite:///{folder / 'population.db'}"
    population = dpc.Population.create(place, "people", dpc.Budget(epsilon=4, delta=1e-5), **people)
    return population, population.allocate("e", dpc.Budget(epsilon=1, delta=1e-6), as_of=AS_OF)


def _next_period(folder: Path) -> Move:
    _, ledger = _allocated(folder, period="year")

    def move() -> None:
        with pytest.MonkeyPatch.context() as patch:
            for module in (allocations, populations):
                patch.setattr(module, "today", lambda: date(2999, 1, 1))
            ledger.grant("request", Event(family="laplace", epsilon=0.1, delta=0.0, mu=0.0), {})

    return move


def _other_terms(folder: Path) -> Move:
    population, _ = _allocated(folder)
    return lambda: population.allocate("e", dpc.Budget(epsilon=2, delta=1e-6), as_of=AS_OF)


LAYERS = {"page": dpc.Layer("ward", 2)}


def _in_a_layer(folder: Path) -> tuple[dpc.Population, dpc.Ledger]:
    place = f"sqlite:///{folder / 'population.db'}"
    population = dpc.Population.create(place, "people", dpc.Budget(epsilon=4, delta=1e-4), unit="who", layers=LAYERS)
    return population, population.allocate("e", BUDGET, as_of=AS_OF, layer="page", buckets=[1])


def _other_buckets(folder: Path) -> Move:
    population, _ = _in_a_layer(folder)
    return lambda: population.allocate("e", BUDGET, as_of=AS_OF, layer="page", buckets=[0, 1])


def _taken_buckets(folder: Path) -> Move:
    population, _ = _in_a_layer(folder)
    return lambda: population.allocate("f", BUDGET, as_of=AS_OF, layer="page", buckets=[0, 1])


def _claimed_schema(folder: Path) -> Move:
    _, ledger = _in_a_layer(folder)
    return lambda: opened(ledger, replace(SCHEMA, claim=dpc.Layer("hour", 2).claim("page", [1])))


def _unclaimed_schema(_: Path) -> Move:
    return lambda: opened(new_ledger(), replace(SCHEMA, claim=dpc.Layer("ward", 2).claim("page", [1])))


OUTCOME = dpc.Schema(ARM, dpc.Real("y", 0, 1), [X], protects="outcome")
TRIAL = dpc.Schema(ARM, dpc.Real("y", 0, 1), [X], protects="record_within_arm")
KEPT = replace(SCHEMA, outcome=dpc.Real("y", 0, 1, missing=0))
TOTALS = replace(KEPT, unit=dpc.Unit("who", by="day", sum=["y"]))
LOOK = LookMoments(Cut("week"), 1)

ATTEMPTS: dict[str, Attempt] = {
    "who a unit is": reopened(replace(SCHEMA, unit=dpc.Unit("stay", by="day"))),
    "whether a unit has several records": reopened(replace(SCHEMA, unit=None)),
    "which of its records counts": reopened(
        replace(SCHEMA, entry=None, unit=dpc.Unit("who", by="day", keep="last")), replace(SCHEMA, entry=None)
    ),
    "what orders its records": reopened(replace(SCHEMA, unit=dpc.Unit("who", by="hour"))),
    "how dates that order them are read": reopened(
        replace(SCHEMA, unit=dpc.Unit("who", by="day", date_format="%d.%m.%Y"))
    ),
    "which columns are added up": paid_again(TOTALS, first=KEPT),
    "what is protected": reopened(replace(TRIAL, protects="record"), TRIAL),
    "the guarantee of a release": asked(
        ArmMoments(), dpc.Guarantee(epsilon=1.0, protects="outcome"), GuaranteeError, "protects record"
    ),
    "which arms are public": reopened(replace(TRIAL, treatment=WARD), TRIAL),
    "which covariates are public": reopened(replace(OUTCOME, covariates=[X, WEEK]), OUTCOME),
    "the column of entry": reopened(replace(SCHEMA, entry="x"), words="write entry='week'"),
    "that there is a column of entry": reopened(replace(SCHEMA, entry=None), words="write entry='week'"),
    "that there is none": reopened(SCHEMA, replace(SCHEMA, entry=None), words="leave entry out"),
    "cohorts of a schedule": asked(LookMoments(Cut("x", [0.3, 0.5]), 1), ONE, QueryError, "by which units enter"),
    "entry is no total": declared("a total over", unit=dpc.Unit("who", by="day", sum=["x"]), entry="x"),
    "entry is of the first record": declared("keep", unit=dpc.Unit("who", by="day", keep="last")),
    "entry is neither arm nor outcome": declared("the treatment or the outcome", entry="y"),
    "how cohorts are read": paid_again(replace(SCHEMA, covariates=[X, dpc.Category("week", [1, 3, 2])]), LOOK),
    "the order of looks": Attempt(_second_look, LedgerError, "look before this one"),
    "the number of units": Attempt(_other_table, LedgerError, "another number of units"),
    "the version of the data": Attempt(
        lambda _: lambda: opened(new_ledger(), as_of=LATER), LedgerError, "does not know the version"
    ),
    "bounds of an outcome": paid_again(replace(KEPT, outcome=dpc.Real("y", 0, 0.5, missing=0)), first=KEPT),
    "whether a unit needs an outcome": paid_again(
        SCHEMA, first=replace(SCHEMA, outcome=dpc.Real("y", 0, 1, missing=0.5))
    ),
    "which covariates a unit needs": paid_again(replace(SCHEMA, required=["x"])),
    "arms": paid_again(replace(SCHEMA, treatment=dpc.Treatment("arm", arms=(0, 1, 2), compare=2))),
    "categories and bounds of covariates": paid_again(
        replace(SCHEMA, covariates=[dpc.Real("x", 0, 2), WEEK]), queries.CovariateSums(["x"])
    ),
    "whether a covariate has a scale": seen_otherwise({}, {"x": Scale([(0, -1), (0.5, 1)])}),
    "the scale of a covariate": seen_otherwise({"x": Scale([(0, -1), (1, 1)])}, {"x": Scale([(0, -1), (0.5, 1)])}),
    "entry has no scale": Attempt(
        lambda _: lambda: opened(new_ledger(), replace(SCHEMA, entry="x")).scaled({"x": Scale([(0, -1), (1, 1)])}),
        SchemaError,
        "not the column of entry",
    ),
    "the budget": Attempt(_other_budget(dpc.Budget(epsilon=2)), LedgerError, "This ledger was created with the budget"),
    "the rule of adding up": Attempt(
        _other_budget(dpc.Budget(epsilon=1, delta=1e-6, rule="zcdp")),
        LedgerError,
        "This ledger was created with the budget",
    ),
    "the price of a request": Attempt(_other_price, LedgerError, "the price that was reserved"),
    "the question of a session": session(guarantee=dpc.Guarantee(epsilon=0.5)),
    "the members of a session": session(members="c" * 64),
    "how many sites are honest": session(honest=3),
    "the data set after a restore": Attempt(_restored, LedgerError, "restored from a copy of before"),
    "who a person is": drawn(r"Unit\('who', …\), as the population", replace(SCHEMA, unit=dpc.Unit("stay", by="day"))),
    "that a person has several records": drawn("Unit", replace(SCHEMA, unit=None)),
    "that a person has one record": drawn("one record for each", unit=""),
    "what a population protects": drawn("'record' or stronger", TRIAL, unit=""),
    "what a population declares public": drawn(
        "public columns out of arm",
        replace(TRIAL, treatment=WARD),
        unit="",
        protects="record_within_arm",
        public=["arm"],
    ),
    "the period of a budget": Attempt(_next_period, LedgerError, "a day within the period"),
    "the terms of an allocation": Attempt(_other_terms, LedgerError, "was allocated"),
    "the buckets of an experiment": Attempt(_other_buckets, LedgerError, "was allocated"),
    "that buckets have one open experiment": Attempt(_taken_buckets, LedgerError, "and is still open"),
    "the column of buckets": Attempt(_claimed_schema, SchemaError, "the units that the ledger is for"),
    "that units are in any bucket": Attempt(_unclaimed_schema, SchemaError, "the units that the ledger is for"),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_a_proof_assumes_cannot_be_moved(name: str, tmp_path: Path) -> None:
    attempt = ATTEMPTS[name]
    move = attempt.prepare(tmp_path)
    with pytest.raises(attempt.error, match=attempt.words):
        move()


def _data_set_without(**parts: Any) -> Callable[[pytest.MonkeyPatch], None]:
    def mutate(patch: pytest.MonkeyPatch) -> None:
        right = DataSet.of
        patch.setattr(DataSet, "of", lambda *given: replace(right(*given), **parts))

    return mutate


def _without(place: object, name: str, instead: object = None) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(place, name, lambda *_, **__: instead)


def _any_count(patch: pytest.MonkeyPatch) -> None:
    right: Any = dpc.Ledger._check_data_set
    patch.setattr(dpc.Ledger, "_check_data_set", lambda *given: right(*given[:-1], None))


def _any_version(patch: pytest.MonkeyPatch) -> None:
    right = dpc.Ledger.check_data_set

    def declaring(self: dpc.Ledger, as_of: str, *given: Any) -> None:
        if as_of not in self.versions:
            self.add_version(as_of)
        right(self, as_of, *given)

    patch.setattr(dpc.Ledger, "check_data_set", declaring)


def _question_without(*parts: str) -> Callable[[pytest.MonkeyPatch], None]:
    def mutate(patch: pytest.MonkeyPatch) -> None:
        right = queries.question
        patch.setattr(queries, "question", lambda *given: right(*given) | dict.fromkeys(parts))

    return mutate


def _columns_without_scales(patch: pytest.MonkeyPatch) -> None:
    right: Any = dpc.Real.meaning
    patch.setattr(dpc.Real, "meaning", property(lambda column: right.fget(replace(column, scale=None))))


def _entry_with_a_scale(patch: pytest.MonkeyPatch) -> None:
    right = dpc.Schema.scaled
    patch.setattr(
        dpc.Schema, "scaled", lambda self, *given: replace(right(replace(self, entry=None), *given), entry=self.entry)
    )


def _any_column_as_cohort(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LookMoments, "looks", lambda query, schema: query.cohorts.bins(schema))


def _own_claims(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        door, "claimed", lambda schema, ledger: schema if schema.claim else replace(schema, claim=ledger.claim)
    )


def _buckets_of_anyone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Allocated, "holders", lambda *_: {""})


MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...]]] = {
    "a data set without its unit": (_data_set_without(unit=None), (*ATTEMPTS,)[:5]),
    "a data set without what is protected": (
        _data_set_without(protects="record", public=()),
        ("what is protected", "which arms are public", "which covariates are public"),
    ),
    "a data set without its column of entry": (
        _data_set_without(entry=None),
        ("the column of entry", "that there is a column of entry", "that there is none"),
    ),
    "any column as cohort": (_any_column_as_cohort, ("cohorts of a schedule",)),
    "any column as entry": (
        _without(schemas, "check_entry"),
        ("entry is no total", "entry is of the first record", "entry is neither arm nor outcome"),
    ),
    "any guarantee": (
        _without(door, "check_request"),
        ("the guarantee of a release",),
    ),
    "looks in any order": (_without(dpc.Vault, "_previous"), ("the order of looks",)),
    "any number of units": (_any_count, ("the number of units",)),
    "any version": (_any_version, ("the version of the data",)),
    "requests without columns": (
        _question_without("columns", "unit"),
        (
            "which columns are added up",
            "how cohorts are read",
            "bounds of an outcome",
            "arms",
            "categories and bounds of covariates",
        ),
    ),
    "requests without scales": (
        _columns_without_scales,
        ("whether a covariate has a scale", "the scale of a covariate"),
    ),
    "any column with a scale": (_entry_with_a_scale, ("entry has no scale",)),
    "requests without what is required": (
        _question_without("required"),
        ("whether a unit needs an outcome", "which covariates a unit needs"),
    ),
    "any budget": (_without(dpc.Ledger, "check_budget"), ("the budget", "the rule of adding up")),
    "any price": (_without(refusals, "check_granted"), ("the price of a request",)),
    "sessions that answer twice": (
        _without(door, "check_answered_once"),
        ("the question of a session", "the members of a session", "how many sites are honest"),
    ),
    "any first data set": (
        _without(dpc.Ledger, "_check_first"),
        (
            "the data set after a restore",
            "who a person is",
            "that a person has several records",
            "that a person has one record",
            "what a population protects",
            "what a population declares public",
        ),
    ),
    "periods that never end": (_without(Allocation, "check_day"), ("the period of a budget",)),
    "allocations on any terms": (
        _without(refusals, "check_terms"),
        ("the terms of an allocation", "the buckets of an experiment"),
    ),
    "buckets that several have": (_buckets_of_anyone, ("that buckets have one open experiment",)),
    "schemas with any buckets": (_own_claims, ("the column of buckets", "that units are in any bucket")),
}
"""What removes one mechanism, and the attempts that are then no longer refused."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mechanism_left_out_lets_attempts_through(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, names = MUTANTS[mutant]
    remove(monkeypatch)
    for name in names:
        (folder := tmp_path / name.replace(" ", "-")).mkdir()
        assert not ATTEMPTS[name].is_refused(folder), name


def test_every_attempt_has_its_mechanism() -> None:
    assert {name for _, names in MUTANTS.values() for name in names} == {*ATTEMPTS}


def rows() -> dict[str, tuple[str, str]]:
    """What is declared as what, and where a change is refused, by assumption: the table that the page links to."""
    cells = list(csv.reader(LISTED.read_text(encoding="utf-8").splitlines()))
    assert cells[0] == ["assumption", "declared as", "held by", "refused in"]
    return {name: (declared_as, test) for name, declared_as, _, test in cells[1:]}


def test_table_of_the_page_has_every_attempt_and_names_tests_that_exist() -> None:
    listed = rows()
    assert f"]({LISTED.name})" in (DOCS / "guarantee.md").read_text(encoding="utf-8")
    assert {name for name, (_, test) in listed.items() if test == "`test_assumptions`"} == {*ATTEMPTS}
    for name, (_, test) in listed.items():
        file, _, function = test.strip("`").partition("::")
        if name not in ATTEMPTS:
            text = (DOCS.parent / "tests" / f"{file}.py").read_text(encoding="utf-8")
            assert re.search(rf"^def {function}\(", text, re.MULTILINE), test


COVERED = (dpc.Schema, dpc.Unit, DataSet, dpc.Budget, dpc.Guarantee, Allocation, SecureSettings)
CHANGES: dict[Any, dict[str, Any]] = {
    dpc.Treatment("arm", arms=("a", "b", "c"), compare="b"): {
        "name": "ward",
        "arms": ("a", "b"),
        "reference": "c",
        "compare": "c",
        "undeclared": "a",
        "aliases": {"a": ["first"]},
        "strict": True,
    },
    dpc.Real("x", 0, 10): {
        "name": "z",
        "low": -1,
        "high": 11,
        "missing": 2,
        "since": "2026-01-31",
        "date_format": "%d.%m.%Y",
        "missing_codes": [9],
        "strip": ["mg"],
        "percent": True,
        "decimal": ",",
        "thousands": ",",
        "scale": Scale([(0, -1), (10, 1)]),
    },
    dpc.Binary("sick", values=("no", "yes")): {
        "name": "ill",
        "values": ("yes", "no"),
        "missing": "yes",
        "aliases": {"no": ["never"]},
        "strict": True,
    },
    dpc.Category("ward", ["a", "b"]): {
        "name": "unit",
        "values": ["a", "b", "c"],
        "missing": "a",
        "aliases": {"a": ["first"]},
        "strict": True,
    },
}
NAMES_ONLY = {"label", "labels", "unit"}
"""Words for results, which no answer depends on."""

INDICATORS = {"indicator"}
"""What declares another column, whose meaning holds that of its number."""


FOR_MODELS = {"typical", "transform"}
"""What a scale is made of: no answer depends on it before it is one."""


def test_table_of_the_page_covers_every_declaration() -> None:
    words = {word for declared_as, _ in rows().values() for word in re.findall(r"`([\w.]+)`", declared_as)}
    every = {f"{kind.__name__}.{part.name}" for kind in COVERED for part in fields(kind)}
    assert every - words == set()
    assert {word for word in words if word.partition(".")[0] in {kind.__name__ for kind in COVERED}} <= every
    assert {type(column).__name__ for column in CHANGES} <= words


@pytest.mark.parametrize("column", CHANGES, ids=lambda column: type(column).__name__)
def test_every_part_of_a_column_is_part_of_its_requests(column: Any) -> None:
    changes = CHANGES[column]
    parts = {part.name for part in fields(column) if part.init}
    assert parts - NAMES_ONLY - INDICATORS - FOR_MODELS == {*changes}
    for part, value in changes.items():
        dated = {"since": "2026-01-31"} if part == "date_format" else {}
        usual = replace(column, **dated)
        assert _meaning(replace(usual, **{part: value})) != _meaning(usual), part


def test_what_is_declared_for_results_and_models_alone_is_part_of_no_request() -> None:
    plain = dpc.Real("x", 1, 10)
    declared = dpc.Real("x", 1, 10, typical=(2, 5), transform="log", label="Length of stay", unit="days")
    assert _meaning(plain) == _meaning(declared)


def _meaning(column: Any) -> object:
    """What requests hold of a column; some queries read every arm of a treatment."""
    return column.meaning, column.every_arm.meaning if isinstance(column, dpc.Treatment) else None
