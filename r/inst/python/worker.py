"""Answer the R package: one request per line on standard input, one reply per line on standard output.

A request names an operation and its arguments in JSON. The columns of a table follow it as bytes, so that no record is
written to a file. A reply is a public result, or an error. Only errors of dpcausal are passed on, which quote no cell;
of any other error only the type is.
"""
# ruff: noqa: INP001 (a script of the R package, not a module)

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from datetime import date
from types import NoneType, UnionType
from typing import Any, BinaryIO, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import dpcausal
from dpcausal.cli.check import inspected
from dpcausal.cli.options import ledger_address
from dpcausal.diagnostics import BalanceTable, Diagnosis, OverlapTable
from dpcausal.errors import DpcausalError, RefusedError, StudyError
from dpcausal.estimators.average import ESTIMATORS
from dpcausal.planning.plan import plan as plan_of
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.results.effect import Effect
from dpcausal.study.diagnostics import DIAGNOSTICS
from dpcausal.study.file import read_estimator, read_parameters
from dpcausal.study.secondary import read_secondary
from dpcausal.study.study import Study

Document = dict[str, Any]
Float64s = npt.NDArray[np.float64]

_TABLES = {"balance": BalanceTable, "overlap": OverlapTable}
_PER_DAY = {"date": 1, "time": 86_400}
_YEARS = (-719_162, 2_932_896)
"""The first day of year 1 and the last of year 9999, in days since 1970."""
_MEASURES = ("risk_ratio", "relative_lift", "odds_ratio", "number_needed_to_treat")

_CURVES = ("subgroup_effects", "r_learner", "dr_learner")
_SEVERAL = ("by", "covariates")

_vaults: dict[int, dpcausal.Vault] = {}
"""The open vaults, by the number that R knows them by."""


def hello() -> Document:
    """Return the versions of both sides of the pipe."""
    return {"version": dpcausal.__version__, "python": sys.version.split()[0], "executable": sys.executable}


def schema(document: Document) -> Document:
    """Check a declaration; return it complete, and as text."""
    made = dpcausal.Schema.from_dict(document)
    return {"document": made.to_dict(), "toml": made.to_toml()}


def study(document: Document) -> Document:
    """Check a study; return it as TOML."""
    parts = {
        "schema": dpcausal.Schema.from_dict(document["schema"]),
        "estimator": _estimator(document["estimator"]),
        "requires": {
            name: _listed(DIAGNOSTICS[name], given) if name in DIAGNOSTICS else given
            for name, given in document.get("requires", {}).items()
        },
    }
    return {"toml": Study(**document | parts).to_toml()}


def read_study(toml: str) -> Document:
    """Check a study that was written before; return its declaration."""
    read = Study.from_toml(toml)
    return {"toml": read.text, "schema": read.schema.to_dict()}


def plan(
    n: int, width: float | None = None, study: str | None = None, direct: Document | None = None, **expected: float
) -> Document:
    """Plan a study, or an estimator on a schema."""
    if study is not None:
        read = Study.from_toml(study)
        estimator, guarantee, rehearsal = read.estimator, read.guarantee(), read.rehearsal(n, **expected)
        trial, price = read.design == "trial", read.price()
    else:
        given = direct or {}
        declared = dpcausal.Schema.from_dict(given["schema"])
        estimator, trial = _estimator(given["estimator"]), given["trial"]
        numbers: Document = ({"confounding": 0.0} if trial else {}) | expected
        rehearsal = dpcausal.Rehearsal(declared, n, **numbers)
        guarantee = dpcausal.Guarantee(
            epsilon=given["epsilon"], delta=given.get("delta", 0.0), protects=declared.protects
        )
        price = None
    made = plan_of(estimator, rehearsal, guarantee, covariates=[] if trial else None, width=width, price=price)
    return {"json": made.to_json(), "text": str(made)}


def create_ledger(place: str, epsilon: float, as_of: str, delta: float = 0.0, rule: str = "additive") -> Document:
    """Create a ledger, and return what it holds."""
    budget = dpcausal.Budget(epsilon=epsilon, delta=delta, rule=rule)  # type: ignore[arg-type]
    dpcausal.Ledger.create(ledger_address(place), budget, as_of=as_of)
    return show_ledger(place)


