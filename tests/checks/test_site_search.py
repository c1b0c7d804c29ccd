"""The site's search finds a paper by the name of its method; `make docs` checks it on the site that it builds."""

import json
from pathlib import Path
from typing import Any

import pytest

from checks import site_search
from checks.site_search import NAMES, check, counted, faults, ranked

FIELDS = {"title": {"boost": 1e3}, "text": {"boost": 1.0}, "tags": {"boost": 1e6}}
"""As the theme's plugin writes them, and the separator too."""


def index(*documents: dict[str, Any]) -> dict[str, Any]:
    return {"config": {"separator": r"[\s\-]+", "fields": FIELDS}, "docs": list(documents)}


def page(location: str, title: str, text: str = "", **more: object) -> dict[str, Any]:
    return {"location": location, "title": title, "text": text, **more}


def papers() -> dict[str, Any]:
    """Return a page for each paper, whose title has no name in it, after others that have one."""
    pages = [page(f"{name}/", "A paper", tags=list(names)) for name, names in NAMES.items()]
    for each in pages:
        each["location"] = each["location"].replace(".md", "")
    return index(
        page("proofs/logistic/", "Private logistic regression", "private private private"),
        page("report/", "Reports"),
        page("report/#private", "What is private", "private"),
        page("conditional/", "Heterogeneous treatment effects CATE DP"),
        page("papers/multi-site-preprint/", "SmoothDPMatching and MVAgg MVAgg, the preprint"),
        *pages,
    )


def test_names_find_their_pages_by_their_tags() -> None:
    assert not list(faults(papers()))


def test_a_page_without_its_tag_is_not_found_first() -> None:
    site = papers()
    for each in site["docs"]:
        each.pop("tags", None)
    found = list(faults(site))
    assert len(found) == sum(map(len, NAMES.values()))
    assert "the search for PrivATE finds proofs/logistic/ first, and not papers/private.md" in found
    assert "the search for PP-IPW finds no page first, and not papers/pp-ipw.md" in found


def test_ranking_is_the_themes() -> None:
    site = index(
        page("text/", "Other", "noise <code>noise</code> noise"),
        page("section/", "Other"),
        page("section/#noise", "Noise"),
        page("title/", "Noise"),
        page("longer/", "Noises"),
        page("boosted/", "Noise", boost=2),
        page("none/", "Denoise"),
    )
    assert ranked(site, "noise", counted(site)) == ["longer/", "boosted/", "title/", "section/", "text/"]


def test_last_word_of_a_name_may_go_on_and_others_may_not() -> None:
    site = index(page("a/", "DP CATEs"), page("b/", "DPCI CATE"), page("c/", "(CATE)"))
    assert ranked(site, "DP-CATE", counted(site)) == ["a/", "b/"]


def test_check_reads_the_index_of_a_site(tmp_path: Path) -> None:
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "search_index.json").write_text(json.dumps(papers()), encoding="utf-8")
    assert check(tmp_path) == []


def test_a_name_belongs_to_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for several in NAMES.values() for name in several]
    assert len(set(names)) == len(names)
    monkeypatch.setattr(site_search, "NAMES", {"papers/absent.md": ("PrivATE",)})
    assert list(faults(papers())) == ["the search for PrivATE finds papers/private/ first, and not papers/absent.md"]
