"""Lists of queries in the documentation, from the queries themselves: `python -m checks.proofs` writes them.

The index of proofs and the table of what is proved by machine are files, so that they can be read in the repository.
The list of queries in the reference is filled in when the site is built (`checks.mkdocs_hooks`).
"""

import re
import sys
from pathlib import Path

from checks import formal
from dpcausal.queries import QUERIES, Query
from dpcausal.queries.summing import SummingQuery

FOLDER = Path(__file__).parents[1] / "docs" / "proofs"
INDEX = FOLDER / "index.md"
HEAD = "| query | proof | what it answers |\n|---|---|---|\n"
"""The head of the table that is written."""

MEMBERS = "        - QUERIES\n"
"""What stands for all queries in docs/reference/vault.md."""


def proofs() -> dict[str, list[type[Query]]]:
    """Return the queries of each proof of its own, by the stem of their module, answer, page and tests."""
    return {stem: queries for stem, queries in modules().items() if page(stem, queries) == stem}


def modules() -> dict[str, list[type[Query]]]:
    """Return the queries of each module, by its stem."""
    found: dict[str, list[type[Query]]] = {}
    for query in QUERIES.values():
        found.setdefault(query.__module__.rpartition(".")[2], []).append(query)
    return found


def page(stem: str, queries: list[type[Query]]) -> str:
    """Return the stem of the page with the proof of a module's queries; one proof is of all that are sums."""
    return "sums" if all(issubclass(query, SummingQuery) for query in queries) else stem


def title(stem: str) -> str:
    """Return the title of a proof."""
    return (FOLDER / f"{stem}.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def table() -> str:
    """Return the index of all proofs of queries."""
    lines: list[str] = []
    sums: list[str] = []
    for stem, queries in modules().items():
        names = [f"`{query.name}`" for query in queries]
        if (proof := page(stem, queries)) != stem:
            sums += names
            continue
        answers = str(sys.modules[queries[0].__module__].__doc__).partition("\n")[0].rstrip(".")
        lines.append(f"| {', '.join(names)} | [{title(proof)}]({proof}.md) | {answers} |\n")
    answers = "Sums over units, each described with its [query](../reference/vault.md#queries)"
    return f"{HEAD}{''.join(lines)}| {', '.join(sums)} | [{title('sums')}](sums.md) | {answers} |\n"


def index() -> str:
    """Return the page with its table as it must be."""
    return re.sub(re.escape(HEAD) + r"(\|.*\n)*", lambda _: table(), INDEX.read_text(encoding="utf-8"))


def members() -> str:
    """Return the queries as mkdocstrings lists the members of a module."""
    return "".join(f"        - {query.__name__}\n" for query in QUERIES.values())


def main() -> None:
    """Write the index, and the table on the page of machine-checked proofs."""
    INDEX.write_text(index(), encoding="utf-8")
    formal.PAGE.write_text(formal.page(), encoding="utf-8")


if __name__ == "__main__":
    main()
