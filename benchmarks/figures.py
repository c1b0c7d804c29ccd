"""Redraw the figures of the documentation: `python -m benchmarks.figures`.

Figures of measurements come from the stored results. Figures of pages whose own code draws them are drawn by running
that code, with new noise. Survival curves need lifelines: `python -m benchmarks.survival_tables --figure`.
"""

import contextlib
import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import dpcausal as dpc
from benchmarks.audit_figure import drawn
from benchmarks.bakeoff import page as bakeoff
from benchmarks.heterogeneity import figures as heterogeneity_figures
from benchmarks.leaderboard import figures as leaderboard_figures
from benchmarks.papers.index import PAPERS, paper_of, stored
from benchmarks.parts import PUBLISHED
from benchmarks.pictures import GREEN, GREY, INK, RENDERING, STYLE, VERMILLION, compact, keep
from benchmarks.scale import pictures as scale_figures
from checks import documents
from dpcausal.audit.finding import Finding

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "figures"
PAGES = ("conditional.md", "diagnostics.md", "gallery.md")
"""Pages whose code saves their figures."""

_ZERO, _POINT = 604, 180
"""Where the card of the start page has an effect of 0, and how wide a percentage point is."""


def main() -> None:
    """Redraw all."""
    heterogeneity_figures.draw(_result("heterogeneity"), FOLDER)
    leaderboard_figures.draw(_result("leaderboard"), FOLDER)
    scale_figures.draw(_result("scale"), FOLDER)
    bakeoff.draw(_result("bakeoff"), bakeoff.FIGURE)
    for name in PAPERS:
        paper_of(name).draw(stored(name), FOLDER)
    keep(audit(), FOLDER / "audit.svg")
    keep(bounds(), FOLDER / "choosing_bounds.svg")
    (FOLDER / "card.svg").write_text(card(), encoding="utf-8")
    for page in PAGES:
        draw_page(DOCS / page, FOLDER)


def _result(name: str) -> Any:  # noqa: ANN401 (JSON)
    return json.loads((PUBLISHED / f"{name}.json").read_text(encoding="utf-8"))


def audit() -> Figure:
    """Draw the attacks of the stored audit."""
    findings = [each for each in _result("audit")["findings"] if each["check"] == "epsilon"]
    return drawn(
        [Finding("epsilon", each["subject"], each["passed"], each["detail"], each["numbers"]) for each in findings]
    )


def bounds() -> Figure:
    """Draw the error of a difference in means against the declared upper bound, as in docs/choosing.md."""
    random = np.random.default_rng(0)
    control, treated = (random.gamma(shape, 5_000, 1_000_000) for shape in (4.0, 4.4))
    truth = treated.mean() - control.mean()
    highs = np.geomspace(15_000, 400_000, 40)
    bias, sampling, privacy = [], [], []
    for high in highs:
        cut = [np.minimum(costs, high) for costs in (control, treated)]
        schema = dpc.Schema(treatment=dpc.Treatment("treat"), outcome=dpc.Real("cost", 0, float(high)))
        likely = dpc.Rehearsal(schema, n=2_000, outcome_mean=cut[0].mean(), outcome_sd=cut[0].std())
        effect = dpc.DifferenceInMeans().estimate(likely, epsilon=1.0)
        bias.append(abs(cut[1].mean() - cut[0].mean() - truth))
        sampling.append(effect.sampling_sd or 0.0)
        privacy.append(effect.privacy_sd)
    whole = [math.hypot(*errors) for errors in zip(bias, sampling, privacy, strict=True)]
    with rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.9), layout="constrained")
        axes = figure.subplots()
        axes.plot(highs, whole, color=INK, linewidth=2.4, label="whole error")
        axes.plot(highs, bias, color=VERMILLION, linestyle="--", label="bias from cut-off values")
        axes.plot(highs, privacy, color=GREEN, linestyle="-.", label="privacy noise")
        axes.plot(highs, sampling, color=GREY, linestyle=":", label="sampling error")
        axes.set(xscale="log", xlim=(highs[0], highs[-1]), ylim=(0, 2_000))
        ticks = (20_000, 40_000, 60_000, 120_000, 240_000, 400_000)
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("declared upper bound of the outcome, in dollars")
        axes.set_ylabel("error of the effect, in dollars")
        axes.legend(frameon=False, loc="upper center")
    return figure


def card() -> str:
    """Return the card of the start page: the effect that docs/first-effect.md prints, as the top of a report."""
    page = (DOCS / "first-effect.md").read_text(encoding="utf-8")
    (estimate,) = re.findall(r"^estimate +(\S+)$", page, re.MULTILINE)
    ((low, high),) = re.findall(r"^95 % interval +(\S+) to (\S+)$", page, re.MULTILINE)
    points = [100 * float(value) for value in (estimate, low, high)]
    middle, start, end = (round(_ZERO + _POINT * point) for point in points)
    said, first, last = (f"{point:.1f}".replace("-", "\u2212") for point in points)
    marks = "".join(
        f'<path d="M{_ZERO + _POINT * tick} 252v8" stroke="#5b6b6f" stroke-width="2"/>'
        f'<text x="{_ZERO + _POINT * tick}" y="284" text-anchor="middle">{f"{tick}".replace("-", chr(0x2212))}</text>'
        for tick in (-3, -2, -1, 0)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 352" role="img" aria-labelledby="title"
     font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" font-size="23"
     fill="#16282c">
  <title id="title">The top of a report: the risk of death is {said} percentage points with aspirin</title>
  <rect width="720" height="352" rx="12" fill="#f0f4f4"/>
  <rect width="10" height="352" rx="5" fill="#00695c"/>
  <text x="34" y="42" font-size="22" fill="#4b5f64">International Stroke Trial, 19,378 patients</text>
  <text x="34" y="82" font-size="27" font-weight="700">The risk of death is {said[1:]} percentage points</text>
  <text x="34" y="116" font-size="27" font-weight="700">lower with aspirin than without.</text>
  <text x="34" y="152">95 % confidence interval {first} to {last}: it contains 0.</text>
  <path d="M{start} 210H{end}" stroke="#00695c" stroke-width="26"/>
  <circle cx="{middle}" cy="210" r="9" fill="#f0f4f4"/>
  <path d="M{_ZERO} 180V252" stroke="#16282c" stroke-width="2"/>
  <path d="M34 252H686" stroke="#5b6b6f" stroke-width="2"/>
  <g font-size="22" fill="#4b5f64">{marks}</g>
  <text x="34" y="328" font-size="22" fill="#4b5f64">percentage points</text>
  <text x="686" y="328" text-anchor="end" font-size="22" fill="#00695c">epsilon 1 of a budget of 3</text>
</svg>
"""


def draw_page(page: Path, folder: Path) -> None:
    """Run a page's code and copy the figures that it saves."""
    style = RENDERING | {"savefig.transparent": True}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), rc_context(style):
        documents.run(page)
        for figure in Path(name).glob("*.svg"):
            (folder / figure.name).write_text(compact(figure.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