def add_version(place: str, as_of: str) -> Document:
    """Declare a new version of the data, and return what the ledger holds."""
    dpcausal.Ledger(ledger_address(place)).add_version(as_of)
    return show_ledger(place)


def show_ledger(place: str) -> Document:
    """Return what was spent and what is left; every entry is verified."""
    summary = LedgerSummary.of(dpcausal.Ledger(ledger_address(place)))
    return {"place": place} | {name: value for name, value in asdict(summary).items() if name != "receipts_found"}


def open_vault(schema: Document, ledger: str, as_of: str, table: str | pa.Table) -> Document:
    """Open a vault on a table; return its number and what is public about it."""
    opened = dpcausal.Vault(
        table, dpcausal.Schema.from_dict(schema), ledger=dpcausal.Ledger(ledger_address(ledger)), as_of=as_of
    )
    number = max(_vaults, default=0) + 1
    _vaults[number] = opened
    return {"number": number, "n": opened.n, "text": repr(opened)}


def close_vault(vault: int) -> Document:
    """Close a vault and release its table."""
    _vaults.pop(vault, None)
    return {}


def estimate(vault: int, estimator: Document, epsilon: float, delta: float = 0.0) -> Document:
    """Estimate an effect: the ledger is debited first."""
    return effect_document(_estimator(estimator).estimate(_open(vault), epsilon=epsilon, delta=delta))


def diagnose(vault: int, name: str, parameters: Document, epsilon: float, delta: float = 0.0) -> Document:
    """Run a diagnostic: the ledger is debited first."""
    kind = DIAGNOSTICS[name]
    made = read_parameters(name, kind, _listed(kind, parameters))
    return diagnosis_document(made.estimate(_open(vault), epsilon=epsilon, delta=delta))


def run_study(vault: int, study: str) -> Document:
    """Run a study with the diagnostics that it requires; no effect where one of these fails."""
    result = Study.from_toml(study).prepare(_open(vault)).run()
    return {
        "effect": effect_document(result.effect) if result.effect else None,
        "diagnoses": {name: diagnosis_document(each) for name, each in result.diagnoses.items()},
        "failed": [f"{name}: {result.diagnoses[name].remedy}" for name in result.failed],
    }


def check(schema: Document, table: str) -> list[str]:
    """Return what whoever keeps a table should know of it; not private."""
    return list(inspected(table, dpcausal.Schema.from_dict(schema)))


def read_experiment(toml: str) -> Document:
    """Check an experiment that was written before; return its declaration."""
    read = dpcausal.Experiment.from_toml(toml)
    return {"toml": read.to_toml(), "schema": read.schema.to_dict()}


def plan_experiment(experiment: str, n: int, typical: Document) -> Document:
    """Return the scorecard to expect."""
    return _scorecard(dpcausal.Experiment.from_toml(experiment).rehearsed(n, typical))


def run_experiment(vault: int, experiment: str, look: int | None = None) -> Document:
    """Run an experiment: the ledger is debited first."""
    return _scorecard(dpcausal.Experiment.from_toml(experiment).run(_open(vault), look))


def estimate_curve(vault: int, estimator: Document, epsilon: float, delta: float = 0.0) -> Document:
    """Estimate effects that vary: the ledger is debited first."""
    if estimator["name"] not in _CURVES:
        raise StudyError(problem=f"No curve is called {estimator['name']!r}", hint=f"name one of {', '.join(_CURVES)}.")
    numbers = {"epsilon": epsilon, "delta": delta}
    listed = {
        name: [value] if name in _SEVERAL and isinstance(value, str) else value for name, value in estimator.items()
    }
    made = read_secondary({"curve": listed | numbers})["curve"].estimate(_open(vault))
    return {"json": made.to_json(), "text": str(made)}


