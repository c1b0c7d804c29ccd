"""Figures can be read by everybody, and the check finds one that cannot."""

import json
from pathlib import Path

import pytest

from checks import figures
from checks.figures import DARK, DATA, LIGHT, TEXT, alt_fault, contrast, dark, dark_colour, distance, faults, images

BLUE, VERMILLION, GREEN = "#0072b2", "#d55e00", "#009e73"


def line(colour: str, dashes: str = "", opacity: str = "") -> str:
    style = f"fill: none; stroke: {colour}; stroke-width: 1.5; {dashes} {opacity}"
    return f'<g id="line2d_1"><path d="M 0 0 L 1 1" clip-path="url(#p)" style="{style}"/></g>'


def figure(*parts: str, text: str = "fill: #000000") -> str:
    body = "".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f'<g id="axes_1">{body}<text style="{text}">epsilon</text></g></svg>'
    )


GOOD = figure(line(BLUE), line(VERMILLION, "stroke-dasharray: 5,2"))


@pytest.mark.parametrize("path", figures.figures(), ids=lambda path: path.name)
def test_figure_can_be_read_on_both_backgrounds(path: Path) -> None:
    assert figures.figure_faults(path) == []


def test_pages_show_every_figure_with_an_alt_text() -> None:
    assert figures.page_faults() == []


def test_good_figure_passes_on_both_backgrounds() -> None:
    assert faults(GOOD, LIGHT) == []
    assert faults(dark(GOOD), DARK) == []


@pytest.mark.parametrize(
    ("svg", "fault"),
    [
        (figure(line("#e0e0e0")), "contrast of 1.3"),
        (figure(line(BLUE, opacity="stroke-opacity: 0.3")), "contrast of"),
        (figure(line(BLUE), line(VERMILLION)), "differ by colour only"),
        (figure(line("#d55e00"), line("#b87a00", "stroke-dasharray: 5,2")), "apart"),  # alike in deuteranopia
        (figure(line(BLUE), text="fill: #999999"), "text #999999"),
        (figure('<g id="patch_1"><path clip-path="url(#p)" style="fill: #b0b0b0"/></g>'), "neither quiet"),
    ],
)
def test_bad_figure_is_caught(svg: str, fault: str) -> None:
    assert fault in " ".join(faults(svg, LIGHT))


def test_colour_of_three_digits_is_turned_and_checked_as_one_of_six() -> None:
    assert dark('<svg fill="#000"><rect fill="#fff"/></svg>') == dark(
        '<svg fill="#000000"><rect fill="#ffffff"/></svg>'
    )
    assert "text #999999" in " ".join(faults(figure(line(BLUE), text="fill: #999"), LIGHT))


def test_figure_that_is_not_turned_dark_is_caught() -> None:
    assert faults(figure(line("#000000")), DARK)
    assert not faults(dark(figure(line("#000000"))), DARK)


def test_dark_figure_keeps_the_colours_that_both_backgrounds_show() -> None:
    for colour in (BLUE, VERMILLION, GREEN):
        assert min(contrast(colour, LIGHT), contrast(colour, DARK)) >= DATA
        assert dark_colour(colour) == colour
    assert contrast(dark_colour("#000000"), DARK) >= TEXT
    assert dark_colour("#ffffff") == DARK


def test_contrast_and_distance_have_known_values() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert distance("#123456", "#123456") == 0
    assert distance("#d55e00", "#b87a00") < 1
    assert distance(BLUE, VERMILLION) > 10


def test_backgrounds_are_those_of_the_stylesheet() -> None:
    text = (figures.DOCS / "stylesheets" / "site.css").read_text(encoding="utf-8")
    assert f"--md-default-bg-color: {DARK};" in text
    assert "--md-default-bg-color: #fff;" in text


@pytest.mark.parametrize("alt", ["", "love.png", "Errors by epsilon"])
def test_alt_text_that_says_nothing_is_caught(alt: str) -> None:
    assert alt_fault(alt, "figures/love.svg")


def test_images_are_found_with_their_alt_texts() -> None:
    page = '![two\nlines](a.svg)\n```\n![no](b.svg)\n```\n<img alt="x" src="c.png">'
    assert images(page) == [("two lines", "a.svg"), ("x", "c.png")]


@pytest.mark.parametrize("path", sorted(figures.DOCS.rglob("*.ipynb")), ids=lambda path: path.name)
def test_pictures_of_notebooks_have_alt_texts(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", ())):
            assert alt_fault(cell["metadata"].get("alt", ""), path.name) is None, "".join(cell["source"])
