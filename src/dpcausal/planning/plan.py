"""Plans: the queries, cost and expected precision of a study, before anything is read or spent."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dpcausal.errors import RefusedError, StudyError
from dpcausal.guarantee import Guarantee
from dpcausal.page.interval_figure import notebook_figure
from dpcausal.planning.candidate import Shape
from dpcausal.planning.interval_refusals import REHEARSALS, count_refusals, odds
from dpcausal.planning.left_in import LeavingIn, adjusts_for, expected_left_in
from dpcausal.planning.page import plan_page
from dpcausal.planning.precision import (
    MOST_TRIED,
    epsilon_for,
    half_width,
    max_confounders,
    smallest_detectable,
    type_s_error,
    units_for,
    width_curve,
    wrong_sign,
)
from dpcausal.planning.ranking import Ranking, check_planned, has_own_design, rank_alone, rank_estimators
from dpcausal.price import Amount, Price
from dpcausal.queries import Cut
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import format_receipt
from dpcausal.results.effect import Effect, Estimator, check_estimator_object
from dpcausal.schema.real import Real
from dpcausal.uncertainty.interval import half_width as half_width_of
from dpcausal.utils.documents import write_text
from dpcausal.utils.other_names import called_as
from dpcausal.utils.text import format_number, html_table, table_rows, text_table
from dpcausal.utils.validation import is_number

THIS = "this study"
"""The label of the study's own estimator among the others."""

POOR_OVERLAP = 0.5
"""Below it overlap is poor: half of the treated units have scores that are rare among the others."""

