"""The documentation in a real browser: `python -m checks.docs_pages AXE OUT [--site FOLDER] [--only WORD]`.

Every page is opened at two widths in two colour schemes. On each

- nothing is wider than the window,
- every formula is typeset and every picture is loaded,
- the browser reports no error and asks no other server for anything, and
- axe-core finds no violation; it judges each page at each width and in each scheme once.

AXE is the file axe.min.js of the npm package axe-core, OUT a folder for screenshots and `result.json`. The site is
built into OUT/site, unless FOLDER holds one. Needs Chromium. The result also lists, without failing, the tables and
code blocks that have to be scrolled sideways at the larger width.
"""

import argparse
import functools
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from checks.browser import SCHEMES, WIDTHS, launch

ROOT = Path(__file__).parents[1]
JUDGED = ((1280, "light"), (390, "dark"))
"""The views that axe-core judges: each width and each scheme once, and on the first page, with the same frame, all."""

LOADED = """async () => {
  for (const image of document.images) image.loading = "eager";
  const shown = Array.from(document.images).filter((image) => image.checkVisibility());
  await Promise.all(shown.map((image) => image.decode().catch(() => null)));
  for (let wait = 0; wait < 100 && document.querySelector(".arithmatex:not(:has(.katex))"); wait++)
    await new Promise((done) => setTimeout(done, 50));
}"""
"""Wait for pictures and formulas."""

FAULTS = """() => {
  const faults = [], width = document.documentElement.clientWidth;
  const wide = document.documentElement.scrollWidth;
  if (wide > width) faults.push(`${wide} pixels wide`);
  for (const formula of document.querySelectorAll(".arithmatex"))
    if (!formula.querySelector(".katex") || formula.querySelector(".katex-error"))
      faults.push(`formula: ${formula.textContent.slice(0, 80)}`);
  for (const image of document.images)
    if (image.checkVisibility() && !image.naturalWidth)
      faults.push(`picture: ${image.getAttribute("src").slice(0, 80)}`);
  return faults;
}"""
"""Return what is wrong with the page's layout."""

SCROLLED = """() => Array.from(document.querySelectorAll("article .md-typeset__scrollwrap, article pre > code"))
  .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
  .map((box) => `${box.scrollWidth} of ${box.clientWidth}: ${box.textContent.trim().slice(0, 60)}`)"""
"""Return the tables and code blocks that are wider than their boxes."""

AXE = """() => axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations.map(
  (each) => `${each.impact}: ${each.id} (${each.nodes.length}): ${each.nodes[0].html.slice(0, 160)}`))"""
"""Return what axe-core finds."""


@dataclass
class Findings:
    """What is wrong, by page, width and scheme; and what has to be scrolled, by page."""

    faults: dict[str, list[str]] = field(default_factory=dict)
    scrolled: dict[str, list[str]] = field(default_factory=dict)
    views: int = 0


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; yield its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def look(browser: Browser, address: str, names: list[str], axe: str, out: Path) -> Findings:
    """Open every page in every view and return what is found."""
    findings, errors = Findings(), list[str]()
    for scheme in SCHEMES:
        context = browser.new_context(color_scheme=scheme)
        context.set_default_timeout(180_000)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(f"error: {error}"))
        page.on("request", lambda asked: None if asked.url.startswith((address, "data:")) else errors.append(asked.url))
        page.on("response", lambda answer: None if answer.ok else errors.append(f"{answer.status}: {answer.url}"))
        for name in names:
            errors.clear()
            page.set_viewport_size({"width": WIDTHS[0], "height": 900})
            page.goto(address + name)
            page.evaluate(LOADED)
            page.evaluate(axe)
            if scheme == SCHEMES[0] and (boxes := page.evaluate(SCROLLED)):
                findings.scrolled[name] = boxes
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                judged = (width, scheme) in JUDGED or name == "index.html"
                faults = [*page.evaluate(FAULTS), *(page.evaluate(AXE) if judged else ()), *errors]
                view = f"{name.removesuffix('index.html').strip('/').replace('/', '_') or 'home'}-{width}-{scheme}"
                page.screenshot(path=out / f"{view}.png", full_page=True)
                findings.views += 1
                if faults:
                    findings.faults[view] = faults
        context.close()
    return findings


def main() -> None:
    """Check the pages; end with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("axe", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--site", type=Path, help="a site that is built already")
    parser.add_argument("--only", default="", help="only pages whose address contains this word")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    site = options.site or options.out / "site"
    if not options.site:
        words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site.resolve())]
        subprocess.run(words, check=True, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})  # noqa: S603
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    names = [name for name in names if options.only in name]
    began = time.monotonic()
    with served(site) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        findings = look(browser, address, names, options.axe.read_text(encoding="utf-8"), options.out)
        browser.close()
    result = {"pages": len(names), **asdict(findings), "seconds": round(time.monotonic() - began, 1)}
    (options.out / "result.json").write_text(json.dumps(result, indent=2), encoding="utf-8")
    print(json.dumps(result, indent=2))
    sys.exit(bool(findings.faults))


if __name__ == "__main__":
    main()
