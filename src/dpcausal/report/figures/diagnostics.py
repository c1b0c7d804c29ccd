"""Figures of diagnoses, with noise bars, legible in black and white."""

from typing import TYPE_CHECKING

import numpy as np

from dpcausal.diagnostics import BalanceTable, OverlapTable, Reading
from dpcausal.report.figures.canvas import CONTROL, TREATED, blank_figure, render, shorten
from dpcausal.report.section import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def diagnosis_picture(result: BalanceTable | OverlapTable) -> Picture:
    """Render a diagnosis as a love plot or as bars of the arms, with its alt text."""
    figure = love_plot(result) if isinstance(result, BalanceTable) else overlap_plot(result)
    return render(result.name, figure, diagnosis_alt(result))


def love_plot(balance: BalanceTable) -> "Figure":
    """Draw the standardised mean difference of each covariate, before (hollow) and after weighting (filled).

    Bars show the privacy noise, and the grey band the values that pass. A covariate hidden by noise has no mark.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> from dpcausal.diagnostics import Balance
        >>> schema = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1), covariates=[Real("age", 18, 90)])
        >>> balance = Balance(covariates=["age"]).estimate(Rehearsal(schema, n=5_000), epsilon=1.0)
        >>> figure = love_plot(balance)  # figure.savefig("love.png")
    """
    figure, axes = blank_figure(7.0, 1.7 + 0.42 * len(balance.lines))
    places = np.arange(len(balance.lines))[::-1]
    axes.axvspan(-balance.most, balance.most, color="0.93", zorder=0)
    axes.axvline(0.0, color="0.5", linewidth=0.8, linestyle="--", zorder=1)
    lift = 0.12 if balance.weighted else 0.0
    before, after = ([getattr(line, when) for line in balance.lines] for when in ("before", "after"))
    _marks(axes, places + lift, before, "white", "before")
    if balance.weighted:
        _marks(axes, places - lift, after, TREATED, "after weighting")
    axes.set_yticks(places, [shorten(line.name) for line in balance.lines], parse_math=False)
    axes.set_ylim(-0.6, len(places) - 0.4)
    control, treated = map(shorten, balance.arms)
    words = f"standardised mean difference, {treated} minus {control}\nbars: 95 % privacy noise"
    axes.set_xlabel(words, parse_math=False)
    axes.set_title(_caption(balance), loc="left", fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _marks(axes: "Axes", places: np.ndarray, found: list[Reading | None], colour: str, label: str) -> None:
    seen = [(place, each) for place, each in zip(places, found, strict=True) if each is not None]
    axes.errorbar(
        [each.value for _, each in seen],
        [place for place, _ in seen],
        xerr=[each.bar for _, each in seen],
        fmt="o",
        color=TREATED,
        markerfacecolor=colour,
        markersize=6,
        elinewidth=1.2,
        capsize=3,
        label=label,
    )
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    for place, each in zip(places, found, strict=True):
        if each is None:
            words = f"{label}: hidden by noise"
            axes.text(0.0, place, words, ha="center", va="center", fontsize=7, color="0.3", bbox=paper)


def overlap_plot(overlap: OverlapTable) -> "Figure":
    """Draw the number of units of each arm in each bin: treated above the line, control below, with noise bars."""
    figure, axes = blank_figure(8.0, 4.4)
    places = np.arange(len(overlap.bins))
    for arm, sign, colour, edge, hatch in (
        ("treated", 1, TREATED, TREATED, ""),
        ("control", -1, "white", CONTROL, "///"),
    ):
        found = [getattr(bin_, arm) for bin_ in overlap.bins]
        heights = [sign * max(each.value, 0.0) for each in found]
        label = shorten(overlap.arms[1 if arm == "treated" else 0])
        axes.bar(places, heights, width=0.85, color=colour, hatch=hatch, edgecolor=edge, linewidth=0.8, label=label)
        shift = 0.06 * sign  # keeps the bars of counts near 0 apart
        values, bars = [sign * each.value for each in found], [each.bar for each in found]
        axes.errorbar(places + shift, values, yerr=bars, fmt="none", ecolor="black", elinewidth=1.2, capsize=2)
    axes.axhline(0.0, color="black", linewidth=0.8)
    names = [shorten(bin_.name) for bin_ in overlap.bins]
    axes.set_xticks(places, names, rotation=40, ha="right", fontsize=8, parse_math=False)
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
    axes.set_ylabel("units\nbars: 95 % privacy noise")
    axes.set_title(_caption(overlap), loc="left", fontsize=9)
    legend = axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for text in legend.get_texts():
        text.set_parse_math(False)  # names are untrusted text
    return figure


def diagnosis_alt(result: BalanceTable | OverlapTable) -> str:
    """Return the alt text of a diagnosis."""
    if isinstance(result, BalanceTable):
        values = [f"{line.name} {_difference(line.before)}{_then(line.after, result)}" for line in result.lines]
        title = "Love plot of standardised mean differences with 95 % noise bars"
    else:
        values = [f"{bin_.name}: {_units(bin_.treated)} and {_units(bin_.control)}" for bin_ in result.bins]
        title = f"Bars of the number of units, {result.arms[1]} and {result.arms[0]}, in each bin"
    return f"{title}. {'; '.join(values)}. Verdict: {result.verdict}; {result.found}."


def _caption(result: BalanceTable | OverlapTable) -> str:
    guarantee = f"epsilon {result.guarantee.epsilon:g}, delta {result.guarantee.delta:g}"
    if result.rehearsed:
        return f"{result.n:,} units; {guarantee}; rehearsed, no data read"
    return f"{result.verdict}; {result.n:,} units; {guarantee}"


def _difference(reading: Reading | None) -> str:
    return "hidden by noise" if reading is None else f"{reading.value:.2f} ± {reading.bar:.2f}"


def _then(reading: Reading | None, result: BalanceTable) -> str:
    return f", after weighting {_difference(reading)}" if result.weighted else ""


def _units(reading: Reading) -> str:
    return f"{reading.value:,.0f} ± {reading.bar:,.0f}"
