"""Hooks of mkdocs: notebooks become pages, lists are filled in, figures get dark versions, old addresses lead on.

A notebook becomes Markdown, so that it looks, links and is searched like any other page, without a script of its own.
Some files above the docs, such as CONTRIBUTING.md, are pages too.
"""

import json
import logging
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from griffe import Extension, Object
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import dpcausal
from checks import evidence, figures, proofs, references, site_search
from checks.closure import Sources

log = logging.getLogger("mkdocs.site")

ABOVE = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages that lie above the docs."""

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
NAMES_OF = re.compile(r"<!-- public names of ([\w.]+) -->")
"""What stands on a page of the reference for the public names whose modules are in a package."""

INDEX = "<!-- index of public names -->"
"""What stands for all of them in docs/reference/index.md."""

LISTED = (
    *("declarations", "vault", "planning", "diagnostics", "average", "conditional", "experiments", "inference"),
    *("federation", "report", "testing"),
)
"""The pages of the reference, in the order of the index."""

MOVED = {
    "how-to/experiment": "experiments/",
    "how-to/federated": "federation-quickstart/",
    "how-to/r": "r/",
    "how-to/report": "report/",
    "how-to/survival": "survival/",
    "leaderboard-peers": "leaderboard/",
    "licences": "dependencies/",
    "papers/dp-cate-finite": "papers/dp-cate/",
    "papers/multi-site-preprint": "papers/multi-site/",
    "whats-new": "CHANGELOG/",
}
"""Where a page has moved to, by its old address."""

FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|embed)\b[^>]*?\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?![^>]*\brel=["']?(?:canonical|prev|next)\b)[^>]*?\bhref=["']?(?:https?:)?//[^>]*>"""
    r"""|url\(["']?(?:https?:)?//[^)]*\)|@import\b[^;]*|\bimport\(["'](?:https?:)?//[^)]*\)"""
)
"""Where a page would have a reader's browser fetch something from another server."""


FIGURE = re.compile(r"figures/[\w-]+\.svg")
NO_HEADING = re.compile(r"<th( [^>]*)?></th>")
IMAGE = re.compile(r'<img(?P<before>[^>]*?)src="(?P<source>[^"]*\bfigures/[\w-]+\.svg)"(?P<after>[^>]*?)/?>')


class Notebook(File):
    """A notebook that mkdocs takes for a page."""

    def is_documentation_page(self) -> bool:
        """Return true: a notebook has a page of its own; the notebook itself is beside it."""
        return True


