"""An audit as a picture: one panel for each estimator, one line for each pair of tables."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from dpcausal.audit.finding import Finding

_ACROSS = 4


def drawn(attacks: Sequence[Finding]) -> Figure:
    """Draw what is claimed, what is known exactly and what attacks showed."""
    names = list(dict.fromkeys(finding.target for finding in attacks))
    longest = max(sum(finding.target == name for finding in attacks) for name in names)
    down = math.ceil(len(names) / _ACROSS)
    figure = Figure(figsize=(4.5 * _ACROSS, (0.9 + 0.17 * longest) * down + 1), layout="constrained")
    panels = figure.subplots(down, _ACROSS, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        lines = sorted((each for each in attacks if each.target == name), key=lambda each: each.numbers["exact"])
        places = range(len(lines))
        epsilon = lines[0].numbers["epsilon"]
        panel.axvline(epsilon, color="#d55e00", linestyle="--", linewidth=1.5, label="claimed epsilon")
        panel.barh(places, [each.numbers["bound"] for each in lines], color="#0072b2", label="shown by attack")
        known = [each.numbers["exact"] for each in lines]
        panel.plot(known, places, "D", color="black", markersize=4, label="known exactly")
        panel.set_yticks(places, [each.detail.partition(":")[0] for each in lines], fontsize=7)
        panel.set_ylim(-0.8, longest - 0.2)
        panel.set_xlim(
            0, max(1.1 * epsilon, *(1.05 * max(each.numbers["bound"], each.numbers["exact"]) for each in lines))
        )
        panel.set_title(name, fontsize=10, loc="right")
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    confidence = attacks[0].numbers["confidence"]
    figure.supxlabel(f"epsilon; attacks are lower bounds with {confidence:.1%} confidence each", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure
