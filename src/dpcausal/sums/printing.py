"""Numbers as SQL expressions that every engine computes alike.

Coerced columns have 32 bits. Engines compute whole numbers in the wider type of the two that they are made of, so a
number is cast to 64 bits wherever its range, or a step on the way to it, needs more than 31. Nothing negative is
shifted, since engines round these differently.
"""

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from dpcausal.errors import QueryError
from dpcausal.sums.numbers import (
    GRID,
    Between,
    Bin,
    Clip,
    Code,
    Constant,
    Lookup,
    Number,
    Product,
    Shift,
    Sum,
    Ticks,
    Where,
    nodes,
)

MOST_RUNS = 4_096
"""How many different neighbours a table may have in an SQL text."""

_NARROW = 2**31 - 1
_FEWEST_SHIFTED = 8
_EXACT = 2**53


class _Text(NamedTuple):
    """An expression that can stand anywhere, and whether it is computed in 64 bits."""

    text: str
    wide: bool


@lru_cache(maxsize=4_096)
def sql(number: Number) -> str:
    """Return a number as an SQL expression of whole numbers.

    Raises:
        QueryError: If it has a table that is too long for a text; see `is_printable`.
    """
    return _whole(number).text


@lru_cache(maxsize=4_096)
def floating_sql(number: Number) -> str | None:
    """Return a number as SQL for coerced numbers that are DOUBLE, where all steps and sums of it are exact there.

    None for others. Sums of numbers from -GRID to GRID are exact in floating point for 2^33 units.
    """
    if number.size > GRID or not _has_ticks(number) or _reads_treatment(number):
        return None
    if isinstance(number, Ticks):
        return number.column
    for each in nodes(number):
        if each.size + _lift(each) > _EXACT or (isinstance(each, Bin | Lookup) and _has_ticks(each)):
            return None
    return _floating(number)


def is_printable(*numbers: Number) -> bool:
    """Return whether numbers can be written as SQL: a long table of a public function is computed by a kernel."""
    tables = (each for number in numbers for each in nodes(number) if isinstance(each, Lookup))
    return all(len(each.runs) <= MOST_RUNS for each in tables)


def _lift(number: Number) -> int:
    """Return how much larger than its range a step on the way to a number can be."""
    return sum(each.size for each in number.terms) - number.size if isinstance(number, Sum) else 0


def _whole(number: Number) -> _Text:  # noqa: PLR0911 (one case for each kind)
    match number:
        case Ticks() | Code():
            return _Text(number.column, wide=False)
        case Constant():
            return _Text(str(number.value), _is_wide(number.value))
        case Sum():
            wide = sum(each.size for each in number.terms) > _NARROW
            return _summed([_term(each) for each in number.terms], wide=wide)
        case Product():
            left, right = _whole(number.left), _whole(number.right)
            wide = left.wide or right.wide or max(number.size, number.left.size, number.right.size) > _NARROW
            first = _cast(left) if wide and not (left.wide or right.wide) else left.text
            return _Text(f"({first} * {right.text})", wide)
        case Shift():
            moved = _moved_up(number)
            text = f"({moved.text} >> {number.bits})"
            return _Text(f"({text} - {number.lifted})" if number.lifted else text, moved.wide)
        case Clip():
            return _clipped(number)
        case Where():
            then = _whole(number.number)
            return _Text(f"(CASE WHEN {_condition(number.condition)} THEN {then.text} ELSE 0 END)", then.wide)
        case Bin():
            shifted = _shifted(number)
            return _Text(_cases(_whole(number.number).text, number), wide=False) if shifted is None else _whole(shifted)
        case Lookup():
            return _looked_up(number)
    raise AssertionError(f"no text for {type(number).__name__}")


def _is_wide(constant: int) -> bool:
    """Return whether all engines take a constant for one of 64 bits. At 2^31 itself they differ."""
    return abs(constant) > _NARROW + 1


def _summed(terms: list[tuple[str, _Text]], *, wide: bool) -> _Text:
    """Return a sum of terms with their signs, those taken away last. Once its first term is wide, so is all of it."""
    (operator, first), *rest = sorted(terms, key=_is_taken_away)
    text = ("-" if operator == "-" else "") + (_cast(first) if wide and not first.wide else first.text)
    text += "".join(f" {operator} {term.text}" for operator, term in rest)
    return _Text(f"({text})", wide or any(term.wide for _, term in terms))


def _is_taken_away(term: tuple[str, object]) -> bool:
    return term[0] == "-"


def _signed(number: Number) -> tuple[str, Number]:
    """Return whether a term is added or taken away, and of which number that is so."""
    match number:
        case Constant() if number.value < 0:
            return "-", Constant(-number.value)
        case Product(left=Constant(value=-1)):
            return "-", number.right
    return "+", number


def _term(number: Number) -> tuple[str, _Text]:
    operator, of = _signed(number)
    return operator, _whole(of)


def _cast(given: _Text) -> str:
    return f"CAST({given.text} AS BIGINT)"


def _moved_up(number: Shift) -> _Text:
    """Return what is shifted, without anything negative."""
    given = number.number
    if not number.lifted:
        return _whole(given)
    up = number.lifted << number.bits
    terms = given.terms if isinstance(given, Sum) else (given,)
    *others, last = terms
    if isinstance(last, Constant) and others:
        up, terms = up + last.value, tuple(others)
    wide = sum(each.size for each in terms) + abs(up) > _NARROW
    moved = (*terms, Constant(up)) if up else terms
    return _summed([_term(each) for each in moved], wide=wide)


