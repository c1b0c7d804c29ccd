"""A number between public bounds: the column of a table that holds it, and how its cells are read."""

import math
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date
from typing import Any

from dpcausal.errors import SchemaError
from dpcausal.schema.cells import ISO, check_number_format, checked_day, checked_formats, folded, spaced
from dpcausal.schema.scale import REACH, TRANSFORMS, TYPICAL, Scale, Transform
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.text import short_repr
from dpcausal.utils.validation import is_number

_DAY = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?\.\d\d?\.\d{4}|\d\d?/\d\d?/\d{4}")
_LOG_KNOTS = 16
_SHAPES = {"linear": "value", "log": "logarithm"}


def check_name(name: object) -> None:
    """Raise unless a name can be a column's."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise SchemaError(
            problem=f"A column name must be a text, not {name!r}",
            hint="give the name of a column as a non-empty string without NUL characters.",
        )
    check_plain_text("column name", [name])


def titled(name: str, label: str | None, unit: str | None = None) -> str:
    """Return what sentences and axes call a column: its label, or its name, and its unit in brackets."""
    for what, text in (("label", label), ("unit", unit)):
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise SchemaError(
                problem=f"{what} of the column {name!r} must be words for sentences and axes, not {text!r}",
                hint=f'write for instance label="earnings in 1978", unit="dollars", or leave {what} out.',
            )
        check_plain_text(f"{what} of column {name!r}", [] if text is None else [text])
    return f"{label or name} ({unit})" if unit else label or name


@dataclass(frozen=True)
class Real(metaclass=Constructor):
    """A number between two public bounds.

    Values outside are moved to the nearer bound, silently. A value that is absent, not a number, or text that does not
    read as declared is missing: a unit without an outcome is outside the comparison, and a missing covariate counts as
    the midpoint of the bounds, unless `missing` is declared.

    Attributes:
        name: The column in the table.
        low: A public lower bound: from a codebook or the literature, never from the table.
        high: A public upper bound.
        missing: What an absent value counts as. Of an outcome, every unit without one gets this value, which is rarely
            true: left out, such units are outside the comparison.
        decimal: The decimal sign of numbers in text, "." or ",". With neither this nor `thousands`, a comma stands
            between thousands where groups of three digits follow it, as in `1,234` and `1,234.5`, and is the decimal
            sign in any other number, as in `1,5` and `1.234,5`.
        thousands: The sign between thousands in text; with `decimal=","` alone it is ".", and "" reads none. A number
            without the sign is read too, and one whose groups are not of three digits counts as missing.
        strip: Texts that may stand before or after the number, such as units: `["mg", "€"]`. Capitals are ignored.
        percent: Whether each cell ends in %: `45 %` is 0.45, and a cell without the sign counts as missing. To read
            it as 45, with the sign or without, strip "%" instead.
        since: For dates: the day 0. A date becomes the number of days since then, and `low` and `high` are days.
        date_format: How dates are written in text, of %Y, %m and %d; one format, or several of which only one fits.
        missing_codes: Numbers that stand for a missing value, such as `[-9, 999]`, in columns of numbers and of text.
            A code that is not declared is a value like any other, and moved to the nearer bound.
        indicator: For a covariate: whether to declare a yes-or-no covariate too, "<name> is missing".
        typical: For a covariate: the two values between which about 90 % of units are, from the literature. Models
            use it to measure the covariate in its own standard deviations; nothing else depends on it.
        transform: For a covariate: how it enters models, "linear" by its value or "log" by its logarithm. Left out, the
            shape is halfway between the two, or found with the scale.
        scale: The map from values to scores by which models see the covariate. Only a view of a source has it, from
            `scaled`: declare `typical` instead.

    Example:
        >>> Real("age", 16, 60).missing_value
        38.0
        >>> Real("dose", 0, 500, decimal=",", thousands=".", strip=["mg"]).rules
        'numbers as in 1.234,5, without mg'
        >>> Real("admitted", 0, 3650, since="2015-01-01", date_format="%d.%m.%Y").rules
        'dates as days since 2015-01-01, written %d.%m.%Y'
        >>> Real("re78", 0, 60_000, label="earnings in 1978", unit="dollars").title
        'earnings in 1978 (dollars)'
    """

    _example = 'Real("age", low=18, high=100)'

    name: str
    low: float = math.nan  # left out; there is no default
    high: float = math.nan
    missing: float | None = None
    _: KW_ONLY
    decimal: str = "."
    thousands: str | None = None
    strip: Sequence[str] = ()
    percent: bool = False
    since: str | date | None = None
    date_format: str | Sequence[str] = ISO
    missing_codes: Sequence[float] = ()
    indicator: bool = False
    typical: tuple[float, float] | None = None
    transform: Transform | None = None
    scale: Scale | None = None
    label: str | None = None
    unit: str | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_name(self.name)
        _ = self.title  # raises where a text cannot be printed
        _check_bounds(self.name, self.low, self.high)
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if self.missing is not None and not (is_number(self.missing) and self.low <= self.missing <= self.high):
            raise SchemaError(
                problem=f"missing of the column {self.name!r} must be from {self.low:g} to {self.high:g}, not "
                f"{self.missing!r}",
                hint="it is what an absent value counts as. For numbers that stand for one, write missing_codes=[-9].",
            )
        strip = (self.strip,) if isinstance(self.strip, str) else tuple(self.strip)
        object.__setattr__(self, "strip", strip)
        if isinstance(self.thousands, str):
            object.__setattr__(self, "thousands", spaced(self.thousands).decode("utf-8", "surrogatepass"))
        check_number_format(self.name, self.decimal, self.thousands, strip)
        object.__setattr__(self, "missing_codes", _checked_codes(self.name, self.missing_codes))
        formats = checked_formats(self.name, self.date_format)
        object.__setattr__(self, "date_format", formats[0] if len(formats) == 1 else formats)
        if self.since is not None:
            object.__setattr__(self, "since", checked_day(self.name, self.since))
        if (self.since is None and formats != (ISO,)) or (self.since and (self._numeric_rules or self.missing_codes)):
            raise SchemaError(
                problem=f"The column {self.name!r} is read either as numbers or as dates since a day, not as both: "
                f"since={self.since!r}, date_format={self.date_format!r}, {self._numeric_rules!r}",
                hint='for dates give since="2020-01-31", and nothing about numbers: signs, strip, percent or codes.',
            )
        self._check_models()

    def _check_models(self) -> None:
        """Raise unless what is declared for models is possible within the bounds."""
        if self.transform not in (None, *TRANSFORMS) or (self.transform == "log" and self.low <= 0):
            raise SchemaError(
                problem=f"transform of the column {self.name!r} must be one of {', '.join(TRANSFORMS)}, and "
                "log needs low "
                f"> 0; there is transform={self.transform!r} with low={self.low:g}",
                hint="only numbers above 0 have a logarithm: raise low to the least value that is measured.",
            )
        if self.typical is not None:
            pair = tuple(self.typical) if isinstance(self.typical, Sequence) else ()
            within = len(pair) == 2 and all(map(is_number, pair)) and self.low <= pair[0] < pair[1] <= self.high
            if not within or isinstance(self.typical, str):
                raise SchemaError(
                    problem=f"typical of the column {self.name!r} must be two rising values within {self.low:g} and "
                    f"{self.high:g}, not {self.typical!r}",
                    hint="give the values between which about 90 % of units are, from the literature, never from the "
                    "table.",
                )
            object.__setattr__(self, "typical", (float(pair[0]), float(pair[1])))
            _ = self.typical_scale  # raises where the two are too close to each other
        if self.scale is not None:
            if not isinstance(self.scale, Scale):
                object.__setattr__(self, "scale", Scale(self.scale))
            first, last = self.scale.reach
            if not self.low <= first < last <= self.high:
                raise SchemaError(
                    expected=f"a scale of column {self.name!r} with values within {self.low:g} and {self.high:g}",
                    got=f"knots from {first:g} to {last:g}",
                    hint="give the score of a bound, rather than that of a value beyond it.",
                )

    @property
    def title(self) -> str:
        """What sentences and axes call the column."""
        return titled(self.name, self.label, self.unit)

    @property
    def missing_value(self) -> float:
        """What an absent value counts as, where its unit is in the comparison at all; on a scale, that of score 0."""
        if self.missing is not None:
            return float(self.missing)
        return self.low + (self.high - self.low) / 2 if self.scale is None else self.scale.value_at(0.0)

    @property
    def reach(self) -> tuple[float, float]:
        """The values beyond which all count alike: the bounds, or the ends of the scale."""
        return (self.low, self.high) if self.scale is None else self.scale.reach

    @property
    def typical_scale(self) -> Scale | None:
        """The scale from where about 90 % of values lie, as declared; None where `typical` is not.

        Scores are standard deviations from the median, of which 2.6 make 1. With `transform="log"` they are those of
        the logarithm.

        Example:
            >>> [round(value, 1) for value in Real("age", 0, 120, typical=(40, 80)).typical_scale.reach]
            [28.4, 91.6]
        """
        if self.typical is None:
            return None
        is_log = self.transform == "log"
        low, high = map(math.log, self.typical) if is_log else self.typical
        median, reach = low + (high - low) / 2, REACH * (high - low) / 2 / TYPICAL
        bounds = [(math.log(end) if is_log else end) for end in (self.low, self.high)]
        first, last = max(bounds[0], median - reach), min(bounds[1], median + reach)
        steps = _LOG_KNOTS - 1 if is_log else 1
        places = [first + (last - first) * step / steps for step in range(steps + 1)]
        values = [min(max(math.exp(place) if is_log else place, self.low), self.high) for place in places]
        scores = [min(max((place - median) / reach, -1.0), 1.0) for place in places]
        return Scale(list(zip(values, scores, strict=True)))

    def narrowed(self, low: float, high: float) -> "Real":
        """Return the number between other bounds; a declared value for a missing one counts as the bound if beyond."""
        missing = None if self.missing is None else min(max(self.missing, low), high)
        return replace(self, low=low, high=high, missing=missing)

    @property
    def formats(self) -> tuple[str, ...]:
        """How dates are written in text."""
        return checked_formats(self.name, self.date_format)

    @property
    def units(self) -> tuple[bytes, ...]:
        """The texts to strip, folded, longest first."""
        return tuple(sorted({folded(text) for text in self.strip}, key=lambda text: (-len(text), text)))

    @property
    def reads_either_comma(self) -> bool:
        """Whether nothing is declared about signs in text: each number's own form shows what its comma is."""
        return self.decimal == "." and self.thousands is None

    @property
    def grouping(self) -> str:
        """The sign between thousands in text; "." beside a decimal comma unless another one is declared."""
        return "." if self.thousands is None else self.thousands

    @property
    def _numeric_rules(self) -> dict[str, Any]:
        """What is declared about numbers in text, but for the usual."""
        signs = {} if self.decimal == "." else {"decimal": self.decimal}
        signs |= {} if self.reads_either_comma else {"thousands": self.grouping}
        units = [text.decode("utf-8", "surrogatepass") for text in self.units]
        return signs | ({"percent": True} if self.percent else {}) | ({"strip": units} if units else {})

    @property
    def example(self) -> str:
        """A number as cells of text may write it."""
        return "1,234.5 or 1234,5" if self.reads_either_comma else f"1{self.grouping}234{self.decimal}5"

    @property
    def rules(self) -> str:
        """How cells of text are read, in words; empty where nothing is declared about it."""
        if self.since:
            return f"dates as days since {self.since}, written {' or '.join(self.formats)}"
        codes = ", ".join(f"{code:.15g}" for code in self.missing_codes)
        plain = self.reads_either_comma and not (codes or self.strip or self.percent)
        words = [] if plain else [f"numbers as in {self.example}"]
        words += [f"without {', '.join(self.strip)}"] if self.strip else []
        words += ["percent as hundredths"] if self.percent else []
        words += [f"with {codes} as missing"] if codes else []
        return ", ".join(words)

    @property
    def in_models(self) -> str:
        """What is declared for models, in words; empty where nothing is."""
        words = [f"typically {self.typical[0]:,g} to {self.typical[1]:,g}"] if self.typical else []
        words += [f"in models by its {_SHAPES[self.transform]}"] if self.transform else []
        return ", ".join(words)

    @property
    def measured(self) -> "Real":
        """The number in its own unit, without what is declared for models: as an outcome or a metric."""
        return replace(self, typical=None, transform=None, scale=None)

    @property
    def meaning(self) -> dict[str, Any]:
        """What the declaration comes to, however it was written."""
        dates = {"since": self.since, "formats": sorted(self.formats)} if self.since else {}
        plain = {"name": self.name, "low": self.low, "high": self.high, "missing": self.missing_value}
        codes = {"missing_codes": list(self.missing_codes)} if self.missing_codes else {}
        scale = {"scale": [list(knot) for knot in self.scale.knots]} if self.scale else {}
        return plain | dates | codes | self._numeric_rules | scale


