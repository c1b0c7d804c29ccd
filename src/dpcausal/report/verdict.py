"""The conclusion that an effect allows and, where it allows none, the reason and what would help."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dpcausal.diagnostics import BalanceTable, OverlapTable
from dpcausal.report.remedies import left_in_decides, remedies_for
from dpcausal.report.scale import OutcomeScale
from dpcausal.results.effect import Effect
from dpcausal.schema.schema import Schema
from dpcausal.study.study import Study

Interval = tuple[float, float]
Kind = Literal["higher", "lower", "no worthwhile difference", "inconclusive", "no interval", "rehearsal"]
Reason = Literal["", "sample", "budget", "sample or budget", "sites", "confounding", "noise"]
Balance = Literal["seen", "not seen", "other weights", "not checked"]
Identification = Literal["randomised", "by design", "adjusted", "unadjusted", "unknown"]

_HEADINGS = {
    "sample": "Inconclusive: too few units",
    "budget": "Inconclusive: the privacy budget is too small",
    "sample or budget": "Inconclusive: too few units or too small a privacy budget",
    "sites": "Inconclusive: the sites differ too much",
    "confounding": "Inconclusive: confounding",
    "noise": "Inconclusive: no valid interval",
}


BALANCE: dict[Balance, str] = {
    "seen": "balance after the adjustment was checked",
    "not seen": "balance after the adjustment was not shown",
    "other weights": "balance was checked with other weights than those of the estimate",
    "not checked": "balance was not checked",
}


def balance_after(diagnoses: Sequence[BalanceTable | OverlapTable], effect: Effect, study: Study | None) -> Balance:
    """Return what private diagnostics show about balance after an adjustment by weights.

    Only the balance of all covariates that are adjusted for counts, weighted as the effect is: by a score of the same
    covariates, for the same estimand, with the same clip. Noise in the score is drawn anew unless it was released once
    for both.
    """
    after = [each for each in diagnoses if isinstance(each, BalanceTable) and each.weighted]
    own = [each for each in after if study is not None and _as_weighted(each, effect, study)]
    if not own:
        return "other weights" if after else "not checked"
    return "seen" if all(each.passes for each in own) else "not seen"


def _as_weighted(balance: BalanceTable, effect: Effect, study: Study) -> bool:
    """Return whether a balance is that of the effect's own weights, and of all that they adjust for.

    A balance weights units with an outcome for arms alone, and not for having one.
    """
    weights, names = balance.weights, set(study.adjusts_for)
    if (
        weights is None
        or effect.includes_missing
        or not names <= set(balance.covariates)
        or names != set(weights.covariates)
    ):
        return False
    adjusting = getattr(study.estimator, "estimator", study.estimator)
    return weights.estimand == getattr(adjusting, "estimand", None) and (
        weights.clip == effect.clip or weights.estimand == "ATO"
    )


@dataclass(frozen=True)
class Verdict:
    """A conclusion.

    Attributes:
        text: The conclusion in a sentence, with the estimate and its interval.
        reason: If it is inconclusive, what prevents a conclusion: the `sample`, the privacy `budget` (or `sample or
            budget`, where noise hides which), differences between `sites`, `confounding`, or `noise` that leaves no
            valid interval; otherwise empty.
        remedies: If it is inconclusive, what would settle it, cheapest first.
    """

    kind: Kind
    heading: str
    text: str
    reason: Reason = ""
    remedies: tuple[str, ...] = ()


def verdict_on(  # noqa: PLR0913 (each is named where it is given)
    effect: Effect,
    interval: Interval | None,
    *,
    smallest: float = 0.0,
    schema: Schema | None = None,
    remaining: float | None = None,
    least_sampling: float = 0.0,
    identification: Identification = "unknown",
    balance: Balance = "not checked",
    unused: Sequence[str] = (),
) -> Verdict:
    """Draw the conclusion that an effect's 95 % interval allows.

    Args:
        interval: Its 95 % interval, if it has one.
        smallest: The smallest worthwhile effect, chosen before anything was released.
        remaining: The remaining epsilon of the budget, if known.
        least_sampling: The smallest sampling error that a larger epsilon may leave; 0 where that is not known.
        balance: What private diagnostics show about balance after the adjustment.
        unused: The covariates that are declared and not adjusted for.
    """
    if effect.rehearsed:
        text = "This is a rehearsal: no table was queried, and the widths are expected ones."
        return Verdict("rehearsal", "Rehearsal", text)
    scale = OutcomeScale.of(effect, interval, schema)
    if interval is None:
        reason: Reason = "confounding" if effect.unadjusted and identification != "randomised" else "noise"
        found = _finding(effect, scale)
        text = f"{found}, but there is no valid interval, so nothing follows from it: {effect.no_interval}."
        return Verdict("no interval", _HEADINGS[reason], text, reason)
    aside = _adjustment(effect, balance, unused) if identification == "adjusted" else _Aside()
    limits = f"95 % confidence interval {scale.limits(interval)}"
    found = f"{_finding(effect, scale)}{aside.before} ({'; '.join((limits, *aside.doubts))})"
    if identification == "unadjusted":
        return _unadjusted(found)
    kind = _kind(interval, smallest)
    if kind == "inconclusive":
        reason = _reason(effect, smallest)
        text = f"{found}; the interval contains {_contains(interval, smallest, scale)}."
        remedies = remedies_for(
            effect, interval, smallest, scale, schema=schema, remaining=remaining, least_sampling=least_sampling
        )
        return Verdict(kind, _HEADINGS[reason], text, reason, remedies)
    worthwhile = f"{scale.given(smallest)}, the smallest worthwhile effect"
    if kind == "no worthwhile difference":
        return Verdict(kind, "No worthwhile difference", f"{found}, within ± {worthwhile}.")
    text = f"{found}, beyond {worthwhile}." if smallest else f"{found}; no smallest worthwhile effect was given."
    return Verdict(kind, _heading(effect, scale, higher=kind == "higher"), text)


class _Aside(NamedTuple):
    """What a sentence with an estimate says about its adjustment: before the interval, and after it in brackets."""

    before: str = ""
    doubts: tuple[str, ...] = ()


def _adjustment(effect: Effect, balance: Balance, unused: Sequence[str]) -> _Aside:
    """Return whether an estimate may be called adjusted, and what is doubtful about that."""
    doubts: tuple[str, ...] = (f"not adjusted for {', '.join(unused)}",) if unused else ()
    doubts += (f"perhaps not adjusted for {', '.join(effect.unadjusted)}",) if effect.unadjusted else ()
    doubts += (BALANCE[balance],) if balance != "seen" else ()
    if effect.unadjusted:
        return _Aside("", doubts)
    return _Aside(", adjusted", doubts) if doubts else _Aside(", after adjustment")


def _unadjusted(found: str) -> Verdict:
    """Return the verdict on an effect that confounding may explain, whatever its interval."""
    return Verdict(
        "inconclusive",
        _HEADINGS["confounding"],
        f"{found}; treatment was not randomised and nothing was adjusted for, so confounding may explain it.",
        "confounding",
        (
            "Adjust for the confounders of treatment and outcome, as a new purchase.",
            'If treatment was randomised, declare it in the study: design = "trial".',
        ),
    )


def _heading(effect: Effect, scale: OutcomeScale, *, higher: bool) -> str:
    if scale.described:
        return "Above 0" if higher else "Below 0"
    return f"{'Higher' if higher else 'Lower'} with {effect.arms[1]}"


def _kind(interval: Interval, smallest: float) -> Kind:
    low, high = interval
    if low > smallest:
        return "higher"
    if high < -smallest:
        return "lower"
    return "no worthwhile difference" if smallest and -smallest < low and high < smallest else "inconclusive"


def _finding(effect: Effect, scale: OutcomeScale) -> str:
    """Return the estimate in words, as the beginning of a sentence."""
    if scale.described:
        return f"Estimated {effect.estimand}: {scale.size(effect.estimate)}"
    direction = "higher" if effect.estimate >= 0 else "lower"
    size = scale.size(abs(effect.estimate))
    return f"{scale.outcome(effect)} is {size} {direction} with {effect.arms[1]} than with {effect.arms[0]}"


def _contains(interval: Interval, smallest: float, scale: OutcomeScale) -> str:
    """Return what an interval contains that a conclusion would have to exclude."""
    low, high = interval
    if low <= 0 <= high:
        if not smallest:
            return "0"
        return f"0 and effects beyond {scale.given(smallest)}, the smallest worthwhile effect"
    return f"effects below and above {scale.given(smallest)}, the smallest worthwhile effect, but not 0"


def _reason(effect: Effect, smallest: float) -> Reason:
    """Return the source of uncertainty without which the interval would settle the question."""
    sampling, sites, _ = effect.width_by_source

    def settles(half: float) -> bool:
        return _kind((effect.estimate - half, effect.estimate + half), smallest) != "inconclusive"

    if left_in_decides(effect, smallest):
        return "confounding"
    if settles(sites) and effect.privacy_sd:
        return "budget"
    if effect.between_sd and settles(sampling):
        return "sites"
    return "sample or budget" if effect.sampling_is_a_bound else "sample"
