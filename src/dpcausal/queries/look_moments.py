"""Sums of the outcome, or of metrics, in every declared arm at one look of a schedule that is paid for once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar, Self

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.coerced import OUTCOME, every_arm, strata
from dpcausal.queries.cuts import Cut, cuts_of, single_cuts
from dpcausal.queries.metric_moments import MetricMoments, Residual
from dpcausal.queries.query import GRID, Coordinate, Norm, Query, Sensitivity, outcome_tick
from dpcausal.schema.expectations import Expectations
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import ONE, deficit
from dpcausal.sums.roots import root_above

FINE = 2**10
"""Ticks of a weight of 1."""

MOST_LOOKS = 1_000


@dataclass(frozen=True)
class LookQuery(Query):
    """The base of queries that are one look of a schedule: sums over the cohorts so far, each with a public weight.

    A unit belongs to the cohort in which it entered, for good; cohorts are numbered in the order of `cohorts`. Look t
    adds up what units add to sums in every declared arm, for the cohorts 1 to t, each cohort times
    `weights(...)[t - cohort]`. The sums over all units so far follow from the looks so far (`running_weights`). All
    looks together are paid for once. Proof: docs/proofs/look_moments.md.

    Attributes:
        cohorts: The schema's column of entry, which says when a unit entered: one look for each of its values or bins.
        look: Which look this is; the first is 1.
    """

    adds_up: ClassVar[bool] = True
    prepaid: ClassVar[bool] = True
    most_units: ClassVar[int] = 2**31

    cohorts: Cut
    look: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cohorts", cuts_of([self.cohorts])[0])
        if not (isinstance(self.look, int) and not isinstance(self.look, bool) and self.look >= 1):
            raise QueryError(expected="the number of a look, from 1 on", got=repr(self.look), hint="write look=1.")

    def cohort_sums(self, schema: Schema) -> Sums:
        """Return as data what the answer is made of: the sums of every cohort in every declared arm."""
        raise NotImplementedError

    def looks(self, schema: Schema) -> int:
        """Return the number of looks in the schedule, one for each cohort."""
        looks = self.cohorts.bins(schema)
        if not self.look <= looks <= MOST_LOOKS:
            raise QueryError(
                expected=f"a look out of {looks}, one for each cohort, and at most {MOST_LOOKS:,} cohorts",
                got=f"look {self.look}",
                hint="declare as many cohorts as there will be looks before the first one.",
            )
        if self.cohorts.name != schema.entry:
            raise QueryError(
                expected="cohorts of the column by which units enter, "
                + (repr(schema.entry) if schema.entry else "and the schema declares none"),
                got=repr(self.cohorts.name),
                hint="looks are paid for once only where no unit changes its cohort from version to version. The "
                "owner of the data says by which column that holds, such as the week of enrolment, in the schema of "
                'the ledger\'s first vault: Schema(…, entry="week").',
            )
        return looks


@dataclass(frozen=True)
class LookMoments(LookQuery):
    """At one look, in every declared arm: the number of units, the sum of outcomes and the deficit of their squares.

    Look t adds them up over the cohorts 1 to t, as `CellMoments` does, each cohort times its weight at that look.

    Attributes:
        cohorts: The schema's column of entry, which says when a unit entered: one look for each of its values or bins.
        look: Which look this is; the first is 1.
    """

    name: ClassVar[str] = "look_moments"

    cohorts: Cut
    look: int

    def cells(self, schema: Schema) -> tuple[str, ...]:
        """Return what follows the name of a sum for each declared arm, by its place."""
        return tuple(f"_{place}" for place in range(len(schema.treatment.arms)))

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return this look's coordinates, and how far one unit can move those of all looks together."""
        tick, used = outcome_tick(schema) / FINE, weights(self.looks(schema), norm)
        size, deficit = {"l1": (4, 4 * GRID), "l2": (2, 2 * GRID)}[norm]
        parts = {
            "total": (tick, Fraction(2 * GRID)),
            "deficit": (outcome_tick(schema) * tick * GRID, Fraction(deficit)),
            "size": (1.0 / FINE, Fraction(size)),
        }
        coordinates = tuple(
            Coordinate(f"{part}{cell}", *at) for cell in self.cells(schema) for part, at in parts.items()
        )
        bound = Fraction(3, 2) * sum(used) if norm == "l1" else root_above(Fraction(sum(each**2 for each in used)))
        return Sensitivity(norm, coordinates, bound)

    def cohort_sums(self, schema: Schema) -> Sums:
        """Return as data what the answer is made of: the sums of every cohort in every declared arm."""
        cells = strata([self.cohorts], schema) | {every_arm(schema): len(schema.treatment.arms)}
        return Sums(cells, {"total": OUTCOME, "deficit": deficit(OUTCOME), "size": ONE}, everyone=True)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        cohorts = (column for column in schema.covariates if column.name == self.cohorts.name)
        return schema.treatment.every_arm, schema.outcome, *cohorts

    def expected(self, expectations: Expectations, guarantee: Guarantee) -> dict[str, float]:
        """Return the expected answer without noise and without an effect: n units in cohorts of the same size."""
        schema = expectations.schema
        low, high = schema.outcome_bounds
        mean = expectations.mean - (low + high) / 2
        each = {"total": mean, "deficit": ((high - low) / 2) ** 2 - mean**2 - expectations.sd**2, "size": 1.0}
        looks = self.looks(schema)
        share = sum(weights(looks, norm_of(guarantee))[: self.look]) / FINE / looks
        return {
            f"{part}_{place}": value * expectations.n * of_arm * share
            for place, of_arm in enumerate(expectations.arm_shares)
            for part, value in each.items()
        }

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        cuts = (cut for (cut,) in single_cuts(schema) if cut.name == schema.entry)
        return tuple(cls(cut, look) for cut in cuts for look in (1, cut.bins(schema)))


