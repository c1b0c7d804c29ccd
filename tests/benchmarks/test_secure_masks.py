"""Masks of secure sums: the stored result shows what the page says."""

import json
from pathlib import Path
from typing import Any

from benchmarks.parts import PUBLISHED
from benchmarks.secure_masks import COUNTS, SITES, costs

PAGE = Path(__file__).parents[2] / "docs" / "proofs" / "secure_sums.md"


def stored() -> dict[str, Any]:
    result: dict[str, Any] = json.loads((PUBLISHED / "secure_masks.json").read_text(encoding="utf-8"))
    return result


def test_one_missing_share_keeps_epsilon_and_the_last_one_breaks_it() -> None:
    lines = stored()["attack"]["lines"]
    for line in lines:
        if line["shares"] < line["threshold"]:
            assert 0.7 * line["epsilon"] < line["bound"] <= line["epsilon"]
        else:
            assert line["bound"] > 1.3 * line["epsilon"]
    assert {line["runs"] for line in lines} == {20_000}
    assert len(lines) == 6


def test_costs_are_stored_for_all_sizes() -> None:
    lines = stored()["cost"]["lines"]
    assert [(line["sites"], line["count"]) for line in lines] == [(sites, count) for sites in SITES for count in COUNTS]
    assert all(line["sent_bytes"] < 1.5 * line["plain_bytes"] for line in lines if line["count"] == max(COUNTS))


def test_costs_beside_the_page_are_the_stored_ones() -> None:
    assert PAGE.with_suffix(".csv").read_text(encoding="utf-8") == costs(stored())
