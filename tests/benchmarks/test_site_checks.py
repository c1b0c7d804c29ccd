"""Wrong sites: the stored result keeps its promises, and the page quotes it."""

import json
from pathlib import Path
from typing import Any

from benchmarks.parts import PUBLISHED
from benchmarks.site_checks import LIE, flags, robust
from dpcausal.pooling import ROBUST_FROM

PAGE = Path(__file__).parents[2] / "docs" / "pooling-evidence.md"


def stored() -> dict[str, Any]:
    result: dict[str, Any] = json.loads((PUBLISHED / "site_checks.json").read_text(encoding="utf-8"))
    return result


def test_robust_intervals_cover_and_one_liar_moves_them_little() -> None:
    lines = [line for line in stored()["robust"] if line["sites"] >= ROBUST_FROM]
    honest = [line["coverage"] for line in lines if not line["lie"]]
    assert 0.92 <= min(honest) <= max(honest) <= 0.98  # 500 studies: one standard error is 0.01
    assert 0.93 <= sum(honest) / len(honest) <= 0.97
    for line in lines:
        if line["lie"]:
            assert line["coverage"] > 0.9
            assert abs(line["shift"]) < line["half_width"] / 2 < line["shift_by_precision"]


def test_honest_sites_are_flagged_in_at_most_one_study_of_a_hundred() -> None:
    honest = [line for line in stored()["flags"] if not line["lie"]]
    flagged = sum(line["honest_warned"] * line["runs"] for line in honest)
    assert flagged <= 0.01 * sum(line["runs"] for line in honest)
    assert not any(line["refused"] for line in honest)


def test_short_form_of_the_benchmark() -> None:
    line = robust(5, "equal", 0.0, lie=True, runs=40)
    assert 0 < line["shift"] < 2 < LIE / 5 < line["shift_by_precision"]
    found = flags(5, 5.0, lie=True, runs=2)
    assert (found["liar_named"], found["honest_warned"]) == (1, 0)


def test_page_agrees_with_the_stored_result() -> None:
    page = PAGE.read_text(encoding="utf-8")
    honest = [line for line in stored()["robust"] if line["sites"] >= ROBUST_FROM and not line["lie"]]
    shares = [100 * line["coverage"] for line in honest]
    assert f"covered in {min(shares):.1f} to {max(shares):.1f} % of {honest[0]['runs']} studies" in page.replace(
        "\n", " "
    )
    studies = sum(line["runs"] for line in stored()["flags"] if not line["lie"])
    assert f"No honest site was flagged in {studies:,} studies" in page
