"""The menu is short, calls pages by their titles, and every page is found from one that is in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from checks import mkdocs_hooks, proofs

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MOST = 60


def entries(part: object) -> Iterator[object]:
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from entries(each)
    else:
        yield part


def menu() -> list[str]:
    (listed,) = re.findall(r"^nav:\n(?: .*\n)+", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    return [str(each) for each in entries(yaml.safe_load(listed))]


def linked(page: str) -> set[str]:
    """The pages of the docs that a page links to."""
    above = page in mkdocs_hooks.ABOVE
    text = mkdocs_hooks.filled((ROOT / page if above else DOCS / page).read_text(encoding="utf-8"))
    text = text.replace("](docs/", "](") if above else text
    folder = (DOCS / page).parent
    targets = re.findall(r"\]\(([\w./-]+\.(?:md|ipynb))", text)
    return {
        path.relative_to(DOCS).as_posix()
        for path in ((folder / each).resolve() for each in targets)
        if DOCS in path.parents
    }


def test_menu_is_short_and_its_entries_are_pages_without_a_second_name() -> None:
    assert len(menu()) == len(set(menu())) <= MOST
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert not re.findall(r"^ +- .+: +\S+\.(?:md|ipynb)$", text, re.MULTILINE), "a page is called by its title"


def test_every_page_is_in_the_menu_or_linked_from_a_page_that_is() -> None:
    pages = {path.relative_to(DOCS).as_posix() for kind in ("*.md", "*.ipynb") for path in DOCS.rglob(kind)}
    found = {*menu()}.union(*map(linked, menu()))
    assert sorted(pages - found) == []


def test_every_page_of_the_reference_is_in_its_index() -> None:
    pages = {path.stem for path in mkdocs_hooks.REFERENCE.glob("*.md")} - {"index", "commands"}
    assert pages == {*mkdocs_hooks.LISTED}


def test_every_proof_is_linked_from_the_index_of_proofs() -> None:
    pages = {f"proofs/{path.name}" for path in proofs.FOLDER.glob("*.md")} - {"proofs/index.md"}
    assert pages - linked("proofs/index.md") == set()


@pytest.mark.parametrize("old", mkdocs_hooks.MOVED)
def test_old_address_leads_to_a_page(old: str) -> None:
    new = mkdocs_hooks.MOVED[old].removesuffix("/")
    assert not (DOCS / f"{old}.md").exists()
    assert (DOCS / f"{new}.md").exists() or f"{new}.md" in mkdocs_hooks.ABOVE
    assert f"url=../{new}/" in mkdocs_hooks.redirect(f"../{new}/")
