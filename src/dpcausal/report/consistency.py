"""Checks that the parts of a report belong together, as far as public data shows."""

import datetime as dt
import math
from collections.abc import Callable, Sequence
from types import NoneType

from dpcausal.diagnostics import BalanceTable, Diagnosis, OverlapTable
from dpcausal.errors import StudyError
from dpcausal.ledger import Ledger
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.study.study import Study
from dpcausal.utils.validation import is_number

# What a diagnosis has in common with an effect of the same tables, and of the same single table.
_SAME: dict[str, Callable[[Effect | Diagnosis], object]] = {
    "arms": lambda each: each.arms,
    "status": lambda each: "rehearsed" if each.rehearsed else "released",
}
_SAME_TABLE = _SAME | {"number of units": lambda each: each.n}


def check_kinds(effect: object, study: object, ledger: object, date: object) -> None:
    """Raise unless each part of a report is of its kind."""
    for name, given, kinds in (
        ("an Effect", effect, (Effect,)),
        ("a Study, or None", study, (Study, NoneType)),
        ("a Ledger, or None", ledger, (Ledger, NoneType)),
        ("a date", date, (dt.date,)),
    ):
        if not isinstance(given, kinds):
            raise StudyError(
                problem=f"Report.of(effect, study, ledger, date=…) needs {name}, not a {type(given).__name__}",
                hint="write Report.of(effect, study, vault.ledger, date=date.today()).",
            )


def check_smallest(smallest: object, effect: Effect, study: Study | None) -> None:
    """Raise unless this can be the smallest effect that is worthwhile: a size without a sign, within the outcome's."""
    risks = effect.is_risk_difference
    widest = 1.0 if risks else math.inf
    if study and not effect.quantity:
        low, high = study.schema.outcome_bounds
        widest, risks = high - low, isinstance(study.schema.outcome, Binary)
    if not is_number(smallest) or smallest < 0:  # type: ignore[operator]
        raise StudyError(
            problem=f"The smallest worthwhile effect must be a number of 0 or more, not {smallest!r}"[:300],
            hint="write its size without a sign: a report looks at both directions.",
        )
    if smallest >= widest:  # type: ignore[operator]
        raise StudyError(
            problem=f"The smallest worthwhile effect must be below {widest:g}, the largest possible, not {smallest!r}",
            hint="write a share: 0.02 for 2 percentage points." if risks else "write it in the unit of the outcome.",
        )


def check_diagnoses(effect: Effect, diagnoses: Sequence[BalanceTable | OverlapTable]) -> None:
    """Raise unless these are diagnoses of the effect's data."""
    several = diagnoses if isinstance(diagnoses, Sequence) else [diagnoses]
    for each in several:
        if not isinstance(each, Diagnosis) or several is not diagnoses:
            raise StudyError(
                expected="results of Overlap and Balance as diagnoses, in a list",
                got=type(each).__name__,
                hint="write diagnoses=[overlap, balance]; pass pictures as figures=[...].",
            )
        for name, value in (_SAME if effect.sites else _SAME_TABLE).items():
            if value(each) != value(effect):
                raise StudyError(
                    expected=f"a diagnosis with the effect's {name}, {value(effect)!r}",
                    got=f"{each.name} with {value(each)!r}",
                    hint="pass a diagnosis of the same table, released if the effect is released.",
                )


def check_study(effect: Effect, study: Study) -> None:
    """Raise unless the effect can be a result of the study; a pooled one may have the epsilon of any site."""
    schema, guarantee = study.schema, effect.guarantee
    epsilons = (study.epsilon, *(study.epsilons.values() if effect.sites else ()))
    for name, planned, value in (
        ("arms", (study.rehearsed(max(effect.n, 2)).arms,), effect.arms),
        ("outcome", (schema.outcome.title,), effect.outcome),
        ("epsilon", epsilons, guarantee.epsilon),
        ("delta", (min(guarantee.delta, study.delta),), guarantee.delta),  # some may stay unspent
        ("protects", (schema.protects,), guarantee.protects),
    ):
        if value not in planned:
            raise StudyError(
                expected=f"an effect of this study, with {name} {' or '.join(map(repr, planned))}",
                got=f"one with {value!r}",
                hint="pass the study that asked for this effect, or no study.",
            )
    for handling in _handling(study, effect.n):
        if handling not in effect.assumptions:
            raise StudyError(
                expected=f"an effect of this study, which assumes: {handling}",
                got="one that does not",
                hint="the study's bounds, its values or its version of dpcausal differ from the effect's.",
            )


def check_queries(effect: Effect, study: Study) -> None:
    """Raise where an effect is made of none of the queries that a study asks: it is another estimator's."""
    asked, planned = _queries(effect), _queries(study.rehearsed(max(effect.n, 2)))
    if asked and planned and not asked & planned:
        raise StudyError(
            problem=f"The study asks for {', '.join(sorted(planned))}, and the effect is made of "
            f"{', '.join(sorted(asked))}",
            hint="pass the study that asked for this effect, with its estimator, or no study.",
        )


def _queries(effect: Effect) -> set[str]:
    """Return the names of the queries behind an effect, without the counts that every estimator may ask for."""
    names = {name for receipt in effect.receipts for name in receipt.query.split(" + ")}
    return names - {"missing_outcomes", "covariate_counts"}


def _handling(study: Study, n: int) -> tuple[str, ...]:
    """Return how the treatment and the outcome were read, in words, as far as every effect of a study says so.

    Estimators of many arms have words of their own for the arms. Bounds of winsorised outcomes depend on the answers.
    """
    schema, said = study.schema, set(study.rehearsed(max(n, 2)).assumptions)
    if study.method == "winsorised":
        low, high = schema.outcome_bounds
        for bounds in ((low, (low + high) / 2), ((low + high) / 2, high)):
            said &= set(schema.narrowed(*bounds).data_handling)
    return tuple(each for each in schema.data_handling if each in said)


def check_ledger(effect: Effect, receipts: int, ledger: LedgerSummary) -> None:
    """Raise unless the ledger confirms all receipts. Pooled effects have several ledgers, rehearsals none."""
    if effect.sites or effect.rehearsed or ledger.receipts_found == receipts:
        return
    raise StudyError(
        expected=f"the ledger that paid, with all {receipts} receipts",
        got=f"one with {ledger.receipts_found} of them",
        hint="pass the ledger of the table that was queried. A ledger that was replaced does not have the receipts.",
    )
