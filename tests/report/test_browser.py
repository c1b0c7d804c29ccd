"""The page in a real browser: it fits a desktop and a phone, and the browser logs no errors."""

import dataclasses
import re
import shutil
import subprocess
from datetime import date
from html import escape
from pathlib import Path

import pytest

import dpcausal as dpc
from dpcausal.estimators.base import declared_for
from dpcausal.report import Report
from dpcausal.results.site_share import SiteShare
from tests.report.conftest import Made
from tests.report.examples import scorecard

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium or chrome on this machine to show the page in")


def shown(path: Path, width: int) -> subprocess.CompletedProcess[str]:
    """Load a page in the browser, and return its DOM and its log."""
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        f"--window-size={width},900",
    ]
    profile = f"--user-data-dir={path.parent / 'profile'}"
    return subprocess.run(  # noqa: S603 (our own page)
        [str(CHROMIUM), *options, profile, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@pytest.fixture
def html(made: Made, study: dpc.Study, sites: tuple[SiteShare, ...]) -> str:
    """A page with a table of sites and with very long names."""
    effect = made(sites=sites, outcome="outcome" * 20, arms=("control" * 20, "treatment" * 20))
    treatment = dpc.Treatment("treat", labels=effect.arms, undeclared=0)
    schema = dataclasses.replace(study.schema, treatment=treatment, outcome=dpc.Real(effect.outcome, 0, 10))
    effect = dataclasses.replace(effect, declared=declared_for(study.estimator, schema))
    return Report.of(effect, dataclasses.replace(study, schema=schema), date=date(2026, 1, 31)).to_html()


@pytest.mark.parametrize("width", [1280, 390])
def test_page_fits_the_screen(html: str, width: int, tmp_path: Path) -> None:
    assert measured(html, width, tmp_path) == (width, width)


def test_page_that_is_too_wide_is_caught(html: str, tmp_path: Path) -> None:
    wide = html.replace("</main>", '<div style="width:3000px">.</div></main>')
    assert measured(wide, 390, tmp_path)[1] > 2_000


@pytest.mark.parametrize("width", [1280, 700])
def test_table_breaks_words_only_in_the_last_column(study: dpc.Study, width: int, tmp_path: Path) -> None:
    rehearsal = dpc.Rehearsal(study.schema, n=5_000)
    overlap = dpc.Overlap(covariates=["age", "race"]).estimate(rehearsal, epsilon=1.0)
    html = Report.of(study.rehearsed(5_000), study, diagnoses=[overlap], date=date(2026, 1, 31)).to_html()
    wholes, pieces = words(html, width, tmp_path)
    assert wholes == pieces > 5
    wholes, pieces = words(html.replace(".wide {", "td { overflow-wrap: anywhere; } .wide {", 1), width, tmp_path)
    assert pieces > wholes  # as it was before


def words(html: str, width: int, folder: Path) -> tuple[int, int]:
    """Return how many cells, except the last of a line, hold one word, and in how many pieces these are shown."""
    script = """
        const cells = [...inner.querySelectorAll("td:not(:last-child)")];
        const single = cells.filter(cell => /^[a-z]+$/.test(cell.innerText));
        const pieces = cell => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getClientRects().length;
        };
        document.title = single.length + "/" + single.reduce((sum, cell) => sum + pieces(cell), 0);
    """
    return inside(html, width, folder, script)


@pytest.mark.parametrize("width", [1280, 390])
def test_scorecard_shows_all_columns_without_scrolling(width: int, tmp_path: Path) -> None:
    client, scroll = wide_parts(scorecard().to_html(), width, tmp_path)
    assert 0 < scroll <= client


def test_column_that_is_cut_off_is_caught(tmp_path: Path) -> None:
    html = scorecard().to_html().replace("</style>", "td { min-width: 20rem; }</style>")
    client, scroll = wide_parts(html, 1280, tmp_path)
    assert scroll > client


def wide_parts(html: str, width: int, folder: Path) -> tuple[int, int]:
    """Return the width of the table's frame, and of the table in it."""
    script = 'const wide = inner.querySelector(".wide"); document.title = wide.clientWidth + "/" + wide.scrollWidth;'
    return inside(html, width, folder, script)


def measured(html: str, width: int, folder: Path) -> tuple[int, int]:
    """Return the width of the screen and of the page."""
    return inside(html, width, folder, 'document.title = inner.clientWidth + "/" + inner.scrollWidth;')


def inside(html: str, width: int, folder: Path, statement: str) -> tuple[int, int]:
    """Return two numbers about a page, computed by a page around it: no window is as narrow as a phone."""
    script = f'const inner = document.querySelector("iframe").contentDocument.documentElement; {statement}'
    frame = f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{escape(html)}"></iframe>'
    path = folder / "around.html"
    path.write_text(f"<title></title>{frame}<script>onload = () => {{{script}}}</script>", encoding="utf-8")
    client, scroll = re.findall(r"<title>(\d+)/(\d+)</title>", shown(path, 1280).stdout)[0]
    return int(client), int(scroll)


def test_browser_logs_no_errors(html: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    assert "CONSOLE" not in shown(path, 1280).stderr
    path.write_text(html.replace("</main>", "<script>0</script></main>"), encoding="utf-8")
    assert "CONSOLE" in shown(path, 1280).stderr  # the page forbids scripts, and the browser says so
