"""The scorecard of an experiment: every metric in every arm, judged together."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dpcausal.errors import RefusedError
from dpcausal.experiment.decision import ArmDecision, DecisionRule, Situation, check_table, decide
from dpcausal.experiment.line import NONE, SEGMENTS_NOTE, ScorecardLine, Verdict
from dpcausal.experiment.metric import MetricKind
from dpcausal.experiment.page import scorecard_page
from dpcausal.experiment.sample_ratio import SampleRatio, p_words
from dpcausal.inference.many_outcomes import Method, adjusted_p_values
from dpcausal.release import format_receipt, units_of
from dpcausal.results.effect import Effect
from dpcausal.results.effect_measures import Measure, ratio_of_means, shifted
from dpcausal.uncertainty.anytime import LooksSoFar, anytime_half_width, anytime_p_value, two_sided_alpha
from dpcausal.uncertainty.interval import NoiseTerm, beyond, few_terms, inverted_half_width
from dpcausal.utils.documents import write_text
from dpcausal.utils.other_names import called_as
from dpcausal.utils.text import format_number, table_rows, text_table
from dpcausal.utils.validation import is_number

FORMAT = 1
"""The version of the JSON format; docs/scorecard.schema.json describes it."""

_POWER = 0.8
_ESTIMATES = (
    *("control_mean", "treated_mean", "difference", "low", "high", "lift", "lift_low", "lift_high"),
    *("p_value", "adjusted_p_value"),
)
"""What a rehearsal does not know."""

_LARGE_DELTA = 1.0
"""From so many units on that delta lets be disclosed, on average, it is warned of."""

_WITHIN = 0.05
"""A plan says how many units make an interval at most so much wider by privacy, as a share."""

_LEAST_SAMPLING = 0.03
"""The least sampling error that is counted, as a share of the privacy noise: it widens an interval by less than a
thousandth, and an error without a normal part takes long to invert."""


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """The result of an experiment: public, and made of one release, or of the looks of a schedule so far.

    Attributes:
        name: The experiment.
        effects: The effect of each arm against the control, metric by metric.
        kinds: What each metric is.
        lower_is_better: The metrics that should fall.
        sample_ratio: Whether the arms have the declared sizes.
        method: How p-values are adjusted.
        level: The level of the intervals.
        looks: Which look it is, where there are several; intervals and p-values then hold at all looks together.
        rule: When to ship, stop or wait; None where the experiment declares no rule.
        segments: The effects in each segment, by its name; empty where the experiment declares no segments.
        catalogue: The digest of the catalogue that its metrics are from; empty where they are from none.
        words: The unit, description and owner of each metric.
    """

    name: str
    question: str
    effects: tuple[Effect, ...]
    kinds: Mapping[str, MetricKind]
    lower_is_better: tuple[str, ...]
    sample_ratio: SampleRatio
    method: Method
    level: float
    looks: LooksSoFar | None = None
    rule: DecisionRule | None = None
    segments: Mapping[str, tuple[Effect, ...]] = field(default_factory=dict)
    catalogue: str = ""
    words: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)

    @property
    def simultaneous(self) -> bool:
        """Whether the intervals hold for all comparisons at once, not each by itself."""
        return self.method != "benjamini_hochberg"

    @property
    def rehearsed(self) -> bool:
        """Whether this came from a rehearsal: only the errors are expectations, no number was read."""
        return self.effects[0].rehearsed

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the guarantee worth little: a large epsilon, or a delta that lets some units be shown."""
        first = self.effects[0]
        delta = first.guarantee.delta
        if delta * first.n < _LARGE_DELTA:
            return first.guarantee.warnings
        said = f"delta {delta:g} is not far below 1 / {first.n:,}, one over the number of units: take a hundredth of it"
        return (*first.guarantee.warnings, said)

    @called_as('scorecard.effect("revenue")')
    def effect(self, metric: str, treated: str | None = None) -> Effect:
        """Return the effect on one metric, of one arm where there are several."""
        found = [each for each in self.effects if each.outcome == metric and treated in (None, each.arms[1])]
        if len(found) != 1:
            raise RefusedError(
                expected=f"a metric out of {', '.join(self.kinds)}, and an arm where several are compared",
                got=f"{metric!r} and {treated!r}",
                hint="write scorecard.effect(metric, arm), with the names that the scorecard prints.",
            )
        return found[0]

    @cached_property
    def lines(self) -> tuple[ScorecardLine, ...]:
        """One line for each metric and each arm but the control."""
        return self._lines([("", effect) for effect in self.effects])

    @cached_property
    def segment_lines(self) -> tuple[ScorecardLine, ...]:
        """The same in each segment. They are judged together, apart from those of all units."""
        return self._lines([(name, effect) for name, effects in self.segments.items() for effect in effects])

    def _lines(self, compared: Sequence[tuple[str, Effect]]) -> tuple[ScorecardLine, ...]:
        """Return the lines of some comparisons, each with its segment, judged together.

        Comparisons without an interval count too: noise decides which they are.
        """
        tested = [effect for _, effect in compared if not effect.no_interval]
        each = 1 - (1 - self.level) / len(compared) if self.simultaneous and compared else self.level
        p_values = {
            id(effect): self._p_value(effect.estimate, effect.sampling_sd or 0.0, effect.noise, 1 - each)
            for effect in tested
        }
        whole = [*p_values.values(), *(1.0 for _ in range(len(compared) - len(tested)))]
        adjusted = dict(zip(p_values, adjusted_p_values(whole, self.method), strict=False))
        lines = []
        for segment, effect in compared:
            error = effect.sampling_sd or 0.0, effect.noise
            half = self._half_width(*error, each, 0.0)
            unit, description, owner = self.words.get(effect.outcome, ("", "", ""))
            shown = not effect.no_interval
            lift = self._lift(effect, each) if shown else None
            lines.append(
                ScorecardLine(
                    metric=effect.outcome,
                    kind=self.kinds[effect.outcome],
                    control=effect.arms[0],
                    treated=effect.arms[1],
                    control_mean=effect.control_mean or 0.0,
                    treated_mean=effect.treated_mean or 0.0,
                    difference=effect.estimate,
                    low=effect.estimate - half if shown else None,
                    high=effect.estimate + half if shown else None,
                    lift=lift.estimate if lift else None,
                    lift_low=lift.low if lift else None,
                    lift_high=lift.high if lift else None,
                    p_value=p_values.get(id(effect)),
                    adjusted_p_value=adjusted.get(id(effect)),
                    detectable=half + inverted_half_width(*_errors(*error), 2 * _POWER - 1),
                    sampling_sd=effect.sampling_sd or 0.0,
                    privacy_sd=effect.privacy_sd,
                    verdict=self._verdict(effect, adjusted.get(id(effect))),
                    no_interval=effect.no_interval,
                    unit=unit,
                    description=description,
                    owner=owner,
                    segment=segment,
                )
            )
        return tuple(lines)

    def units_within(self, within: float = _WITHIN) -> dict[str, int]:
        """Return for each metric from how many units on privacy widens its interval by at most this share.

        Extrapolated from the errors of this scorecard: noise falls with the number of units, sampling error with its
        root. A metric without sampling error is left out.

        Raises:
            RefusedError: Where the share is not a number above 0: privacy always widens an interval.
        """
        if not (is_number(within) and within > 0):
            raise RefusedError(
                expected="a share above 0", got=repr(within), hint="write 0.05 for intervals that are 5 % wider."
            )
        found: dict[str, int] = {}
        for line in self.lines:
            if line.sampling_sd:
                times = (line.privacy_sd / line.sampling_sd) ** 2 / (within * (2 + within))
                found[line.metric] = max(math.ceil(self.effects[0].n * times), found.get(line.metric, 1))
        return found

    @cached_property
    def decisions(self) -> tuple[ArmDecision, ...]:
        """What to do with each treated arm, by the rule; none without a rule."""
        if self.rule is None:
            return ()
        situation = Situation(
            lower_is_better=self.lower_is_better,
            half=self._one_sided,
            power_half=lambda *error: inverted_half_width(*_errors(*error), 2 * _POWER - 1),
            mismatch=self.sample_ratio.mismatch,
            last=self.looks is None or self.looks.look == self.looks.all,
            rehearsed=self.rehearsed,
        )
        return decide(self.rule, self.effects, situation)

    @property
    def error_rates(self) -> str:
        """The probabilities of wrong decisions, in words; empty without a rule."""
        if self.rule is None:
            return ""
        return self.rule.error_rates(len(self.sample_ratio.arms) - 1, self.looks.all if self.looks else 1)

    def _one_sided(self, sampling_sd: float, noise: tuple[NoiseTerm, ...], alpha: float) -> float:
        """Return the distance that an error exceeds on one side with probability `alpha`, at any look."""
        both = 2 * alpha if self.looks is None else two_sided_alpha(alpha)
        return self._half_width(sampling_sd, noise, 1 - both, 0.0)

    def _lift(self, effect: Effect, level: float) -> Measure | None:
        try:
            return shifted(ratio_of_means(effect.compared_means(), level, "ratio", self._half_width), "lift", -1.0)
        except RefusedError:
            return None

    def _half_width(self, sampling_sd: float, noise: tuple[NoiseTerm, ...], level: float, bias: float) -> float:
        """Return half the width of an interval; of one that holds at all looks where there are several."""
        if self.looks is None:
            return inverted_half_width(*_errors(sampling_sd, noise), level) + bias
        now = self.looks
        return anytime_half_width(sampling_sd, noise, 1 - level, look=now.look, progress=now.progress) + bias

    def _p_value(self, estimate: float, sampling_sd: float, noise: tuple[NoiseTerm, ...], alpha: float) -> float:
        if self.looks is None:
            return min(2 * beyond(abs(estimate), *_errors(sampling_sd, noise)), 1.0)
        now = self.looks
        return anytime_p_value(estimate, sampling_sd, noise, look=now.look, progress=now.progress, tuned_alpha=alpha)

    def _verdict(self, effect: Effect, p_value: float | None) -> Verdict:
        if p_value is None:
            return "no interval"
        if self.sample_ratio.mismatch:
            return "not judged"
        if p_value > 1 - self.level or self.rehearsed:
            return "no clear difference"
        return "better" if (effect.estimate > 0) != (effect.outcome in self.lower_is_better) else "worse"

    @property
    def interval_words(self) -> str:
        """What the intervals mean, in words."""
        together = "hold for all comparisons together" if self.simultaneous else "hold for each comparison by itself"
        together += f", at all {self.looks.all} looks" if self.looks else ""
        return f"{self.level:.0%} intervals {together}; p-values adjusted by {self.method.replace('_', '-')}"

    def __str__(self) -> str:
        first = self.effects[0]
        table = [*table_rows("WARNING", self.warnings), ("sample ratio", str(self.sample_ratio))]
        table += [("outside", self.sample_ratio.outside_words)] if self.sample_ratio.outside_words else []
        table += [("look", f"{self.looks.look} of {self.looks.all}")] if self.looks else []
        table += [("intervals", self.interval_words), *units_of(first.n, first.receipts, looks=self.looks is not None)]
        table += table_rows("decision" if len(self.decisions) < 2 else "decisions", tuple(self._decision_lines()))
        table += [("error rates", self.error_rates)] if self.rule else []
        table += [("catalogue", self.catalogue[:12])] if self.catalogue else []
        table += [("privacy", str(first.guarantee)), ("paid", format_receipt(first.receipts[0]))]
        title = f"{'Rehearsal (no data read, nothing spent): ' if self.rehearsed else ''}{self.name}"
        parts = [text_table(title, table), self._text_lines(self.lines)]
        if self.decisions:
            parts.append(aligned(check_table(self.decisions, rehearsed=self.rehearsed)))
        if self.segments:
            parts += [SEGMENTS_NOTE, self._text_lines(self.segment_lines)]
        return "\n\n".join(parts)

    def _decision_lines(self) -> Iterator[str]:
        for decision in self.decisions if not self.rehearsed else ():
            yield f"{decision.arm}: {decision}" if len(self.decisions) > 1 else str(decision)

    def _text_lines(self, lines: Sequence[ScorecardLine]) -> str:
        several, segments = len({line.treated for line in lines}) > 1, any(line.segment for line in lines)
        named = [*(["segment"] if segments else []), "metric", *(["arm"] if several else [])]
        head = [
            *named,
            "control",
            "treated",
            "difference",
            "interval",
            "lift",
            "p",
            "",
        ]
        if self.rehearsed:
            head = [*named, "detectable", "sampling error", "privacy noise"]
            head += [] if segments else [f"units for {_WITHIN:.0%}"]
        cells, units = [head], self.units_within(_WITHIN)
        for line in lines:
            who = [*([line.segment] if segments else []), line.metric, *([line.treated] if several else [])]
            if self.rehearsed:
                errors = map(format_number, (line.detectable, line.sampling_sd, line.privacy_sd))
                needed = [] if segments else [f"{units[line.metric]:,}" if line.metric in units else NONE]
                cells.append([*who, *errors, *needed])
                continue
            cells.append(
                [
                    *who,
                    *map(format_number, (line.control_mean, line.treated_mean, line.difference)),
                    limits(line.low, line.high),
                    percent(line.lift),
                    NONE if line.adjusted_p_value is None else p_words(line.adjusted_p_value),
                    line.verdict,
                ]
            )
        return aligned(cells)

    def to_dict(self) -> dict[str, Any]:
        """Return the scorecard as plain values, as docs/scorecard.schema.json describes them."""
        first = self.effects[0]
        absent = _ESTIMATES if self.rehearsed else ()
        return {
            "format": FORMAT,
            "name": self.name,
            "question": self.question,
            "status": "rehearsed" if self.rehearsed else "estimated",
            "n": first.n,
            "as_of": first.as_of,
            "method": self.method,
            "level": self.level,
            "simultaneous": self.simultaneous,
            "looks": asdict(self.looks) if self.looks else None,
            "guarantee": first.guarantee.to_dict(),
            "receipt": asdict(first.receipts[0]),
            "catalogue": self.catalogue or None,
            "rule": self._rule_document(),
            "decisions": [asdict(each) for each in self.decisions if not self.rehearsed],
            "sample_ratio": asdict(self.sample_ratio) | {"mismatch": self.sample_ratio.mismatch},
            "comparisons": [asdict(line) | dict.fromkeys(absent) for line in self.lines],
            "segments": [asdict(line) | dict.fromkeys(absent) for line in self.segment_lines],
        }

    def _rule_document(self) -> dict[str, Any] | None:
        if self.rule is None:
            return None
        guardrails = [asdict(each) for each in self.rule.guardrails]
        rule = {"goals": list(self.rule.goals), "guardrails": guardrails, "alpha": self.rule.alpha}
        return rule | {"error_rates": self.error_rates}

    def to_json(self) -> str:
        """Return the scorecard as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_html(self) -> str:
        """Return the scorecard as one self-contained HTML page."""
        return scorecard_page(self)

    def save(self, path: str | Path) -> None:
        """Write the scorecard to a file: .html for people, .json for programs."""
        file = Path(path)
        if file.suffix not in (".html", ".json"):
            raise RefusedError(expected="a file .html or .json", got=file.name, hint="name it scorecard.html.")
        write_text(file, self.to_html() if file.suffix == ".html" else self.to_json())

    def _repr_html_(self) -> str:
        """Return the text for a notebook."""
        from html import escape  # noqa: PLC0415 (only in a notebook)

        return f"<pre>{escape(str(self))}</pre>"


def _errors(sampling_sd: float, noise: tuple[NoiseTerm, ...]) -> tuple[float, tuple[NoiseTerm, ...]]:
    """Return a sampling error and privacy noise as few terms, which are quick to invert."""
    privacy_sd = math.sqrt(sum(term.variance for term in noise))
    return max(sampling_sd, _LEAST_SAMPLING * privacy_sd), few_terms(noise)


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Return a table as text, its columns aligned."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, each, widths)).rstrip() for each in cells)


def limits(low: float | None, high: float | None) -> str:
    """Return an interval as text."""
    return NONE if low is None or high is None else f"{format_number(low)} to {format_number(high)}"


def percent(share: float | None) -> str:
    """Return a lift as text.

    Example:
        >>> percent(0.0123), percent(None)
        ('+1.23 %', 'none')
    """
    if share is None or not math.isfinite(share):
        return NONE
    return f"{100 * share:+.3g} %"