def _checked_codes(name: str, codes: object) -> tuple[float, ...]:
    """Return the numbers that stand for a missing value, in order."""
    listed = (codes,) if is_number(codes) else codes
    if not isinstance(listed, Sequence) or not all(is_number(code) and math.isfinite(code) for code in listed):
        raise SchemaError(
            problem=f"missing_codes of the column {name!r} must be numbers, not {codes!r}",
            hint="write missing_codes=[-9, 999]; text that is no number counts as missing without it.",
        )
    return tuple(sorted({float(code) for code in listed}))


def _check_bounds(name: str, low: object, high: object) -> None:
    if is_number(low) and is_number(high) and _can_be_divided(float(low), float(high)):  # type: ignore[arg-type]
        return
    example = f"Real({name!r}, low=0, high=100)"
    codebook = "take them from a codebook or the literature, never from the table."
    hints = {
        "text": "write numbers without quotation marks, with a point before decimals.",
        "pair": f"write the two without brackets: {example}.",
        "left out": f"write both bounds, for instance {example}; {codebook}",
        "infinite": f"write the least and the greatest value that can be, for instance {example}; values beyond are "
        "moved to the bound.",
        "reversed": f"swap them: low={high!r}, high={low!r}.",
        "dates": 'count days: low=0, high=3650, since="2015-01-01".',
        "other": f"write two numbers that are apart and of usual size, for instance {example}; {codebook}",
    }
    absent = [bound for bound, value in (("low", low), ("high", high)) if value is None or value != value]  # noqa: PLR0124
    given = f"low={low!r} and high={high!r}"
    if _is_day(low) or _is_day(high):
        mistake, problem = "dates", f"are dates, not numbers: {given}"
    elif isinstance(low, list | tuple):
        mistake, problem = "pair", f"must be two numbers, not a list: low={low!r}"
    elif isinstance(low, str) or isinstance(high, str):
        mistake, problem = "text", f"are not numbers: {given}"
    elif absent:
        mistake, problem = "left out", f"are not complete, without {' and '.join(absent)}"
    elif math.inf in (low, high) or -math.inf in (low, high):
        mistake, problem = "infinite", f"must be finite, not {given}"
    elif is_number(low) and is_number(high) and low > high:  # type: ignore[operator]
        mistake, problem = "reversed", f"are the wrong way round: {given}"
    else:
        mistake, problem = "other", f"must be numbers low < high, within 1e70 of 0 and apart, not {given}"
    raise SchemaError(problem=f"The bounds of the column {name!r} {problem}", hint=hints[mistake])


def _is_day(bound: object) -> bool:
    """Return whether a bound is a day, as a date or as text."""
    return isinstance(bound, date) or (isinstance(bound, str) and _DAY.fullmatch(bound) is not None)


def _can_be_divided(low: float, high: float) -> bool:
    """Whether the grid between two bounds, and squares of its ticks, are far from where floats end."""
    return -1e70 <= low < low + (high - low) / 2 < high <= 1e70 and high - low >= 1e-100
