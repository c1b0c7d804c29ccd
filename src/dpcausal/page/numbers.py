"""Numbers as people read them."""

import math

_SIGNIFICANT = 4
_MINUS = str.maketrans("-", "\N{MINUS SIGN}")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, decimals: int | None = None) -> str:
    r"""Format a number, with four significant digits unless the decimals are given.

    Example:
        >>> number(1794.34), number(-1794.34, 1), number(0.0123456)
        ('1,794', '\u22121,794.3', '0.01235')
    """
    if not math.isfinite(value):
        return f"{value}".replace("inf", "∞").translate(_MINUS)
    if decimals is None:
        size = math.floor(math.log10(abs(value))) if value else _SIGNIFICANT - 1
        decimals = max(_SIGNIFICANT - 1 - size, 0)
    written = f"{value:,.{decimals}f}"
    return (written if written.strip("-0.,") else written.removeprefix("-")).translate(_MINUS)


def short(value: float) -> str:
    """Format a number without needless digits: an epsilon, a delta, a bound.

    Example:
        >>> short(1.0), short(0.5), short(10_000), short(1e-6)
        ('1', '0.5', '10,000', '10⁻⁶')
    """
    digits, _, exponent = f"{value:,g}".partition("e")
    if not exponent:
        return digits.translate(_MINUS)
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    return power if digits == "1" else f"{digits.translate(_MINUS)} · {power}"


def percent(share: float, decimals: int = 0) -> str:
    """Format a share as a percentage.

    Example:
        >>> percent(0.25), percent(0.1234, 1)
        ('25 %', '12.3 %')
    """
    return f"{number(100 * share, decimals)} %"
