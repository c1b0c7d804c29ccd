"""What the documentation says of stored results, computed again from them."""

import json
from pathlib import Path
from typing import Any

from checks import evidence

ROOT = Path(__file__).parents[2]


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def says(page: str, words: str, *names: str) -> bool:
    """Whether a page says this, wherever its lines break, and shows the dates of these results."""
    known = evidence.stored()
    assert [name for name in names if page not in known[name].pages] == []
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
    fresh, others = (0, 0), (0, 0)
    for at, found in results("ordinary")["cells"].items():
        cell = found["first ranked"]
        given = round(cell["runs"] * cell["given"])
        counts = given, round(given * cell["coverage"])
        if at.split()[0] in {"HF", "HIP", "STATIN", "STATIN-COST"}:
            fresh = fresh[0] + counts[0], fresh[1] + counts[1]
        else:
            others = others[0] + counts[0], others[1] + counts[1]
        if at == "M 20000":
            assert says("ordinary-tables.md", f"{percent(counts[1] / counts[0])} cover", "ordinary")
    page = "ordinary-tables.md"
    assert says(page, f"{percent(fresh[1] / fresh[0])} of {fresh[0]:,} intervals hold the truth")
    assert says(page, f"On 28 further tables, {percent(others[1] / others[0])} do")


def cells(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = results(f"coverage_{name}")["cells"]
    return found


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def test_limitations_say_where_intervals_covered_least() -> None:
    page = "limitations.md"
    means, strata = (
        percent(min(cell["coverage"] for cell in cells(name))) for name in ("difference_in_means", "stratification")
    )
    words = f"coverage down to {means} for a difference in means and {strata} for strata"
    assert says(page, words, "coverage_difference_in_means", "coverage_stratification")
    weighting = max(cell["coverage"] for cell in cells("inverse_weighting"))
    assert says(page, f"coverage up to {percent(weighting)}", "coverage_inverse_weighting")
    found = results("realistic")
    doubly = [percent(found[at]["doubly robust"]["coverage"]) for at in ("T40 20000", "C 20000")]
    words = f"{doubly[0].removesuffix(' %')} and {doubly[1]} of the intervals given covered, in 100 runs each"
    assert says(page, words, "realistic")


def test_planning_says_how_far_plans_were_off() -> None:
    ratios: dict[str, list[float]] = {}
    for cell in results("planning")["cells"]:
        ratios.setdefault(cell["estimator"].replace("_", " "), []).append(cell["ratio"])
    for name, found in ratios.items():
        assert says("planning.md", f"| {name} | {min(found):.2f}&nbsp;to&nbsp;{max(found):.2f} |", "planning")


def test_limitations_say_how_far_curves_and_pooling_were_off() -> None:
    page = "limitations.md"
    covered = {(row["table"], row["n"], row["contestant"]): row["coverage"] for row in curves(1.0)}
    sparse = covered["Dataset 2, five covariates", 10_000, "R-learner"]
    assert says(page, f"sparse effects ({100 * sparse:.0f} %)", "heterogeneity")
    pooled = [cell["coverage"] for cell in results("pooling")["coverage"] if cell["rule"] == "minimum_variance"]
    assert says(page, f"covered {100 * min(pooled):.1f} to {100 * max(pooled):.1f} %", "pooling")


def curves(epsilon: float) -> list[dict[str, Any]]:
    return [row for row in results("heterogeneity")["rows"] if row["epsilon"] == epsilon]
