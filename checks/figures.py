"""Check the figures of the documentation, and turn them dark: `python -m checks.figures`.

A figure is an SVG file. On the site's light and on its dark background

- text has a contrast of at least 4.5 to 1, and what carries data of at least 3 to 1 (WCAG 2.2, 1.4.3 and 1.4.11),
- two colours of one panel are at least `DISTANCE` apart in OKLab, as people with and without a colour vision deficiency
  see them (Machado, Oliveira and Fernandes 2009, severity 1), and
- series of different colours differ by marker, dashes or width as well, so that the figure reads in black and white.

Every figure has an alt text that says what is seen, and every file is shown on some page.
"""

import colorsys
import functools
import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "figures"
PHOTOGRAPHS = {"console.png"}
"""Pictures of a screen: the only ones that are not drawn."""

LIGHT, DARK, LIGHT_INK, DARK_INK = "#ffffff", "#12191c", "#000000", "#e3e9ea"
"""The backgrounds of the site and the text on them, as in docs/stylesheets/site.css."""

TEXT, DATA, DISTANCE, QUIET = 4.5, 3.0, 7.0, 1.6
"""The least contrast of text and of data, the least distance (OKLab, times 100), the most contrast of a quiet fill."""

WORDS = 6
"""The least number of words of an alt text."""

THIN = 1.2
"""Lines up to this width, in points, are thin."""

DEFICIENCIES = {
    "nobody's": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
_TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.793617785, -0.0040720468),
    (1.9779984951, -2.428592205, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.808675766),
)
"""From linear red, green and blue to OKLab (Ottosson 2020)."""

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_SHORT_COLOUR = re.compile(r"""(?<=[\s"':])#([0-9a-fA-F])([0-9a-fA-F])([0-9a-fA-F])(?=[\s"';])""")
_CAP = re.compile(r"\w+ M \S+ \S+\s+L \S+ \S+\s*")
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"


