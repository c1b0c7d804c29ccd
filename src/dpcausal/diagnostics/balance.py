"""Balance of the arms: standardised mean differences of covariates, before and after weighting."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.diagnostics.diagnosis import Diagnosis, Reading, readings, versions
from dpcausal.diagnostics.score import BEFORE, Asks, scored
from dpcausal.diagnostics.table_one import Characteristic, Readings, TableOne, seen
from dpcausal.errors import QueryError, RefusedError
from dpcausal.estimators.outcome_regression import fit_regressions
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CovariateSums, RegressionMoments, WeightedCovariates, WeightedRegressionMoments
from dpcausal.queries.features import Estimand, design_names, feature_names, name_tuple, titles_of
from dpcausal.queries.profiles import shown_as
from dpcausal.queries.query import value_names
from dpcausal.rehearsal.pricing import look_ahead
from dpcausal.release import Release
from dpcausal.results.propensity_score import PropensityScore
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.utils.arrays import Array
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.text import table_rows
from dpcausal.utils.validation import is_number

_FIRST = 0.25
"""The share of the rest of epsilon, after the score, for the comparison before weighting: it needs far less noise."""

_WIDEST = 1.0
"""Noise of a whole standard deviation hides a difference: real ones are rarely so large."""


@dataclass(frozen=True)
class Balance(metaclass=Constructor):
    """Standardised mean differences of covariates between the arms, before and after weighting by a private score.

    A standardised difference is that of the arms' means over the root of the mean of both arms' variances; both columns
    use the variances before weighting. The balance passes if no difference is beyond `most`, whatever the noise, and
    fails if one is; the verdict is about differences after weighting where there is a score, otherwise before.

    Privacy:
        One query for the covariates' sums in each arm; with a score, another for the weighted sums; and, unless it was
        released before, a private logistic regression for the score. Each covariate costs the same, however many values
        it has.

    Attributes:
        weighted_by: The covariates of the score; none to compare arms as they are.
        estimand: Whose effect the weights are for: `ATE`, `ATT`, `ATC` or `ATO`.
        clip: Scores are clipped to clip and 1 - clip. Noise after weighting is in proportion to 1 / clip, but for ATO.
        most: The largest difference that passes.
        share: The share of epsilon for a new score.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> plan = Balance(covariates=["age"]).estimate(Rehearsal(schema, n=5_000), epsilon=1.0)
        >>> round(plan.lines[0].before.bar, 3)
        0.021
    """

    _example = 'Balance(covariates=["age"])'

    covariates: Sequence[str]
    weighted_by: Sequence[str] = ()
    estimand: Estimand = "ATE"
    clip: float = 0.1
    most: float = 0.1
    share: float = 0.4

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariates", name_tuple(self.covariates))

    @look_ahead
    def estimate(
        self, source: Source, *, epsilon: float, delta: float = 0.0, score: PropensityScore | Release | None = None
    ) -> "BalanceTable":
        """Estimate the balance for a total of epsilon and delta.

        Args:
            delta: With 0 all noise is Laplace noise; with a positive one the sums get Gaussian noise.
            score: A score of the covariates in `weighted_by` that `PropensityModel` released before; then all of
                epsilon is for the sums.
        """
        guarantee = guarantee_for(source, epsilon, delta)
        self._check(source)
        if not self.weighted_by:
            return self._result(source, guarantee, (), (source.release(CovariateSums(self.covariates), guarantee),))

        def then(covariates: Sequence[str], coefficients: Sequence[float], rest: Guarantee) -> Asks:
            first, second = rest.split(_FIRST)
            weighted = replace(self, weighted_by=covariates)._weighted(coefficients)  # noqa: SLF001 (its own copy)
            return [(CovariateSums(self.covariates), first), (weighted, second)]

        scaled, made, sums = scored(source, self.weighted_by, guarantee, self.share, score, then)
        table = self._result(scaled.source, guarantee, (made,) if score is None else (), tuple(sums))
        return replace(table, receipts=(*scaled.receipts, *table.receipts), notes=(*scaled.notes, *table.notes))

    def _weighted(self, coefficients: Sequence[float]) -> WeightedCovariates:
        return WeightedCovariates(self.covariates, self.weighted_by, coefficients, self.estimand, self.clip)

    def _check(self, source: Source) -> None:
        """Raise before anything is spent unless all can be asked."""
        if not (is_number(self.most) and self.most > 0):
            raise QueryError(problem=f"most must be greater than 0, not {self.most!r}", hint="0.1 is usual.")
        CovariateSums(self.covariates).sensitivity(source.schema, "record", "l1")
        if self.weighted_by:
            nothing = [0.0] * len(feature_names(self.weighted_by, source.schema))
            self._weighted(nothing).sensitivity(source.schema, "record", "l1")

    def _result(
        self, source: Source, guarantee: Guarantee, scores: tuple[Release, ...], sums: tuple[Release, ...]
    ) -> "BalanceTable":
        compared = [ArmComparison(source, drawn, release) for drawn, release in zip(versions(*sums), sums, strict=True)]
        before, after = compared[0], compared[-1]
        weighted = len(sums) > 1
        differences = [_visible(each.apart / before.spread) for each in compared]
        control, treated = readings(after.effective) if weighted else (None, None)
        by = f", before and weighted for {self.estimand} by a private score of {', '.join(self.weighted_by)}"
        by += f", clipped to {self.clip:g} and {1 - self.clip:g}"
        known = (BEFORE,) if weighted and not scores else ()
        return BalanceTable(
            arms=source.schema.treatment.labels_or_values,
            n=source.n,
            method=f"standardised mean differences{by if weighted else ''}",
            guarantee=guarantee,
            receipts=tuple(release.receipt for release in (*scores, *sums)),
            notes=(*known, *source.caveats),
            lines=tuple(
                BalanceLine(*each) for each in zip(titles_of(before.features, source.schema), *differences, strict=True)
            ),
            weighted=weighted,
            weights=Weights(name_tuple(self.weighted_by), self.estimand, self.clip) if weighted else None,
            covariates=tuple(self.covariates),
            most=self.most,
            effective=(control, treated),
            characteristics=before.characteristics(source.schema),
            sizes=before.sizes,
        )


class ArmComparison:
    """Both arms' means and variances, from versions of released sums; not a number where noise hid one.

    Attributes:
        apart: The treated arm's means less the control arm's, version by feature.
        spread: The root of the mean of both arms' variances, version by feature.
        effective: Kish's effective number of units, version by arm; where units all weigh the same, their number.
    """

    def __init__(self, source: Source, drawn: Array, release: Release) -> None:
        query: CovariateSums = release.query  # type: ignore[assignment]
        self.features = query.features(source.schema)
        sums = dict(zip(release.names, drawn.T, strict=True))
        if isinstance(query, WeightedCovariates):
            weight_sum, weight_square_sum = (
                [seen(sums[f"{part}_{arm}"]) for arm in (0, 1)] for part in ("weight_sum", "weight_square_sum")
            )
        else:
            sizes = source.arm_sizes
            treated = sums["size_1"] if sizes is None else np.full(len(drawn), float(sizes[1]))
            units = sums.get("compared", source.n) if sizes is None else sum(sizes)
            weight_sum = weight_square_sum = [seen(units - treated), seen(treated)]
        # At most the number of units, whatever the noise.
        self.effective: Array = np.minimum(
            [weight_sum[arm] ** 2 / weight_square_sum[arm] for arm in (0, 1)], source.n
        ).T
        self._means: dict[str, Array] = {}
        self._variances: dict[str, Array] = {}
        apart, variances = [], []
        for name in self.features:
            means = [sums[f"total_{arm} of {name}"] / weight_sum[arm] for arm in (0, 1)]
            if name in query.numbers(source.schema):
                squares = [1 - sums[f"deficit_{arm} of {name}"] / weight_sum[arm] for arm in (0, 1)]
            else:  # one of two values is -1 or 1, one of more is 0 or 1
                squares = [np.ones(len(drawn))] * 2 if name in query.covariates else means
            within = [squares[arm] - means[arm] ** 2 for arm in (0, 1)]
            self._means[name], self._variances[name] = np.array(means).T, np.array(within).T
            apart.append(means[1] - means[0])
            variances.append(sum(within, np.zeros(len(drawn))) / 2)
        self.apart: Array = np.array(apart).T
        self.spread: Array = np.sqrt(seen(np.array(variances).T))

    @property
    def sizes(self) -> Readings:
        """Each arm's number of units, where units all weigh the same."""
        control, treated = readings(self.effective)
        return control, treated

    def characteristics(self, schema: Schema) -> tuple[Characteristic, ...]:
        """Return each covariate's mean and standard deviation, or shares of its values, in each arm."""
        columns = {column.name: column for column in schema.covariates}
        made = []
        for name in self.features:
            column = columns.get(name)
            means, sds = self._means[name], np.sqrt(seen(self._variances[name]))
            if isinstance(column, Real):
                label, middle, half = shown_as(column)
                made.append(Characteristic(label, "mean", _pair(middle + half * means), _pair(half * sds)))
            elif column is None:  # one of several values
                made.append(Characteristic(titles_of([name], schema)[0], "share", _pair(means)))
            else:
                made.append(
                    Characteristic(titles_of(value_names(column)[1:], schema)[0], "share", _pair((1 + means) / 2))
                )
        return tuple(made)


