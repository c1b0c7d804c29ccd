"""The language of a page: its texts, by gettext, and its numbers.

A text is written in English where it is used, and passed to a `Language`: `say("Data as of {date}.", date=…)`. The
catalogues are in `locale/`; `python -m checks.translations` finds the texts, and compiles and checks the catalogues.
"""

import gettext
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dpcausal.errors import RefusedError
from dpcausal.page.recorded import RECORDED

LANGUAGES = ("en", "de")
LOCALE = Path(__file__).parent / "locale"
DOMAIN = "dpcausal"

_SEPARATORS = {"en": (",", "."), "de": (".", ",")}
"""The separators of thousands and of decimals."""

_NAME = re.compile(r"\{(\w+)\}")
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?%?( ± \d[\d,]*(\.\d+)?)?")
_LONGEST = 1_000
"""Longer texts are no estimator's: matching them could take long."""
_SIGNIFICANT = 4
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Language:
    """A language for texts and numbers.

    Attributes:
        code: `en` or `de`.
    """

    code: str = "en"

    def __post_init__(self) -> None:
        if self.code not in LANGUAGES:
            raise RefusedError(
                expected=f"a language: {' or '.join(LANGUAGES)}",
                got=repr(self.code),
                hint="leave it out for English. CONTRIBUTING.md says how to add a language.",
            )

    def __call__(self, text: str, /, **values: object) -> str:
        """Return a text in this language, with values in place of the names in braces.

        Example:
            >>> Language("de")("Data as of {date}.", date="2026-01-31")
            'Datenstand 2026-01-31.'
        """
        return _catalogue(self.code).gettext(text).format(**values) if text else ""

    def recorded(self, text: str) -> str:
        """Return a text that an estimator recorded, in this language; one without a template as it is.

        Example:
            >>> Language("de").recorded("strata count as about 3,967 of 4,000 units (noisy)")
            'die Strata zählen wie etwa 3.967 von 4.000 Einheiten (verrauscht)'
        """
        if self.code == "en" or len(text) > _LONGEST:
            return text
        for template, pattern in _templates():
            if found := pattern.fullmatch(text):
                return self(template, **{name: self._value(name, value) for name, value in found.groupdict().items()})
        return text

    def _value(self, name: str, value: str) -> str:
        """Return a value of a recorded text: a text inside it translated, a number with other separators."""
        if name == "text":
            return self.recorded(value)
        if not _NUMBER.fullmatch(value):
            return value
        return self._separated(value.replace("%", " %"))

    def number(self, value: float, decimals: int | None = None) -> str:
        """Format a number, with four significant digits unless the decimals are given.

        Example:
            >>> Language().number(1794.34), Language("de").number(1794.34, 1), Language().number(0.0123456)
            ('1,794', '1.794,3', '0.01235')
        """
        if not math.isfinite(value):
            return self._separated(f"{value}").replace("inf", "∞")
        if decimals is None:
            size = math.floor(math.log10(abs(value))) if value else _SIGNIFICANT - 1
            decimals = max(_SIGNIFICANT - 1 - size, 0)
        written = f"{value:,.{decimals}f}"
        if not written.strip("-0.,"):
            written = written.removeprefix("-")
        return self._separated(written)

    def short(self, value: float) -> str:
        """Format a number without needless digits: an epsilon, a delta, a bound.

        Example:
            >>> Language().short(1.0), Language("de").short(0.5), Language().short(10_000), Language().short(1e-6)
            ('1', '0,5', '10,000', '10⁻⁶')
        """
        digits, _, exponent = f"{value:,g}".partition("e")
        if not exponent:
            return self._separated(digits)
        power = f"10{str(int(exponent)).translate(_RAISED)}"
        return power if digits == "1" else f"{self._separated(digits)} · {power}"

    def percent(self, share: float, decimals: int = 0) -> str:
        """Format a share as a percentage.

        Example:
            >>> Language().percent(0.25), Language("de").percent(0.1234, 1)
            ('25 %', '12,3 %')
        """
        return f"{self.number(100 * share, decimals)} %"

    def _separated(self, written: str) -> str:
        thousands, decimal = _SEPARATORS[self.code]
        return written.translate({ord(","): thousands, ord("."): decimal, ord("-"): "\N{MINUS SIGN}"})


@lru_cache(1)
def _templates() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the templates of recorded texts, those with the most words first, each with its pattern."""
    ordered = sorted(RECORDED, key=lambda template: -len(_NAME.sub("", template)))
    return tuple(
        (template, re.compile(_NAME.sub(r"(?P<\1>.+)", re.escape(template).replace(r"\{", "{").replace(r"\}", "}"))))
        for template in ordered
    )


@lru_cache(len(LANGUAGES))
def _catalogue(code: str) -> gettext.NullTranslations:
    if code == "en":
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALE, [code])


ENGLISH = Language()
