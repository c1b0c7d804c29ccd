"""Several outcomes or comparisons of one study: one budget, and p-values and intervals for all of them together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dpcausal.errors import GuaranteeError, RefusedError
from dpcausal.guarantee import Guarantee
from dpcausal.rehearsal.pricing import check_affords
from dpcausal.results.effect import Effect, Estimator, check_estimator_object
from dpcausal.schema.schema import Schema
from dpcausal.source import Source
from dpcausal.uncertainty.interval import check_alpha, check_level
from dpcausal.utils.other_names import called_as
from dpcausal.utils.text import format_number, text_table
from dpcausal.utils.validation import is_number

Method = Literal["holm", "bonferroni", "benjamini_hochberg"]


@called_as("adjusted_p_values([0.01, 0.04])")
def adjusted_p_values(p_values: Sequence[float], method: Method = "holm") -> tuple[float, ...]:
    """Return p-values adjusted for their number: each may be compared with the level of the whole family.

    Args:
        method: `holm` or `bonferroni` bound the probability of any false claim (familywise error), whatever the
            dependence; `benjamini_hochberg` bounds the expected share of false claims among all claims (false
            discovery rate), for independent or positively dependent p-values.

    Example:
        >>> adjusted_p_values([0.01, 0.04, 0.03])
        (0.03, 0.06, 0.06)
        >>> adjusted_p_values([0.01, 0.04, 0.03], "benjamini_hochberg")
        (0.03, 0.04, 0.04)
    """
    listed = isinstance(p_values, Iterable) and all(is_number(value) and 0 <= value <= 1 for value in p_values)
    if method not in get_args(Method) or not listed:
        raise RefusedError(
            expected=f"a list of p-values from 0 to 1, and a method out of {', '.join(get_args(Method))}",
            got=f"{repr(p_values)[:100]} and {method!r}",
            hint="effect.p_value() gives the p-value of an effect.",
        )
    values = np.asarray(p_values, dtype=float)
    count = len(values)
    if method == "bonferroni":
        return tuple(np.minimum(values * count, 1.0).tolist())
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(count)
    if method == "holm":
        adjusted[order] = np.maximum.accumulate(values[order] * np.arange(count, 0, -1))
    else:
        falling = order[::-1]
        adjusted[falling] = np.minimum.accumulate(values[falling] * count / np.arange(count, 0, -1))
    return tuple(np.minimum(adjusted, 1.0).tolist())


@dataclass(frozen=True)
class EffectFamily:
    """Effects on several outcomes, or of several arms, which are judged together.

    Attributes:
        effects: The effects, by the names of their outcomes, of their comparisons, or of both.
        method: How p-values are adjusted; see `adjusted_p_values`.
    """

    effects: Mapping[str, Effect]
    method: Method = "holm"

    @property
    def p_values(self) -> dict[str, float]:
        """The adjusted p-value of each effect."""
        own = [effect.p_value() for effect in self.effects.values()]
        return dict(zip(self.effects, adjusted_p_values(own, self.method), strict=True))

    def claims(self, alpha: float = 0.05) -> tuple[str, ...]:
        """Return the names of effects that are shown, at this level for all of them together."""
        check_alpha(alpha)
        return tuple(name for name, p_value in self.p_values.items() if p_value <= alpha)

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return intervals that hold for all effects at once with at least this probability (Bonferroni)."""
        check_level(level)
        each = 1 - (1 - level) / len(self.effects)
        return {name: effect.interval(each) for name, effect in self.effects.items()}

    def __str__(self) -> str:
        p_values, intervals = self.p_values, self.intervals()
        lines = []
        for name, effect in self.effects.items():
            low, high = map(format_number, intervals[name])
            numbers = f"{format_number(effect.estimate)} ({low} to {high} jointly)"
            lines.append((name, f"{numbers}, adjusted p = {p_values[name]:.3g}"))
        return text_table(f"{len(lines)} effects, p-values by {self.method}", lines)


@called_as("estimate_family([vault, other], DifferenceInMeans(), epsilon=1.0)")
def estimate_family(  # noqa: PLR0913
    sources: Sequence[Source],
    estimator: Estimator,
    *,
    epsilon: float,
    delta: float = 0.0,
    weights: Sequence[float] | None = None,
    method: Method = "holm",
) -> EffectFamily:
    """Estimate the effect on each of several outcomes, or of each of several arms, for a total of epsilon and delta.

    Each source has one outcome and one comparison of arms in its schema: vaults of one table and one ledger, or
    rehearsals. The budget of all of them is checked before the first query.

    Args:
        sources: One source for each outcome or comparison.
        epsilon: The total epsilon.
        delta: The total delta.
        weights: The share of the total for each source, declared before anything is asked; equal if left out. They
            must not be chosen by results.
        method: How p-values are adjusted.

    Raises:
        BudgetExceededError: If a budget has too little left for all sources. Nothing was spent.

    Example:
        >>> from dpcausal import Binary, DifferenceInMeans, Real, Rehearsal, Schema, Treatment
        >>> outcomes = [Real("pain", 0, 10), Binary("fell")]
        >>> plans = [Rehearsal(Schema(treatment=Treatment("arm"), outcome=outcome), n=2_000) for outcome in outcomes]
        >>> family = estimate_family(plans, DifferenceInMeans(), epsilon=1.0, weights=[3, 1])
        >>> [effect.guarantee.epsilon for effect in family.effects.values()]
        [0.75, 0.25]
    """
    check_estimator_object(estimator)
    if not isinstance(sources, Sequence) or not all(isinstance(source, Source) for source in sources):
        raise GuaranteeError(
            expected="a list of vaults or rehearsals, one for each outcome",
            got=type(sources).__name__,
            hint="write estimate_family([vault, other], DifferenceInMeans(), epsilon=1.0).",
        )
    shares = [1.0] * len(sources) if weights is None else list(weights)
    names = _names([source.schema for source in sources])
    valid = all(is_number(share) and share > 0 for share in shares)
    if not sources or not valid or len(shares) != len(sources) or len(set(names)) != len(names):
        raise GuaranteeError(
            expected="sources with different outcomes or comparisons, and a positive weight for each",
            got=f"{names} and weights {weights}",
            hint="open a Vault for each outcome or comparison, all with the same ledger; leave weights out for equal "
            "shares.",
        )
    parts: list[Guarantee] = []
    rest = Guarantee(epsilon=epsilon, delta=delta, protects=sources[0].schema.protects)
    for place, share in enumerate(shares[:-1]):
        first, rest = rest.split(share / sum(shares[place:]))
        parts.append(first)
    parts.append(rest)

    def ask(*asked: Source) -> dict[str, Effect]:
        return {
            name: estimator.estimate(source, epsilon=part.epsilon, delta=part.delta)
            for name, source, part in zip(names, asked, parts, strict=True)
        }

    check_affords(ask, *sources)
    return EffectFamily(ask(*sources), method)


def _names(schemas: Sequence[Schema]) -> list[str]:
    """Return what tells the sources apart: the outcome, the comparison, or both."""
    outcomes = [schema.outcome.title for schema in schemas]
    arms = [schema.treatment.labels_or_values for schema in schemas]
    comparisons = [f"{treated} against {control}" for control, treated in arms]
    if len(set(comparisons)) <= 1:
        return outcomes
    if len(set(outcomes)) == 1:
        return comparisons
    return [f"{outcome}, {comparison}" for outcome, comparison in zip(outcomes, comparisons, strict=True)]