def _clipped(number: Clip) -> _Text:
    given, text = number.number, _whole(number.number)
    least, most = number.least, number.most
    if least <= given.low and given.high <= most:
        return text
    if least > given.high or most < given.low:  # always one end
        return _whole(Constant(number.low))
    made = text.text
    if least > given.low:
        made = f"GREATEST({made}, {least})"
    if most < given.high:
        made = f"LEAST({made}, {most})"
    return _Text(made, text.wide)


def _condition(condition: Between) -> str:
    """Return a condition; its ends are no farther out than what they are compared with needs."""
    least, most = _ends(condition)
    text = _whole(condition.number).text
    return f"{text} = {least}" if least == most else f"{text} BETWEEN {least} AND {most}"


def _ends(condition: Between) -> tuple[int, int]:
    """Return the ends of a condition, no farther out than its number can be; 1 and 0 where it never holds."""
    given = condition.number
    if condition.most < given.low or condition.least > given.high:
        return 1, 0
    return max(condition.least, given.low), min(condition.most, given.high)


def _looked_up(number: Lookup) -> _Text:
    runs = _runs(number)
    place = _whole(number.number).text
    *others, (_, _, rest) = runs
    cases = " ".join(f"WHEN {place} <= {last} THEN {value}" for _, last, value in others)
    wide = any(_is_wide(value) for _, _, value in runs)
    return _Text(f"(CASE {cases} ELSE {rest} END)" if others else str(rest), wide)


def _cases(place: str, number: Bin) -> str:
    """Return the bin as the last edge that is reached; edges that always or never are reached need no case."""
    given = number.number
    reached = [(count, edge) for count, edge in enumerate(number.edges, start=1) if given.low < edge <= given.high]
    cases = " ".join(f"WHEN {place} >= {edge} THEN {count}" for count, edge in reversed(reached))
    return f"(CASE {cases} ELSE {number.low} END)" if cases else str(number.low)


def _shifted(number: Bin) -> Number | None:
    """Return a bin as a shift, where bins have one width, a power of two: engines try one case after the other."""
    edges, size = number.edges, number.number.size
    if len(edges) < _FEWEST_SHIFTED or max(size, abs(edges[0]), abs(edges[-1])) > 2 * GRID:
        return None
    width, *others = {high - low for low, high in pairwise(edges)}
    if others or width < 2 or width.bit_count() != 1:
        return None
    return Clip(Shift(number.number + (width - edges[0]), width.bit_length() - 1), 0, len(edges))


def _runs(number: Lookup) -> list[tuple[int, int, int]]:
    runs = [each for each in number.runs if each[0] <= number.number.high and each[1] >= number.number.low]
    if len(number.runs) > MOST_RUNS:
        raise QueryError(
            expected=f"a table of at most {MOST_RUNS:,} different neighbours in SQL",
            got=f"{len(number.runs):,}",
            hint="compute it by a kernel over batches: evaluation.totals.",
        )
    return runs


def _floating(number: Number) -> str:  # noqa: PLR0911 (one case for each kind)
    """Return a number in floating point, of coerced numbers that are DOUBLE or not; codes are whole in any case."""
    match number:
        case Constant():
            return _double(number.value)
        case _ if not _has_ticks(number):
            return f"CAST({_whole(number).text} AS DOUBLE)"
        case Ticks():
            return f"CAST({number.column} AS DOUBLE)"
        case Sum():
            return _floating_sum(number)
        case Product():
            return f"({_floating(number.left)} * {_floating(number.right)})"
        case Shift():
            return f"FLOOR({_floating(number.number)} * {_double(2.0**-number.bits)})"
        case Clip():
            least, most = _double(number.least), _double(number.most)
            return f"LEAST(GREATEST({_floating(number.number)}, {least}), {most})"
        case Where():
            then, zero = _floating(number.number), _double(0)
            return f"(CASE WHEN {_floating_condition(number.condition)} THEN {then} ELSE {zero} END)"
    raise AssertionError(f"no text for {type(number).__name__}")


def _reads_treatment(number: Number) -> bool:
    """Return whether a number depends on the arm: its code is larger for units that are left out of the sum."""
    return any(isinstance(each, Code) and each.column == "treatment" for each in nodes(number))


def _has_ticks(number: Number) -> bool:
    return any(isinstance(each, Ticks) for each in nodes(number))


def _floating_sum(number: Sum) -> str:
    (first, of), *rest = sorted(map(_signed, number.terms), key=_is_taken_away)
    text = ("-" if first == "-" else "") + _floating(of)
    return f"({text}{''.join(f' {operator} {_floating(each)}' for operator, each in rest)})"


def _floating_condition(condition: Between) -> str:
    given = condition.number
    if not _has_ticks(given):
        return _condition(condition)
    least, most = _ends(condition)
    return f"{_floating(given)} BETWEEN {_double(least)} AND {_double(most)}"


def _double(value: float) -> str:
    """Return a constant that every engine reads as DOUBLE. Constants are whole and below 2^53, or powers of two."""
    return f"CAST('{float(value)!r}' AS DOUBLE)"
