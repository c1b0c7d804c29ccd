"""Reports, scorecards and plans in a real browser: `python -m checks.report_pages AXE OUT`.

Every example of tests/report/examples.py is shown at two widths in two colour schemes, judged by
axe-core, photographed, and printed as a PDF. Last, a page with known faults must be judged faulty.

AXE is the file axe.min.js of the npm package axe-core, OUT a folder for pages, photographs, PDFs and results. Needs
Chromium.
"""

import json
import shutil
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import dpcausal as dpc
from checks.browser import launch, photograph
from tests.report.examples import EXAMPLES, planned, scorecard

FAULTY = (
    "<html><body><img src='data:,'><p style='color:#aaa;background:#fff'>pale</p>"
    "<div style='overflow-x:auto'><p style='width:3000px'>wide</p></div></body></html>"
)
MUST_FIND = ("image-alt", "color-contrast", "html-has-lang", "hidden until scrolled")


def pages() -> dict[str, str]:
    """Return every page, by its name."""
    made = {name: make().to_html() for name, make in EXAMPLES.items()}
    return made | {"scorecard": scorecard().to_html(), "plan": planned().to_html(remaining=dpc.Guarantee(epsilon=2))}


def main() -> None:
    """Run the whole check; fail if axe-core finds anything, or misses the faults of the faulty page."""
    axe, out = Path(sys.argv[1]).read_text(encoding="utf-8"), Path(sys.argv[2]).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    began = time.monotonic()
    views = {}
    for name, html in (pages() | {"faulty": FAULTY}).items():
        path = out / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        views[name] = path.as_uri()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        context = browser.new_context()
        found = photograph(context, views, axe, out, scrolling=False)
        page = context.new_page()
        for name, address in views.items():
            page.goto(address)
            page.pdf(path=out / f"{name}.pdf", prefer_css_page_size=True, print_background=False)
        browser.close()
    faults = {name: found.pop(name) for name in list(found) if name.startswith("faulty")}
    missed = [rule for rule in MUST_FIND if not any(rule in each for each in faults["faulty-1280-light"])]
    violations = {name: each for name, each in found.items() if each}
    seconds = round(time.monotonic() - began, 1)
    result = {"views": len(found), "violations": violations, "missed in the faulty page": missed, "seconds": seconds}
    (out / "result.json").write_text(json.dumps(result, indent=2), encoding="utf-8")
    print(json.dumps(result, indent=2))
    sys.exit(bool(violations or missed))


if __name__ == "__main__":
    main()
