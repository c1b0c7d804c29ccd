"""Figures of heterogeneous treatment effects. They read as well in black and white."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.page.numbers import percent
from dpcausal.report.figures.canvas import PALE, TREATED, blank_figure, thousands
from dpcausal.results.curve import EffectCurve
from dpcausal.schema.real import Real

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 200


def forest_plot(curve: EffectCurve, *, alpha: float = 0.05) -> "Figure":
    """Draw the effect of each group, or of each example profile, with simultaneous intervals.

    Thick lines show the sampling error alone, thin lines the privacy noise as well.

    Example:
        >>> from dpcausal import Category, Real, Rehearsal, Schema, SubgroupEffects, Treatment
        >>> wards = [Category("ward", ["a", "b"])]
        >>> schema = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1), covariates=wards)
        >>> curve = SubgroupEffects(by=["ward"]).estimate(Rehearsal(schema, n=500), epsilon=1.0)
        >>> figure = forest_plot(curve)  # figure.savefig("forest.png")
    """
    names, profiles = curve.examples()
    effects, (sampling, privacy) = curve.effect(profiles), curve.standard_errors(profiles)
    figure, axes = blank_figure(8.0, 1.2 + 0.36 * len(names))
    places = np.arange(len(names))[::-1]
    if not curve.no_interval:
        low, high = curve.effect_interval(profiles, alpha=alpha, simultaneous=True)
        share = sampling / np.maximum(np.hypot(sampling, privacy), 1e-300)
        axes.hlines(places, low, high, color=TREATED, linewidth=1.2)
        axes.hlines(places, effects - (effects - low) * share, effects + (high - effects) * share, TREATED, linewidth=4)
        label = f"simultaneous {percent(1 - alpha)} intervals; thick: sampling error alone"
    else:
        axes.hlines(places, effects - 2 * privacy, effects + 2 * privacy, color=TREATED, linewidth=1.2)
        label = "lines: ± 2 sd of the privacy noise; no intervals"
    axes.plot(effects, places, "o", color="black", markerfacecolor="white", markersize=6)
    axes.axvline(0.0, color="0.5", linewidth=0.8, linestyle="--")
    axes.set_yticks(places, names, parse_math=False)
    axes.set_ylim(-0.6, len(names) - 0.4)
    thousands(axes.xaxis)
    axes.set_xlabel(f"effect of {curve.arms[1]} against {curve.arms[0]} on {curve.outcome}\n{label}", parse_math=False)
    axes.set_title(_caption(curve), loc="left", fontsize=9)
    return figure


def effect_plot(
    curve: EffectCurve, covariate: str, *, at: Mapping[str, Any] | None = None, alpha: float = 0.05
) -> "Figure":
    """Draw the effect over the range of one covariate, with its pointwise interval and its simultaneous band.

    Args:
        covariate: A numeric covariate.
        at: Values of the other covariates; by default the middle of the range, or the first listed value.
        alpha: One minus the confidence level.
    """
    figure, axes = blank_figure(7.0, 4.2)
    draw_effect(axes, curve, covariate, at=at, alpha=alpha)
    axes.set_title(_caption(curve), loc="left", fontsize=9)
    return figure


def draw_effect(
    axes: "Axes", curve: EffectCurve, covariate: str, *, at: Mapping[str, Any] | None = None, alpha: float = 0.05
) -> None:
    """Draw the same as `effect_plot` on given axes."""
    columns = {column.name: column for column in curve.basis.reads(curve.schema)}
    if not set(at or {}) <= set(columns):
        raise QueryError(
            expected=f"values (at) of {', '.join(columns)}", got=", ".join(map(str, at or {})), hint="check the names."
        )
    column = columns.get(str(covariate))
    if not isinstance(column, Real):
        numbers = [name for name, each in columns.items() if isinstance(each, Real)]
        raise QueryError(
            expected=f"a numeric covariate of the curve: {', '.join(numbers) or 'it has none'}",
            got=repr(covariate),
            hint="forest_plot shows groups and listed values.",
        )
    values = np.linspace(column.low, column.high, _POINTS)
    profiles: dict[str, Sequence[Any]] = {covariate: values}  # type: ignore[dict-item]
    for name, other in columns.items():
        if name != covariate:
            usual = (other.low + other.high) / 2 if isinstance(other, Real) else other.values[0]
            profiles[name] = [(at or {}).get(name, usual)] * _POINTS
    if not curve.no_interval:
        together = curve.effect_interval(profiles, alpha=alpha, simultaneous=True)
        alone = curve.effect_interval(profiles, alpha=alpha)
        axes.fill_between(values, *together, color=PALE, alpha=0.45, label=f"{percent(1 - alpha)} simultaneous band")
        axes.fill_between(values, *alone, color=PALE, label=f"{percent(1 - alpha)} pointwise interval")
    axes.plot(values, curve.effect(profiles), color=TREATED, linewidth=1.8, label="effect")
    axes.axhline(0.0, color="0.5", linewidth=0.8, linestyle="--")
    axes.set_xlim(column.low, column.high)
    axes.set_xlabel(column.title, parse_math=False)
    thousands(axes.yaxis)
    axes.set_ylabel(f"effect on {curve.outcome}", parse_math=False)
    axes.legend(frameon=False, fontsize=8)


def _caption(curve: EffectCurve) -> str:
    guarantee = f"epsilon {curve.guarantee.epsilon:g}, delta {curve.guarantee.delta:g}"
    return f"{curve.n:,} units; {guarantee}" + ("; rehearsed, no data read" if curve.rehearsed else "")
