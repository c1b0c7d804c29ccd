"""Lists of queries in the documentation are those of the queries."""

from pathlib import Path

import pytest

from checks import formal, proofs
from dpcausal.queries import QUERIES
from dpcausal.queries.summing import SummingQuery

ROOT = Path(__file__).parents[2]


def test_index_of_proofs_is_current() -> None:
    assert proofs.INDEX.read_text(encoding="utf-8") == proofs.index(), "run python -m checks.proofs"
    assert all(f"`{name}`" in proofs.table() for name in QUERIES)


def test_stale_index_is_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, lines = tmp_path / "index.md", proofs.INDEX.read_text(encoding="utf-8").splitlines(keepends=True)
    page.write_text("".join(line for line in lines if "`arm_totals`" not in line), encoding="utf-8")
    monkeypatch.setattr(proofs, "INDEX", page)
    table = tmp_path / "formal.md"
    table.write_text(formal.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(formal, "PAGE", table)
    proofs.main()
    assert page.read_text(encoding="utf-8") == "".join(lines)


def test_reference_lists_every_query() -> None:
    assert (ROOT / "docs" / "reference" / "vault.md").read_text(encoding="utf-8").count(proofs.MEMBERS) == 1
    assert proofs.members().count("\n") == len(QUERIES)


def test_page_on_the_comparison_bounds_every_query() -> None:
    page = (ROOT / "docs" / "proofs" / "comparison.md").read_text(encoding="utf-8")
    by_hand = [name for name, query in QUERIES.items() if not issubclass(query, SummingQuery)]
    assert [name for name in by_hand if f"`{name}`" not in page] == []