@dataclass(frozen=True)
class LookMetrics(LookQuery):
    """At one look, in every declared arm: the sums of `MetricMoments`, for all metrics of an experiment at once.

    Look t adds them up over the cohorts 1 to t, each cohort times its weight at that look. Metrics share the noise by
    their weights, as in `MetricMoments`.

    Attributes:
        cohorts: The schema's column of entry, which says when a unit entered: one look for each of its values or bins.
        look: Which look this is; the first is 1.
        metrics: For each metric the names of its columns, as in `MetricMoments`.
        weights: The weight of each metric.
        residuals: Columns that are made of two others, as in `MetricMoments`.
    """

    name: ClassVar[str] = "look_metrics"

    cohorts: Cut
    look: int
    metrics: Sequence[Sequence[str]]
    weights: Sequence[float]
    residuals: Sequence[Residual] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        moments = self.moments
        object.__setattr__(self, "metrics", moments.metrics)
        object.__setattr__(self, "weights", moments.weights)
        object.__setattr__(self, "residuals", moments.residuals)

    @property
    def moments(self) -> MetricMoments:
        """The same sums of all units, as an experiment with a single look asks for them."""
        return MetricMoments(self.metrics, self.weights, self.residuals)

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:
        """Return this look's coordinates, and how far one unit can move those of all looks together."""
        used, ticks = weights(self.looks(schema), norm), self.moments.ticks(schema)
        sizes, most = self._noise_weights(schema, norm)
        coordinates = tuple(
            Coordinate(name, ticks.get(key, 1.0) / FINE, sizes[key])
            for name, key in self._arm_sums(schema).keys.items()
        )
        looks = Fraction(sum(used)) if norm == "l1" else root_above(Fraction(sum(each**2 for each in used)))
        return Sensitivity(norm, coordinates, looks * most)

    def _noise_weights(self, schema: Schema, norm: Norm) -> tuple[dict[str, Fraction], Fraction]:
        """Return the weight of each sum by its name in the description, and the bound of a look's own cohort."""
        shares, products = self.moments.shares, self.moments.products
        crossing = sum(products.values(), Fraction(0))
        if norm == "l1":
            size = Fraction(1, 4 * math.ceil(len(shares) ** (2 / 3)))
            total = {name: 2 * GRID / share for name, share in shares.items()}
            deficit = {name: 2 * each for name, each in total.items()}
            crossed = {pair: 8 * GRID / share for pair, share in products.items()}
            found, most = {"size": 1 / size}, 2 * (Fraction(1, 2) + crossing / 8 + size)
        else:
            total = deficit = {name: 2 * GRID * root_above(1 / share) for name, share in shares.items()}
            crossed = {pair: 2 * GRID * root_above(1 / share) for pair, share in products.items()}
            found, most = {"size": 2 / root_above(1 + crossing)}, root_above(1 + crossing)
        found |= {f"total{{}} of {name}": each for name, each in total.items()}
        found |= {f"deficit{{}} of {name}": each for name, each in deficit.items()}
        return found | {f"product{{}} of {one} and {other}": each for (one, other), each in crossed.items()}, most

    def _arm_sums(self, schema: Schema) -> Sums:
        (sums,) = self.moments.sums(schema, "record", "l2")
        return sums

    def cohort_sums(self, schema: Schema) -> Sums:
        sums = self._arm_sums(schema)
        return Sums(strata([self.cohorts], schema) | dict(sums.cells), sums.numbers, everyone=True)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        self.moments.columns(schema)  # raises for what is no metric
        names = {self.cohorts.name} | self.moments.used
        outcome = (schema.outcome,) if schema.outcome.name in names else ()
        return schema.treatment.every_arm, *outcome, *(each for each in schema.covariates if each.name in names)

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:
        cuts = [cut for (cut,) in single_cuts(schema) if cut.name == schema.entry]
        asked = [each for each in MetricMoments.examples(schema) if schema.entry not in each.used]
        return tuple(
            cls(cut, look, each.metrics, each.weights, each.residuals)
            for cut in cuts
            for each in asked
            for look in (1, cut.bins(schema))
        )