def curve_lines(curve: str, level: float, at: Document | None = None) -> list[Document]:
    """Return the effects at profiles, with simultaneous intervals; they cost nothing."""
    read = dpcausal.EffectCurve.from_json(curve)
    return _finite_lines(dpcausal.tidy(read, at=at, level=level, full=True, backend="pyarrow").to_pylist())


def read_effect(text: str) -> Document:
    """Read an effect that dpcausal wrote, at one site or pooled over several."""
    try:
        return effect_document(Effect.from_json(text))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StudyError(
            problem=f"The file is not an effect that dpcausal wrote ({type(error).__name__})",
            hint="write one with dp_effect_write(), dpcausal run, or dpcausal federation run --json.",
        ) from None


def lines(effect: str, level: float) -> list[Document]:
    """Return the lines of an effect's tidy frame at another confidence level."""
    return _lines(Effect.from_json(effect), level)


def measures(effect: str, level: float) -> list[Document]:
    """Return the ratio measures that an effect allows, with their intervals; they cost nothing."""
    read, found = Effect.from_json(effect), []
    for name in _MEASURES:
        try:
            measure = getattr(read, name)(level)
        except RefusedError:
            break  # without odds, the outcome is not binary and nobody is needed to treat
        numbers = {part: _finite(getattr(measure, part)) for part in ("estimate", "low", "high")}
        found.append({"measure": measure.name} | numbers)
    return found


def report(  # noqa: PLR0913, PLR0917 (each is a separate document, named where R gives it)
    effect: str,
    day: str,
    study: str | None = None,
    ledger: str | None = None,
    diagnoses: Sequence[Document] = (),
    smallest_worthwhile_effect: float = 0.0,
) -> Document:
    """Return a report as a page, and its verdict."""
    made = dpcausal.Report.of(
        Effect.from_json(effect),
        None if study is None else Study.from_toml(study),
        None if ledger is None else dpcausal.Ledger(ledger_address(ledger)),
        date=date.fromisoformat(day),
        diagnoses=[_TABLES[each["name"]].from_json(each["json"]) for each in diagnoses],  # type: ignore[attr-defined]
        smallest_worthwhile_effect=smallest_worthwhile_effect,
    )
    return {"html": made.to_html(), "verdict": made.verdict.text, "kind": made.verdict.kind}


OPERATIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        hello,
        schema,
        study,
        read_study,
        plan,
        create_ledger,
        add_version,
        show_ledger,
        open_vault,
        close_vault,
        estimate,
        diagnose,
        run_study,
        check,
        read_experiment,
        plan_experiment,
        run_experiment,
        estimate_curve,
        curve_lines,
        read_effect,
        lines,
        measures,
        report,
    )
}


def effect_document(effect: Effect) -> Document:
    """Return an effect as R keeps it: without loss, as text, and as the lines of tidy frames."""
    sites = dpcausal.tidy(effect.sites, full=True, backend="pyarrow").to_pylist()
    return {"json": effect.to_json(), "text": str(effect), "lines": _lines(effect, 0.95), "sites": _finite_lines(sites)}


def diagnosis_document(diagnosis: Diagnosis) -> Document:
    """Return a diagnosis as R keeps it."""
    return {
        "name": diagnosis.name,
        "json": diagnosis.to_json(),
        "text": str(diagnosis),
        "verdict": diagnosis.verdict,
        "found": diagnosis.found,
    }


def _scorecard(scorecard: dpcausal.Scorecard) -> Document:
    rows = dpcausal.tidy(scorecard, backend="pyarrow").to_pylist()
    return {"json": scorecard.to_json(), "text": str(scorecard), "lines": _finite_lines(rows)}


def _lines(effect: Effect, level: float) -> list[Document]:
    return _finite_lines(dpcausal.tidy(effect, level=level, full=True, backend="pyarrow").to_pylist())


def _finite_lines(rows: list[Document]) -> list[Document]:
    return [{name: _finite(value) for name, value in row.items()} for row in rows]


def _finite(value: object) -> object:
    """Return a number as JSON can hold it: what is infinite as text."""
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def _open(vault: int) -> dpcausal.Vault:
    if vault not in _vaults:
        raise RefusedError(
            expected="a vault that is open",
            got="one that was closed, or that an earlier session opened",
            hint="open it again with dp_vault(); its ledger still holds what was spent.",
        )
    return _vaults[vault]


