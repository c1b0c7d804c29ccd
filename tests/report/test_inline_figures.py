import re
from dataclasses import replace
from datetime import date

import pytest

import dpcausal as dpc
from dpcausal.page.axis import Axis
from dpcausal.page.interval_figure import PARTS, IntervalFigure, named_widths, notebook_figure
from dpcausal.planning.plan import plan
from dpcausal.results.site_share import SiteShare
from dpcausal.uncertainty.interval import NoiseTerm
from tests.report.conftest import Made
from tests.report.examples import EXAMPLES, federated


def spans(svg: str) -> list[tuple[float, float, str]]:
    """The bars of a figure: start, end and filling."""
    found = re.findall(r'<rect x="([\d.]+)%" width="([\d.]+)%"[^>]*style="fill:([^;]+);', svg)
    return sorted((float(start), float(start) + float(wide), fill) for start, wide, fill in found)


def test_bars_share_the_interval_from_the_middle_outwards() -> None:
    widths = dict(zip(PARTS, (1.0, 1.5, 2.0), strict=True))
    figure = IntervalFigure(interval=(1.0, 5.0), half_widths=widths, label="", alt="", estimate=3.0, smallest=0.5)
    axis = Axis.around([1.0, 5.0, 0.0, 0.5, -0.5])
    bars = spans(figure.svg())
    edges = [float(axis.at(value)[:-1]) for value in (1.0, 1.5, 2.0, 4.0, 4.5, 5.0)]
    assert [start for start, _, _ in bars] == pytest.approx(edges[:-1], abs=0.02)
    assert [end for _, end, _ in bars] == pytest.approx(edges[1:], abs=0.02)
    fillings = [fill for _, _, fill in bars]
    assert fillings == fillings[::-1]
    assert len(set(fillings)) == 3  # each source has a texture of its own


def test_sources_that_add_nothing_are_left_out() -> None:
    assert list(named_widths((1.0, 1.0, 2.0))) == [PARTS[0], PARTS[2]]
    assert list(named_widths((0.0, 0.0, 2.0))) == [PARTS[2]]


def test_width_by_source_ends_with_the_interval(made: Made) -> None:
    for changes in ({}, {"between_sd": 0.4}, {"bias_bound": 0.2}, {"between_sd": 0.4, "degrees_of_freedom": 3}):
        effect = made(**changes)
        low, high = effect.interval()
        sampling, sites, whole = effect.width_by_source
        assert whole == pytest.approx((high - low) / 2)
        assert 0 < sampling <= sites < whole


@pytest.mark.parametrize("name", EXAMPLES)
def test_picture_shows_smallest_effect_planned_interval_and_alt_text(name: str) -> None:
    report = EXAMPLES[name]()
    html = report.to_html()
    panels = 1 if report.planned is None else 2
    assert html.count('stroke-dasharray="5 4"') == 2 * panels + 2  # two lines in each, and two in the key
    assert ("planned: ±" in html) == (report.planned is not None)
    alt = re.findall(r'role="img" aria-label="([^"]+)"', html)[0]
    assert "half-width with sampling error" in alt
    assert "smallest worthwhile effect" in alt


def test_federated_report_draws_every_site_that_answered() -> None:
    html = federated().to_html()
    assert "Forest plot of the effects at 3 sites: north" in html
    assert "Without an answer: coast." in html


def test_forest_plot_of_many_sites_shows_those_with_the_largest_weights(made: Made) -> None:
    share = SiteShare("", "answered", 100, estimate=0.1, standard_error=0.1)
    sites = tuple(replace(share, site=f"site-{place:02d}", weight=place / 1_830) for place in range(61))
    absent = tuple(SiteShare(f"absent-{place}", "did not answer") for place in range(11))
    html = dpc.Report.of(made(sites=(*sites, *absent)), date=date(2026, 3, 1)).to_html()
    drawn = html.partition('id="result"')[2].partition("</figure>")[0]
    assert "Forest plot of the effects at 40 sites: site-60" in drawn
    assert "site-21:" in drawn
    assert "site-20:" not in drawn
    assert "Shown are the 40 sites with the largest weights, of 61." in drawn
    assert "61 of 72 sites answered." in html
    assert "Without an answer" not in html
    assert "absent-10" in html  # in the table of the appendix


def test_notebook_shows_effect_and_plan_with_a_figure(made: Made, schema: dpc.Schema) -> None:
    effect = made()
    assert effect._repr_html_().count('role="img"') == 1
    assert "<table>" in effect._repr_html_()
    assert 'role="img"' not in made(no_interval="too noisy")._repr_html_()
    planned = plan(dpc.DifferenceInMeans(), dpc.Rehearsal(schema, n=1_000), dpc.Guarantee(epsilon=1.0), covariates=[])
    assert "interval: expect ±" in planned._repr_html_()


def test_notebook_figure_needs_a_finite_interval() -> None:
    assert notebook_figure(1.0, (float("-inf"), float("inf")), (1.0, 1.0, 1.0)) == ""


def test_figure_escapes_names(made: Made) -> None:
    hostile = made(arms=("a", "<script>alert(1)</script>"), noise=(NoiseTerm("laplace", 0.2),))
    assert "<script>" not in dpc.Report.of(hostile, date=federated().date).to_html()
