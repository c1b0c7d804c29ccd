"""Every link in the README, the docs and the tutorials leads somewhere. Nothing is fetched from other sites."""

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from checks.mkdocs_hooks import filled

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.ipynb")),
]

CODE = re.compile(r"^( *)(```+|~~~+).*?^\1\2`*$|`+[^`]+`+|<!--.*?-->", re.MULTILINE | re.DOTALL)
LINK = re.compile(
    r"""\]\(\s*<?([^)>\s]*)>?(?:\s+["'(][^)]*)?\)"""  # [words](target "title")
    r"""|^\s*\[[^\]^]+\]:\s+<?([^>\s]+)"""  # [words]: target
    r"""|\b(?:href|src)=["']([^"']*)["']"""
    r"""|<(https?:[^>\s]*)>""",
    re.MULTILINE,
)
HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")


def text_of(page: Path) -> str:
    """What a page says; of a notebook its words, without the code."""
    text = filled(page.read_text(encoding="utf-8"))
    if page.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def anchors(page: Path) -> set[str]:
    """The places on a page that a link may name: headings, names of the reference, and marks."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2`*$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    found = set(re.findall(r"""^::: ([\w.]+)|\bid=["']([^"']+)["']|\{[^}\n]*#([\w-]+)[^}\n]*\}""", text, re.MULTILINE))
    named = {name for names in found for name in names if name}
    headings: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?)(?: *\{[^}]*\})?$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        # The second of one name gets _1, the third _2, as mkdocs has it.
        headings.add(
            next(name for name in (slug, *(f"{slug}_{count}" for count in range(1, 99))) if name not in headings)
        )
    return named | headings


def dead_links(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for match in LINK.finditer(CODE.sub("", text_of(page))):
        target = next((group for group in match.groups() if group is not None), "")
        parts = urlsplit(target)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            if parts.scheme != "https" or not HOST.fullmatch(parts.netloc) or re.search(r"[\s\\{}|^]", target):
                yield f"{page.name}: {target} is not a well-formed address that begins with https"
            continue
        # On the site a notebook itself lies beside its page.
        path = re.sub(r"\b([\w-]+)/\1\.ipynb$", r"\1.ipynb", unquote(parts.path))
        there = (page.parent / path).resolve() if path else page
        if not target or not there.exists():
            yield f"{page.name}: there is no {target or 'target'}"
        elif parts.fragment and (there.suffix not in {".md", ".ipynb"} or parts.fragment not in anchors(there)):
            yield f"{page.name}: there is no place {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_has_a_target(page: Path) -> None:
    assert list(dead_links(page)) == []


OTHER = """# Other

## What is *here*, and `there`

## What is here, and there

::: dpcausal.Vault
"""
NOTEBOOK = {"cells": [{"cell_type": "markdown", "source": ["# Trial\n", "\n", "[back](page.md#page)"]}]}


@pytest.mark.parametrize(
    "link",
    [
        "[a](other.md)",
        "![a](picture.png)",
        "[a](other.md#what-is-here-and-there)",
        "[a](other.md#what-is-here-and-there_1)",
        "[a](other.md#dpcausal.Vault)",
        "[a](#page)",
        "[a](trial.ipynb#trial)",
        '<a href="trial/trial.ipynb" download>a</a>',
        "[a](https://example.org/b_(c))",
        "<https://example.org>",
        "[a]: other.md",
        "`[a](nowhere.md)`",
        "```python\nx = [a](nowhere)\n```",
    ],
)
def test_a_good_link_is_left_alone(link: str, tmp_path: Path) -> None:
    assert list(dead_links(made_up(tmp_path, link))) == []
    assert list(dead_links(tmp_path / "trial.ipynb")) == []


@pytest.mark.parametrize(
    "link",
    [
        "[a](nowhere.md)",
        "[a](../other.md)",
        "![a](nowhere.png)",
        "[a](other.md#nowhere)",
        "[a](other.md#dpcausal.Vaults)",
        "[a](#nowhere)",
        "[a](trial.ipynb#nowhere)",
        "[a](picture.png#nowhere)",
        '[a](nowhere.md "title")',
        "[a]()",
        "[a]: nowhere.md",
        '<a href="nowhere.html">a</a>',
        '<a href="nowhere/nowhere.ipynb" download>a</a>',
        "[a](http://example.org)",
        "<http://example.org>",
        "[a](https://example)",
        "[a](https:/example.org)",
        "[a](//example.org)",
        "[a](https://exam_ple.org)",
    ],
)
def test_a_dead_link_is_caught(link: str, tmp_path: Path) -> None:
    assert len(list(dead_links(made_up(tmp_path, link)))) == 1


def made_up(folder: Path, link: str) -> Path:
    """A page with this link on it, and what it may lead to."""
    page = folder / "page.md"
    page.write_text(f"# Page\n\n{link}\n", encoding="utf-8")
    (folder / "other.md").write_text(OTHER, encoding="utf-8")
    (folder / "trial.ipynb").write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    (folder / "picture.png").touch()
    return page


def test_tests_that_pages_name_are_there() -> None:
    pages = (text_of(page) for page in PAGES if page.name != "CHANGELOG.md")
    named = re.findall(r"`(?:tests/)?([\w/]+/test_[a-z]\w*)(?:\.py)?(?:::(\w+))?`", "".join(pages))
    assert len(named) > 20
    for file, test in named:
        path = ROOT / "tests" / f"{file}.py"
        assert path.is_file(), path
        assert f"def {test}" in path.read_text(encoding="utf-8"), (file, test)
