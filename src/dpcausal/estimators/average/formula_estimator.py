"""Estimators that are formulas of sums, both written as texts: for questions that no other estimator answers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.formula import Formulas, columns_in, one_number, sums_for, variances_in
from dpcausal.estimators.formula_weights import chosen_weights
from dpcausal.estimators.moments import COUNT
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.plausibility import Measured, warned_of_spreads
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CustomSums, Cut
from dpcausal.queries.custom_sums import label_of, quoted
from dpcausal.queries.cuts import cuts_of
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release
from dpcausal.results.effect import Effect
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.uncertainty.derivatives import Numbers, slopes
from dpcausal.uncertainty.interval import NoiseTerm, standard_noise
from dpcausal.utils.arrays import Array
from dpcausal.utils.plain_text import check_plain_text

_DRAWS, _MOST_PARTS = 500, 4
_MOST_BENT = 1.2
"""How far the spread of a formula under simulated noise may be from that to first order, as a ratio."""

_ESTIMATE, _VARIANCE = "estimate", "variance"

_UNITS = 10_000
"""For how many units weights are chosen; that of means and slopes does not depend on it, and sites must agree."""


@dataclass(frozen=True)
class FormulaEstimator(BaseEstimator):
    """A formula of moments and sums over units, as a text.

    A formula has `n`, the number of units, the moments `mean(column)`, `variance(column)` and `covariance(column,
    column)`, `+`, `-`, `*`, `/`, whole powers, `sqrt`, `log` and `exp`. It asks for the sums that its moments need. Any
    other sum is one of your own: `sums` says what a unit adds to it, in the language of `CustomSums`, and a formula has
    it by its name. `mean(score)[drug]` is the mean in a cell, by the values of the columns in `cells`, and `total(...)`
    adds up cells. `middle(column)` and `half(column)` are the middle of a column's range, from which your own sums are
    measured, and half its length.

    Estimand:
        As `estimand` says, in your words.

    Assumptions:
        Those in `assumptions`. Nothing is known about the formula but its text.

    Privacy:
        One query, `CustomSums`. The bound on what one unit moves is computed from the expressions, and certified.

    The noise in the estimate follows by the derivatives of the formula. Where they do not describe what noise does to
    it, as where noise may make a divisor 0, there is no interval.

    Attributes:
        estimand: What is estimated, in words.
        formula: The estimate.
        variance: The sampling variance of the estimate; it may use `estimate`. Without it there is no interval.
        definitions: Formulas that `formula` and `variance` may use, by their names, and later ones of these.
        sums: What a unit adds to each sum of your own, by the name of the sum.
        cells: Columns whose values make cells, the treatment's among them, and cuts of numbers.
        weights: The noise in some sums in proportion to the default; see `CustomSums`. If left out, they are chosen, as
            `weighted` does for a table of which the schema is all that is known.
        assumptions: What must hold for the estimate to be of the estimand, in words.
        contrast: What is compared, in words, the reference first; the two arms if left out.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(Treatment("treat"), Real("score", 0, 100), [Real("dose", 0, 40)])
        >>> slope = FormulaEstimator(
        ...     estimand="mean difference in score for one more mg of dose",
        ...     contrast=("a dose", "1 mg more"),
        ...     formula="covariance(dose, score) / variance(dose)",
        ... )
        >>> plan = slope.estimate(Rehearsal(schema, n=5_000), epsilon=1.0)
        >>> round(plan.privacy_sd, 3)
        0.031
    """

    also_called: ClassVar[str] = "method_of_moments plug_in_estimator custom_estimator user_defined"
    counts_missing: ClassVar[bool] = False
    tables: ClassVar[tuple[str, ...]] = ("sums", "definitions", "weights")
    """The parameters that are tables of texts or numbers in a study's file."""

    estimand: str
    formula: str
    variance: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
    sums: Mapping[str, str] = field(default_factory=dict)
    cells: Sequence[str | Cut] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    assumptions: Sequence[str] = ()
    contrast: Sequence[str] = ()

    def __post_init__(self) -> None:
        for part in self.tables:
            if not isinstance(getattr(self, part), Mapping):
                raise QueryError(
                    expected=f"{part} as names with texts",
                    got=type(getattr(self, part)).__name__,
                    hint="write for instance sums={'n': '1', 'total': 'centred(score)'}.",
                )
            object.__setattr__(self, part, dict(getattr(self, part)))
        object.__setattr__(self, "cells", cuts_of(self.cells) if self.cells else ())
        for part in ("assumptions", "contrast"):
            object.__setattr__(self, part, _texts(getattr(self, part)))
        if len(self.contrast) not in (0, 2):
            raise QueryError(
                expected="a contrast of two, in words, the reference first",
                got=repr(self.contrast)[:100],
                hint="write for instance contrast=('a dose', '1 mg more').",
            )
        check_plain_text("texts of an estimator", (self.estimand, *self.assumptions, *self.contrast))

    @property
    def identified_by_design(self) -> bool:
        """Whether its author says under which assumptions it is causal."""
        return bool(self.assumptions)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it uses, apart from the treatment's."""
        own = CustomSums(self.sums, self.cells).columns if self.sums else self._cell_names
        return tuple(dict.fromkeys((*own, *columns_in(self._texts))))

    @property
    def _cell_names(self) -> tuple[str, ...]:
        return tuple(cut.name for cut in cuts_of(self.cells)) if self.cells else ()

    @property
    def _texts(self) -> dict[str, str]:
        return {**self.definitions, _ESTIMATE: self.formula} | ({_VARIANCE: self.variance} if self.variance else {})

    def query(self, schema: Schema) -> CustomSums:
        """Return the query that it asks: all sums of its formulas."""
        return CustomSums(sums_for(self._texts, self.sums, schema), self.cells, self.weights)

    def formulas(self, schema: Schema) -> Formulas:
        """Return the formulas of its sums: definitions, the estimate and its variance."""
        return Formulas(self.query(schema), schema, self._texts, self.sums)

    def weighted(self, rehearsal: Rehearsal, guarantee: Guarantee) -> Self:
        """Return this estimator with the weights for which noise is expected to widen its interval least.

        They follow from what is public: the formulas, the schema, expectations and the guarantee. Expectations that are
        wrong cost accuracy, never privacy. If it has weights already, they stay.

        Args:
            rehearsal: What is expected of the table. Numbers of which nothing is may lie anywhere in their ranges.
            guarantee: What will be spent.

        Example:
            >>> from dpcausal import Guarantee, Real, Rehearsal, Schema, Treatment
            >>> schema = Schema(Treatment("treat"), Real("score", 0, 100))
            >>> mean = FormulaEstimator(
            ...     estimand="mean score", sums={"n": "1", "y": "centred(score)"}, formula="middle(score) + y / n"
            ... )
            >>> expected = Rehearsal(schema, n=5_000, outcome_mean=60)
            >>> mean.weighted(expected, Guarantee(epsilon=1.0)).weights
            {'n': 2.0, 'y': 1.0}
        """
        if not isinstance(rehearsal, Rehearsal):
            raise QueryError(
                expected="a Rehearsal, which has no table",
                got=type(rehearsal).__name__,
                hint="weights follow from what is public: write Rehearsal(vault.schema, vault.n).",
            )
        if self.weights:
            return self
        formulas = self.formulas(rehearsal.schema)
        names = formulas.query.names(rehearsal.schema)
        _check(formulas, len(names), self._notes(formulas.query))
        spent = narrower(formulas.query, rehearsal, guarantee, names[0])
        return replace(self, weights=chosen_weights(formulas, rehearsal, spent))

    @classmethod
    def for_schema(cls, schema: Schema) -> Self:
        """Return a difference in means as formulas of moments."""
        outcome = quoted(schema.outcome.name)
        control, treated = (f"['{label_of(arm)}']" for arm in schema.treatment.compared)
        variances = (f"variance({outcome}){arm} / n{arm}" for arm in (control, treated))
        return cls(
            estimand="average treatment effect: mean outcome with all treated minus mean outcome with none",
            formula=f"mean({outcome}){treated} - mean({outcome}){control}",
            variance=" + ".join(variances),
            cells=[schema.treatment.name],
        )

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Effect:
        """Estimate the effect for a total of epsilon and delta; noise is Laplace, or Gaussian where that is smaller."""
        allowed = guarantee_for(source, epsilon, delta)
        expected = Rehearsal(source.schema, _UNITS, rule=source.rule)
        formulas = self.weighted(expected, allowed).formulas(source.schema)
        query, names = formulas.query, formulas.query.names(source.schema)
        notes = self._notes(query)
        _check(formulas, len(names), notes)
        guarantee = narrower(query, source, allowed, names[0])
        release = source.release(query, guarantee)
        sums = np.array(release.values)
        found = formulas.values(sums)
        estimate, derivatives = float(found[_ESTIMATE]), slopes(lambda at: formulas.values(at)[_ESTIMATE], sums)
        usable = bool(np.isfinite([estimate, *derivatives]).all())
        reason, variance = _no_interval(formulas, release, estimate, derivatives), 0.0
        if self.variance:
            # Noise may make it small, or negative: it is at least the standard deviation of the noise in it.
            along = slopes(lambda at: formulas.values(at)[_VARIANCE], sums)
            least = sum(term.variance for term in _noise(release, along)) ** 0.5
            variance = float(np.maximum(found[_VARIANCE], least))
        if not self.variance or not np.isfinite(variance):
            reason = (
                reason or f"the formula of the sampling variance {'gives none' if self.variance else 'was left out'}"
            )
        compared, compared_sd = _counted(release, query, source.n)
        handled = source.schema.requiring(query.required).data_handling
        effect = Effect(
            estimand=self.estimand,
            arms=(self.contrast[0], self.contrast[1]) if self.contrast else source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.title,
            estimate=estimate if usable else 0.0,
            sampling_sd=None if reason else variance**0.5,
            noise=_noise(release, derivatives if usable else np.zeros(len(sums))),
            n=source.n,
            method="a formula of sums",
            guarantee=guarantee,
            assumptions=(*self.assumptions, "the formula is the estimand's, and its variance the estimate's", *handled),
            receipts=(release.receipt,),
            quantity=self.estimand,
            compared=compared,
            compared_sd=compared_sd,
            notes=(*notes, *source.caveats),
            no_interval=reason,
            warnings=() if usable else ("noise leaves the formula without a value: the estimate of 0 stands for none",),
        )
        spreads = _spreads(formulas, release)
        return warned_of_spreads(effect, spreads, "declare tighter bounds, or use more epsilon or more units")

    def _notes(self, query: CustomSums) -> tuple[str, ...]:
        """Return all that a reader needs to compute it again: formulas and sums."""
        definitions = "; ".join(f"{name} = {text}" for name, text in self.definitions.items())
        sums = "; ".join(f"{name}: {text}" for name, text in query.texts.items())
        cells = ", ".join(self._cell_names)
        notes = (
            f"estimate: {self.formula}",
            *([f"sampling variance: {self.variance}"] if self.variance else []),
            *([f"definitions: {definitions}"] if definitions else []),
            f"sums in cells of {cells}: {sums}" if cells else f"sums: {sums}",
            "the bound on what one unit moves was computed from the sums, and certified",
        )
        return tuple(" ".join(note.split()) for note in notes)