def _pair(results: Array) -> Readings:
    control, treated = readings(results)
    return control, treated


@dataclass(frozen=True)
class BalanceLine:
    """One covariate, or one of its values.

    Attributes:
        before: The standardised mean difference before weighting; None where noise hides it.
        after: The same after weighting; None also where nothing was weighted.
    """

    name: str
    before: Reading | None
    after: Reading | None = None


@dataclass(frozen=True)
class Weights:
    """How units were weighted before their balance was judged."""

    covariates: tuple[str, ...]
    estimand: Estimand
    clip: float


@dataclass(frozen=True, kw_only=True)
class BalanceTable(Diagnosis):
    """Standardised mean differences, treated less control.

    Attributes:
        lines: The covariates.
        weighted: Whether there are differences after weighting; the verdict is then about these.
        weights: How units were weighted; None where they were not, or where an older version did not record it.
        covariates: The covariates that were compared; none where an older version did not record them.
        most: The largest difference that passes.
        effective: Each arm's effective number of units after weighting, control first; None without weights, or where
            noise hides it.
        characteristics: Each covariate by arm before weighting, for `table_one`; none from moments of a regression.
        sizes: Each arm's number of units before weighting.
    """

    lines: tuple[BalanceLine, ...]
    weighted: bool
    most: float
    effective: tuple[Reading | None, Reading | None] = (None, None)
    characteristics: tuple[Characteristic, ...] = ()
    sizes: Readings = (None, None)
    weights: Weights | None = None
    covariates: tuple[str, ...] = ()

    @property
    def table_one(self) -> TableOne:
        """Table 1: means and standard deviations, or shares, in each arm, from the same release at no further cost.

        Raises:
            RefusedError: If the balance was computed from the moments of a regression, which hold no such sums.
        """
        if not self.characteristics:
            raise RefusedError(
                expected="a balance from the sums of covariates in each arm",
                got="one from the moments of a regression",
                hint="use Balance(covariates=...).estimate(...), which asks for these sums.",
            )
        return TableOne(self.arms, self.sizes, self.characteristics, self.rehearsed)

    @property
    def passes(self) -> bool | None:
        """Whether no difference is too large, whatever the noise; None where noise decides."""
        judged = [line.after if self.weighted else line.before for line in self.lines]
        seen = [each for each in judged if each is not None]
        if any(abs(each.value) - each.bar > self.most for each in seen):
            return False
        return (
            True if len(seen) == len(judged) and all(abs(each.value) + each.bar <= self.most for each in seen) else None
        )

    @property
    def found(self) -> str:
        """The finding, in one sentence."""
        judged = {line.name: line.after if self.weighted else line.before for line in self.lines}
        when = "after weighting" if self.weighted else "before adjustment"
        hidden = [name for name, each in judged.items() if each is None]
        if hidden:
            return f"noise hides {', '.join(hidden)} {when}"
        name, worst = max(judged.items(), key=lambda each: abs(each[1].value) if each[1] else 0.0)
        return f"the largest difference {when} is {_difference(worst)}, of {name}; at most {self.most:g} may be"

    @property
    def remedy(self) -> str:
        """What to do if it fails."""
        judged = {line.name: line.after if self.weighted else line.before for line in self.lines}
        names = ", ".join(name for name, each in judged.items() if each and abs(each.value) - each.bar > self.most)
        if self.weighted:
            return (
                f"weighting leaves {names} unbalanced: give the score every confounder, choose the estimand ATO, or "
                "lower clip, in a new study."
            )
        return (
            f"the arms differ in {names} and nothing adjusts for it: choose an estimator that does, for instance "
            "doubly_robust or inverse_weighting of these, in a new study. In a trial, check the randomisation."
        )

    def _lines(self) -> list[tuple[str, str]]:
        texts = []
        for line in self.lines:
            columns = (line.before, line.after) if self.weighted else (line.before,)
            if self.rehearsed:
                bars = ", then ".join("hidden" if each is None else f"± {each.bar:.3f}" for each in columns)
                texts.append(f"{line.name}: expect {bars}")
            else:
                texts.append(f"{line.name}: {', then '.join(map(_difference, columns))}")
        lines = table_rows("differences", tuple(texts))
        if self.weighted and not self.rehearsed:
            sizes = ", ".join("hidden by noise" if each is None else str(each) for each in self.effective)
            lines.append(("effective units", f"{sizes} (control, treated), after weighting"))
        return lines


