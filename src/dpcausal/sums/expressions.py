"""Arithmetic as text, such as `centred(dose) * centred(score)`: read into a tree, within limits, whoever wrote it.

Texts are data. They name columns, sums and a few functions; nothing in them is ever run as a program.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dpcausal.errors import QueryError

LONGEST, MOST_TOKENS, DEEPEST = 4_000, 1_000, 32
"""How many characters and words a text may have, and how deep its parentheses may be."""

LARGEST_CONSTANT, SMALLEST_CONSTANT = Fraction(10) ** 80, Fraction(1, 10**80)
"""Between which sizes constants are, apart from 0."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)|(?P<name>[^\W\d]\w*)|`(?P<quoted>[^`]+)`|'(?P<text>[^']*)'"
    r"|(?P<sign>\*\*|==|<=|>=|[-+*/()\[\],<>]))"
)
COMPARISONS = ("==", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class NumberLiteral:
    """A number in the text."""

    value: Fraction


@dataclass(frozen=True)
class Name:
    """A column or a sum."""

    name: str


@dataclass(frozen=True)
class Text:
    """A text in quotation marks: a value of a column."""

    text: str


@dataclass(frozen=True)
class CellReference:
    """A number in some of its cells, by their labels: `total[drug, 2]`."""

    number: "Name | Call"
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A function of some expressions."""

    function: str
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Terms:
    """A sum of expressions, each added (1) or taken away (-1)."""

    terms: "tuple[tuple[int, Expression], ...]"


@dataclass(frozen=True)
class Factors:
    """A product of expressions, each a factor (1) or a divisor (-1)."""

    factors: "tuple[tuple[int, Expression], ...]"


@dataclass(frozen=True)
class Power:
    """A power of an expression."""

    base: "Expression"
    exponent: "Expression"


@dataclass(frozen=True)
class Comparison:
    """Two expressions that are compared by one of `COMPARISONS`."""

    sign: str
    left: "Expression"
    right: "Expression"


Expression = NumberLiteral | Name | Text | CellReference | Call | Terms | Factors | Power | Comparison


def parse(text: object) -> Expression:
    """Return the expression that a text is.

    Example:
        >>> parse("2 * x - 1")
        Terms(terms=((1, Factors(factors=((1, NumberLiteral(value=Fraction(2, 1))), (1, Name(name='x'))))), \
(-1, NumberLiteral(value=Fraction(1, 1)))))
    """
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
        raise QueryError(
            expected=f"an expression as a text of 1 to {LONGEST:,} characters",
            got=f"{len(text):,} characters" if isinstance(text, str) else type(text).__name__,
            hint="write for instance 'centred(dose) * centred(score)'.",
        )
    return _parsed(text)


@lru_cache(maxsize=1_000)
def _parsed(text: str) -> Expression:
    return _Reader(text).whole()


def parts(expression: Expression) -> "tuple[Expression, ...]":  # noqa: PLR0911 (one case for each kind)
    """Return the expressions that an expression is made of directly."""
    match expression:
        case Call():
            return expression.arguments
        case CellReference():
            return (expression.number,)
        case Terms():
            return tuple(each for _, each in expression.terms)
        case Factors():
            return tuple(each for _, each in expression.factors)
        case Power():
            return expression.base, expression.exponent
        case Comparison():
            return expression.left, expression.right
    return ()


def names(expression: Expression) -> tuple[str, ...]:
    """Return the names in an expression, in order of appearance."""
    return tuple(dict.fromkeys(each.name for each in _all(expression) if isinstance(each, Name)))


def _all(expression: Expression) -> Iterator[Expression]:
    yield expression
    for part in parts(expression):
        yield from _all(part)


class _Reader:
    """Reads an expression from left to right, and never goes back."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._deep, self._read = text, 0, 0, 0
        self._advance()

    def whole(self) -> Expression:
        found = self._comparison()
        if self._kind != "end":
            raise self._unexpected("an operator, or the end")
        return found

    def _advance(self) -> None:
        """Read the next word: its kind, and what it is."""
        if not self._text[self._at :].strip():
            self._kind, self._word = "end", ""
            return
        self._read += 1
        found = _TOKEN.match(self._text, self._at)
        if found is None or self._read > MOST_TOKENS:
            self._kind, self._word = "sign", self._text[self._at :].strip()[:1]
            raise self._unexpected("numbers, names and + - * / ** ( )" if found is None else "a shorter text")
        self._at = found.end()
        self._kind, self._word = next((kind, word) for kind, word in found.groupdict().items() if word is not None)

    def _unexpected(self, expected: str) -> QueryError:
        return QueryError(
            expected=f"{expected} at character {self._at} of an expression",
            got=f"{self._word[:40]!r} in {self._text[:80]!r}" if self._kind != "end" else f"the end of {self._text!r}",
            hint="an expression is like 'centred(dose) * centred(score)'; a name with other signs than letters, digits "
            "and _ stands in ` marks, a value in ' marks.",
        )

    def _takes(self, *signs: str) -> str:
        """Return the sign that comes next if it is one of these, and go beyond it; otherwise an empty text."""
        if self._kind != "sign" or self._word not in signs:
            return ""
        found = self._word
        self._advance()
        return found

    def _needs(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._unexpected(sign)

    def _comparison(self) -> Expression:
        left = self._terms()
        sign = self._takes(*COMPARISONS)
        return Comparison(sign, left, self._terms()) if sign else left

    def _terms(self) -> Expression:
        self._deep += 1
        if self._deep > DEEPEST:
            raise self._unexpected(f"parentheses at most {DEEPEST} deep")
        terms = [(-1 if self._takes("-") else 1, self._factors())]
        while sign := self._takes("+", "-"):
            terms.append((1 if sign == "+" else -1, self._factors()))
        self._deep -= 1
        return terms[0][1] if len(terms) == 1 and terms[0][0] == 1 else Terms(tuple(terms))

    def _factors(self) -> Expression:
        factors = [(1, self._power())]
        while sign := self._takes("*", "/"):
            factors.append((1 if sign == "*" else -1, self._power()))
        return factors[0][1] if len(factors) == 1 else Factors(tuple(factors))

    def _power(self) -> Expression:
        base = self._atom()
        return Power(base, self._atom()) if self._takes("**") else base

    def _atom(self) -> Expression:
        kind, word = self._kind, self._word
        if self._takes("("):
            inside = self._comparison()
            self._needs(")")
            return inside
        if kind not in ("number", "name", "quoted", "text"):
            raise self._unexpected("a number, a name or (")
        self._advance()
        if kind == "number":
            return _constant(word)
        if kind == "text":
            return Text(word)
        found = Call(word, self._arguments()) if kind == "name" and self._takes("(") else Name(word)
        return CellReference(found, self._labels()) if self._takes("[") else found

    def _arguments(self) -> tuple[Expression, ...]:
        found = [self._comparison()]
        while self._takes(","):
            found.append(self._comparison())
        self._needs(")")
        return tuple(found)

    def _labels(self) -> tuple[str, ...]:
        labels = []
        while True:
            if self._kind not in ("number", "name", "quoted", "text"):
                raise self._unexpected("the label of a cell")
            labels.append(self._word)
            self._advance()
            if not self._takes(","):
                self._needs("]")
                return tuple(labels)


def is_constant(value: Fraction) -> bool:
    """Return whether a number may stand in a text."""
    return not value or SMALLEST_CONSTANT <= abs(value) <= LARGEST_CONSTANT


def _constant(word: str) -> NumberLiteral:
    value = Fraction(word)
    if not is_constant(value):
        raise QueryError(expected="constants from 1e-80 to 1e80, and 0", got=word[:40], hint="measure in another unit.")
    return NumberLiteral(value)


def check_arguments(function: str, given: Sequence[object], wanted: str, count: int) -> None:
    """Raise unless a function has so many arguments, which are named in words."""
    if len(given) != count:
        raise QueryError(
            expected=f"{function}({wanted})", got=f"{len(given)} arguments", hint="give each of them once."
        )
