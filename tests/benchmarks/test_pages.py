"""The tables of the documentation are those of the stored results."""

import pytest

from benchmarks import pages


@pytest.mark.parametrize("page", pages.tables())
def test_page_shows_the_stored_results(page: str) -> None:
    text = (pages.DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert pages.rewritten(page, text) == text