def balance_from_moments(moments: Release, source: Source, most: float = 0.1) -> BalanceTable:
    """Return the balance before adjustment from moments released for a regression: it costs nothing more.

    Args:
        moments: A release of `RegressionMoments`, or of `WeightedRegressionMoments`, where units far out count less.
        most: The largest difference that passes.
    """
    query = moments.query
    if not isinstance(query, RegressionMoments | WeightedRegressionMoments):
        raise QueryError(
            expected="a release of regression_moments or weighted_regression_moments",
            got=query.name,
            hint="use Balance(covariates=...), which asks for what it needs.",
        )
    (drawn,) = versions(moments)
    fit = fit_regressions(moments, source, drawn)
    spread = np.sqrt(seen(np.diagonal(fit.covariances, axis1=2, axis2=3).mean(axis=1)))
    names = titles_of(design_names(query.covariates, source.schema), source.schema)
    return BalanceTable(
        arms=source.schema.treatment.labels_or_values,
        n=source.n,
        method="standardised mean differences, from the moments of a regression",
        guarantee=moments.guarantee,
        receipts=(moments.receipt,),
        notes=(
            "computed from the moments alone: no further query",
            *(
                ("units whose covariates are far out count less",)
                if isinstance(query, WeightedRegressionMoments)
                else ()
            ),
            *source.caveats,
        ),
        lines=tuple(BalanceLine(*each) for each in zip(names, _visible(fit.imbalance / spread), strict=True)),
        weighted=False,
        most=most,
    )


def _visible(differences: Array) -> list[Reading | None]:
    """Return differences; None where the bar is too wide."""
    return [each if each and each.bar <= _WIDEST else None for each in readings(differences)]


def _difference(reading: Reading | None) -> str:
    return "hidden by noise" if reading is None else f"{reading.value:.3f} ± {reading.bar:.3f}"
