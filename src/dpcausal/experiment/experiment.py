"""An experiment: its arms, metrics and price, as one public declaration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

import tomli_w

from dpcausal.errors import StudyError
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.schedule import narrower_at_last_look, released_so_far
from dpcausal.experiment.catalogue import MetricCatalogue, checked_digest, metrics_of
from dpcausal.experiment.decision import DecisionRule
from dpcausal.experiment.estimation import metric_effects
from dpcausal.experiment.informed import ExpectedNoise, Known, informed, shared
from dpcausal.experiment.metric import Metric
from dpcausal.experiment.sample_ratio import SampleRatio
from dpcausal.experiment.scorecard import Scorecard
from dpcausal.experiment.segments import SEGMENT_SHARE, check_segments
from dpcausal.inference.many_outcomes import Method
from dpcausal.queries import Cut, LookMetrics, MetricMoments, SegmentMetrics
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary, Category, Unit, column_from_dict, column_to_dict, declared_dict
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import Treatment
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.anytime import LooksSoFar
from dpcausal.uncertainty.joint_estimate import JointEstimate
from dpcausal.utils.documents import text_of, toml_of
from dpcausal.utils.other_names import Constructor, called_as
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.validation import build, check_format, check_keys, is_number

if TYPE_CHECKING:
    from dpcausal.queries.metric_moments import MetricColumn

VERSION = 1
"""The version of the file format."""

_ROUNDS = 3
"""How often shares are found: the bound that noise rests on, and so what each share brings, depends on them a little.
With cohorts it does not."""

_SIMPLE = ("name", "question", "epsilon", "delta", "method", "level", "protects", "entry", "planned_n", "catalogue")


@dataclass(frozen=True, kw_only=True)
class Experiment(metaclass=Constructor):
    """A randomised experiment with many metrics: public, and fixed before anything is read.

    All metrics of all arms are one query: one pass over the table, and one debit, which the metrics share by weight.

    Attributes:
        name: What to call it.
        treatment: Every arm; its reference is the control. Each other arm is compared with it.
        epsilon: The total epsilon, of all metrics together.
        delta: The total delta; with many metrics noise is smaller with one.
        question: The question it answers, in words.
        allocation: The share of units that each arm was meant to get, in the order of the arms; equal if left out.
        method: How p-values are adjusted for the number of comparisons: `holm` and `bonferroni` bound the probability
            of any false claim, `benjamini_hochberg` the expected share of false claims.
        level: The level of the intervals: of all together by `holm` and `bonferroni`, otherwise of each by itself.
        unit: How several records of one unit become one; left out when each record is its own unit.
        protects: What is protected: `record`, or `record_within_arm` where arms are public.
        entry: The column by which units enter a growing table, as in `Schema`; left out where the data set has none.
        cohorts: For several looks: the column that says in which cohort a unit entered, with all its values in their
            order, also those to come. There is a look after each cohort, and all looks are paid for once. The column is
            then the `entry`.
        planned_n: For several looks: the number of units at which intervals are to be narrowest.
        rule: When to ship, stop or wait; left out where nobody decides by a rule.
        segments: Columns with listed values, such as a country: the scorecard has each metric in each of their values
            too. What a missing value counts as must be declared. For a single look only.
        segment_share: The share of the budget that all segments have together, between 0 and 1.
        catalogue: The digest of the catalogue that the metrics are from; `from_toml` records it.

    With `cohorts` the intervals and p-values of a scorecard hold at all looks together, however many are read and
    whenever somebody stops (Robbins' normal mixture, as in `anytime_interval`).

    Reference:
        Deng, Xu, Kohavi and Walker (2013), Improving the sensitivity of online controlled experiments by utilizing
        pre-experiment data; Deng, Knoblich and Lu (2018), Applying the delta method in metric analytics.

    Example:
        >>> from dpcausal import Binary, Experiment, Metric, Real, Treatment
        >>> experiment = Experiment(
        ...     name="checkout",
        ...     treatment=Treatment("arm", arms=("old", "new")),
        ...     metrics=[
        ...         Metric(Real("revenue", 0, 200, missing=0)),
        ...         Metric(Binary("bought", missing=0), weight=2),
        ...     ],
        ...     epsilon=1.0,
        ... )
        >>> Experiment.from_toml(experiment.to_toml()) == experiment
        True
        >>> [round(line.detectable, 3) for line in experiment.rehearsed(10_000).lines]
        [3.731, 0.031]
    """

    _example = 'Experiment(name="…", treatment=Treatment(…), metrics=[Metric(…)], epsilon=1.0)'

    name: str
    treatment: Treatment
    metrics: Sequence[Metric]
    epsilon: float
    delta: float = 0.0
    question: str = ""
    allocation: Sequence[float] | None = None
    method: Method = "holm"
    level: float = 0.95
    unit: Unit | None = None
    protects: Protects = "record"
    entry: str | None = None
    cohorts: Category | None = None
    planned_n: int | None = None
    rule: DecisionRule | None = None
    segments: Sequence[Binary | Category] = ()
    segment_share: float = SEGMENT_SHARE
    catalogue: str = ""

    def __post_init__(self) -> None:
        metrics = tuple(self.metrics) if isinstance(self.metrics, Sequence) else ()
        labels = [each.label for each in metrics if isinstance(each, Metric)]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise StudyError(
                problem=f"A metric is declared twice, and metrics have different names: {', '.join(twice)}",
                hint="leave one of them out, or give it a name= of its own where both have the same columns.",
            )
        if not metrics or len(labels) != len(metrics):
            raise StudyError(
                expected="a list of metrics with different names",
                got=", ".join(labels)[:200] or repr(self.metrics)[:200],
                hint="write metrics=[Metric(…), Metric(…)], and name= where two metrics have the same columns.",
            )
        object.__setattr__(self, "metrics", metrics)
        words = self.name, self.question, self.catalogue
        if not all(isinstance(each, str) for each in words) or not self.name.strip():
            raise StudyError(expected="a text as name", got=repr(words)[:200], hint="write it between quotes.")
        check_plain_text("texts of an experiment", words)
        self._check_choices()
        self._check_looks()
        object.__setattr__(self, "segments", check_segments(self.segments, self.segment_share, metrics))
        self._check_missing()
        self._check_earlier()
        if self.rule is not None:
            self.rule.check_metrics(metrics)
        guarantee_for(self._rehearsal(2), self.epsilon, self.delta)

    def _check_missing(self) -> None:
        """Raise unless every metric says what a missing value counts as: all metrics are about the same units."""
        columns = {name for metric in self.metrics for name in metric.without_missing}
        undeclared = sorted(columns - set(self.unit.added if self.unit else ()))
        if undeclared:
            raise StudyError(
                problem="A metric must declare what a missing value counts as, or be a total over a unit's records; "
                f"{', '.join(undeclared)} does neither",
                hint=f'often it is none: Real("{undeclared[0]}", …, missing=0). For a mean over the units that have a '
                "value, divide by whether they have: denominator=Binary(…, missing=0).",
            )

    def _check_earlier(self) -> None:
        """Raise unless the mean of the denominator of a ratio with an earlier one is released too."""
        alone = {each.in_table for each in self.metrics}
        for each in self.metrics:
            if each.earlier is not None and each.denominator is not None and (each.denominator,) not in alone:
                raise StudyError(
                    problem=f"{each.label} is a ratio with earlier=, which needs the mean of its denominator",
                    hint=f"make {each.denominator.name} a metric of its own, with the same bounds.",
                )

    def _check_choices(self) -> None:
        if self.method not in get_args(Method) or not is_number(self.level) or not 0.5 <= self.level < 1:
            raise StudyError(
                expected=f"a method out of {', '.join(get_args(Method))}, and a level from 0.5 to below 1",
                got=f"{self.method!r} and {self.level!r}",
                hint='write for instance method="benjamini_hochberg", level=0.95.',
            )
        if self.protects not in ("record", "record_within_arm"):
            raise StudyError(
                expected='protects="record" or protects="record_within_arm"',
                got=repr(self.protects),
                hint="every metric of an experiment is protected.",
            )
        for role, kind, example in (
            ("treatment", Treatment, 'Treatment("arm", arms=("old", "new"))'),
            ("rule", DecisionRule, 'DecisionRule(goals=["revenue"])'),
            ("unit", Unit, 'Unit("user", by="time", sum=["revenue"])'),
        ):
            given = getattr(self, role)
            if not isinstance(given, kind) and (role == "treatment" or given is not None):
                raise StudyError(
                    problem=f"{role} must be a {kind.__name__}, not {given!r}"[:300],
                    hint=f"write {role}={example}.",
                )
        if self.treatment.compare is None:  # a schema names one of them, and every arm is compared
            object.__setattr__(self, "treatment", replace(self.treatment, compare=self.treatment.compared[1]))
        if self.allocation is not None:
            listed = isinstance(self.allocation, Iterable) and not isinstance(self.allocation, str)
            shares = tuple(self.allocation) if listed else ()
            if len(shares) != len(self.treatment.arms) or not all(is_number(each) and each > 0 for each in shares):
                raise StudyError(
                    expected=f"a positive share for each of the {len(self.treatment.arms)} arms",
                    got=repr(self.allocation)[:200],
                    hint="give them in the order of the arms: allocation=[0.9, 0.1].",
                )
            object.__setattr__(self, "allocation", shares)

    def _check_looks(self) -> None:
        """Raise unless what concerns several looks is declared whole, or not at all."""
        if self.cohorts is None and self.planned_n is None:
            return
        whole = isinstance(self.planned_n, int) and self.planned_n >= 1
        if self.segments:
            raise StudyError(
                problem="An experiment with several looks has no segments", hint="leave out cohorts=, or segments=."
            )
        if not isinstance(self.cohorts, Category) or not whole or self.entry is not None:
            raise StudyError(
                expected="cohorts and planned_n together, and no entry besides",
                got=f"cohorts {self.cohorts!r}, planned_n {self.planned_n!r}, entry {self.entry!r}"[:300],
                hint='write for instance cohorts=Category("week", [1, 2, 3, 4]), planned_n=100_000.',
            )

    @property
    def schema(self) -> Schema:
        """What is public about the table: the columns of all metrics. Open a `Vault` with it."""
        columns: dict[str, MetricColumn] = {}
        for metric in self.metrics:
            for column in metric.in_table:
                if columns.setdefault(column.name, column) != column:
                    raise StudyError(
                        problem=f"The column {column.name!r} is declared in two ways",
                        hint="a column has the same bounds in every metric.",
                    )
        first, *others = columns.values()
        if twice := [each.name for each in self.segments if each.name in columns]:
            raise StudyError(
                problem=f"The column of segments, {twice[0]!r}, is part of a metric",
                hint="a segment is known before the experiment; copy the column under another name.",
            )
        if self.cohorts is None:
            covariates = (*others, *self.segments)
            return Schema(self.treatment, first, covariates, self.unit, self.protects, self.entry)
        if self.cohorts.name in columns:
            raise StudyError(
                problem=f"The column of cohorts, {self.cohorts.name!r}, is part of a metric",
                hint="a unit's cohort is when it entered.",
            )
        return Schema(self.treatment, first, (*others, self.cohorts), self.unit, self.protects, self.cohorts.name)

    @property
    def query(self) -> MetricMoments:
        """The sums of all metrics, as an experiment with a single look asks for them."""
        residuals = tuple(dict.fromkeys(each.residual for each in self.metrics if each.residual is not None))
        asked = [each.columns for each in self.metrics], [each.weight for each in self.metrics], residuals
        if not self.segments:
            return MetricMoments(*asked)
        return SegmentMetrics(*asked, [each.name for each in self.segments], self.segment_share)

    def check_look(self, look: int | None) -> None:
        """Raise unless it is said which look a table is for, where there are several, and only there.

        A look is drawn once, so all of them must not be drawn from the table of the first by leaving it out.
        """
        if self.cohorts is None:
            if look is not None:
                raise StudyError(
                    problem=f"The experiment declares no cohorts, so it has no look {look!r}",
                    hint='declare cohorts=Category("week", […]) and planned_n before the first look.',
                )
        elif look is None:
            raise StudyError(
                problem=f"The experiment {self.name!r} has {len(self.cohorts.values)} looks, and none was named",
                hint=f"say how many values of {self.cohorts.name!r} have entered so far: look=1 (--look 1) after the "
                "first. A look is drawn once: one that is read too early lacks those who enter later.",
            )

    def release(self, source: Source, look: int | None = None) -> Release:
        """Return the sums of all metrics: one query, or the looks of the schedule so far.

        Noise is Laplace, or Gaussian where that is smaller.

        Args:
            source: A `Vault` that was opened with the experiment's schema, or a `Rehearsal`.
            look: How many cohorts there are so far; None for all of them.
        """
        moments, first = self.query, f"total_0 of {self.metrics[0].columns[0]}"
        if isinstance(moments, SegmentMetrics):  # their noise is the larger one
            first = f"total_0 of {next(iter(moments.cells(self.schema).values()))[0]} of {self.metrics[0].columns[0]}"
        asked = guarantee_for(source, self.epsilon, self.delta)
        if self.cohorts is None:
            if look is not None:
                self.check_look(look)
            return source.release(moments, narrower(moments, source, asked, first))
        now = len(self.cohorts.values) if look is None else look
        query = LookMetrics(Cut(self.cohorts.name), now, moments.metrics, moments.weights, moments.residuals)
        return released_so_far(query, source, narrower_at_last_look(query, source, asked, first))

    @called_as("experiment.run(vault)")
    def run(self, source: Source, look: int | None = None) -> Scorecard:
        """Ask for all metrics at once, and return the scorecard.

        The same experiment on the same table gives the stored answer, and costs nothing. Of several looks the first
        pays for all.

        Args:
            source: A `Vault` that was opened with the experiment's schema, or a `Rehearsal`.
            look: With `cohorts`: how many there are so far. A rehearsal is of the last look if left out.

        Raises:
            BudgetExceededError: If the budget has too little left. Nothing was read.
            StudyError: If `look` is left out where there are cohorts, or given where there are none.
        """
        if not isinstance(source, Rehearsal):
            self.check_look(look)
        release = self.release(source, look)
        effects = metric_effects(release, source, self.metrics)
        sizes = effects[0].arm_sizes
        if sizes is None:
            raise TypeError("every effect of a metric has arm sizes")
        arms = len(self.treatment.arms)
        looks = None if self.cohorts is None else self._looks(release, sizes)
        if looks is not None:
            effects = tuple(self._of_look(effect, looks) for effect in effects)
        return Scorecard(
            name=self.name,
            question=self.question,
            effects=effects,
            kinds={each.label: each.kind for each in self.metrics},
            lower_is_better=tuple(each.label for each in self.metrics if each.lower_is_better),
            sample_ratio=SampleRatio.of(
                sizes, self.allocation or (1.0,) * arms, looks=looks.all if looks else 1, units=effects[0].n
            ),
            method=self.method,
            level=self.level,
            looks=looks,
            rule=self.rule,
            segments=self._in_segments(release, source),
            catalogue=self.catalogue,
            words={each.label: (each.unit, each.description, each.owner) for each in self.metrics},
        )

    def _in_segments(self, release: Release, source: Source) -> dict[str, tuple[Effect, ...]]:
        """Return the effects in each segment, by its name."""
        if not isinstance(release.query, SegmentMetrics):
            return {}
        names = [name for values in release.query.cells(source.schema).values() for name in values]
        return {name: metric_effects(release, source, self.metrics, name) for name in names}

    def _of_look(self, effect: Effect, looks: LooksSoFar) -> Effect:
        """Return an effect that says what one look of several assumes, and whose intervals hold at all of them."""
        cohorts = self.cohorts.name if self.cohorts else ""
        assumed = (
            f"every unit stays in the cohort ({cohorts}) in which it entered",
            "metrics of earlier cohorts are final",
        )
        return replace(effect, assumptions=(*effect.assumptions, *assumed), looks=looks)

    def _looks(self, release: Release, sizes: JointEstimate) -> LooksSoFar:
        query: LookMetrics = release.query  # type: ignore[assignment]
        whole = len(self.cohorts.values) if self.cohorts else 1
        return LooksSoFar(query.look, whole, max(sum(sizes.values), 1.0) / (self.planned_n or 1))

    @called_as("experiment.rehearsed(100_000)")
    def rehearsed(self, n: int, typical: Mapping[str, float | Sequence[float]] | None = None) -> Scorecard:
        """Return the scorecard to expect from so many units: what can be detected. Nothing is read or spent.

        Args:
            typical: What is expected of a column, from the literature or an earlier experiment: between which two
                values about 90 % of units are, or the share of a proportion. A column that is not named is expected
                around the middle of its bounds, which few metrics are; a ratio depends on it most. Segments of a column
                are expected to be of one size.
        """
        return self.run(self._rehearsal(n, typical))

    def _rehearsal(self, n: int, typical: Mapping[str, float | Sequence[float]] | None = None) -> Rehearsal:
        return Rehearsal(self.schema, n, confounding=0.0, typical=typical or {})

    def informed_by(self, scorecard: Scorecard | Path, *, spread: float = 5.0, within: float = 0.05) -> Self:
        """Return the experiment with what an earlier scorecard of the same metrics says, for less noise at one price.

        A scorecard is public, so nothing is paid. Bounds of a mean become a narrower cap, **so it is another capped
        mean**. A ratio is linearised where its denominator is a metric too. Shares of the budget then bring as many
        metrics as possible, by weight, to an interval hardly wider than without privacy: those that need least come
        first, and each has just what it needs. Of what is left the others have more where their bounds are wide in
        their own standard deviations (Neyman's allocation), and none has more than 1.5 times the noise of that
        allocation. Where fewer than half can come so near, all shares are of that allocation.

        Args:
            scorecard: The earlier scorecard, of the same population or a similar one, or the `Path` of its JSON.
            spread: How many standard deviations the new bounds are from the mean; infinite to change weights alone.
            within: How much wider by privacy a metric's interval may be to count, at `planned_n` units, or as many as
                the earlier experiment had where none is declared. With 0 the sum of all variances is least, each in
                units of the metric's own.

        Raises:
            StudyError: If the scorecard is a rehearsal, or about none of these metrics.
        """
        earlier = Known.of(scorecard)
        if earlier.rehearsed or not {each.label for each in self.metrics} & set(earlier.metrics):
            raise StudyError(
                expected="a scorecard that was read from data, of some of the same metrics",
                got="a rehearsal" if earlier.rehearsed else f"one of {', '.join(earlier.metrics)}"[:200],
                hint="take the last scorecard of an experiment with these metrics.",
            )
        if not spread > 0:
            raise StudyError(expected="a spread above 0", got=repr(spread), hint="5 is the usual choice.")
        if not (is_number(within) and within >= 0):
            raise StudyError(
                expected="within=, a share of an interval's width, at least 0",
                got=repr(within)[:100],
                hint="0.05 is five per cent.",
            )
        later = replace(self, metrics=informed(self.metrics, earlier.found, spread))
        rehearsal = Rehearsal(later.schema, 2, confounding=0.0, rule="zcdp" if self.delta else "additive")
        more = self.planned_n / max(earlier.units, 1.0) if self.planned_n else 1.0
        planned = later
        for _ in range(_ROUNDS if within and self.cohorts is None else 1):
            noise = ExpectedNoise(planned.release(rehearsal), planned.query.shares, more)
            metrics = shared(later.metrics, self.metrics, earlier.found, noise, within)
            planned = replace(planned, metrics=metrics)
        return planned

    def to_toml(self) -> str:
        """Return the experiment as a TOML document that people can read and approve."""
        document: dict[str, Any] = {"version": VERSION}
        document |= {name: getattr(self, name) for name in _SIMPLE if getattr(self, name) not in ("", None)}
        document |= {"allocation": list(self.allocation)} if self.allocation else {}
        document["treatment"] = declared_dict(self.treatment)
        document |= {"unit": declared_dict(self.unit)} if self.unit else {}
        document |= {"cohorts": column_to_dict(self.cohorts)} if self.cohorts else {}
        document |= {"rule": self.rule.to_dict()} if self.rule else {}
        if self.segments:
            document |= {"segments": [column_to_dict(each) for each in self.segments]}
            document |= {"segment_share": self.segment_share}
        return tomli_w.dumps(document | {"metrics": [each.to_dict() for each in self.metrics]})

    @classmethod
    def from_toml(cls, text: str | Path, catalogue: MetricCatalogue | None = None) -> Self:
        """Read an experiment from TOML text, or from the file at a `Path`.

        Args:
            text: The text, or the `Path` of a file.
            catalogue: The catalogue of the metrics that it uses by name.

        Raises:
            DpcausalError: If the text describes no experiment.
        """
        document = toml_of("an experiment", text_of("an experiment", text))
        check_format("an experiment", document, VERSION, {})
        del document["version"]
        needed = ("name", "epsilon", "treatment", "metrics")
        optional = (*_SIMPLE, "allocation", "unit", "cohorts", "rule", "segments", "segment_share")
        check_keys("experiment", document, needed, optional)
        if not isinstance(document["metrics"], list) or not all(
            isinstance(each, Mapping) for each in document["metrics"]
        ):
            raise StudyError(
                expected="metrics as tables", got=repr(document["metrics"])[:100], hint="write [[metrics]] above each."
            )
        return cls(
            **document
            | {
                "treatment": build("treatment", Treatment, document["treatment"]),
                "metrics": metrics_of(document["metrics"], catalogue),
                "catalogue": checked_digest(document, catalogue),
                "unit": build("unit", Unit, document["unit"]) if "unit" in document else None,
                "cohorts": column_from_dict("cohorts", document["cohorts"]) if "cohorts" in document else None,
                "segments": [column_from_dict("segments", each) for each in document.get("segments", [])],
                "rule": DecisionRule.from_dict(document["rule"]) if "rule" in document else None,
            }
        )
