"""Pairs of neighbouring tables on which careless estimators give themselves away."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpcausal.schema import Protects

Unit = Mapping[str, Any]
"""One record of `dpcausal.testing.standard_schema`: treat, score, ward, age, smoker."""


@dataclass(frozen=True)
class Pair:
    """Two tables that differ in one unit.

    Attributes:
        name: What makes the pair hard.
        rest: The units that both have.
        before: The unit that the one has besides.
        after: The unit that the other has instead.
    """

    name: str
    rest: tuple[Unit, ...]
    before: Unit
    after: Unit

    @property
    def tables(self) -> tuple[tuple[Unit, ...], tuple[Unit, ...]]:
        """Both tables."""
        return (*self.rest, self.before), (*self.rest, self.after)


def worst_pairs(protects: Protects) -> list[Pair]:
    """Pairs of tables of `dpcausal.testing.standard_schema(protects)`.

    Where arms or covariates are public the changing unit keeps them, and a pair that then does not change is left out.
    """
    kept = {"record": (), "record_within_arm": ("treat",), "outcome": ("treat", "ward", "age", "smoker")}
    public = kept[protects]
    pairs = [replace(pair, after=dict(pair.after) | {name: pair.before[name] for name in public}) for pair in _pairs()]
    return [pair for pair in pairs if repr(pair.after) != repr(pair.before)]


def unit(treat: float | None, score: float | None, **others: Any) -> Unit:  # noqa: ANN401 (cells are of any type)
    """A unit in ward a, 54 years old, not smoking, unless said otherwise."""
    return {"treat": treat, "score": score, "ward": "a", "age": 54.0, "smoker": "no"} | others


def _pairs() -> Iterator[Pair]:
    mixed = tuple(
        unit(arm, 10.0 * high, ward=ward, age=age)
        for arm, high in ((0, 0), (0, 1), (1, 0), (1, 1))
        for ward, age in (("a", 18.0), ("b", 90.0))
    )
    control = tuple(unit(0, 10.0 * (place % 2)) for place in range(9))
    treated = tuple(unit(1, 10.0 * (place % 2)) for place in range(9))
    low, high = unit(1, 0.0), unit(1, 10.0)
    yield Pair("extreme outcome", mixed, low, high)
    yield Pair("from arm to arm", mixed, unit(0, 10.0), high)
    yield Pair("from arm to arm and end to end", mixed, unit(0, 0.0), high)
    yield Pair("end to end, and a covariate to its middle", mixed, unit(1, 0.0, age=18.0), unit(1, 10.0, age=54.0))
    yield Pair(
        "end to end, and one covariate of two", mixed, unit(1, 0.0, age=18.0), unit(1, 10.0, age=18.0, smoker="yes")
    )
    yield Pair("the only treated unit", control, high, unit(0, 10.0))
    yield Pair("the only treated unit's outcome", control, low, high)
    yield Pair("one arm only", treated, low, high)
    yield Pair("the first control unit", treated, high, unit(0, 0.0))
    yield Pair("the only control unit of many", treated, unit(0, 0.0), unit(0, 10.0))
    yield Pair("opens a stratum", mixed, high, unit(1, 0.0, ward="c"))
    crowd = tuple(unit(arm, 10.0 * arm) for arm in (0, 1) for _ in range(60))
    yield Pair("opens a stratum beside a crowd", crowd, high, unit(1, 0.0, ward="b"))
    alone = tuple(unit(0, 0.0, ward=ward) for ward in "abc" for _ in range(3))
    yield Pair("the only treated unit of one stratum, then of another", alone, high, unit(1, 0.0, ward="b"))
    yield Pair("outlier", mixed, unit(1, -1e308, age=-1e308), unit(1, 1e308, age=1e308))
    yield Pair(
        "value to nothing", mixed, unit(1, 10.0, smoker="yes"), unit(None, None, ward=None, age=None, smoker=None)
    )
    yield Pair("leaves the comparison", mixed, high, unit(2, 10.0))
    yield Pair("leaves the comparison, from the other end", mixed, unit(0, 0.0, age=18.0), unit(2, 10.0, age=90.0))
    yield Pair("the only treated unit leaves the comparison", control, high, unit(2, 0.0))
    nan = float("nan")
    yield Pair("not a number to value", mixed, unit(nan, nan, ward="☃", age=nan, smoker="\x00"), unit(1, 0.0, ward="c"))
    yield Pair(
        "not a number to value, in the comparison", mixed, unit(1, nan, ward="☃", age=nan), unit(1, 0.0, ward="c")
    )
    yield Pair("ties", (high,) * 5 + (unit(0, 10.0),) * 5, low, high)
    apart = tuple(
        unit(arm, 10.0 * arm, age=18.0 + 72 * arm, smoker=("no", "yes")[arm]) for arm in (0, 1) for _ in "12345"
    )
    alike = tuple(unit(arm, 10.0 * arm, age=53.0 + 2 * arm) for arm in (0, 1) for _ in range(20))
    yield Pair("outlier in length", alike, unit(1, 10.0, age=55.0), unit(1, 10.0, age=90.0))
    yield Pair("canary in the score", apart, unit(1, 0.0, age=18.0), unit(0, 10.0, age=90.0, smoker="yes"))
    yield Pair("canary in the outcome", apart, unit(1, 0.0, age=18.0), unit(1, 10.0, age=18.0))
    line = tuple(unit(place % 2, float(place)) for place in range(1, 8))
    yield Pair("outcomes in a line", line, unit(0, 0.0), unit(1, 10.0))
    many = (unit(1, 0.0, age=30.0 + place) for place in range(8))
    few = *many, unit(0, 0.0, age=30.0), unit(0, 0.0, age=33.0)
    yield Pair("matching capacity exhausted", few, unit(0, 0.0, age=34.0), unit(0, 10.0, age=34.0))
