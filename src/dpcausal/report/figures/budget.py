"""Figures of the privacy budget: spending over time, and precision against epsilon."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, cycle
from typing import TYPE_CHECKING

from dpcausal.report.figures.canvas import blank_figure, shorten
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.utils.text import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Widths = Mapping[str, Sequence[tuple[float, float]]]
"""For each estimator, by name: epsilons, and the expected half-width of the interval at each."""

_STYLES = ("o-", "s--", "^:", "D-.", "v-", "P--", "X:", "*-.")

_FEW_DAYS = 4
"""Within so many days the axis has a mark for each day."""


def budget_plot(ledger: LedgerSummary) -> "Figure":
    """Draw the cumulative epsilon of all debits, and the budget."""
    figure, axes = blank_figure(7.0, 2.8)
    from matplotlib.dates import (  # noqa: PLC0415 (an extra)
        AutoDateLocator,
        ConciseDateFormatter,
        DateFormatter,
        DayLocator,
        date2num,
    )
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (an extra)

    days = [payment.when for payment in ledger.payments]
    same = len(days) > 1 and days[0] == days[-1]  # a ledger has no hours, so one day's debits stand in their order
    places = list(range(1, len(days) + 1)) if same else [date2num(day) for day in days]  # type: ignore[no-untyped-call]
    sums = list(accumulate(payment.epsilon for payment in ledger.payments))
    axes.step(places, sums, "o-", where="post", color="black", markersize=4, markerfacecolor="white", label="spent")
    axes.axhline(ledger.budget.epsilon, color="0.4", linestyle="--", linewidth=1.2, label="budget")
    axes.set_ylim(0, 1.12 * max(ledger.budget.epsilon, *sums, 0.0))
    axes.set_ylabel("cumulative epsilon")
    if places:
        margin = max(1.0, 0.05 * (places[-1] - places[0]))  # a ledger may have only one date
        axes.set_xlim(places[0] - margin, places[-1] + margin)
    if same:
        axes.set_xlabel(f"debits of {days[0]:%Y-%m-%d}, in their order")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    elif places and places[-1] - places[0] <= _FEW_DAYS:  # an axis of hours would claim more
        axes.xaxis.set_major_locator(DayLocator())  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(DateFormatter("%Y-%m-%d"))  # type: ignore[no-untyped-call]
    else:
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.legend(frameon=False, fontsize=9)
    return figure


def budget_alt(ledger: LedgerSummary) -> str:
    """Return the alt text of `budget_plot`."""
    if not ledger.payments:
        return f"Budget spent over time: nothing of epsilon {ledger.budget.epsilon:g}."
    total = sum(payment.epsilon for payment in ledger.payments)
    first, last = ledger.payments[0].when, ledger.payments[-1].when
    count = "1 debit" if len(ledger.payments) == 1 else f"{len(ledger.payments)} debits"
    return (
        f"Budget spent over time: cumulative epsilon {total:g} of {ledger.budget.epsilon:g}, in {count} from "
        f"{first:%Y-%m-%d} to {last:%Y-%m-%d}."
    )


def precision_plot(widths: Widths, *, chosen: float | None = None, target_width: float | None = None) -> "Figure":
    """Draw the half-width of the interval against epsilon for several estimators.

    Args:
        widths: Epsilons and half-widths, for each estimator.
        chosen: The study's epsilon, to be marked.
        target_width: The target half-width, to be marked.

    Example:
        >>> figure = precision_plot({"difference in means": [(0.5, 0.4), (1, 0.22), (2, 0.15)]}, chosen=1)
    """
    figure, axes = blank_figure(7.0, 4.0)
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 (an extra)

    for style, (name, points) in zip(cycle(_STYLES), widths.items(), strict=False):
        epsilons, halves = zip(*sorted(points), strict=True)
        axes.plot(epsilons, halves, style, color="black", markerfacecolor="white", linewidth=1.2, label=shorten(name))
    if chosen is not None:
        axes.axvline(chosen, color="0.5", linewidth=0.9, linestyle=(0, (8, 3)), label="epsilon of the study")
    if target_width is not None:
        axes.axhline(target_width, color="0.5", linewidth=0.9, label="target")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):  # 0.5, not a power of ten
        axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("epsilon (larger: less privacy)")
    axes.set_ylabel("half-width of the 95 % interval")
    for text in axes.legend(frameon=False, fontsize=9).get_texts():
        text.set_parse_math(False)  # names are untrusted text
    return figure


def precision_alt(widths: Widths) -> str:
    """Return the alt text of `precision_plot`."""
    lines = []
    for name, points in widths.items():
        (least, wide), (most, narrow) = min(points), max(points)
        lines.append(
            f"{name} from {format_number(wide)} at epsilon {least:g} to {format_number(narrow)} at epsilon {most:g}"
        )
    return f"Half-width of the 95 % interval against epsilon: {'; '.join(lines)}."
