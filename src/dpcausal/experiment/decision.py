"""Decisions of an experiment: ship, stop or wait, by a rule that is fixed before anything is read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from dpcausal.errors import StudyError
from dpcausal.experiment.line import NONE
from dpcausal.experiment.metric import Metric
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary
from dpcausal.schema.real import Real
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.text import format_number
from dpcausal.utils.validation import build, check_keys, did_you_mean, is_number

Action = Literal["ship", "stop", "wait", "not decided"]
Status = Literal["better", "worse", "within its margin", "beyond its margin", "not shown", "not judged", "no interval"]

HalfWidth = Callable[[float, tuple[NoiseTerm, ...], float], float]
"""Half the width of an interval, from sampling error, noise and the probability of an error on one side of it."""

_GOOD: tuple[Status, ...] = ("better", "within its margin")
_BAD: tuple[Status, ...] = ("worse", "beyond its margin")


@dataclass(frozen=True)
class Guardrail(metaclass=Constructor):
    """A metric that may get a little worse, and not more.

    Attributes:
        metric: The name of the metric.
        margin: How much worse it may be, in the metric's unit.
        relative: Whether the margin is a share of the control arm's mean: 0.02 for 2 %.
    """

    _example = 'Guardrail("seconds to load", 0.02, relative=True)'

    metric: str
    margin: float
    relative: bool = False

    def __post_init__(self) -> None:
        wrong = not isinstance(self.metric, str) or not is_number(self.margin) or self.margin <= 0
        if wrong or not isinstance(self.relative, bool) or (self.relative and self.margin >= 1):
            raise StudyError(
                expected="a metric's name, a margin above 0, and below 1 where it is relative",
                got=f"{self.metric!r}, {self.margin!r}, relative {self.relative!r}"[:200],
                hint='write for instance Guardrail("seconds to load", 0.02, relative=True).',
            )


@dataclass(frozen=True, kw_only=True)
class DecisionRule(metaclass=Constructor):
    """When to ship an arm, when to stop, and when to wait for the next look.

    **Ship** where a goal is shown to be better, and every guardrail to be within its margin. **Stop** where a goal is
    shown to be worse, or a guardrail to be worse by more than its margin; where the arms' sizes do not fit the
    allocation; and where no look is left. Otherwise **wait**.

    Each of these is wrong with probability alpha at most, over all arms and, with `cohorts`, over all looks together:
    to ship an arm of which a guardrail is worse by its margin or more; to ship an arm of which no goal is better; to
    stop for harm where no goal is worse and every guardrail is within its margin. All guardrails must pass before an
    arm ships, so the first needs no adjustment for their number (an intersection-union test).

    Attributes:
        goals: The metrics of which one must be better; none for a change that must only do no harm.
        guardrails: The metrics that must not be worse by more than a margin.
        alpha: The probability of each of the three errors.

    Reference:
        Schultzberg, Ankargren and Frånberg (2024), Risk-aware product decisions in A/B tests with multiple metrics.

    Example:
        >>> rule = DecisionRule(goals=["revenue"], guardrails=[Guardrail("seconds", 0.02, relative=True)])
        >>> DecisionRule.from_dict(rule.to_dict()) == rule
        True
    """

    _example = 'DecisionRule(goals=["revenue"], guardrails=[Guardrail("seconds to load", 0.1)])'

    goals: Sequence[str] = ()
    guardrails: Sequence[Guardrail] = ()
    alpha: float = 0.05

    def __post_init__(self) -> None:
        lists = all(isinstance(each, Sequence) and not isinstance(each, str) for each in (self.goals, self.guardrails))
        goals, guardrails = (tuple(self.goals), tuple(self.guardrails)) if lists else ((), ())
        names = [*goals, *(each.metric for each in guardrails if isinstance(each, Guardrail))]
        typed = len(names) == len(goals) + len(guardrails) and all(isinstance(name, str) for name in names)
        if typed and (twice := sorted({name for name in names if names.count(name) > 1})):
            raise StudyError(
                problem=f"The decision rule names a metric twice: {', '.join(twice)}",
                hint="a metric is a goal, which must get better, or a guardrail, which may get worse by its margin.",
            )
        if not names or not typed:
            raise StudyError(
                expected="goals and guardrails, each metric once",
                got=f"{self.goals!r} and {self.guardrails!r}"[:200],
                hint='write DecisionRule(goals=["revenue"], guardrails=[Guardrail("seconds to load", 0.1)]).',
            )
        if not is_number(self.alpha) or not 0 < self.alpha <= 0.2:
            raise StudyError(
                expected="an alpha above 0 and up to 0.2", got=repr(self.alpha), hint="0.05 is the usual choice."
            )
        check_plain_text("metrics of a decision rule", names)
        object.__setattr__(self, "goals", goals)
        object.__setattr__(self, "guardrails", guardrails)

    def check_metrics(self, metrics: Iterable[Metric]) -> None:
        """Raise unless the rule is about these metrics, and relative margins have something to be relative to."""
        known = {each.label: each for each in metrics}
        for name in (*self.goals, *(each.metric for each in self.guardrails)):
            if name not in known:
                raise StudyError(
                    expected=f"a decision rule about metrics out of {', '.join(known)}",
                    got=repr(name),
                    hint=f"{did_you_mean(name, known)}name a metric as the experiment does.",
                )
        for each in self.guardrails:
            metric = known[each.metric]
            if each.relative and metric.covariate is not None and metric.earlier is not None:
                raise StudyError(
                    problem=f"{each.metric} rests on an earlier mean of its covariate, so a relative margin would too",
                    hint="give the margin in the metric's unit, without relative.",
                )
            columns = (column for column in (metric.column, metric.denominator) if column is not None)
            column = metric.column
            widest = column.high - column.low if isinstance(column, Real) else 1.0
            if metric.denominator is None and not each.relative and each.margin >= widest:
                raise StudyError(
                    problem=f"The margin of {each.metric!r} must be below {widest:g}, not {each.margin!r}: no metric "
                    "can get worse by more than its whole range",
                    hint="write 0.02 for 2 percentage points, or for 2 % of the control arm's mean margin=0.02, "
                    "relative=True.",
                )
            if each.relative and any(not isinstance(column, Binary) and column.low < 0 for column in columns):
                raise StudyError(
                    expected="a relative margin of a metric that cannot be negative",
                    got=f"{each.metric!r}, whose bounds begin below 0",
                    hint="give the margin in the metric's unit, without relative.",
                )

    def error_rates(self, arms: int, looks: int) -> str:
        """Return the error rates in words, for so many treated arms and looks.

        Example:
            >>> DecisionRule(goals=["revenue"]).error_rates(arms=1, looks=8)
            'at most 5 % each, over all 8 looks: to ship where no goal is better; to stop for harm where there is none'
        """
        over = [f"{arms} arms"] if arms > 1 else []
        over += [f"all {looks} looks"] if looks > 1 else []
        kinds = ["to ship where a guardrail is worse by its margin or more"] if self.guardrails else []
        kinds += ["to ship where no goal is better"] if self.goals else []
        kinds += ["to stop for harm where there is none"]
        together = f", over {' and '.join(over)}" if over else ""
        return f"at most {100 * self.alpha:g} % each{together}: {'; '.join(kinds)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain values, without what is at its default."""
        document: dict[str, Any] = {"goals": list(self.goals)} if self.goals else {}
        document |= {"alpha": self.alpha} if self.alpha != 0.05 else {}
        if self.guardrails:
            document["guardrails"] = [
                {"metric": each.metric, "margin": each.margin} | ({"relative": True} if each.relative else {})
                for each in self.guardrails
            ]
        return document

    @classmethod
    def from_dict(cls, document: object) -> Self:
        """Return the rule that `to_dict` wrote."""
        check_keys("rule", document, (), ("goals", "guardrails", "alpha"))
        values: dict[str, Any] = dict(document)  # type: ignore[call-overload]
        listed = values.get("guardrails", ())
        if not isinstance(listed, list | tuple) or not all(isinstance(each, Mapping) for each in listed):
            raise StudyError(
                expected="guardrails as tables", got=repr(listed)[:100], hint="write [[rule.guardrails]] above each."
            )
        return cls(**values | {"guardrails": [build("guardrail", Guardrail, each) for each in listed]})


