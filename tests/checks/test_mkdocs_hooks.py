"""Notebooks become pages, and a page that would fetch something from elsewhere is caught."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from griffe import Docstring, Function

from checks.mkdocs_hooks import FETCHED, NO_HEADING, Docstrings, markdown


def cell(kind: str, source: str, **more: object) -> dict[str, object]:
    return {"cell_type": kind, "source": source.splitlines(keepends=True), **more}


NOTEBOOK = json.dumps(
    {
        "cells": [
            cell("markdown", "# A trial\n\nWords."),
            cell("code", "print('```')", outputs=[{"output_type": "stream", "text": ["one\n", "<b>two</b>\n"]}]),
            cell("code", "effect", outputs=[{"data": {"text/html": ["<p>\n", "\n", "an effect"], "text/plain": "no"}}]),
            cell("code", "1 + 1", outputs=[{"data": {"text/plain": ["2"]}}]),
            cell(
                "code",
                "plot()",
                metadata={"alt": "Two lines that cross"},
                outputs=[{"data": {"image/png": "aGk=\n", "text/plain": "no"}}],
            ),
        ]
    }
)
PAGE = """# A trial

<a href="trial.ipynb" download>This page as a notebook</a>

Words.

````python
print('```')
````

```{ .text .output }
one
<b>two</b>
```

```python
effect
```

<div class="output"><p>
an effect</div>

```python
1 + 1
```

```{ .text .output }
2
```

```python
plot()
```

<img class="output" alt="Two lines that cross" src="data:image/png;base64,aGk=">
"""


def test_notebook_becomes_a_page() -> None:
    assert markdown(NOTEBOOK, "trial") == PAGE


def test_docstring_is_shown_in_the_reference() -> None:
    docstring = Docstring("A sum. Proof: docs/proofs/sums.md.\n\nExample:\n    >>> 1 + 1\n    2")
    Docstrings().on_object(obj=Function("add", docstring=docstring))
    shown = "A sum. Proof: [docs/proofs/sums.md](../proofs/sums.md).\n\nExamples:\n    >>> 1 + 1\n    2"
    assert docstring.value == shown


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example.org/x.js">',
        "<script async src='//cdn.example.org/x.js'>",
        '<link rel="stylesheet" href="https://fonts.example.org/css">',
        '<link href="https://fonts.example.org" rel="preconnect" crossorigin>',
        '<img alt="" src="http://example.org/x.png">',
        "<style>@import 'x.css';</style>",
        "background: url(https://example.org/x.png)",
        'const library = await import("https://cdn.example.org/x.mjs")',
    ],
)
def test_page_that_fetches_from_elsewhere_is_caught(text: str) -> None:
    assert FETCHED.search(text)


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://example.org">elsewhere, for who wants to go there</a>',
        '<link rel="canonical" href="https://example.org/page/">',
        '<script src="../assets/x.js">',
        '<img src="data:image/png;base64,aGk=">',
        "import dpcausal as dpc",
    ],
)
def test_page_that_fetches_nothing_passes(text: str) -> None:
    assert not FETCHED.search(text)


@pytest.mark.parametrize(("link", "fails"), [("other.md", False), ("absent.md", True)])
def test_build_fails_on_a_dead_link(link: str, fails: bool, tmp_path: Path) -> None:
    """With the options that `make docs` gives to mkdocs."""
    recipe = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    (options,) = re.findall(r"-m mkdocs build(.*)", recipe)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A page\n\n[Another]({link})\n", encoding="utf-8")
    (tmp_path / "docs" / "other.md").write_text("# Another\n", encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text("site_name: pages\n", encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", *options.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)  # noqa: S603
    assert (done.returncode != 0) == fails, done.stderr


def test_empty_heading_of_a_table_is_a_cell() -> None:
    table = '<tr><th></th><th style="text-align: left;"></th><th>n</th></tr>'
    assert NO_HEADING.sub(r"<td\1></td>", table) == '<tr><td></td><td style="text-align: left;"></td><th>n</th></tr>'
