"""An estimated treatment effect."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, get_args

from dpcausal.errors import QueryError, RefusedError
from dpcausal.guarantee import Guarantee
from dpcausal.page.interval_figure import notebook_figure
from dpcausal.queries.features import Estimand
from dpcausal.release import Receipt, units_of
from dpcausal.results.arm_curves import ArmCurves
from dpcausal.results.effect_measures import (
    Alternative,
    HalfWidth,
    Measure,
    Test,
    missing_lines,
    number_needed_to_treat,
    odds_ratio,
    ratio_of_means,
    shifted,
)
from dpcausal.results.laws import AnytimeLaw, NormalLaw, RatioLaw, StudentLaw
from dpcausal.results.printed import PrintedResult
from dpcausal.results.site_share import SiteShare
from dpcausal.source import Source
from dpcausal.uncertainty.anytime import LooksSoFar
from dpcausal.uncertainty.interval import NoiseTerm, check_level, check_margin, half_width
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.documents import json_of, read_as
from dpcausal.utils.other_names import OtherNames, called_as
from dpcausal.utils.plain_text import check_plain_text, printed_texts
from dpcausal.utils.text import format_number, table_rows
from dpcausal.utils.validation import is_number

_SAMPLING_BELOW_NOISE = "the sampling error is below the noise floor; the value shown is an upper bound"

_VISIBLE = 4.0
"""A number is visible beside noise from so many of its standard deviations on."""


@dataclass(frozen=True, kw_only=True)
class Effect(PrintedResult, OtherNames):
    """An estimated treatment effect, with everything needed to interpret it. Public: it reveals no single unit.

    Attributes:
        estimand: The estimand, in words.
        arms: The two arms, control first.
        outcome: The outcome's name.
        estimate: The noisy estimate, never projected or rounded.
        sampling_sd: The standard error without privacy noise; None where it was not asked for.
        noise: The privacy noise in the estimate, term by term, to first order.
        between_sd: The standard error from heterogeneity between sites, in a pooled effect.
        n: The number of units in the table, which is public.
        compared: The number of units in the comparison, noisy where it is private; None where no release shows it.
        compared_sd: The standard deviation of the noise in it; 0 where it is public.
        method: The estimator, in words.
        guarantee: The privacy guarantee of all queries behind the effect together.
        assumptions: What must hold for the estimate to identify the estimand.
        receipts: The queries and their prices.
        notes: Further notes for the reader.
        no_interval: Why there is no interval; empty where there is one.
        unadjusted: The covariates that may not be adjusted for: noise prevents it, or a warning says why.
        sites: In a federated analysis, the part of each site.
        arm_means: The mean outcome in each arm with joint errors, noisy, the control arm first; for a binary outcome
            the risks. None where the estimator does not give them.
        arm_sizes: The number of units in each arm, with the noise in it where it is private.
        missing_outcomes: The share of outcomes that are missing in each arm, with its errors; None where it is unknown.
        includes_missing: Whether the effect is that in all units, with an outcome or without, not in those with one.
        contrasts: Further contrasts from the same releases, such as those of other arms, with their joint error.
        curves: A curve for each arm, such as survival over time.
        quantity: What the arms differ in, where it is not the mean outcome; the estimand, if that is no difference.
        warnings: Signs, from released numbers, of a problem with the table or its declaration.
        bias_bound: The largest bias, in either direction, that intervals and p-values allow for; it is not in the
            standard error. Only `with_bias` and `with_left_in` change it.
        left_in: The part of it for confounding that may be left in, such as that within strata.
        sampling_is_a_bound: Whether noise hides how small the sampling error is, so that it is an upper bound; a note
            says so.
        target: Over whom the effect is averaged: all units (ATE), the treated (ATT), the controls (ATC), or the overlap
            population (ATO).
        clip: Propensity scores were clipped to clip and 1 - clip; None where there are none.
        p_values_hold: Whether p-values hold where there is no interval, as that of a ratio with a weak denominator.
        ratio: Whether the effect is the first contrast over the second; its interval is then Fieller's, not symmetric.
        degrees_of_freedom: Those of Student's t, where the standard error comes from differences between sites; 0 where
            the interval is made of normal sampling error and the known privacy noise.
        looks: Which look of a schedule it is, where there are several; intervals and p-values then hold at all looks
            together.
        is_risk_difference: Whether it is a difference of risks, which lies between -1 and 1.
        estimator: The estimator that made it and its parameters, as `[estimator]` of a study has them; empty where that
            is not known, or sites differ.
        declared: The digest of what was declared of the columns that the estimator uses; empty where unknown.
        defining: What else defines the estimand, besides quantity and target: parameters, and what answers chose, such
            as a cap. Empty for an average effect over the target; None where it is not known.
    """

    _instead: ClassVar[Mapping[str, str]] = {
        "conf_int confint confidence_interval effect_interval ate_interval ci": "write effect.interval(0.95).",
        "summary describe show display results": "write print(effect), or effect alone as the last line of a cell.",
        "value effect ate att params coef coef_ point_estimate": "write effect.estimate.",
        "se bse stderr std_err std_error": "write effect.standard_error; effect.privacy_sd is the noise's part of it.",
        "pvalue pvalues pval": "write effect.p_value().",
        "rr relative_risk": "write effect.risk_ratio().",
        "nnt": "write effect.number_needed_to_treat().",
        "lift uplift": "write effect.relative_lift().",
        "fit predict": "an effect is already estimated: write print(effect). For heterogeneous effects see RLearner.",
        "to_frame to_pandas to_dict to_csv": "write dpcausal.tidy(effect), or effect.to_json().",
        "plot figure": "write effect alone as the last line of a cell, or Report.of(effect, date=date.today()).",
        "conf_low conf_high ci_low ci_high lower upper": "write low, high = effect.interval(0.95).",
        "save write": 'write Path("effect.json").write_text(effect.to_json()).',
    }

    estimand: str
    arms: tuple[str, str]
    outcome: str
    estimate: float
    sampling_sd: float | None
    noise: tuple[NoiseTerm, ...]
    n: int
    method: str
    guarantee: Guarantee
    assumptions: tuple[str, ...]
    receipts: tuple[Receipt, ...]
    notes: tuple[str, ...] = ()
    no_interval: str = ""
    unadjusted: tuple[str, ...] = ()
    between_sd: float = 0.0
    sites: tuple[SiteShare, ...] = ()
    arm_means: JointEstimate | None = None
    arm_sizes: JointEstimate | None = None
    missing_outcomes: JointEstimate | None = None
    includes_missing: bool = False
    contrasts: JointEstimate | None = None
    curves: tuple[ArmCurves, ...] = ()
    quantity: str = ""
    warnings: tuple[str, ...] = ()
    bias_bound: float = 0.0
    left_in: float = 0.0
    compared: float | None = None
    compared_sd: float = 0.0
    ratio: bool = False
    degrees_of_freedom: int = 0
    sampling_is_a_bound: bool = False
    target: Estimand = "ATE"
    clip: float | None = None
    p_values_hold: bool = False
    looks: LooksSoFar | None = None
    is_risk_difference: bool = False
    estimator: Mapping[str, Any] = field(default_factory=dict, hash=False)
    declared: str = ""
    defining: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if self.sampling_is_a_bound:
            object.__setattr__(self, "notes", tuple(dict.fromkeys((_SAMPLING_BELOW_NOISE, *self.notes))))
        if self.sampling_sd is None and not self.no_interval:
            object.__setattr__(self, "no_interval", "the sampling error was not asked for")
        check_plain_text("texts of an effect", printed_texts(self))

    @property
    def privacy_sd(self) -> float:
        """The standard deviation of the privacy noise in the estimate."""
        return math.sqrt(sum(term.variance for term in self.noise))

    @property
    def standard_error(self) -> float | None:
        """The standard error of the estimate: sampling, heterogeneity between sites and privacy noise together."""
        return None if self.sampling_sd is None else math.hypot(self.sampling_sd, self.privacy_sd, self.between_sd)

    @property
    def outside(self) -> float:
        """The number of units outside the comparison where it is visible beside its noise; otherwise 0."""
        left_out = 0.0 if self.compared is None or self.rehearsed else self.n - self.compared
        return left_out if left_out > _VISIBLE * self.compared_sd else 0.0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval for the estimand that accounts for sampling error and privacy noise.

        Raises:
            RefusedError: Where there is no valid interval; the message says why.
        """
        check_level(level)
        return self.limits(level)

    def limits(self, level: float) -> tuple[float, float]:
        """Return the limits for any probability, also one below 0.5, which only the calculation of a power needs."""
        self._check_interval()
        return self._law.limits(level)

    @property
    def _law(self) -> NormalLaw:
        """The law of the estimate's error."""
        parts = (self.estimate, self.sampling_sd or 0.0, self.between_sd, self.noise, self.bias_bound)
        if self.ratio and self.contrasts is not None:
            return RatioLaw(*parts, self.contrasts)
        if self.looks is not None:
            return AnytimeLaw(*parts, self.looks)
        return StudentLaw(*parts, self.degrees_of_freedom) if self.degrees_of_freedom else NormalLaw(*parts)

    @property
    def _half_width(self) -> HalfWidth:
        """What gives half the width of an interval of a function of the arms' means."""
        law = self._law
        return law.half if isinstance(law, AnytimeLaw) else half_width

    def with_bias(self, bound: float) -> Self:
        """Return the effect with this much more bias, in either direction, for its intervals to allow for."""
        if not bound:
            return self
        means = self.arm_means and self.arm_means.with_bias(bound)
        contrasts = self.contrasts if self.ratio else self.contrasts and self.contrasts.with_bias(bound)
        return replace(self, bias_bound=self.bias_bound + bound, arm_means=means, contrasts=contrasts)

    def with_left_in(self, bound: float) -> Self:
        """Return the effect with intervals that allow for confounding up to a bound; once, whatever allowed for it."""
        more = max(bound - self.left_in, 0.0)
        return replace(self.with_bias(more), left_in=self.left_in + more)

    def _check_interval(self) -> None:
        if self.no_interval:
            raise RefusedError(
                problem=f"This effect has no interval: {self.no_interval}",
                hint="print the effect to see the rest; privacy_sd is known in any case.",
            )

    def p_value(self, null: float = 0.0, alternative: Alternative = "two-sided") -> float:
        """Return the p-value of the hypothesis that the effect is `null`; it accounts for privacy noise.

        Args:
            alternative: `two-sided`, `greater` or `less`.

        Raises:
            RefusedError: Where there is no valid interval, unless that is for a weak instrument only.
        """
        if not is_number(null) or alternative not in get_args(Alternative):
            raise RefusedError(
                problem=f"A p-value needs a number as null, and one of {', '.join(get_args(Alternative))}, not "
                f"{null!r} and {alternative!r}"[:300],
                hint='write effect.p_value(), or effect.p_value(null=0.5, alternative="greater").',
            )
        if not self.p_values_hold:
            self._check_interval()
        return self._law.p_value(null, alternative)

    def risk_ratio(self, level: float = 0.95) -> Measure:
        """Return the ratio of the arms' means or risks, with Fieller's interval; it costs nothing."""
        check_level(level)
        ratio = ratio_of_means(self.compared_means(), level, "risk ratio", self._half_width)
        return replace(ratio, low=max(ratio.low, 0.0))

    def relative_lift(self, level: float = 0.95) -> Measure:
        """Return the effect over the control arm's mean, with Fieller's interval; it costs nothing."""
        check_level(level)
        return shifted(ratio_of_means(self.compared_means(), level, "ratio", self._half_width), "relative lift", -1.0)

    def odds_ratio(self, level: float = 0.95) -> Measure:
        """Return the ratio of the arms' odds; for binary outcomes. It costs nothing."""
        check_level(level)
        return odds_ratio(self.compared_means(), level, self._half_width)

    def number_needed_to_treat(self, level: float = 0.95) -> Measure:
        """Return how many must be treated for one more outcome; for binary outcomes. It costs nothing.

        Raises:
            RefusedError: Where the effect is no difference of risks.
        """
        check_level(level)
        if not self.is_risk_difference:
            raise RefusedError(
                problem="A number needed to treat belongs to a difference of risks, and this effect is none",
                hint="declare a binary outcome as Binary; for others write relative_lift().",
            )
        return number_needed_to_treat(self.estimate, self.interval(level), level)

    def superiority(self, *, lower_is_better: bool = False, margin: float = 0.0, alpha: float = 0.025) -> Test:
        """Test whether treatment is better than control by more than a margin, on one side."""
        self._check_margin(margin, may_be_zero=True)
        return self._one_sided("superiority", -margin if lower_is_better else margin, alpha, lower=lower_is_better)

    @called_as("effect.non_inferiority(0.02), or with lower_is_better=True")
    def non_inferiority(self, margin: float, *, lower_is_better: bool = False, alpha: float = 0.025) -> Test:
        """Test whether treatment is worse than control by less than a margin, on one side."""
        self._check_margin(margin)
        return self._one_sided("non-inferiority", margin if lower_is_better else -margin, alpha, lower=lower_is_better)

    @called_as("effect.equivalence(0.02)")
    def equivalence(self, margin: float, *, alpha: float = 0.05) -> Test:
        """Test whether the effect is within a margin of 0 in both directions: two one-sided tests."""
        self._check_margin(margin)
        worse = max(self.p_value(-margin, "greater"), self.p_value(margin, "less"))
        return Test(f"equivalence: an effect within {format_number(margin)} of 0", worse, alpha)

    def _check_margin(self, margin: object, *, may_be_zero: bool = False) -> None:
        check_margin(margin, most=1.0 if self.is_risk_difference else math.inf, may_be_zero=may_be_zero)

    def _one_sided(self, name: str, limit: float, alpha: float, *, lower: bool) -> Test:
        side = "below" if lower else "above"
        return Test(
            f"{name}: an effect {side} {format_number(limit)}",
            self.p_value(limit, "less" if lower else "greater"),
            alpha,
        )

    def compared_means(self) -> JointEstimate:
        """Return the means of the two compared arms, control first, with their joint error."""
        self._check_interval()
        if self.arm_means is None:
            raise RefusedError(
                problem=f"This effect, by {self.method}, has no means of its arms",
                hint="use DifferenceInMeans, RegressionAdjustment, InverseWeighting, or DoublyRobust with delta 0; in "
                "place of Stratification, for a few strata, ArmContrasts(by=…).",
            )
        places = [self.arm_means.names.index(arm) for arm in self.arms]
        means = self.arm_means.mapped(self.arms, lambda every: every[places])
        if not self.between_sd:
            return means
        control, (both, treated) = means.sampling  # sites differ in their effects, so in the treated arm
        return replace(means, sampling=(control, (both, treated + self.between_sd**2)))

    @property
    def control_mean(self) -> float | None:
        """The mean outcome without treatment, noisy; for a binary outcome the risk."""
        return None if self.arm_means is None else self.arm_means.value(self.arms[0])

    @property
    def treated_mean(self) -> float | None:
        """The mean outcome with treatment."""
        return None if self.arm_means is None else self.arm_means.value(self.arms[1])

    def __repr__(self) -> str:
        estimate = [] if self.rehearsed else [f"estimate {format_number(self.estimate)}"]
        return f"<{'; '.join([self._title(), *estimate, ' '.join(self._interval_line()), str(self.guarantee)])}>"

    def _figure(self) -> str:
        interval = None if self.no_interval else self.interval()
        return notebook_figure(None if self.rehearsed else self.estimate, interval, self.width_by_source)

    @property
    def width_by_source(self) -> tuple[float, float, float]:
        """95 % half-widths for sampling error, with differences between sites, and with privacy noise as well."""
        return self._law.widths(0.95)

    def _name(self) -> str:
        return f"Effect of {self.arms[1]} against {self.arms[0]} on {self.outcome}"

    def _table(self) -> list[tuple[str, str]]:
        table = [*table_rows("WARNING", (*self.guarantee.warnings, *self.warnings)), ("estimand", self.estimand)]
        if not self.rehearsed:
            table.append(("estimate", format_number(self.estimate)))
        table.append(self._interval_line())
        if self.looks is not None:
            table.append(("look", f"{self.looks.look} of {self.looks.all}; intervals and p-values hold at all of them"))
        privacy = f"privacy noise {format_number(self.privacy_sd)}"
        if self.sampling_sd is None:
            table.append(("standard error", f"{privacy}; sampling error not asked for"))
        else:
            between = f", sites {format_number(self.between_sd)}" if self.between_sd else ""
            parts = f"sampling {format_number(self.sampling_sd)}{between} and {privacy}"
            table.append(("standard error", f"{format_number(self.standard_error or 0.0)} = {parts}"))
        if self.bias_bound:
            table.append(("bias bound", f"{format_number(self.bias_bound)} in either direction, in the interval"))
        table += table_rows("reading", self._reading())
        table += table_rows("arm", self._arm_lines())
        table += table_rows("contrast", self._contrast_lines())
        table += units_of(self.n, self.receipts, self.outside, noisy=self.compared_sd > 0)
        missing = () if self.rehearsed else missing_lines(self.missing_outcomes, self.includes_missing)
        table += [*table_rows("missing", missing), ("method", self.method), ("privacy", str(self.guarantee))]
        table += table_rows("sites", tuple(map(str, self.sites)))
        return [*table, *table_rows("assumes", self.assumptions), *self._last_lines()]

    def _arm_lines(self) -> tuple[str, ...]:
        """Return each arm's size and mean, as released."""
        if self.arm_means is None or self.rehearsed:
            return ()
        sizes = dict(zip(self.arm_sizes.names, self.arm_sizes.values, strict=True)) if self.arm_sizes else {}
        word = f"{self.quantity}:" if self.quantity else "mean"
        return tuple(
            f"{name}: {f'{sizes[name]:,.0f} units, ' if name in sizes else ''}{word} {format_number(mean)}"
            for name, mean in zip(self.arm_means.names, self.arm_means.values, strict=True)
        )

    def _contrast_lines(self) -> tuple[str, ...]:
        """Return the further contrasts, with intervals that hold for all of them together."""
        if self.contrasts is None or self.rehearsed or self.contrasts.values == (self.estimate,):
            return ()
        return self.contrasts.lines(intervals=not self.no_interval)

    def _reading(self) -> tuple[str, ...]:
        """Return what the ratio of the two errors means for a reader."""
        if self.no_interval or self.privacy_sd <= (self.sampling_sd or 0.0):
            return ()
        if self.sampling_sd == 0:
            return ("the sampling error is below the noise floor; the interval reflects privacy noise only",)
        return ("privacy noise exceeds sampling error: more epsilon, or tighter bounds, would narrow the interval",)

    def _interval_line(self) -> tuple[str, str]:
        if self.no_interval:
            return "interval", f"none: {self.no_interval}"
        low, high = self.interval(0.95)
        limits = f"{format_number(low)} to {format_number(high)}"
        line = f"expect the estimate ± {format_number((high - low) / 2)}" if self.rehearsed else limits
        if self.left_in:
            without = replace(self, bias_bound=self.bias_bound - self.left_in)
            part = self.width_by_source[2] - without.width_by_source[2]
            if part > (high - low) / 200:
                line += f", of which ± {format_number(part)} for confounding that may be left in"
        return "95 % interval", line

    def to_json(self) -> str:
        """Return the effect as JSON, without loss."""
        return json.dumps(asdict(self), sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | Path) -> Self:
        """Read an effect that `to_json` wrote, from its text or from the file at a `Path`."""
        document = json_of("an effect", cls, text)
        document.setdefault("is_risk_difference", "(risk difference)" in str(document["estimand"]))  # of 0.2
        effect: Self = read_as(cls, document)
        return effect


class Estimator(Protocol):
    """Anything that estimates an effect from a source."""

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta."""
        ...


def check_estimator_object(estimator: object) -> None:
    """Raise unless this is an estimator, and not its name or its class."""
    if isinstance(estimator, type) or not callable(getattr(type(estimator), "estimate", None)):
        raise QueryError(
            problem=f"The estimator must be an object of its class, not {repr(estimator)[:100]}",
            hint='write for instance DifferenceInMeans(), or DoublyRobust(covariates=["age"]).',
        )
