"""Checks that the parts of a report belong together, as far as public data shows."""

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

from dpcausal.diagnostics import BalanceTable, Diagnosis, OverlapTable
from dpcausal.errors import StudyError
from dpcausal.ledger import Ledger
from dpcausal.queries.cuts import cuts_of
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary, Indicator, indicator_of
from dpcausal.schema.real import Real
from dpcausal.study.study import Study
from dpcausal.utils.validation import is_number

_LARGEST_CLIP = 0.05
"""The largest clip that doubly robust estimation chooses by itself."""
_NUMBER = r"-?[\d.,]+(?:e[-+]?\d+)?"

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
    """Raise unless the effect can be a result of the study; a pooled one may have the epsilon of any site.

    An effect holds neither its estimator nor the covariates: where no other field shows these, its texts must be those
    that the study gives, but for the parts that answers choose.
    """
    guarantee, planned = effect.guarantee, study.rehearsed(max(effect.n, 2))
    epsilons = (study.epsilon, *(study.epsilons.values() if effect.sites else ()))
    for name, expected, value in (
        ("arms", (planned.arms,), effect.arms),
        ("outcome", (study.schema.outcome.title,), effect.outcome),
        ("method", () if _is_method(effect, planned, study) else (planned.method,), effect.method),
        ("estimand", () if _is_estimand(effect, planned, study) else (planned.estimand,), effect.estimand),
        ("quantity", (planned.quantity,), effect.quantity),
        ("target", () if study.methods[-1] == "stratification" else (planned.target,), effect.target),
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


def _is_method(effect: Effect, planned: Effect, study: Study) -> bool:
    """Return whether an effect is of the planned method, or all sites' are."""
    one = _pattern(planned.method, _chosen(study))
    if effect.sites:
        pooled = rf"[\w ]+ over \d+ of \d+ sites; at each: {one}(?: or {one})*"
        one = rf"{pooled}|{one}; from the (?:secure )?sums of \d+ of \d+ sites"
    return bool(re.fullmatch(one, _without_indicators(effect.method, study)))


def _without_indicators(method: str, study: Study) -> str:
    """Return a method without the indicators of missing values that answers add."""
    columns = (each for each in study.schema.covariates if not (isinstance(each, Indicator) or each.indicator))
    names = "|".join(re.escape(indicator_of(each).name) for each in columns)
    return re.sub(rf", (?:{names})(?=[,;]| \(| or |$)", "", method) if names else method


def _pattern(planned: str, chosen: str) -> str:
    """Return a pattern of a planned text, in which the last part that answers choose may be another such part."""
    found = re.fullmatch(rf"(?P<before>.*)(?:{chosen})(?P<after>.*)", planned) if chosen else None
    return re.escape(planned) if not found else f"{re.escape(found['before'])}{chosen}{re.escape(found['after'])}"


def _chosen(study: Study) -> str:
    """Return a pattern of the part of a method that answers choose; empty where they choose none."""
    if study.methods[-1] == "stratification":
        cuts, real = (
            cuts_of(_setting(study, "by")),
            {each.name for each in study.schema.covariates if isinstance(each, Real)},
        )
        numbers = [cut.name for cut in cuts if cut.name in real and not cut.edges]
        at = rf"(?: cut at {_NUMBER}(?:, (?:{_NUMBER}|…))*(?: \(\d+ edges\))?)?"
        by = [re.escape(cut.name) + at if cut.name in numbers else re.escape(str(cut)) for cut in cuts]
        cap = _setting(study, "cap") or r"\d+"
        return rf"stratification by {', '.join(by)}; [\d,]+ strata, cap {cap}"
    if study.methods[-1] == "propensity_matching":
        return f"limits {_NUMBER} and {_NUMBER}"
    return f"clipped to {_NUMBER} and {_NUMBER}" if _largest_clip(study) else ""


def _is_estimand(effect: Effect, planned: Effect, study: Study) -> bool:
    """Return whether an effect has the planned estimand, or all sites have."""
    if study.methods[-1] == "stratification" and effect.target != planned.target:
        return True  # answers chose the target, and with it the words
    capless = study.methods[-1] == "stratification" and _setting(study, "cap") is None
    one = planned.estimand
    beyond = ""
    if study.method == "winsorised":
        side = rf"(?:below|above) {_NUMBER}"
        beyond = rf"(?:; {re.escape(study.schema.outcome.title)} {side}(?: and {side})? winsorised)?"
        one = re.sub(f"{beyond}$", "", one)
    pooled = r"(?:; [\w ,]+)?" if effect.sites else ""
    pattern = _pattern(one, r"more than \d+ to 1" if capless else "")
    return bool(re.fullmatch(f"{pattern}{beyond}{pooled}", effect.estimand))


def _is_clip(effect: Effect, planned: Effect, study: Study) -> bool:
    """Return whether scores are clipped as planned, or less where answers choose the clip."""
    if effect.clip is None:
        return planned.clip is None or bool(effect.sites)
    return effect.clip == planned.clip or effect.clip <= _largest_clip(study)


def _largest_clip(study: Study) -> float:
    """Return the largest clip that answers may choose; 0 where they choose none."""
    clip, method = _setting(study, "clip"), study.methods[-1]
    if method == "doubly_robust":
        return _LARGEST_CLIP if clip is None else 0.0
    chooses = method in {"inverse_weighting", "quantile_effects", "survival"} and _setting(study, "covariates")
    return float(clip) if chooses else 0.0


def _setting(study: Study, name: str) -> Any:  # noqa: ANN401 (as the estimator has it)
    """Return a parameter of the estimator that adjusts; None where it has none of this name."""
    return getattr(getattr(study.estimator, "estimator", study.estimator), name, None)


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