_WIDER = 1.1
"""A plan says what poor overlap would cost where that is so many times its width."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study before it is run, from public numbers only.

    Attributes:
        effect: The rehearsed effect: its queries, their prices, and the expected errors.
        left_in: The confounding that the adjustment is expected to leave in.
        poor_overlap: The half width to expect where the arms overlap by half; infinite without an interval. None where
            an overlap is given, where that much or less is expected, or where nothing is adjusted for.
        refusals: The number of rehearsals with noise, out of 40, that yielded no interval.
        width: The target half width; infinite where any interval will do, None without a target.
        epsilon_needed: The epsilon for this width; None without a target, or where no epsilon is enough.
        units_needed: The number of units for this width at this epsilon; None without a target, or beyond a billion.
        max_confounders: The largest number of numeric confounders for which a regression adds less privacy noise than
            there is sampling error.
        ranking: The estimators that fit, in the order of their expected error; those that do not adjust, apart. Where
            no other estimator is for the design and the effect, it holds this one only.
        price: The price of the whole study; None where only an estimator is planned, whose price is its guarantee.
    """

    estimator: Estimator
    effect: Effect
    left_in: float
    rehearsal: Rehearsal
    poor_overlap: float | None
    refusals: int
    width: float | None
    epsilon_needed: float | None
    units_needed: int | None
    max_confounders: int
    ranking: Ranking
    price: Price | None = None

    @property
    def half_width(self) -> float:
        """The expected ± around the estimate, for a 95 % interval; infinite where there will be no interval."""
        return half_width(self.effect)

    @property
    def smallest_detectable(self) -> float:
        """The smallest effect that such a study detects with 80 % power, by a two-sided test at 5 %."""
        return smallest_detectable(self.effect)

    def wrong_sign(self, effect: float) -> float:
        """Return the probability that the estimate has the wrong sign if the true effect is of this size.

        It follows from the planned errors, sampling and privacy noise together, and is exact for them. It takes the
        estimator's assumptions to hold: residual confounding is no part of it.

        Raises:
            RefusedError: Where no interval is expected, so that errors are not known.

        Example:
            >>> from dpcausal import DifferenceInMeans, Guarantee, Real, Rehearsal, Schema, Treatment
            >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100))
            >>> expected = Rehearsal(schema, n=1_000, outcome_sd=15)
            >>> trial = plan(DifferenceInMeans(), expected, Guarantee(epsilon=0.2), covariates=[])
            >>> round(trial.wrong_sign(2.0), 2), round(trial.type_s_error(2.0), 2)
            (0.24, 0.1)
        """
        return wrong_sign(self.effect, effect)

    def type_s_error(self, effect: float) -> float:
        """Return the same among estimates whose 95 % interval excludes 0: the type S error of Gelman and Carlin (2014).

        Raises:
            RefusedError: Where no interval is expected.
        """
        return type_s_error(self.effect, effect)

    @property
    def refused(self) -> bool:
        """Whether most studies like this one would have no interval."""
        return 2 * self.refusals > REHEARSALS

    def widths(self) -> dict[str, list[tuple[float, float]]]:
        """Return the expected half widths at several epsilons, for this study and for each estimator that fits.

        Where an estimator yields no interval, there is no width.
        """
        fitting = {each.label: each for each in self.ranking.candidates if not _alike(each.estimator, self.estimator)}
        this = LeavingIn(self.estimator, self.left_in)
        curves = {THIS: width_curve(this, self.rehearsal, self.effect.guarantee.delta)}
        curves |= {
            name: width_curve(LeavingIn(each.estimator, each.bias), self.rehearsal, each.delta)
            for name, each in fitting.items()
        }
        return {name: curve for name, curve in curves.items() if curve}

    def __str__(self) -> str:
        table = text_table(self._title(), self._table())
        return f"{table}\n\nEstimators by expected error, each with the delta that it would use\n{self.ranking.table}"

    def __repr__(self) -> str:
        return f"<{self._title()}; {' '.join(self._precision()[0])}; {self.effect.guarantee}>"

    def _repr_html_(self) -> str:
        """Return the same table for a notebook, with a figure of the expected interval, without the ranking."""
        interval = None if self.effect.no_interval else self.effect.interval()
        figure = notebook_figure(None, interval, self.effect.width_by_source)
        return html_table(self._title(), self._table(), figure)

    def _title(self) -> str:
        arms = f"{self.effect.arms[1]} against {self.effect.arms[0]}"
        return f"Plan (no data read, nothing spent): effect of {arms} on {self.effect.outcome}"

    def _table(self) -> list[tuple[str, str]]:
        effect = self.effect
        table = table_rows("WARNING", effect.guarantee.warnings)
        table += [("units", f"{effect.n:,}"), ("method", effect.method), *self._precision()]
        table += [("no interval", odds(self.refusals))]
        table += table_rows("will ask", tuple(map(format_receipt, effect.receipts)))
        table += [("privacy", str(effect.guarantee))]
        table += table_rows("price", self.price.lines if self.price else ())
        table += [*self._target(), ("max confounders", self._confounders())]
        table += [("ranking", self._place())]
        table += table_rows("note", tuple(note for note in effect.notes if note not in self.rehearsal.caveats))
        return table + table_rows("assumes", self.assumed)

    def _place(self) -> str:
        """Return what comes first in the ranking, and why; of a study that is listed apart, what is narrower."""
        first, apart = self.ranking.candidates[0], self.ranking.not_ranked
        own = next((each for each in apart if _of_one_effect(each.estimator, self.estimator)), None)
        if own is None:
            return f"first {first.label}: {self.ranking.why}"
        best = min((each for each in apart if each.not_ranked == own.not_ranked), key=lambda each: each.half_width)
        instead = ""
        if best.half_width < own.half_width:
            instead = f"; of that effect, {best.label} is expected within {format_number(best.half_width)}"
        return f"first {first.label}: {self.ranking.why}; this study is not ranked: {own.not_ranked}{instead}"

    def _precision(self) -> list[tuple[str, str]]:
        effect = self.effect
        if math.isinf(self.half_width):
            sampling = "not asked for" if effect.sampling_sd is None else format_number(effect.sampling_sd)
            return [
                ("95 % interval", f"none: {effect.no_interval}"),
                ("standard error", f"sampling {sampling}, privacy noise {format_number(effect.privacy_sd)}"),
            ]
        parts = half_width_of(effect.sampling_sd or 0.0, (), 0.95), half_width_of(0.0, effect.noise, 0.95)
        alone = (
            f"sampling alone would give ± {format_number(parts[0])}, privacy noise alone ± {format_number(parts[1])}"
            + (f", confounding left in ± {format_number(effect.left_in)}" if effect.left_in else "")
        )
        effect_size = f"an effect of {format_number(self.smallest_detectable)} or more, with 80 % power"
        expect = "probably none; where there is one, expect" if self.refused else "expect"
        return [
            ("95 % interval", f"{expect} the estimate ± {format_number(self.half_width)}; {alone}"),
            *self._overlap(),
            ("can detect", f"{effect_size} (two-sided test at 5 %, if the interval comes out as wide as expected)"),
        ]

    def _overlap(self) -> list[tuple[str, str]]:
        if self.poor_overlap is None or self.poor_overlap < _WIDER * self.half_width:
            return []
        poor = "none" if math.isinf(self.poor_overlap) else f"the estimate ± {format_number(self.poor_overlap)}"
        expected = f"{self.rehearsal.expected_overlap:.0%} is expected, as none was given"
        return [("poor overlap", f"{poor} where propensity scores have {POOR_OVERLAP:.0%} in common; {expected}")]

    def _target(self) -> list[tuple[str, str]]:
        if self.width is None:
            return []
        now = f"{self.effect.n:,} units", f"epsilon {self.effect.guarantee.epsilon:g}"
        epsilon = "no epsilon is enough" if self.epsilon_needed is None else f"epsilon {self.epsilon_needed:g}"
        units = "more than a billion" if self.units_needed is None else f"{self.units_needed:,}"
        target = "for an interval" if math.isinf(self.width) else f"for ± {self.width:g}"
        return [(target, f"{epsilon} with {now[0]}; or {units} units with {now[1]}")]

    def _confounders(self) -> str:
        count = self.max_confounders
        if count == 0:
            return "a regression on any numeric confounder has more privacy noise than there is sampling error"
        most = " or more" if count == MOST_TRIED else ""
        few = f"{count}{most} numeric confounder{'s' if count > 1 else ''}"
        return f"{few}: a regression on so many has less privacy noise than there is sampling error"

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the plan assumes, in words; also in place of what was not given."""
        if self.rehearsal.outcome_sd is None and isinstance(self.rehearsal.schema.outcome, Real):
            wide = "outcomes are taken to be uniform over their bounds, a larger spread than most have"
            return (*self.ranking.assumed, f"no standard deviation was given: {wide}")
        return self.ranking.assumed

    def to_html(self, *, remaining: Amount | None = None) -> str:
        """Return one self-contained page with sliders for epsilon and the number of units, each position rehearsed.

        Args:
            remaining: What a budget has left that adds up epsilons: `ledger.remaining`.
        """
        return plan_page(self, remaining)

    def save(self, path: str | Path, *, remaining: Amount | None = None) -> None:
        """Write the plan to a file: .html for people, as `to_html`, or .json for programs."""
        file = Path(path)
        if file.suffix not in {".html", ".json"}:
            raise RefusedError(expected="a file .html or .json", got=file.name, hint="name it plan.html.")
        write_text(file, self.to_html(remaining=remaining) if file.suffix == ".html" else self.to_json())

    def to_json(self) -> str:
        """Return the plan as JSON; null stands for a number that does not exist."""
        finite = ("half_width", "poor_overlap", "smallest_detectable")
        document = {
            "n": self.effect.n,
            "method": self.effect.method,
            "guarantee": self.effect.guarantee.to_dict(),
            "price": (self.price or Price.of([self.effect.guarantee])).to_dict(),
            "asks": [
                {"query": each.query, "epsilon": each.epsilon, "delta": each.delta} for each in self.effect.receipts
            ],
            **{name: _finite(getattr(self, name)) for name in finite},
            "no_interval": self.effect.no_interval,
            "refused_share": self.refusals / REHEARSALS,
            "sampling_sd": self.effect.sampling_sd,
            "privacy_sd": self.effect.privacy_sd,
            "left_in": self.effect.left_in,
            "target_width": None if self.width is None or math.isinf(self.width) else self.width,
            "epsilon_needed": self.epsilon_needed,
            "units_needed": self.units_needed,
            "max_confounders": self.max_confounders,
            "estimators": [
                {"half_width": each.half_width if each.interval else None}
                | {name: value for name, value in vars(each).items() if name not in ("estimator", "half_width")}
                for each in (*self.ranking.candidates, *self.ranking.not_ranked)
            ],
            "widths": self.widths(),
            "assumes": self.assumed,
            "public": {name: value for name, value in asdict(self.rehearsal).items() if name not in ("schema", "n")},
        }
        return json.dumps(document, sort_keys=True, allow_nan=False)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _alike(first: Estimator, second: Estimator) -> bool:
    """Return whether two estimators are the same, with names in a list or in a tuple."""
    parts = [json.dumps(asdict(each), default=str) for each in (first, second)]  # type: ignore[call-overload]
    return type(first) is type(second) and parts[0] == parts[1]


def _of_one_effect(first: Estimator, second: Estimator) -> bool:
    """Return whether two estimators are of one kind and of the same effect."""
    return type(first) is type(second) and getattr(first, "estimand", "") == getattr(second, "estimand", "")


def _check_width(width: object, effect: Effect, rehearsal: Rehearsal) -> None:
    """Raise unless an interval may be as narrow as this, and need not be wider than the outcome's range."""
    if width == math.inf:
        return
    low, high = rehearsal.schema.outcome_bounds
    widest = math.inf if effect.quantity else high - low
    if not is_number(width) or not 0 < width < widest:  # type: ignore[operator]
        within = "" if math.isinf(widest) else f", and below {widest:g}"
        raise StudyError(
            problem=f"The target width must be a number above 0{within}, not {width!r}",
            hint="write the ± that you want around the estimate"
            + (": 0.02 for 2 percentage points." if effect.is_risk_difference else ", in the unit of the outcome."),
        )


