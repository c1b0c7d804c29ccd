"""House colours and logo of a page, from a small TOML file."""

import re
import tomllib
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dpcausal.errors import RefusedError
from dpcausal.utils.plain_text import check_plain_text

PAPER, PAPER_DARK = "#ffffff", "#121716"
ACCENT, ACCENT_DARK = "#00695c", "#6fcdbf"
LEAST_CONTRAST = 4.5
"""WCAG 2.2, level AA, for text of ordinary size."""

_LARGEST_LOGO = 200_000
_KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class Theme:
    """House colours and logo.

    Attributes:
        name: The organisation, which is also the alt text of the logo.
        accent: The colour of headings and bars on white, as `#rrggbb`.
        accent_dark: The same on a dark background.
        logo: The logo, as a data URI; empty without one.
    """

    name: str = ""
    accent: str = ACCENT
    accent_dark: str = ACCENT_DARK
    logo: str = ""

    def __post_init__(self) -> None:
        check_plain_text("the name of a theme", [self.name], RefusedError)
        for field, colour, paper in (("accent", self.accent, PAPER), ("accent_dark", self.accent_dark, PAPER_DARK)):
            if not isinstance(colour, str) or not _COLOUR.fullmatch(colour):
                raise RefusedError(
                    expected=f"{field}: a colour as #rrggbb", got=repr(colour)[:50], hint='write accent = "#00695c".'
                )
            if contrast(colour, paper) < LEAST_CONTRAST:
                tone = "darker" if paper == PAPER else "lighter"
                raise RefusedError(
                    expected=f"{field} with a contrast of at least {LEAST_CONTRAST}:1 to the background {paper}",
                    got=f"{colour}, with {contrast(colour, paper):.1f}:1",
                    hint=f"choose a {tone} colour: headings and links in this one are hard to read.",
                )
        if self.logo and not self.logo.startswith(tuple(f"data:{kind};base64," for kind in _KINDS.values())):
            raise RefusedError(
                expected="a logo as a data URI of a PNG, SVG or JPEG image",
                got=repr(self.logo)[:50],
                hint="read the theme from a file: Theme.from_toml(path) embeds the logo that the file names.",
            )

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read a theme file; the path of the logo is relative to it.

        A file holds, for instance:

        ```toml
        name = "University Hospital"
        accent = "#7a1f3d"
        accent_dark = "#f0a3bd"
        logo = "logo.svg"
        ```
        """
        file = Path(path)
        try:
            given: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RefusedError(
                expected="a theme file in TOML",
                got=f"{file.name} ({type(error).__name__})",
                hint='write name, accent, accent_dark and logo, as accent = "#00695c"; each may be left out.',
            ) from None
        unknown = sorted(set(given) - set(cls.__dataclass_fields__))
        if unknown or not all(isinstance(value, str) for value in given.values()):
            raise RefusedError(
                expected="a theme with name, accent, accent_dark and logo, each a text",
                got=", ".join(unknown) or "a value that is no text",
                hint='write accent = "#00695c"; leave out what you do not need.',
            )
        return cls(**given | ({"logo": _embedded(file.parent / given["logo"])} if given.get("logo") else {}))


def _embedded(file: Path) -> str:
    """Return an image as a data URI."""
    kind = _KINDS.get(file.suffix.lower())
    image = file.read_bytes() if kind and file.is_file() else b""
    if not image or len(image) > _LARGEST_LOGO:
        raise RefusedError(
            expected=f"a logo in a file .png, .svg or .jpg of at most {_LARGEST_LOGO // 1000} kB",
            got=f"{file.name} ({len(image):,} bytes)" if image else f"{file.name}, which is no such file",
            hint="give its path relative to the theme file; save a large image with fewer pixels.",
        )
    return f"data:{kind};base64,{b64encode(image).decode()}"


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, by WCAG 2.2.

    Example:
        >>> round(contrast("#ffffff", "#000000"), 1), round(contrast("#767676", "#ffffff"), 2)
        (21.0, 4.54)
    """
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
