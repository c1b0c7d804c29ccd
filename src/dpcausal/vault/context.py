"""What an answer is made from, what it is, and which function makes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

from dpcausal.guarantee import Guarantee
from dpcausal.queries import Query, seen_by
from dpcausal.queries.calibration import Noise
from dpcausal.release import PublicValue
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Array
from dpcausal.vault.engines import Engine, with_schema

Q_co = TypeVar("Q_co", bound=Query, covariant=True)


class Draws(Protocol):
    """The draws that an answer may ask of the door's sampler; a query declares which it needs (`Query.draws`)."""

    def laplace(self, ticks: Sequence[int], scale: float) -> list[int]:
        """Return every integer with discrete Laplace noise of one scale."""
        ...

    def randomised_response(self, answers: Sequence[int], epsilon: Fraction) -> list[int]:
        """Return each yes (1) or no (0), turned round with probability 1 / (1 + e^epsilon)."""
        ...

    def cube(self, dimensions: int, scale: float) -> Array:
        """Return a vector with density in proportion to exp(-(largest entry) / scale)."""
        ...

    def ball(self, dimensions: int, scale: float) -> Array:
        """Return entries of a vector of even dimension with density in proportion to exp(-length / scale)."""
        ...


@dataclass(frozen=True)
class AnswerContext(Generic[Q_co]):
    """All that an answer may use.

    Attributes:
        query: What is asked.
        schema: What is public about the table.
        engine: The table.
        guarantee: What is promised about the release.
        sampler: The only source of randomness.
    """

    query: Q_co
    schema: Schema
    engine: Engine
    guarantee: Guarantee
    sampler: Draws


@dataclass(frozen=True)
class Answer:
    """The answer to a query before noise. It never leaves the vault.

    Attributes:
        ticks: The exact integers, by the names of the query's coordinates.
        public_values: Numbers that leave without noise; the query declares them, and its proof says why.
        scales: The size of the noise in coordinates whose sensitivity is the table's own; as private as the ticks.
    """

    ticks: Mapping[str, int]
    public_values: Sequence[PublicValue] = ()
    scales: Mapping[str, float] = field(default_factory=dict)

    def in_order(self, noise: Noise) -> tuple[int, ...]:
        """Return the integers in the order of the coordinates that the noise is for."""
        return tuple(self.ticks[at.name] for at in noise.sensitivity.coordinates)

    def sized(self, noise: Noise) -> Noise:
        """Return the noise with all of its scales, those of the table too."""
        names = (at.name for at in noise.sensitivity.coordinates)
        pairs = zip(names, noise.scales, strict=True)
        return replace(noise, scales=tuple(self.scales[name] if scale is None else scale for name, scale in pairs))


def seen_through(query: Query, schema: Schema, engine: Engine) -> tuple[Schema, Engine]:
    """Return a schema as a query sees it, and the table through it."""
    seen = seen_by(query, schema)
    return seen, engine if seen is schema else with_schema(engine, seen)


AnswerFunction = Callable[[AnswerContext[Any]], Answer]

ANSWERS: dict[type[Query], AnswerFunction] = {}
"""The function that answers each query; `vault.answers` fills it."""


Kernel = bool | Callable[[Any, Schema, Engine], bool]
"""Whether an answer runs a kernel over rows: always, never, or as the query, the schema and the engine decide."""

KERNELS: dict[type[Query], Kernel] = {}
"""Which answers run a kernel over rows."""


def answers(*queries: type[Query], kernel: Kernel = False) -> Callable[[AnswerFunction], AnswerFunction]:
    """Register the function that answers these queries."""

    def register(function: AnswerFunction) -> AnswerFunction:
        for query in queries:
            if query in ANSWERS:
                raise TypeError(f"{query.__name__} has two answers")
            ANSWERS[query], KERNELS[query] = function, kernel
        return function

    return register


def runs_kernel(query: Query, schema: Schema, engine: Engine) -> bool:
    """Return whether the answer to a query runs a kernel over an engine's rows. Only public things decide."""
    kernel = KERNELS[type(query)]
    return kernel if isinstance(kernel, bool) else kernel(query, schema, engine)
