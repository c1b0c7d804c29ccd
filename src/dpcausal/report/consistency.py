"""Checks that the parts of a report belong together, as far as public data shows."""

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import NoneType
from typing import NoReturn

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
_SAME_TABLE = _SAME | {"number of units": lambda each: each.n, "version of the data": lambda each: each.as_of}


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


def check_study(effect: Effect, study: Study) -> Effect:
    """Raise unless the effect can be a result of the study; a pooled one may have the epsilon of any site.

    Returns:
        The effect, with a warning if it does not say which estimator made it.
    """
    guarantee, planned = effect.guarantee, study.rehearsed(max(effect.n, 2))
    for name, expected, value in (
        ("arms", (planned.arms,), effect.arms),
        ("outcome", (planned.outcome,), effect.outcome),
        ("quantity", (planned.quantity,), effect.quantity),
        ("epsilon", (study.epsilon, *(study.epsilons.values() if effect.sites else ())), guarantee.epsilon),
        ("delta", (min(guarantee.delta, study.delta),), guarantee.delta),  # some may stay unspent
        ("protects", (study.schema.protects,), guarantee.protects),
    ):
        if value not in expected:
            _refuse(f"{name} {' or '.join(map(repr, expected))}", repr(value))
    if not effect.estimator:
        return replace(effect, warnings=(*effect.warnings, _UNKNOWN))
    written, made = dict(planned.estimator), dict(effect.estimator)
    if "weights" not in made:  # a formula's own choice, from what is public
        written.pop("weights", None)
    differing = [name for name in written | made if written.get(name) != made.get(name)]
    if "name" in differing:
        _refuse(f"estimator {written['name']!r}", f"estimator {made.get('name')!r}")
    if differing:
        _refuse(*(", ".join(f"{name} {each.get(name)!r}" for name in differing) for each in (written, made)))
    if not effect.declared:
        return replace(effect, warnings=(*effect.warnings, _DECLARED_OTHERWISE))
    if effect.declared != planned.declared:
        _refuse("the columns that it uses as the study declares them", "other bounds, values or arms")
    return effect


_UNKNOWN = (
    "this effect does not say which estimator, with which parameters, made it: an older version saved it, or the "
    "estimators of its sites differ. Whether the estimator is the study's was not checked"
)

_DECLARED_OTHERWISE = (
    "the sites of this effect declare the columns that it uses differently. Whether the bounds, values and arms are "
    "the study's was not checked"
)


def _refuse(expected: str, got: str) -> NoReturn:
    raise StudyError(
        expected=f"an effect of this study, with {expected}",
        got=f"one with {got}",
        hint="pass the study that asked for this effect, or no study.",
    )


def check_ledger(effect: Effect, receipts: int, ledger: LedgerSummary) -> None:
    """Raise unless the ledger confirms all receipts. Pooled effects have several ledgers, rehearsals none."""
    if effect.sites or effect.rehearsed or ledger.receipts_found == receipts:
        return
    raise StudyError(
        expected=f"the ledger that paid, with all {receipts} receipts",
        got=f"one with {ledger.receipts_found} of them",
        hint="pass the ledger of the table that was queried. A ledger that was replaced does not have the receipts.",
    )