@dataclass(frozen=True, kw_only=True)
class MetricCheck:
    """What a decision takes from one metric of one arm.

    Attributes:
        role: `goal` or `guardrail`.
        limit: The change that decides: 0 for a goal, the margin for a guardrail, with the sign of harm.
        relative: Whether changes are shares of the control arm's mean.
        worst: The most harmful change that is not excluded; None where there is no interval.
        best: The most favourable change that is not excluded, at the level at which harm is shown.
        detectable: How far from the limit the true change must be, in the metric's unit, to be shown with 80 % power;
            None where there is no interval.
    """

    metric: str
    role: Literal["goal", "guardrail"]
    limit: float
    relative: bool
    worst: float | None
    best: float | None
    status: Status
    detectable: float | None


@dataclass(frozen=True, kw_only=True)
class ArmDecision:
    """What to do with one arm, and why.

    Attributes:
        action: `ship`, `stop` or `wait`; `not decided` in a rehearsal.
        harm: Whether harm was shown, and so made it stop.
        reasons: Why, in words.
    """

    arm: str
    action: Action
    harm: bool
    reasons: tuple[str, ...]
    checks: tuple[MetricCheck, ...]

    def __str__(self) -> str:
        return f"{self.action.upper()}: {'; '.join(self.reasons)}"


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a rule decides on, apart from the effects.

    Attributes:
        half: Half the width of an interval at this look.
        power_half: How far an error is from 0, on one side, with a given probability.
        mismatch: Whether the arms' sizes do not fit the allocation.
    """

    lower_is_better: tuple[str, ...]
    half: HalfWidth
    power_half: Callable[[float, tuple[NoiseTerm, ...]], float]
    mismatch: bool
    last: bool
    rehearsed: bool


def decide(rule: DecisionRule, effects: Sequence[Effect], situation: Situation) -> tuple[ArmDecision, ...]:
    """Return the decision for each treated arm."""
    arms = tuple(dict.fromkeys(effect.arms[1] for effect in effects))
    by_name = {(effect.outcome, effect.arms[1]): effect for effect in effects}
    named = [(Guardrail(name, 1.0), "goal") for name in rule.goals]
    named += [(each, "guardrail") for each in rule.guardrails]
    ship = {"goal": rule.alpha / max(len(rule.goals), 1) / len(arms), "guardrail": rule.alpha / len(arms)}
    harm = rule.alpha / len(named) / len(arms)
    decisions = []
    for arm in arms:
        checks = tuple(
            _check(by_name[each.metric, arm], None if role == "goal" else each, (ship[role], harm), situation)
            for each, role in named
        )
        decisions.append(_decided(arm, checks, situation))
    return tuple(decisions)


def _check(
    effect: Effect, guardrail: Guardrail | None, alphas: tuple[float, float], situation: Situation
) -> MetricCheck:
    sign = -1.0 if effect.outcome in situation.lower_is_better else 1.0
    margin = guardrail.margin if guardrail else 0.0
    relative = guardrail.relative if guardrail else False
    words: dict[str, Any] = {
        "metric": effect.outcome,
        "role": "guardrail" if guardrail else "goal",
        "limit": -sign * margin if margin else 0.0,
        "relative": relative,
    }
    if effect.no_interval:
        return MetricCheck(**words, worst=None, best=None, status="no interval", detectable=None)
    means = effect.compared_means()
    control, treated = means.values
    # Whether treated - (1 - sign · margin) · control is above 0 needs no ratio, so it holds for a small control too.
    along = (-(1 - sign * margin) if relative else -1.0, 1.0)
    error = means.sampling_sd(along), means.noise_along(along)
    ship, harm = (situation.half(*error, alpha) for alpha in alphas)
    detectable = ship + situation.power_half(*error)
    if situation.rehearsed or (relative and control <= 0):
        return MetricCheck(**words, worst=None, best=None, status="not shown", detectable=detectable)
    unit = control if relative else 1.0
    worst, best = (treated - control - sign * ship) / unit, (treated - control + sign * harm) / unit
    status: Status = "not shown"
    if situation.mismatch:
        status = "not judged"
    elif sign * (best - words["limit"]) < 0:
        status = "beyond its margin" if guardrail else "worse"
    elif sign * (worst - words["limit"]) > 0:
        status = "within its margin" if guardrail else "better"
    return MetricCheck(**words, worst=worst, best=best, status=status, detectable=detectable)


def _decided(arm: str, checks: tuple[MetricCheck, ...], situation: Situation) -> ArmDecision:
    goals, guardrails = ([check for check in checks if check.role == role] for role in ("goal", "guardrail"))
    harmed = [check for check in checks if check.status in _BAD]
    better = [check for check in goals if check.status in _GOOD]
    missing = [_listed(goals, "not shown to be better")] if goals and not better else []
    if unsure := [check for check in guardrails if check.status not in _GOOD]:
        missing.append(_listed(unsure, f"not shown to be {_within(unsure)}"))
    action: Action
    if situation.rehearsed:
        action, reasons = "not decided", ["no data was read"]
    elif situation.mismatch:
        action, reasons = "stop", ["the arms' sizes do not fit the allocation: find the cause before anything else"]
    elif harmed:
        action, reasons = "stop", [f"{check.metric} is {_harm(check)}" for check in harmed]
    elif missing and situation.last:
        action, reasons = "stop", ["no look is left", *missing]
    elif missing:
        action, reasons = "wait", missing
    else:
        action, reasons = "ship", [_listed(better, f"{_is(better)} better")] if better else []
        reasons += [_listed(guardrails, f"{_is(guardrails)} {_within(guardrails)}")] if guardrails else []
    return ArmDecision(arm=arm, action=action, harm=bool(harmed), reasons=tuple(reasons), checks=checks)


def _listed(checks: Sequence[MetricCheck], words: str) -> str:
    *first, last = (check.metric for check in checks)
    return f"{', '.join(first)} and {last} {words}" if first else f"{last} {words}"


def _is(checks: Sequence[MetricCheck]) -> str:
    return "is" if len(checks) == 1 else "are"


def _within(checks: Sequence[MetricCheck]) -> str:
    return "within its margin" if len(checks) == 1 else "within their margins"


def _harm(check: MetricCheck) -> str:
    return "worse by more than its margin" if check.role == "guardrail" else "worse"


def check_table(decisions: Sequence[ArmDecision], *, rehearsed: bool) -> list[list[str]]:
    """Return the metrics behind decisions as cells of text, with a head; what could be shown, in a rehearsal."""
    several = len(decisions) > 1
    last = ["detectable"] if rehearsed else ["at worst", "at best", ""]
    cells = [["decided on", *(["arm"] if several else []), "role", "limit", *last]]
    for decision in decisions:
        for check in decision.checks:
            line = [check.metric, *([decision.arm] if several else []), check.role, change(check.limit, check.relative)]
            if rehearsed:
                cells.append([*line, change(check.detectable, relative=False)])
            else:
                ends = (change(each, check.relative) for each in (check.worst, check.best))
                cells.append([*line, *ends, check.status])
    return cells


def change(value: float | None, relative: bool) -> str:
    """Return a change as text, in percent where it is relative.

    Example:
        >>> change(-0.02, True), change(0.5, False), change(0.0, False), change(None, True)
        ('-2 %', '0.5000', '0', 'none')
    """
    if value is None:
        return NONE
    return f"{100 * value:+.3g} %" if relative else format_number(value) if value else "0"
