"""What the documentation says of stored results, computed again from them."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def says(page: str, words: str) -> bool:
    """Whether a page says this, wherever its lines break."""
    return words in " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


def test_docs_ratio_of_heuristic_and_learner_is_the_stored_one() -> None:
    cells: dict[tuple[str, int, float], dict[str, float]] = {}
    for each in results("heterogeneity")["rows"]:
        cells.setdefault((each["table"], each["n"], each["epsilon"]), {})[each["contestant"]] = each["pehe"]
    heuristic = "Schröder et al. 2025, influence functions (not private)"
    both = {
        at: (found[heuristic], found["R-learner"]) for at, found in cells.items() if heuristic in found and at[2] >= 1
    }
    better = [at for at, (theirs, ours) in both.items() if theirs < ours]
    assert says("conditional.md", f"`RLearner` in {len(better)} of {len(both)} cells from epsilon 1 on")
    theirs, ours = zip(*(both["Dataset 2", 10_000, epsilon] for epsilon in (1.0, 2.0, 4.0, 8.0)), strict=True)

    def listed(numbers: tuple[float, ...]) -> str:
        *first, last = (f"{number:.2f}" for number in numbers)
        return f"{', '.join(first)} and {last}"

    assert says("conditional.md", f"{listed(theirs)} at epsilon 1, 2, 4 and 8, against {listed(ours)}")


def test_the_default_rule_where_all_sites_have_one_effect() -> None:
    trials = results("pooling")["errors_over_the_best"]["one effect"]["minimum_variance"]
    assert says("pooling-evidence.md", f"within {trials['mean'] - 1:.0%}".replace("%", " %"))
    assert says("pooling-evidence.md", f"at worst {trials['worst']:.2f} times")


def test_how_many_units_and_queries_were_tried() -> None:
    scale = results("scale")
    assert max(line["rows"] for line in scale["rows"]["lines"]) == 10**8
    tried = scale["engines"]["queries"]
    assert all(each["identical"] for each in tried)
    assert says("scaling-measured.md", f"the {len(tried)} queries that were tried ")


def test_how_often_what_is_ranked_first_covers_on_ordinary_tables() -> None:
    cells = {at: found["first ranked"] for at, found in results("ordinary")["after"]["cells"].items()}
    fresh = ("HF", "HIP", "STATIN", "STATIN-COST")

    def line(name: str, found: list[dict[str, float]]) -> str:
        runs, given, covered, wrong = (round(sum(numbers)) for numbers in zip(*map(counted, found), strict=True))
        return f"| {name} | {given:,} of {runs:,} | {covered:,} | {wrong} |"

    def counted(cell: dict[str, float]) -> tuple[float, ...]:
        given = round(cell["runs"] * cell["given"])
        return cell["runs"], given, round(given * cell["coverage"]), round(cell["runs"] * cell["wrong_sign"])

    for name in fresh:
        assert says("ordinary-tables.md", line(name, [cells[f"{name} 20000"]]))
    others = [cell for at, cell in cells.items() if at.split()[0] not in fresh]
    assert len(others) == 28
    assert says("ordinary-tables.md", line("the other 28", others))
    curved = counted(cells["M 20000"])
    assert says("ordinary-tables.md", f"{curved[2]:.0f} of {curved[1]:.0f} intervals cover")
