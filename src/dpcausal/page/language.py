"""The language of a page: its texts, by gettext, and its numbers.

A text is written in English where it is used, and passed to a `Language`: `say("Data as of {date}.", date=…)`. The
catalogues are in `locale/`; `python -m checks.translations` finds the texts, and compiles and checks the catalogues.
"""

import gettext
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dpcausal.errors import RefusedError

LANGUAGES = ("en", "de")
LOCALE = Path(__file__).parent / "locale"
DOMAIN = "dpcausal"

_SEPARATORS = {"en": (",", "."), "de": (".", ",")}
"""The separators of thousands and of decimals."""

_SIGNIFICANT = 4


def message(text: str) -> str:
    """Return a text as it is: it marks a constant that is translated where it is used."""
    return text


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
        """Return a text that an estimator recorded: translated where the catalogue has it, otherwise as it is."""
        return _catalogue(self.code).gettext(text) if text else ""

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
            >>> Language().short(1.0), Language("de").short(0.5), Language().short(10_000)
            ('1', '0,5', '10,000')
        """
        return self._separated(f"{value:,g}")

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


@lru_cache(len(LANGUAGES))
def _catalogue(code: str) -> gettext.NullTranslations:
    if code == "en":
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALE, [code])


ENGLISH = Language()