class Docstrings(Extension):
    """Docstrings as the pages of the reference show them."""

    def on_object(self, *, obj: Object, **_: Any) -> None:  # noqa: ANN401 (what griffe passes besides)
        """One example under the name that mkdocstrings knows for code; pages of the docs as links."""
        if obj.docstring:
            text = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"\bdocs/([\w/-]+\.md)\b", r"[\g<0>](../\1)", text)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Every notebook as a page, the pages from above the docs, and a dark version of every figure."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        files.append(Notebook(file.src_uri, file.src_dir, config.site_dir, config.use_directory_urls))
    for name in ABOVE:
        text = (Path(config.config_file_path).parent / name).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    for file in [file for file in files if FIGURE.fullmatch(file.src_uri)]:
        name = file.src_uri.replace(".svg", ".dark.svg")
        files.append(File.generated(config, name, content=figures.dark(file.content_string)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Fill in what the reference lists; make links work for the pages that come from above the docs."""
    page.meta.setdefault("tags", list(site_search.NAMES.get(page.file.src_uri, ())))
    markdown = references.cited(filled(markdown)) if page.file.src_uri.startswith("reference/") else filled(markdown)
    markdown = dated(markdown, page.file.src_uri)
    if page.file.src_uri in ABOVE:
        return markdown.replace("](docs/", "](")
    return re.sub(rf"\]\(\.\./({'|'.join(map(re.escape, ABOVE))})", r"](\1", markdown)


def dated(markdown: str, page: str) -> str:
    """Return a page that says below its title when its figures were measured, and whether code has changed since."""
    title, _, rest = markdown.partition("\n")
    note = evidence.note(page, *_evidence())
    return f"{title}\n\n{note}\n{rest}" if note else markdown


def says_its_date(output: str, page: str) -> bool:
    """Return whether a page, as it is shown, has no results or says when they were measured and how many are stale."""
    title = evidence.title(page, *_evidence())
    return not title or f"<summary>{title}</summary>" in output


@cache
def _evidence() -> tuple[dict[str, evidence.Evidence], dict[str, str]]:
    """Return what is known of all stored results, and which of them are stale."""
    known = evidence.stored()
    return known, evidence.stale(known, Sources())


def filled(markdown: str) -> str:
    """Return a page of the reference with all queries, the public names of a package, and the index of all names."""
    markdown = NAMES_OF.sub(lambda match: "\n\n".join(_names_of(match[1])), markdown)
    markdown = markdown.replace(proofs.MEMBERS, proofs.members())
    return markdown.replace(INDEX, index()) if INDEX in markdown else markdown


def _names_of(package: str) -> list[str]:
    homes = sorted((home, name) for name, home in dpcausal._HOMES.items() if home.startswith(f"{package}."))  # noqa: SLF001
    return [f"::: dpcausal.{name}" for _, name in homes]


def names_on(page: Path) -> list[str]:
    """Return the public names that a page of the reference shows, in its order."""
    return re.findall(r"^::: dpcausal\.(\w+)$", filled(page.read_text(encoding="utf-8")), re.MULTILINE)


def index() -> str:
    """Return the index of all public names, by page of the reference, each with the first line of its docstring."""
    tables = []
    for page in _pages():
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines = [
            f"| [`{name}`]({page.name}#dpcausal.{name}) | {_first_line(name)} |"
            for name in names_on(page)
            if name in dpcausal.__all__
        ]
        if lines:
            tables.append("\n".join([f"| [{title}]({page.name}) | |", "|---|---|", *lines]))
    return '<div class="names" markdown>\n\n' + "\n\n".join(tables) + "\n\n</div>"


def _pages() -> list[Path]:
    """Return the pages of the reference in the order of the index."""
    return [REFERENCE / f"{name}.md" for name in LISTED]


def _first_line(name: str) -> str:
    return str(getattr(dpcausal, name).__doc__).partition("\n")[0].rstrip(".").replace("|", "\\|")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Show each figure in a light and a dark version, of which the stylesheet hides one; empty cells head nothing."""
    html = NO_HEADING.sub(r"<td\1></td>", html)
    return IMAGE.sub(lambda match: _version(match, "light") + _version(match, "dark"), html)


def _version(image: re.Match[str], scheme: str) -> str:
    source = image["source"] if scheme == "light" else image["source"].removesuffix(".svg") + ".dark.svg"
    size = _size(image["source"])
    return f'<img class="figure {scheme}" loading="lazy"{size}{image["before"]}src="{source}"{image["after"]}>'


def _size(source: str) -> str:
    """Return the width and height of a figure in pixels, so that the page does not jump when it is loaded."""
    head = (figures.FOLDER / Path(source).name).read_text(encoding="utf-8")[:2000]
    sides = re.search(r'<svg[^>]*\bviewBox="0 0 (?P<width>[\d.]+) (?P<height>[\d.]+)"', head)
    points = 4 / 3 if re.search(r'<svg[^>]*\bwidth="[\d.]+pt"', head) else 1
    return (
        f' width="{points * float(sides["width"]):.0f}" height="{points * float(sides["height"]):.0f}"' if sides else ""
    )


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:  # noqa: ARG001 (mkdocs passes it)
    """Return the Markdown of a notebook, and None for any other page."""
    return markdown(page.file.content_string, page.file.name) if isinstance(page.file, Notebook) else None


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Warn, which fails a strict build, where a page would fetch something from elsewhere, or does not say its date."""
    for found in FETCHED.finditer(output):
        log.warning("%s would fetch something from elsewhere: %s", page.file.src_uri, found[0])
    if not says_its_date(output, page.file.src_uri):
        log.warning("%s shows results and does not say when they were measured", page.file.src_uri)
    if isinstance(page.file, Notebook):
        beside = Path(page.file.abs_dest_path).parent
        beside.mkdir(parents=True, exist_ok=True)
        shutil.copy(str(page.file.abs_src_path), beside)
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Lead on from old addresses; warn, which fails a strict build, where the search misses what people look for."""
    for old, new in MOVED.items():
        page = Path(config.site_dir, old, "index.html")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(redirect("../" * len(Path(old).parts) + new), encoding="utf-8")
    for fault in site_search.check(Path(config.site_dir)):
        log.warning(fault)


def redirect(address: str) -> str:
    """Return a page that leads on to another, at once and without a script."""
    return (
        f'<!doctype html><html lang="en"><title>This page has moved</title><link rel="canonical" href="{address}">'
        f'<meta name="robots" content="noindex"><meta http-equiv="refresh" content="0; url={address}">'
        f'<p>This page has moved <a href="{address}">here</a>.</p></html>\n'
    )


def markdown(notebook: str, name: str) -> str:
    """Return a notebook as Markdown, with a link to the notebook itself below its title."""
    parts = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            alt = cell.get("metadata", {}).get("alt", "")
            parts += [_fence("python", source), *(_output(output, alt) for output in cell["outputs"])]
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f'{title}\n\n<a href="{name}.ipynb" download>This page as a notebook</a>\n{rest}\n'


def _output(output: dict[str, Any], alt: str) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f'<img class="output" alt="{alt}" src="data:image/png;base64,{picture}">'
    if "image/svg+xml" in data:
        return f'<div class="output">{_raw(data["image/svg+xml"])}</div>'
    if "text/html" in data:
        return f'<div class="output">{_raw(data["text/html"])}</div>'
    return _fence("{ .text .output }", "".join(data.get("text/plain", output.get("text", ""))))


def _raw(lines: list[str] | str) -> str:
    """HTML that Markdown leaves alone: without empty lines."""
    return re.sub(r"\n\s*\n", "\n", "".join(lines))


def _fence(language: str, text: str) -> str:
    marks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"
