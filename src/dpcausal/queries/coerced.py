"""A unit's columns as numbers, for the descriptions of queries: as engines name and code them."""

from collections.abc import Sequence

from dpcausal.queries.cuts import Cut, bins
from dpcausal.queries.features import covariates_named
from dpcausal.queries.profiles import ticks_of
from dpcausal.queries.query import GRID
from dpcausal.schema.columns import Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.sums.numbers import ONE, Bin, Code, Number, Shift, Ticks, equals, indicator, level, sign

TREATMENT = Code("treatment", 2)
"""The arm of a unit in the comparison."""

OUTCOME = Ticks("outcome")


def every_arm(schema: Schema) -> Code:
    """Return the place of a unit's arm among all declared ones; one place more for an arm that is not declared."""
    return Code("arm", len(schema.treatment.arms) + 1)


def covariate(name: str, schema: Schema) -> Number:
    """Return a covariate: a number in ticks, or the place of its value among those listed."""
    place = [column.name for column in schema.covariates].index(name)
    column = schema.covariates[place]
    return Ticks(f"covariate_{place}") if isinstance(column, Real) else Code(f"covariate_{place}", len(column.values))


def in_ticks(name: str, column: Column) -> Number:
    """Return a coerced column of numbers or of two values as ticks from the middle of its range."""
    is_number = isinstance(column, Real) or name == "outcome"
    return Ticks(name) if is_number else GRID * sign(Code(name, 2))


def strata(by: Sequence[Cut], schema: Schema) -> dict[Number, int]:
    """Return the strata of some cuts as factors of cells."""
    return {_bin(cut, schema): count for cut, count in zip(by, bins(by, schema), strict=True)}


def _bin(cut: Cut, schema: Schema) -> Number:
    (column,) = covariates_named([cut.name], schema)
    value = covariate(cut.name, schema)
    return Bin(value, tuple(ticks_of(column, edge) for edge in cut.edges)) if isinstance(column, Real) else value


def features(covariates: Sequence[str], schema: Schema) -> list[Number]:
    """Return the features of a score, without the constant, in ticks of which GRID make 1."""
    lines: list[Number] = []
    for column in covariates_named(covariates, schema):
        value = covariate(column.name, schema)
        if isinstance(column, Real):
            lines.append(value)
        elif len(column.values) == 2:
            lines.append(GRID * sign(value))
        else:
            lines += [GRID * indicator(equals(value, place)) for place in range(len(column.values))]
    return lines


def design(covariates: Sequence[str], schema: Schema, fine: int) -> list[Number]:
    """Return the features of a linear regression, in ticks of which `fine` make 1."""
    lines: list[Number] = []
    for column in covariates_named(covariates, schema):
        value = covariate(column.name, schema)
        if isinstance(column, Real):
            lines.append(rounded(value, fine))
        else:
            lines += [fine * level(value, place) for place in range(1, len(column.values))]
    return lines


def rounded(line: Number, fine: int) -> Number:
    """Return ticks of which GRID make 1 as the nearest of which `fine` do."""
    coarse = GRID // fine
    return Shift(line + coarse // 2, coarse.bit_length() - 1)


def arm_sizes(schema: Schema, protects: Protects) -> dict[str, Number]:
    """Return the size of the treated arm, and of both where units may leave the comparison, where arms are private."""
    if protects != "record":
        return {}
    return {"size_1": indicator(equals(TREATMENT, 1))} | everyone_compared(schema)


def everyone_compared(schema: Schema) -> dict[str, Number]:
    """Return the number of units in the comparison, where it is private."""
    return {"compared": ONE} if schema.units_may_leave(schema.protects) else {}
