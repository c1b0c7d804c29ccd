from base64 import b64decode
from pathlib import Path

import pytest

from dpcausal.errors import RefusedError
from dpcausal.page.style import DARK, LIGHT
from dpcausal.page.theme import LEAST_CONTRAST, Theme, contrast
from tests.report.examples import trial

LOGO = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle cx="4" cy="4" r="4"/></svg>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logo.svg").write_bytes(LOGO)
    (tmp_path / "theme.toml").write_text('name = "A & B <Hospital>"\naccent = "#7a1f3d"\nlogo = "logo.svg"\n')
    return tmp_path


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_text_has_enough_contrast(colours: dict[str, str]) -> None:
    accent = Theme().accent if colours is LIGHT else Theme().accent_dark
    for back in (colours["paper"], colours["card"]):
        for text in (colours["ink"], colours["quiet"], colours["good"], colours["bad"], accent):
            assert contrast(text, back) >= LEAST_CONTRAST


def test_theme_file_colours_the_page_and_embeds_the_logo(folder: Path) -> None:
    html = trial().to_html(Theme.from_toml(folder / "theme.toml"))
    assert "--accent: #7a1f3d" in html
    assert 'alt="A &amp; B &lt;Hospital&gt;"' in html
    data = html.split("data:image/svg+xml;base64,")[1].split('"')[0]
    assert b64decode(data) == LOGO
    assert "logo.svg" not in html


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('accent = "#ffcc00"', "contrast of at least 4.5:1"),
        ('accent_dark = "#333333"', "choose a lighter colour"),
        ('accent = "red"', "#rrggbb"),
        ('accent = "#00695c; } body { display: none"', "#rrggbb"),
        ("accent = 3", "each a text"),
        ('colour = "#00695c"', "got colour"),
        ('logo = "missing.svg"', "no such file"),
        ('logo = "theme.toml"', "no such file"),
        ("accent = ", "TOML"),
        ('name = "a\\u0007"', "control characters"),
    ],
)
def test_unusable_theme_is_refused_in_words(folder: Path, text: str, words: str) -> None:
    file = folder / "theme.toml"
    file.write_text(text)
    with pytest.raises(RefusedError, match=words):
        Theme.from_toml(file)


def test_large_logo_and_logo_that_is_no_image_are_refused(folder: Path) -> None:
    (folder / "logo.svg").write_bytes(LOGO * 3_000)
    with pytest.raises(RefusedError, match="200 kB"):
        Theme.from_toml(folder / "theme.toml")
    with pytest.raises(RefusedError, match="data URI"):
        Theme(logo="https://example.org/logo.svg")
