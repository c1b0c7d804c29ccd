import re
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import MissingExtraError
from dpcausal.report import (
    LedgerSummary,
    Report,
    arm_curves_alt,
    arm_curves_plot,
    budget_alt,
    budget_plot,
    precision_alt,
    precision_plot,
    render,
    site_forest_alt,
    site_forest_plot,
    uncertainty_alt,
    uncertainty_plot,
)
from dpcausal.report.figures.effects import variance_shares
from dpcausal.report.section import Picture
from dpcausal.results.arm_curves import ArmCurves
from dpcausal.results.site_share import SiteShare
from dpcausal.uncertainty.joint_estimate import JointEstimate
from tests.report.conftest import Made

WIDTHS = {"difference in means": [(2, 0.15), (0.5, 0.4), (1, 0.22)], "cost $5 and $": [(0.5, 1.0), (2, 0.5)]}


def test_variance_shares_sum_to_one(made: Made) -> None:
    shares = variance_shares(made(between_sd=0.2))
    assert list(shares) == ["sampling", "privacy noise", "between sites"]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert variance_shares(made(sampling_sd=None)) == {}


def test_alt_texts_state_the_numbers(made: Made, sites: tuple[SiteShare, ...], vault: dpc.Vault) -> None:
    assert (
        uncertainty_alt(made(noise=())) == "Bar of the estimate's variance by source: sampling 100%, privacy noise 0%."
    )
    assert site_forest_alt(made(sites=sites)) == (
        "Forest plot of the effects at 2 sites: north 2.100 ± 0.7840; south 1.800 ± 1.176. Pooled: 2.000."
    )
    assert "difference in means from 0.4000 at epsilon 0.5 to 0.1500 at epsilon 2" in precision_alt(WIDTHS)
    assert budget_alt(LedgerSummary.of(vault.ledger)) == "Budget spent over time: nothing of epsilon 10."
    dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)
    assert "cumulative epsilon 1 of 10, in 1 debit from" in budget_alt(LedgerSummary.of(vault.ledger))


def test_figures_are_reproducible_to_the_byte(made: Made, sites: tuple[SiteShare, ...]) -> None:
    effect = made(sites=(replace(sites[1], site="$north$ & " + "long" * 30), sites[2]), outcome="$")
    one, two = (render("sites", site_forest_plot(effect), "").image for _ in range(2))
    assert one == two
    assert one.startswith(b"<?xml")
    assert b"20" + b"26-" not in one  # no date


def test_figures_draw_dollar_signs_verbatim(made: Made) -> None:
    for figure in (precision_plot(WIDTHS, chosen=1, target_width=0.2), uncertainty_plot(made())):
        assert render("", figure, "").kind == "image/svg+xml"


def test_budget_plot_shows_cumulative_epsilon_and_budget(vault: dpc.Vault) -> None:
    for epsilon in (1.0, 2.0):
        dpc.DifferenceInMeans().estimate(vault, epsilon=epsilon)
    ledger = LedgerSummary.of(vault.ledger)
    figure = budget_plot(ledger)
    (axes,) = figure.axes
    spent, budget = axes.get_lines()
    assert list(spent.get_ydata()) == [1.0, 3.0]  # type: ignore[arg-type]
    assert set(budget.get_ydata()) == {10.0}  # type: ignore[arg-type]
    figure.draw_without_rendering()
    assert list(spent.get_xdata()) == [1, 2]  # type: ignore[arg-type]
    assert axes.get_xlabel() == f"debits of {ledger.payments[0].when:%Y-%m-%d}, in their order"
    later = [replace(each, at=f"{each.when + timedelta(place):%Y-%m-%d}") for place, each in enumerate(ledger.payments)]
    for payments in (later, later[:1]):  # days, and no hours
        (axes,) = (figure := budget_plot(replace(ledger, payments=tuple(payments)))).axes
        figure.draw_without_rendering()
        ticks = [tick.get_text() for tick in axes.get_xticklabels()]
        assert f"{ledger.payments[0].when:%Y-%m-%d}" in ticks
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", tick) for tick in ticks)


def test_figure_without_matplotlib_says_what_to_install(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="dpcausal\\[plots\\]"):
        uncertainty_plot(made())


def test_picture_knows_its_media_type() -> None:
    assert Picture("", b"\x89PNG...", "").kind == "image/png"


CURVES = ArmCurves(
    "survival",
    "months",
    (12.0, 24.0, 36.0),
    ("placebo", "cost $5 and $"),
    JointEstimate(
        tuple("abcdef"), (0.9, 0.7, 0.5, 0.95, 0.8, 0.65), tuple(map(tuple, (np.eye(6) * 1e-3).tolist())), ()
    ),
)


def test_arm_curves_differ_without_colour_and_have_bands() -> None:
    (axes,) = arm_curves_plot(CURVES).axes
    assert len({line.get_marker() for line in axes.lines}) == len({line.get_linestyle() for line in axes.lines}) == 2
    assert len(axes.collections) == 2
    assert not arm_curves_plot(CURVES, bands=False).axes[0].collections
    assert render("survival", arm_curves_plot(CURVES), "").image.startswith(b"<?xml")
    assert arm_curves_alt(CURVES) == (
        "Survival along months, a curve with a band for each arm. placebo: 0.9000 at 12, 0.7000 at 24, 0.5000 at 36; "
        "cost $5 and $: 0.9500 at 12, 0.8000 at 24, 0.6500 at 36."
    )


def test_report_draws_curves_of_the_arms(made: Made) -> None:
    effect = made(curves=(CURVES,))
    page = Report.of(effect, date=date(2026, 1, 31)).to_html()
    assert "a curve with a band for each arm. placebo: 0.9000 at 12" in page
