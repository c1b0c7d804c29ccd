"""What the checks in a real browser share: Chromium, photographs at two widths in two colour schemes, and axe-core."""

import shutil
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Playwright

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = (1280, 390)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

CUT_OFF = """[...document.querySelectorAll("body *")]
    .filter(each => each.clientWidth && each.scrollWidth > each.clientWidth + 1)
    .filter(each => ["auto", "scroll"].includes(getComputedStyle(each).overflowX))
    .map(each => `hidden until scrolled: ${each.className} is ${each.scrollWidth} wide in ${each.clientWidth}`)"""
"""Parts of a page that are cut off until somebody scrolls sideways."""


def launch(playwright: Playwright) -> Browser:
    """Start Chromium."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


def photograph(
    context: BrowserContext, views: dict[str, str], axe: str, out: Path, *, scrolling: bool = True
) -> dict[str, list[str]]:
    """Photograph views and return what axe-core finds in each, by the view's name.

    Args:
        context: The browser.
        views: The address of each view, by its name.
        axe: The source of axe-core.
        out: The folder for the photographs.
        scrolling: Whether parts of a view may need to be scrolled sideways.
    """
    found = dict[str, list[str]]()
    page = context.new_page()
    for name, address in views.items():
        page.goto(address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                page.screenshot(path=out / f"{name}-{width}-{scheme}.png", full_page=True)
                page.evaluate(axe)
                results: dict[str, Any] = page.evaluate("axe.run()")
                found[f"{name}-{width}-{scheme}"] = [
                    f"{each['impact']}: {each['id']}: {each['nodes'][0]['html'][:120]}"
                    for each in results["violations"]
                ]
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{name} is {wide} pixels wide at {width}"
                found[f"{name}-{width}-{scheme}"] += [] if scrolling else page.evaluate(CUT_OFF)
    page.close()
    return found
