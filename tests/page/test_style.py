"""The colours that all pages share can be read."""

import pytest

from checks.figures import TEXT, contrast
from dpcausal.page.style import DARK, LIGHT


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_text_has_enough_contrast(colours: dict[str, str]) -> None:
    for back in (colours["paper"], colours["card"]):
        for text in ("ink", "quiet", "good", "bad", "accent"):
            assert contrast(colours[text], back) >= TEXT
