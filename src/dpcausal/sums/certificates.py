"""Certificates of bounds: where ranges are cut, and the bound that follows from it in exact integers.

`bound_from` needs no search: it goes through all kinds of neighbours, and in each through all corners of all pieces.
Between corners a number bends by no more than (high - low)² / 4 for a square, and not at all for anything else. The
search in `sensitivity` only proposes cuts, and a bad proposal makes a bound larger, never wrong. The proof:
docs/proofs/sums.md.
"""

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.sums.cases import Domain, Model, loosened, model_of
from dpcausal.sums.description import Sums
from dpcausal.sums.maximum import MOST_STATES, Array, ChoiceTable, TooManyStatesError, largest
from dpcausal.sums.pairs import Cuts, Kind, Known, Pairs, kinds
from dpcausal.sums.roots import root_above

Norm = Literal["l1", "l2"]
CutsOfKinds = Mapping[Kind, Cuts]

POWERS: Mapping[Norm, int] = {"l1": 1, "l2": 2}
"""The power of changes that a norm adds up."""

_BITS = 50
"""All tables together are below 2^51, in integers of 64 bits."""

_MOST_ENTRIES = 1_500_000
"""How many numbers tables may have together."""


@dataclass(frozen=True)
class Certificate:
    """A bound with what is needed to check it.

    Attributes:
        bound: No neighbour moves the sums further, in units of their weights.
        cuts: Where ranges of variables are cut, for each kind of change; none where nothing is.
    """

    norm: Norm
    bound: Fraction
    cuts: CutsOfKinds


def check(certificate: Certificate, description: Sums, domain: Domain) -> bool:
    """Return whether the bound of a certificate follows from its cuts, in exact integers."""
    cuts = (each for by_kind in certificate.cuts.values() for places in by_kind.values() for each in places)
    if not all(type(each) is int for each in cuts):
        return False
    return bound_from(model_of(description, domain), certificate.norm, certificate.cuts) <= certificate.bound


def bound_from(
    model: Model, norm: Norm, cuts: CutsOfKinds, most: int = MOST_STATES, *, known: Known | None = None
) -> Fraction:
    """Return the bound that follows from cuts.

    Args:
        cuts: Where ranges of variables are cut, for each kind of change.
        most: The most states that are looked at together; with fewer, a bound may be larger.
        known: Choices that were made before, and need not be made again.

    Raises:
        QueryError: If there are too many cases to go through.
    """
    known = {} if known is None else known
    try:
        moved = [_moved_exactly(model, norm, kind, cuts.get(kind, {}), most=most, known=known) for kind in kinds(model)]
    except TooManyStatesError:
        raise QueryError(
            expected="sums of few columns, or of many that play the same part",
            got="too many cases to go through",
            hint="ask for fewer products of different columns, or in several queries.",
        ) from None
    furthest = max(moved, default=Fraction(0))
    return furthest if norm == "l1" else root_above(furthest)


def _moved_exactly(  # noqa: PLR0913 (what a bound is of, and how it is found)
    model: Model, norm: Norm, kind: Kind, cuts: Cuts, *, most: int, known: Known
) -> Fraction:
    """Return how far pairs of a kind move all sums at most, to the power of the norm; every rounding is up.

    Where there are too many cases, the bound is for more pairs than there are, in two ways, of which the better counts.
    """
    found = []
    for each in (model, loosened(model)):
        with suppress(TooManyStatesError):
            pairs = Pairs(each, kind, cuts, known)
            tables, unit = _tables(pairs, norm)
            if each is model:
                with suppress(TooManyStatesError):
                    return int(largest(tables, pairs.sizes, most)) / unit
            found.append(int(largest(tables, pairs.sizes, most, raising=True)) / unit)
    if not found:
        raise TooManyStatesError
    return min(found)


def _tables(pairs: Pairs, norm: Norm) -> tuple[list[ChoiceTable], Fraction]:
    """Return how far pairs move each sum at most, to the power of the norm, in a unit, and what that is over 1."""
    power = POWERS[norm]
    found = list(pairs.changes(exact=True, most=_MOST_ENTRIES))
    # Many changes are the same but for their choices.
    alike = Counter((id(change.sizes), change.form.weight) for change in found)
    sizes = {id(change.sizes): change.sizes for change in found}
    tops = {each: int(values.max()) for each, values in sizes.items()}
    whole = sum(((tops[each] / weight) ** power * count for (each, weight), count in alike.items()), Fraction(0))
    unit = Fraction(2) ** (_BITS - math.ceil(whole).bit_length())
    rounded = {(each, weight): _rounded(sizes[each], power, unit / weight**power, tops[each]) for each, weight in alike}
    return [ChoiceTable(change.choices, rounded[id(change.sizes), change.form.weight]) for change in found], unit


def _rounded(sizes: Array, power: int, share: Fraction, top: int) -> Array:
    """Return a share of a power of whole numbers, rounded up."""
    wide = max(top, 1) ** power * share.numerator >= 2**62 or share.denominator >= 2**62
    exact = sizes.astype(object if wide else np.int64)
    return np.asarray(-(-(exact**power) * share.numerator // share.denominator), dtype=np.int64)