@called_as("plan(estimator, rehearsal, Guarantee(epsilon=1.0))")
def plan(  # noqa: PLR0913
    estimator: Estimator,
    rehearsal: Rehearsal,
    guarantee: Guarantee,
    *,
    covariates: Sequence[str] | None = None,
    by: Sequence[str | Cut] | None = None,
    shape: Shape = "unknown",
    width: float | None = None,
    price: Price | None = None,
) -> Plan:
    """Plan an estimator: its queries, its cost and its expected precision. Reads no data and spends nothing.

    Args:
        rehearsal: The expectations about the table.
        guarantee: The guarantee to give.
        covariates: The confounders, as for `rank_estimators`; none for a trial: `covariates=[]`. By default those that
            the estimator adjusts for; where it adjusts for none, all covariates.
        by: Strata to rank as well, as for `rank_estimators`; the estimator's own by default.
        shape: What is known about the shape of models, as for `rank_estimators`.
        width: The target half width: the ± around the estimate. Where there would be no interval, any by default.
        price: The price of the study that the estimator is a part of: `Study.price()`.

    Example:
        >>> from dpcausal import DifferenceInMeans, Guarantee, Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100))
        >>> expected = Rehearsal(schema, n=1_000, outcome_sd=15)
        >>> trial = plan(DifferenceInMeans(), expected, Guarantee(epsilon=0.2), covariates=[], width=2.5)
        >>> round(trial.half_width, 1), round(trial.smallest_detectable, 1)
        (6.4, 8.8)
        >>> trial.epsilon_needed, trial.units_needed
        (0.72, 2740)
    """
    check_estimator_object(estimator)
    check_planned(rehearsal, guarantee)
    confounders = adjusts_for(estimator) if covariates is None else covariates
    planned = LeavingIn(estimator, expected_left_in(estimator, confounders, rehearsal))
    effect = planned.estimate(rehearsal, epsilon=guarantee.epsilon, delta=guarantee.delta)
    if width is not None:
        _check_width(width, effect, rehearsal)
    elif math.isinf(half_width(effect)):
        width = math.inf
    if has_own_design(estimator):
        ranking = rank_alone(estimator, rehearsal, guarantee)
    else:
        ranking = rank_estimators(
            rehearsal,
            guarantee,
            covariates=confounders or covariates,
            by=getattr(estimator, "by", None) or () if by is None else by,
            shape=shape,
        )
    return Plan(
        estimator=estimator,
        effect=effect,
        left_in=planned.bound,
        rehearsal=rehearsal,
        poor_overlap=_of_poor_overlap(planned, rehearsal, guarantee) if adjusts_for(estimator) else None,
        refusals=count_refusals(estimator, rehearsal, guarantee),
        width=width,
        epsilon_needed=None if width is None else epsilon_for(width, planned, rehearsal, guarantee.delta),
        units_needed=None if width is None else units_for(width, planned, rehearsal, guarantee),
        max_confounders=max_confounders(rehearsal, guarantee),
        ranking=ranking,
        price=price,
    )


def _of_poor_overlap(planned: LeavingIn, rehearsal: Rehearsal, guarantee: Guarantee) -> float | None:
    """Return the half width to expect where arms overlap by half, unless the rehearsal expects that little itself."""
    if rehearsal.overlap is not None or not rehearsal.confounding or rehearsal.expected_overlap <= POOR_OVERLAP:
        return None
    poor = replace(rehearsal, overlap=POOR_OVERLAP)
    return half_width(planned.estimate(poor, epsilon=guarantee.epsilon, delta=guarantee.delta))
