"""Checks that the parts of a report belong together, as far as public data shows."""

import datetime as dt
import math
import re
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

_CHOOSE_CLIPS = ("inverse_weighting", "quantile_effects")
"""The methods that clip scores less than declared where their answers allow it."""

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


def check_study(effect: Effect, study: Study) -> None:
    """Raise unless the effect can be a result of the study; a pooled one may have the epsilon of any site."""
    guarantee, planned = effect.guarantee, study.rehearsed(max(effect.n, 2))
    epsilons = (study.epsilon, *(study.epsilons.values() if effect.sites else ()))
    for name, expected, value in (
        ("arms", (planned.arms,), effect.arms),
        ("outcome", (study.schema.outcome.title,), effect.outcome),
        ("method", () if _is_method(effect, planned.method) else (planned.method,), effect.method),
        ("estimand", () if _is_estimand(effect, planned, study) else (planned.estimand,), effect.estimand),
        ("clip", () if _is_clip(effect, planned, study) else (planned.clip,), effect.clip),
        ("epsilon", epsilons, guarantee.epsilon),
        ("delta", (min(guarantee.delta, study.delta),), guarantee.delta),  # some may stay unspent
        ("protects", (study.schema.protects,), guarantee.protects),
    ):
        if expected and value not in expected:
            raise StudyError(
                expected=f"an effect of this study, with {name} {' or '.join(map(repr, expected))}",
                got=f"one with {value!r}",
                hint="pass the study that asked for this effect, or no study.",
            )
    for handling in _handling(study, planned):
        if handling not in effect.assumptions:
            raise StudyError(
                expected=f"an effect of this study, which assumes: {handling}",
                got="one that does not",
                hint="the study's bounds, its values or its version of dpcausal differ from the effect's.",
            )


def _is_method(effect: Effect, planned: str) -> bool:
    """Return whether an effect is of the planned method, or all sites' are. Numbers in it may come from answers."""
    method = effect.method
    if effect.sites:
        method = method.partition("; from the ")[0].rpartition("; at each: ")[2]
    each = method.split(" or ") if effect.sites else [method]
    return _words(method) == _words(planned) or all(_words(one) == _words(planned) for one in each)


def _words(method: str) -> list[str]:
    """Return the words of a method, without those that say where answers cut a number."""
    return [word for word in re.findall(r"[^\W\d_]+", method) if word not in {"cut", "at", "edges"}]


def _is_estimand(effect: Effect, planned: Effect, study: Study) -> bool:
    """Return whether an effect has the planned estimand, where that does not depend on answers."""
    depends = bool(study.advice_for_sites) or effect.target != planned.target  # the method names a target of its own
    return depends or effect.estimand.startswith(planned.estimand)


def _is_clip(effect: Effect, planned: Effect, study: Study) -> bool:
    """Return whether scores are clipped as planned. Inverse weighting clips them less where its answers allow it."""
    if effect.clip is None:
        return planned.clip is None or bool(effect.sites)
    largest: float = getattr(study.estimator, "clip", 0.0) if study.method in _CHOOSE_CLIPS else 0.0
    return effect.clip == planned.clip or effect.clip <= largest


def _handling(study: Study, planned: Effect) -> tuple[str, ...]:
    """Return how the treatment and the outcome were read, in words, as far as every effect of a study says so.

    Estimators of many arms have words of their own for the arms. Bounds of winsorised outcomes depend on the answers.
    """
    schema, said = study.schema, set(planned.assumptions)
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
