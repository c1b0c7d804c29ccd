"""The check of pages in a browser finds what is wrong with them, and passes a sound page."""

import shutil

import pytest

pytest.importorskip("playwright")
if not shutil.which("chromium"):
    pytest.skip("no chromium", allow_module_level=True)

from playwright.sync_api import sync_playwright

from checks.browser import launch
from checks.docs_pages import look, served

AXE = """window.axe = {run: async () => ({violations: document.querySelector("main") ? [] : [
  {impact: "moderate", id: "region", nodes: [{html: "<p>"}]}]})}"""
"""A stand-in for axe-core with one rule: a page has a main part."""

PAGES = {
    "sound": "<main><p>Words.</p></main>",
    "wide": '<main><div style="width: 800px">Words.</div></main>',
    "formula": '<main><span class="arithmatex"><span class="katex katex-error">x</span></span></main>',
    "picture": '<main><img src="missing.png" alt="A picture that is not there"></main>',
    "error": "<main><script>throw Error('odd')</script></main>",
    "judged": "<p>Words.</p>",
}


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return what is found on pages with one fault each."""
    site = tmp_path_factory.mktemp("site")
    for name, body in PAGES.items():
        text = f'<!DOCTYPE html><html lang="en"><link rel="icon" href="data:,"><title>{name}</title>{body}</html>'
        (site / f"{name}.html").write_text(text, encoding="utf-8")
    with served(site) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        found = look(browser, address, [f"{name}.html" for name in PAGES], AXE, tmp_path_factory.mktemp("out"))
        browser.close()
    assert found.views == 4 * len(PAGES)
    return found.faults


@pytest.mark.parametrize(
    ("page", "views", "fault"),
    [
        ("wide", ["390-light", "390-dark"], "pixels wide"),
        ("formula", ["1280-light", "390-light", "1280-dark", "390-dark"], "formula: x"),
        ("picture", ["1280-light", "390-light", "1280-dark", "390-dark"], "picture: missing.png"),
        ("error", ["1280-light", "390-light", "1280-dark", "390-dark"], "error: odd"),
        ("judged", ["1280-light", "390-dark"], "moderate: region"),
    ],
)
def test_fault_is_found(faults: dict[str, list[str]], page: str, views: list[str], fault: str) -> None:
    found = {name: texts for name, texts in faults.items() if name.startswith(page)}
    assert sorted(found) == sorted(f"{page}.html-{view}" for view in views)
    assert all(any(fault in text for text in texts) for texts in found.values()), found


def test_sound_page_has_no_fault(faults: dict[str, list[str]]) -> None:
    assert not [name for name in faults if name.startswith("sound")]


def test_missing_file_is_named(faults: dict[str, list[str]]) -> None:
    assert any(text.startswith("404: ") for text in faults["picture.html-1280-light"])
