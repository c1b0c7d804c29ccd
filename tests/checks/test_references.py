"""Every estimator has BibTeX beside it, and every entry can be copied."""

import re

import pytest

import dpcausal
from checks.references import block, cited, entries, estimators


@pytest.mark.parametrize("name", estimators())
def test_estimator_has_a_reference(name: str) -> None:
    """As BibTeX, or in its own docstring."""
    assert "@" in block(name) or "\n    Reference:\n" in str(getattr(dpcausal, name).__doc__)


def test_entries_name_estimators_that_exist() -> None:
    named = {name for _, names in entries() for name in names}
    assert named <= set(dpcausal.__all__)


def test_entries_are_whole() -> None:
    found = [entry for entry, _ in entries()]
    keys = [re.findall(r"^@\w+\{(\w+),", entry)[0] for entry in found]
    assert len(set(keys)) == len(keys)
    for entry in found:
        assert entry.count("{") == entry.count("}")
        assert {"author", "title", "year"} <= set(re.findall(r"^  (\w+) = ", entry, re.MULTILINE))
        assert "estimators" not in entry


def test_page_shows_the_reference_after_the_estimator() -> None:
    page = cited("# Page\n\n::: dpcausal.Survival\n    options:\n      members: []\n\n::: dpcausal.Cut\n")
    before, _, after = page.partition("::: dpcausal.Cut")
    assert "members: []\n\n??? quote" in before
    assert "@article{kaplan1958," in before
    assert "@" not in after