def _texts(given: Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _check(formulas: Formulas, count: int, notes: Sequence[str]) -> None:
    """Raise unless formulas are ones of so many sums, numbers, and can be printed: before anything is spent."""
    check_plain_text("formulas", notes, QueryError)
    for name, value in formulas.values(np.ones(count)).items():
        if name in (_ESTIMATE, _VARIANCE):
            one_number(value, name)


def _counted(release: Release, query: CustomSums, n: int) -> tuple[float | None, float]:
    """Return the number of units in all cells and the noise in it, where the sums have it."""
    texts = list(query.texts.values())
    if COUNT not in texts:
        return None, 0.0
    counts = release.names[texts.index(COUNT) :: len(texts)]
    noise = sum(release.variance(name) for name in counts) ** 0.5
    return min(sum(map(release.value, counts)), float(n)), noise


def _spreads(formulas: Formulas, release: Release) -> dict[str, Measured]:
    """Return the variances of covariates that the formulas have, each in the cell where noise hides most of it."""
    numbers = [column.name for column in formulas.schema.covariates if isinstance(column, Real)]
    sums, noise = np.array(release.values), np.array([release.variance(name) for name in release.names])
    found = {}
    for name in variances_in(formulas.texts):
        if name in numbers:
            own = replace(formulas, texts={_VARIANCE: f"variance({quoted(name)})"}, own=())

            def variances(at: Numbers, own: Formulas = own) -> Numbers:
                return np.ravel(own.values(at)[_VARIANCE])

            sds = np.sqrt(slopes(variances, sums) ** 2 @ noise)
            found[name] = min(map(Measured, variances(sums), sds), key=lambda each: each.value / each.noise_sd)
    return found


def _noise(release: Release, derivatives: Array) -> tuple[NoiseTerm, ...]:
    """Return the noise in the estimate to first order; terms of one size are one, of more parts."""
    pairs = zip(release.names, derivatives.tolist(), strict=True)
    sizes = Counter(abs(slope) * release.scale(name) for name, slope in pairs)
    return tuple(
        NoiseTerm(release.family, size * count**0.5, release.parts * count) for size, count in sizes.items() if size
    )


def _no_interval(formulas: Formulas, release: Release, estimate: float, derivatives: Array) -> str:
    """Refuse where noise of the released size moves the formula otherwise than its derivatives say.

    Noise is simulated from public sizes, the same in every run.
    """
    sizes = [release.variance(name) ** 0.5 for name in release.names]
    standard = standard_noise(release.family, min(release.parts, _MOST_PARTS), len(sizes), _DRAWS)
    noise = standard.T * np.array(sizes)[:, None]
    line = derivatives @ noise
    moved = formulas.values(np.array(release.values)[:, None] + noise)[_ESTIMATE] - estimate
    if not np.isfinite([estimate, *derivatives]).all() or not np.isfinite(moved).all():
        return "noise may leave the formula without a value"
    widths = [[float(np.ptp(np.quantile(each, [low, 1 - low]))) for each in (moved, line)] for low in (0.025, 0.16)]
    bent = [max(width, straight) > _MOST_BENT * min(width, straight) for width, straight in widths]
    return "noise is too large for the formula: its error is not that of a straight line" if any(bent) else ""