def channels(colour: str) -> NDArray[np.float64]:
    """Return the linear red, green and blue of a colour such as #0072b2."""
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    low, high = sorted(float(channels(colour) @ (0.2126, 0.7152, 0.0722)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


@functools.cache
def distance(first: str, second: str) -> float:
    """Return the least distance of two colours in OKLab, times 100, over all colour visions."""
    return min(
        100
        * float(np.linalg.norm(_lab(np.array(matrix) @ channels(first)) - _lab(np.array(matrix) @ channels(second))))
        for matrix in DEFICIENCIES.values()
    )


def _lab(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    lab: NDArray[np.float64] = np.array(_TO_LAB) @ np.cbrt(np.array(_TO_CONES) @ np.clip(linear, 0, 1))
    return lab


@functools.cache
def dark_colour(colour: str) -> str:
    """Return a colour for the dark background: the same where it is seen on both, else with its lightness turned."""
    if min(contrast(colour, LIGHT), contrast(colour, DARK)) >= DATA:
        return colour
    if colour.lower() in {LIGHT, LIGHT_INK}:
        return {LIGHT: DARK, LIGHT_INK: DARK_INK}[colour.lower()]
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    turned = colorsys.hls_to_rgb(hue, 0.09 + 0.81 * (1 - lightness), min(saturation, 0.5))
    return "#" + "".join(f"{round(255 * part):02x}" for part in turned)


def dark(svg: str) -> str:
    """Return a figure for the dark background."""
    if "<image" in svg:  # a map of colours with numbers on it
        box = f'<rect width="100%" height="100%" fill="{LIGHT}"/>'
        return re.sub(r"(<svg\b[^>]*>)", lambda match: match[1] + box, svg, count=1)
    turned = _COLOUR.sub(lambda match: dark_colour(match[0]), _SHORT_COLOUR.sub(r"#\1\1\2\2\3\3", svg))
    if not re.search(r"<svg\b[^>]*\bfill=", turned):  # black is what SVG fills with where nothing is said
        turned = re.sub(r"<svg\b", f'<svg fill="{DARK_INK}"', turned, count=1)
    return turned


@dataclass(frozen=True)
class Series:
    """How a line or a set of points looks: its colour on the background, and the rest as text."""

    colour: str
    shape: str


def _style(element: ET.Element) -> dict[str, str]:
    pairs = (part.partition(":") for part in element.get("style", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _seen(colour: str, style: dict[str, str], kind: str, background: str) -> str:
    """Return a colour as it is seen through its opacity."""
    share = float(style.get("opacity", 1)) * float(style.get(f"{kind}-opacity", 1))
    mixed = [
        round(share * int(colour[place : place + 2], 16) + (1 - share) * int(background[place : place + 2], 16))
        for place in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _series(group: ET.Element, shapes: dict[str, str], ink: str, background: str) -> Iterator[Series]:
    """Yield how a line, its markers, or a set of points looks."""
    line, dashes, width, marker, edge = "", "", "", "", ""
    for element in group.iter():
        style = _style(element)
        if element.tag == f"{_SVG}use":
            shape, filled = shapes.get(element.get(_LINK, "").lstrip("#"), ""), style.get("fill", ink)
            hollow = "hollow" if filled.lower() in {"none", background} else "full"
            marker = f"{hollow} {shape}"
            colour = style.get("stroke", "none") if style.get("stroke", "none") != "none" else filled
            edge = _seen(colour, style, "stroke", background)
        elif element.tag == f"{_SVG}path" and "stroke" in style and element.get("id", "") not in shapes:
            line = _seen(style["stroke"], style, "stroke", background)
            dashes = " ".join(style.get("stroke-dasharray", "").replace(",", " ").split())
            width = "thin" if float(style.get("stroke-width", 1)) <= THIN else "wide"
    if not line and edge and _CAP.fullmatch(marker):  # the end of an error bar
        yield Series(edge, "bar")
    elif line or edge:
        yield Series(line or edge, f"{marker}/{dashes or 'whole' if line else 'no line'}/{width}")


def faults(svg: str, background: str) -> list[str]:
    """Return what a reader with some colour vision would not see on this background."""
    root = ET.fromstring(_SHORT_COLOUR.sub(r"#\1\1\2\2\3\3", svg))  # noqa: S314 (a file of this repository)
    ink = root.get("fill") or (DARK_INK if background == DARK else LIGHT_INK)
    shapes = {element.get("id", ""): element.get("d", "") for element in root.iterfind(f".//{_SVG}defs//{_SVG}path")}
    found = []
    for element in root.iter(f"{_SVG}text"):
        style = _style(element)
        colour = style.get("fill", element.get("fill", ink))
        if _COLOUR.fullmatch(colour) and root.find(f".//{_SVG}image") is None:
            value = contrast(_seen(colour, style, "fill", background), background)
            if value < TEXT:
                found.append(f"text {colour} has a contrast of {value:.1f} on {background}; at least {TEXT} is needed")
    for axes in root.iterfind(f".//{_SVG}g"):
        if axes.get("id", "").startswith("axes_"):
            found += _panel_faults(axes, shapes, ink, background)
    return list(dict.fromkeys(found))


def _panel_faults(axes: ET.Element, shapes: dict[str, str], ink: str, background: str) -> Iterator[str]:
    series: list[Series] = []
    for child in axes:
        kind = child.get("id", "").partition("_")[0]
        if kind in {"line2d", "PathCollection"}:
            series += _series(child, shapes, ink, background)
        elif kind == "LineCollection":  # bars of marks, which have shapes of their own
            series += [Series(each.colour, "bar") for each in _series(child, shapes, ink, background)]
        elif kind == "patch":
            yield from _patch_faults(child, background)
    for colour in dict.fromkeys(each.colour for each in series):
        value = contrast(colour, background)
        if value < DATA:
            yield f"{colour} has a contrast of {value:.1f} on {background}; at least {DATA} is needed"
    yield from _pair_faults(series)


def _pair_faults(series: list[Series]) -> Iterator[str]:
    for first, second in itertools.combinations(dict.fromkeys(series), 2):
        if first.colour == second.colour or "bar" in (first.shape, second.shape):
            continue
        apart = distance(first.colour, second.colour)
        if apart < DISTANCE:
            yield f"{first.colour} and {second.colour} are {apart:.1f} apart; at least {DISTANCE} is needed"
        if first.shape == second.shape:
            yield f"{first.colour} and {second.colour} differ by colour only"


def _patch_faults(patch: ET.Element, background: str) -> Iterator[str]:
    for path in patch.iter(f"{_SVG}path"):
        style = _style(path)
        fill, stroke = style.get("fill", "none"), style.get("stroke", "none")
        if not _COLOUR.fullmatch(fill) or not path.get("clip-path"):
            continue
        value = contrast(_seen(fill, style, "fill", background), background)
        outlined = _COLOUR.fullmatch(stroke) and contrast(stroke, background) >= DATA
        if QUIET < value < DATA and not outlined:
            yield f"a fill of {fill} is neither quiet ({QUIET}) nor visible ({DATA}) on {background}: {value:.1f}"


def figures() -> list[Path]:
    """Return the figures of the documentation."""
    return sorted(path for path in FOLDER.iterdir() if path.name not in PHOTOGRAPHS)


def figure_faults(path: Path) -> list[str]:
    """Return what is wrong with a figure, on both backgrounds."""
    if path.suffix != ".svg":
        return [f"{path.name} is no SVG file, so that it cannot be checked or turned dark"]
    text = path.read_text(encoding="utf-8")
    return [f"{path.name}: {fault}" for fault in (*faults(text, LIGHT), *faults(dark(text), DARK))]


def images(page: str) -> list[tuple[str, str]]:
    """Return the alt text and the address of every image of a page of Markdown."""
    page = re.sub(r"^( *)```.*?^\1```$", "", page, flags=re.MULTILINE | re.DOTALL)
    found = [(" ".join(alt.split()), address) for alt, address in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", page)]
    for tag in re.findall(r"<img\b[^>]*>", page):
        alt, address = (re.search(rf'\b{name}="([^"]*)"', tag) for name in ("alt", "src"))
        found.append((alt[1] if alt else "", address[1] if address else ""))
    return found


def alt_fault(alt: str, address: str) -> str | None:
    """Return what is wrong with an alt text."""
    if len(alt.split()) < WORDS:
        return f"the alt text of {address} does not say what is seen: {alt!r}"
    return None


def page_faults() -> list[str]:
    """Return images without a real alt text, and figures that no page shows."""
    found, shown = [], set()
    for path in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]:
        for alt, address in images(path.read_text(encoding="utf-8")):
            shown.add(Path(address).name)
            fault = alt_fault(alt, address)
            found += [f"{path.relative_to(DOCS.parent)}: {fault}"] if fault else []
    return found + [f"no page shows {path.name}" for path in sorted(FOLDER.iterdir()) if path.name not in shown]


def main() -> None:
    """Check all figures."""
    found = [*(fault for path in figures() for fault in figure_faults(path)), *page_faults()]
    print(*found, sep="\n")
    print(f"{len(figures())} figures, {len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