def _estimator(document: Document) -> Any:  # noqa: ANN401 (one of ESTIMATORS)
    return read_estimator(_with_lists(document))


def _with_lists(document: Document) -> Document:
    kind = ESTIMATORS.get(document.get("name", ""))
    inner = document.get("estimator")
    nested = {"estimator": _with_lists(inner)} if isinstance(inner, dict) else {}
    return (document if kind is None else _listed(kind, document)) | nested


def _listed(kind: type[Any], document: Document) -> Document:
    """Return parameters with a list wherever only a list is meant: R does not tell one value from a list of one."""
    hints = get_type_hints(kind)
    several = {part.name for part in fields(kind) if _takes_lists_only(hints[part.name])}
    return {
        name: [value] if name in several and not isinstance(value, list) else value for name, value in document.items()
    }


def _takes_lists_only(hint: object) -> bool:
    choices = [each for each in get_args(hint) if each is not NoneType] if isinstance(hint, UnionType) else [hint]
    return all(get_origin(each) in {Sequence, tuple} for each in choices)


def read_columns(described: Sequence[Document], stream: BinaryIO) -> pa.Table:
    """Read the columns of a table that follow a request. No error depends on a cell."""
    contents = [stream.read(each["bytes"]) for each in described]
    names = [each["name"] for each in described]
    return pa.Table.from_arrays(list(map(_column, described, contents)), names=names)


def _column(described: Document, content: bytes) -> pa.Array:
    kind = described["kind"]
    if kind == "double":
        numbers = np.frombuffer(content, "<f8")
        return pa.array(numbers, mask=np.isnan(numbers))
    if kind in _PER_DAY:
        return _days_or_times(np.frombuffer(content, "<f8"), kind)
    integers = np.frombuffer(content, "<i4")
    absent = integers == np.iinfo(np.int32).min
    if kind == "logical":
        return pa.array(integers == 1, mask=absent)
    if kind == "integer":
        return pa.array(integers, mask=absent)
    return pa.array(described["levels"], pa.string()).take(pa.array(np.where(absent, 0, integers), mask=absent))


def _days_or_times(numbers: Float64s, kind: str) -> pa.Array:
    """Return days, or seconds, since 1970; what is beyond the years 1 to 9999 as the nearest day that is not."""
    absent = ~np.isfinite(numbers)
    low, high = (day * _PER_DAY[kind] for day in _YEARS)
    bounded = np.clip(np.where(absent, 0.0, numbers), low, high)
    if kind == "date":
        return pa.array(np.floor(bounded).astype(np.int32), mask=absent).cast(pa.date32())
    return pa.array(np.floor(bounded * 1e6).astype(np.int64), mask=absent).cast(pa.timestamp("us"))


def answer(line: bytes, stream: BinaryIO) -> Document:
    """Return the reply to one request."""
    request = json.loads(line, parse_float=_number)
    reply = {"id": request["id"]}
    try:
        arguments = request["arguments"]
        if "columns" in request:
            arguments = arguments | {"table": read_columns(request["columns"], stream)}
        return reply | {"result": OPERATIONS[request["operation"]](**arguments)}
    except DpcausalError as error:
        return reply | {"error": {"kind": type(error).__name__, "problem": error.problem, "hint": error.hint}}
    except Exception as error:  # noqa: BLE001 (its message may quote the table)
        withheld = {
            "problem": f"Another library failed with {type(error).__name__}; its message is withheld, because it may "
            "quote the table",
            "hint": "check the types of the arguments and of the declared columns.",
        }
        return reply | {"error": {"kind": "UnexpectedError"} | withheld}


def _number(text: str) -> float | int:
    """Return a number; R writes 100000 as 1e+05."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def main() -> None:
    """Answer until the pipe is closed. Nothing but replies reaches the pipe."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        replies.write(json.dumps(answer(line, sys.stdin.buffer), allow_nan=False).encode() + b"\n")
        replies.flush()


if __name__ == "__main__":
    main()
