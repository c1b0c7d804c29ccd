"""The buckets of a layer that an experiment has: public, as who is in which bucket is."""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from dpcausal.errors import SchemaError
from dpcausal.schema.real import check_name
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.validation import build

MOST_BUCKETS = 1_000


@dataclass(frozen=True)
class Layer(metaclass=Constructor):
    """A public column that divides people into buckets, so that each of them is in one experiment at most.

    A person's bucket never changes, and is the same in the table of every experiment. It is public, and so is how many
    people are in each bucket. Where it is missing or not a whole number from 0 on, the person is in no bucket, and in
    no experiment of the layer.

    Attributes:
        column: The column with the number of a person's bucket, from 0.
        buckets: How many buckets there are.

    Example:
        >>> Layer("bucket", 100).claim("interface", range(20)).ranges
        ((0, 19),)
    """

    _example = 'Layer("bucket", 100)'

    column: str
    buckets: int

    def __post_init__(self) -> None:
        check_name(self.column)
        if isinstance(self.buckets, bool) or not isinstance(self.buckets, int) or not 2 <= self.buckets <= MOST_BUCKETS:
            raise SchemaError(
                expected=f"from 2 to {MOST_BUCKETS:,} buckets",
                got=repr(self.buckets)[:100],
                hint='write for instance Layer("bucket", 100): the column then holds 0, 1, … 99.',
            )

    def claim(self, layer: str, buckets: Iterable[int]) -> "LayerClaim":
        """Return the claim to some buckets of this layer.

        Raises:
            SchemaError: If it has no such buckets.
        """
        try:
            chosen = sorted(set(buckets))
            valid = chosen and all(type(each) is int and 0 <= each < self.buckets for each in chosen)
        except TypeError:
            valid, chosen = False, []
        if not valid:
            raise SchemaError(
                expected=f"buckets of the layer {layer} from 0 to {self.buckets - 1}",
                got=repr(buckets)[:100],
                hint="write for instance buckets=range(20), or --buckets 0-19, for the first twenty.",
            )
        runs = (
            [number for _, number in run]
            for _, run in itertools.groupby(enumerate(chosen), key=lambda each: each[1] - each[0])
        )
        return LayerClaim(layer, self, tuple((run[0], run[-1]) for run in runs))


@dataclass(frozen=True)
class LayerClaim:
    """The buckets of a layer that an experiment has. Units in other buckets are not units of its table.

    Attributes:
        name: The name of the layer.
        layer: The layer.
        ranges: The buckets, as pairs of the first and the last of each run.
    """

    name: str
    layer: Layer
    ranges: tuple[tuple[int, int], ...]

    @property
    def buckets(self) -> tuple[int, ...]:
        """The buckets, in order."""
        return tuple(number for first, last in self.ranges for number in range(first, last + 1))

    @property
    def text(self) -> str:
        """The buckets in words.

        Example:
            >>> Layer("bucket", 100).claim("page", [*range(20), 40]).text
            '0-19, 40'
        """
        return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in self.ranges)

    def __str__(self) -> str:
        return f"buckets {self.text} of the layer {self.name}, by {self.layer.column}"

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as plain values."""
        return {"name": self.name, "layer": asdict(self.layer), "ranges": [[*each] for each in self.ranges]}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the claim that `to_dict` wrote."""
        ranges = tuple((int(first), int(last)) for first, last in document["ranges"])
        return cls(document["name"], build("layer", Layer, document["layer"]), ranges)


def read_layers(texts: Iterable[str]) -> dict[str, Layer]:
    """Return the layers that texts such as `page=bucket:100` declare, by name."""
    parts = [re.fullmatch(r"([^=]+)=(.+):(\d{1,9})", text) for text in texts]
    if not all(parts):
        raise SchemaError(
            expected="a layer as name=column:buckets", got=repr(texts)[:100], hint="write for instance page=bucket:100."
        )
    return {part[1]: Layer(part[2], int(part[3])) for part in parts if part}


def read_buckets(text: str) -> list[int]:
    """Return the buckets that a text such as `0-19,40` names."""
    parts = [re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part) for part in text.split(",")]
    named = [range(int(part[1]), int(part[2] or part[1]) + 1) if part else range(0) for part in parts]
    if not all(named):
        raise SchemaError(
            expected="buckets as numbers and ranges", got=repr(text)[:100], hint="write for instance 0-19,40."
        )
    return list(itertools.chain(*named))
