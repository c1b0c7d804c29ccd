"""What was spent on a data set over time, as a figure."""

from itertools import accumulate
from typing import TYPE_CHECKING

from dpcausal.report.figures.canvas import blank_figure
from dpcausal.report.ledger_summary import LedgerSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def budget_plot(spent: LedgerSummary) -> "Figure":
    """The sum of all epsilons that were granted, step by step, below the budget."""
    figure, axes = blank_figure(7.0, 2.8)
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num  # noqa: PLC0415 (an extra)

    times = [date2num(payment.when) for payment in spent.payments]  # type: ignore[no-untyped-call]
    sums = list(accumulate(payment.epsilon for payment in spent.payments))
    axes.step(times, sums, "o-", where="post", color="black", markersize=4, markerfacecolor="white", label="spent")
    axes.axhline(spent.budget.epsilon, color="0.4", linestyle="--", linewidth=1.2, label="budget")
    axes.set_ylim(0, 1.12 * max(spent.budget.epsilon, *sums, 0.0))
    axes.set_ylabel("epsilon, added up")
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.legend(frameon=False, fontsize=9)
    return figure


def budget_alt(spent: LedgerSummary) -> str:
    """What a person sees in the figure."""
    total = sum(payment.epsilon for payment in spent.payments)
    if not spent.payments:
        return f"Budget spent over time: nothing of epsilon {spent.budget.epsilon:g}."
    first, last = spent.payments[0].when, spent.payments[-1].when
    return (
        f"Budget spent over time, in {len(spent.payments)} steps from {first:%Y-%m-%d} to {last:%Y-%m-%d}: "
        f"epsilon {total:g}, added up, of {spent.budget.epsilon:g}."
    )
