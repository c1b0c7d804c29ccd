"""What experiments cost a person: those of a layer by its bucket, all others in full."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Any, Self

from dpcausal.ledger.budget import Budget, Total
from dpcausal.schema.layer import Layer, LayerClaim


@dataclass(frozen=True)
class Bucket:
    """One bucket of a layer.

    Attributes:
        total: What its experiments may spend, or have spent.
        holder: The open experiment that has it; empty where it is free.
    """

    total: Total = field(default_factory=Total)
    holder: str = ""


@dataclass(frozen=True)
class Allocated:
    """What is allocated in one period, and was not returned.

    Attributes:
        layers: The buckets of each layer; a layer that no experiment claimed is left out.
    """

    apart: Total = field(default_factory=Total)
    layers: Mapping[str, Sequence[Bucket]] = field(default_factory=dict)

    @property
    def total(self) -> Total:
        """The most that any person can lose: in each layer a person is in one bucket."""
        return reduce(Total.__add__, map(costliest, self.layers.values()), self.apart)

    def total_beside(self, claim: LayerClaim) -> Total:
        """Return the most that a person in one of these buckets can lose."""
        beside = (costliest(buckets) for name, buckets in self.layers.items() if name != claim.name)
        here = self.buckets_of(claim.name, claim.layer)
        return reduce(Total.__add__, beside, self.apart + costliest([here[place] for place in claim.buckets]))

    def buckets_of(self, name: str, layer: Layer) -> Sequence[Bucket]:
        """Return the buckets of a layer, free and unspent where none was claimed."""
        return self.layers.get(name, [Bucket()] * layer.buckets)

    def holders(self, claim: LayerClaim) -> set[str]:
        """Return which open experiments have these buckets; the empty text stands for those that are free."""
        buckets = self.buckets_of(claim.name, claim.layer)
        return {buckets[place].holder for place in claim.buckets}

    def moved(self, total: Total, claim: LayerClaim | None, experiment: str) -> Self:
        """Return what is allocated with more or less of it.

        Args:
            total: How much more; less than 0 where it is returned.
            claim: Whose buckets pay; None for everybody.
            experiment: Who has these buckets from now on; empty where they are free again.
        """
        if claim is None:
            return replace(self, apart=self.apart + total)
        buckets = list(self.buckets_of(claim.name, claim.layer))
        # Buckets that were one object, since they have cost the same so far, are one object again.
        changed = {id(buckets[place]): buckets[place] for place in claim.buckets}
        made = {key: Bucket(bucket.total + total, experiment) for key, bucket in changed.items()}
        for place in claim.buckets:
            buckets[place] = made[id(buckets[place])]
        return replace(self, layers={**self.layers, claim.name: buckets})

    def is_within(self, budget: Budget) -> bool:
        """Whether nobody loses more than the budget, and no part is below 0."""
        parts = [self.apart]
        parts += [bucket.total for buckets in self.layers.values() for bucket in _different(buckets)]
        return budget.covers(self.total) and all(min(vars(part).values()) >= 0 for part in parts)

    def record(self) -> dict[str, Any]:
        """Return the layers as plain values, exactly; equal buckets side by side as one line."""
        return {name: [list(run) for run in _runs(buckets)] for name, buckets in self.layers.items()}

    @classmethod
    def restored(cls, apart: Total, recorded: Mapping[str, Any]) -> Self:
        """Return what `record` wrote."""
        return cls(
            apart,
            {
                name: [bucket for count, *rest in runs for bucket in [Bucket(total_of(rest[0]), rest[1])] * count]
                for name, runs in recorded.items()
            },
        )


def costliest(buckets: Sequence[Bucket]) -> Total:
    """Return the largest of the buckets' totals, part by part."""
    parts = [vars(bucket.total) for bucket in _different(buckets)]
    return Total(**{name: max(part[name] for part in parts) for name in vars(Total())})


def _different(buckets: Sequence[Bucket]) -> Sequence[Bucket]:
    """Return each bucket once that is one object in several places: there are few, and sums of fractions are slow."""
    return tuple({id(bucket): bucket for bucket in buckets}.values())


def _runs(buckets: Sequence[Bucket]) -> list[tuple[int, dict[str, str], str]]:
    runs = ((bucket, len(list(run))) for bucket, run in itertools.groupby(buckets))
    return [(count, plain_total(bucket.total), bucket.holder) for bucket, count in runs]


def plain_total(total: Total) -> dict[str, str]:
    """Return a total as plain values, exactly."""
    return {name: str(part) for name, part in vars(total).items()}


def total_of(parts: Mapping[str, str]) -> Total:
    """Return the total that `plain_total` wrote."""
    return Total(**{name: Fraction(part) for name, part in parts.items()})
