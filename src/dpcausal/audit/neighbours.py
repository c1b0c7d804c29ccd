"""Pairs of neighbouring tables on which careless estimators leak."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpcausal.schema.schema import Protects

Record = Mapping[str, Any]
"""One record of `dpcausal.testing.standard_schema`: treat, score, ward, age, smoker."""


@dataclass(frozen=True)
class Pair:
    """Two tables that differ in one unit.

    Attributes:
        name: What makes the pair hard.
        rest: The units that both have.
        before: The unit that only the one has.
        after: The unit that the other has in its place.
    """

    name: str
    rest: tuple[Record, ...]
    before: Record
    after: Record

    @property
    def tables(self) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        """Both tables."""
        return (*self.rest, self.before), (*self.rest, self.after)


def worst_pairs(protects: Protects) -> list[Pair]:
    """Return pairs of tables of `dpcausal.testing.standard_schema(protects)`.

    Where arms or covariates are public the changing unit keeps them, and a pair that then does not change is left out.
    """
    kept = {"record": (), "record_within_arm": ("treat",), "outcome": ("treat", "ward", "age", "smoker")}
    public = kept[protects]
    pairs = [replace(pair, after=dict(pair.after) | {name: pair.before[name] for name in public}) for pair in _pairs()]
    return [pair for pair in pairs if repr(pair.after) != repr(pair.before)]


def record(treat: float | None, score: float | None, **others: Any) -> Record:  # noqa: ANN401 (cells are of any type)
    """Return a unit in ward a, 54 years old, not smoking, unless stated otherwise."""
    return {"treat": treat, "score": score, "ward": "a", "age": 54.0, "smoker": "no"} | others


def _pairs() -> Iterator[Pair]:
    mixed = tuple(
        record(arm, 10.0 * high, ward=ward, age=age)
        for arm, high in ((0, 0), (0, 1), (1, 0), (1, 1))
        for ward, age in (("a", 18.0), ("b", 90.0))
    )
    control = tuple(record(0, 10.0 * (place % 2)) for place in range(9))
    treated = tuple(record(1, 10.0 * (place % 2)) for place in range(9))
    low, high = record(1, 0.0), record(1, 10.0)
    yield Pair("extreme outcome", mixed, low, high)
    yield Pair("from arm to arm", mixed, record(0, 10.0), high)
    yield Pair("from arm to arm and end to end", mixed, record(0, 0.0), high)
    yield Pair("end to end, and a covariate to its middle", mixed, record(1, 0.0, age=18.0), record(1, 10.0, age=54.0))
    yield Pair(
        "end to end, and one covariate of two", mixed, record(1, 0.0, age=18.0), record(1, 10.0, age=18.0, smoker="yes")
    )
    yield Pair("the only treated unit", control, high, record(0, 10.0))
    yield Pair("the only treated unit's outcome", control, low, high)
    yield Pair("one arm only", treated, low, high)
    yield Pair("the first control unit", treated, high, record(0, 0.0))
    yield Pair("the only control unit of many", treated, record(0, 0.0), record(0, 10.0))
    yield Pair("opens a stratum", mixed, high, record(1, 0.0, ward="c"))
    crowd = tuple(record(arm, 10.0 * arm) for arm in (0, 1) for _ in range(60))
    yield Pair("opens a stratum beside a crowd", crowd, high, record(1, 0.0, ward="b"))
    alone = tuple(record(0, 0.0, ward=ward) for ward in "abc" for _ in range(3))
    yield Pair("the only treated unit of one stratum, then of another", alone, high, record(1, 0.0, ward="b"))
    yield Pair("outlier", mixed, record(1, -1e308, age=-1e308), record(1, 1e308, age=1e308))
    yield Pair(
        "value to nothing", mixed, record(1, 10.0, smoker="yes"), record(None, None, ward=None, age=None, smoker=None)
    )
    yield Pair("leaves the comparison", mixed, high, record(2, 10.0))
    yield Pair("leaves the comparison, from the other end", mixed, record(0, 0.0, age=18.0), record(2, 10.0, age=90.0))
    yield Pair("the only treated unit leaves the comparison", control, high, record(2, 0.0))
    yield Pair("loses its outcome", mixed, high, record(1, None))
    yield Pair("the only treated unit loses its outcome", control, low, record(1, None))
    nan = float("nan")
    yield Pair(
        "not a number to value", mixed, record(nan, nan, ward="☃", age=nan, smoker="\x00"), record(1, 0.0, ward="c")
    )
    yield Pair(
        "not a number to value, in the comparison", mixed, record(1, nan, ward="☃", age=nan), record(1, 0.0, ward="c")
    )
    yield Pair("ties", (high,) * 5 + (record(0, 10.0),) * 5, low, high)
    apart = tuple(
        record(arm, 10.0 * arm, age=18.0 + 72 * arm, smoker=("no", "yes")[arm]) for arm in (0, 1) for _ in "12345"
    )
    alike = tuple(record(arm, 10.0 * arm, age=53.0 + 2 * arm) for arm in (0, 1) for _ in range(20))
    yield Pair("outlier in length", alike, record(1, 10.0, age=55.0), record(1, 10.0, age=90.0))
    yield Pair("canary in the score", apart, record(1, 0.0, age=18.0), record(0, 10.0, age=90.0, smoker="yes"))
    yield Pair("canary in the outcome", apart, record(1, 0.0, age=18.0), record(1, 10.0, age=18.0))
    line = tuple(record(place % 2, float(place)) for place in range(1, 8))
    yield Pair("outcomes in a line", line, record(0, 0.0), record(1, 10.0))
    many = (record(1, 0.0, age=30.0 + place) for place in range(8))
    few = *many, record(0, 0.0, age=30.0), record(0, 0.0, age=33.0)
    yield Pair("matching capacity exhausted", few, record(0, 0.0, age=34.0), record(0, 10.0, age=34.0))
