"""Love plots and overlap plots show what is in the tables, and say it in words too."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import dpcausal as dpc
from dpcausal.diagnostics import Balance, Overlap
from dpcausal.report import diagnosis_alt, love_plot, overlap_plot
from dpcausal.testing import standard_schema

PLAN = dpc.Rehearsal(standard_schema(), n=20_000)
BALANCE = Balance(covariates=["age", "ward"], weighted_by=["age"]).estimate(PLAN, epsilon=2.0)
OVERLAP = Overlap(by=["ward"]).estimate(PLAN, epsilon=2.0)


def test_a_love_plot_has_a_mark_and_a_bar_for_each_reading() -> None:
    axes = love_plot(BALANCE).axes[0]
    marks = [line.get_xdata() for line in axes.lines if line.get_marker() == "o"]
    assert [len(np.asarray(each)) for each in marks] == [4, 4]  # before and after
    assert [label.get_text() for label in axes.get_yticklabels()] == ["age", "ward=a", "ward=b", "ward=c"]
    assert "rehearsed" in axes.get_title("left")


def test_love_plot_names_hidden_covariates() -> None:
    lines = (replace(BALANCE.lines[0], after=None), *BALANCE.lines[1:])
    hidden = replace(BALANCE, lines=lines)
    axes = love_plot(hidden).axes[0]
    marks = [line.get_xdata() for line in axes.lines if line.get_marker() == "o"]
    assert [len(np.asarray(each)) for each in marks] == [4, 3]
    assert [text.get_text() for text in axes.texts] == ["after weighting: hidden by noise"]
    assert "age 0.42 ± " in diagnosis_alt(hidden)
    assert "after weighting hidden by noise" in diagnosis_alt(hidden)


def test_an_overlap_plot_has_both_arms_back_to_back() -> None:
    axes = overlap_plot(OVERLAP).axes[0]
    heights = [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert heights == pytest.approx(
        [bin_.treated.value for bin_ in OVERLAP.bins] + [-bin_.control.value for bin_ in OVERLAP.bins]
    )
    assert [label.get_text() for label in axes.get_xticklabels()] == ["ward=a", "ward=b", "ward=c"]


def test_plots_can_be_saved_and_have_alt_text() -> None:
    for figure in (love_plot(BALANCE), overlap_plot(OVERLAP)):
        image = BytesIO()
        figure.savefig(image, format="png")
        assert image.getvalue().startswith(b"\x89PNG")
    for result, words in ((BALANCE, ("Love plot", "ward=c", "Verdict")), (OVERLAP, ("ward=b: ", "units", "Verdict"))):
        assert all(word in diagnosis_alt(result) for word in words)