def norm_of(guarantee: Guarantee) -> Norm:
    """Return the norm that the noise of a guarantee is calibrated to."""
    return "l2" if guarantee.delta else "l1"


@cache
def weights(looks: int, norm: Norm) -> tuple[int, ...]:
    """Return the weight of a cohort at its own look, at the next look, and so on, in ticks of 1 / `FINE`.

    For Gaussian noise they are the square root of the matrix of running sums, binom(2k, k) / 4^k, rounded down (Bennett
    1977; Fichtenberger, Henzinger and Upadhyay 2023): one unit moves all looks together little, and the running sums
    need little of each. For Laplace noise a cohort counts at its own look only, which is better there.

    Example:
        >>> weights(4, "l2"), weights(4, "l1")
        ((1024, 512, 384, 320), (1024, 0, 0, 0))
    """
    if norm == "l1":
        return (FINE,) + (0,) * (looks - 1)
    return tuple(FINE * math.comb(2 * k, k) // 4**k for k in range(looks))


@cache
def running_weights(used: tuple[int, ...]) -> tuple[float, ...]:
    """Return how the sums over all units so far follow from looks with these weights: the newest look's share first.

    They are the sequence whose convolution with the weights is 1 everywhere.

    Example:
        >>> running_weights(weights(4, "l2")), running_weights(weights(4, "l1"))
        ((1.0, 0.5, 0.375, 0.3125), (1.0, 1.0, 1.0, 1.0))
    """
    found: list[float] = []
    for place in range(len(used)):
        found.append(1.0 - sum(used[back] / FINE * found[place - back] for back in range(1, place + 1)))
    return tuple(found)
