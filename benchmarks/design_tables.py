"""The tables of the pages on designs and many outcomes, from stored results.

`python -m benchmarks.design_tables` writes them into the pages.
"""

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path("benchmarks/results")
PAGES = {
    "complier": "instruments",
    "two_stage": "instruments",
    "change": "difference-in-differences",
    "discontinuity": "discontinuity",
    "claims": "many-outcomes",
}


def _lines(head: list[str], body: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _arms(cell: dict[str, Any]) -> str:
    return "private" if cell["protects"] == "record" else "public"


def complier(cells: list[dict[str, Any]]) -> str:
    """Return the coverage of complier effects."""
    head = ["outcome", "arms", "n", "coverage", "width", "privacy noise"]
    return _lines(
        head,
        [
            [
                "binary" if "binary" in cell["design"] else "a number",
                _arms(cell),
                f"{cell['n']:,}",
                _percent(cell["coverage"]),
                *(f"{cell[name]:.4f}" for name in ("mean_width", "privacy_sd")),
            ]
            for cell in cells
            if cell["design"].startswith("complier")
        ],
    )


def change(cells: list[dict[str, Any]]) -> str:
    """Return the coverage of differences in differences."""
    head = ["design", "n", "coverage", "width", "privacy noise", "placebo"]
    return _lines(
        head,
        [
            [
                cell["design"],
                f"{cell['n']:,}",
                _percent(cell["coverage"]),
                *(f"{cell[name]:.4f}" for name in ("mean_width", "privacy_sd")),
                "" if cell["design"] == "change of each unit" else _percent(cell["placebo_coverage"]),
            ]
            for cell in cells
            if not cell["design"].startswith("complier")
        ],
    )


def two_stage(cells: list[dict[str, Any]]) -> str:
    """Return the coverage of complier effects with covariates, beside two-stage least squares."""
    head = ["assignment", "arms", "regressions", "n", "coverage", "width", "2SLS width", "2SLS coverage"]
    return _lines(
        head,
        [
            [
                cell["assigned"],
                _arms(cell),
                "in each arm" if cell["interaction"] else "one (2SLS)",
                f"{cell['n']:,}",
                _percent(cell["coverage"]),
                f"{cell['mean_width']:.4f}",
                f"{cell['two_stage_width']:.4f}",
                _percent(cell["two_stage_coverage"]),
            ]
            for cell in cells
        ],
    )


def discontinuity(cells: list[dict[str, Any]]) -> str:
    """Return the coverage of regression discontinuities, beside the same regressions without privacy."""
    head = ["mean outcome", "bandwidth", "n", "coverage", "width", "bias", "without privacy: coverage", "width"]
    return _lines(
        head,
        [
            [
                cell["mean"],
                f"{cell['bandwidth']:g}",
                f"{cell['n']:,}",
                _percent(cell["coverage"]),
                *(f"{cell[name]:.4f}" for name in ("mean_width", "bias")),
                _percent(cell["public_coverage"]),
                f"{cell['public_width']:.4f}",
            ]
            for cell in cells
        ],
    )


def claims(result: dict[str, Any]) -> str:
    """Return the false claims over outcomes and looks."""
    p_values = result["p_values"]
    body = [
        ["p-values without an effect", "below 0.05", _percent(p_values["share below 0.05"]), f"{p_values['runs']:,}"],
        ["the same", "Kolmogorov-Smirnov test of uniformity", f"p = {p_values['ks_p']:.2f}", f"{p_values['runs']:,}"],
    ]
    for part, words in (("families", "ten outcomes without an effect"), ("looks", "five looks without an effect")):
        for name, found in result[part].items():
            body.append(
                [words, f"any claim, {name.replace('_', ' ')}", _percent(found["any_claim"]), f"{found['runs']:,}"]
            )
    return _lines(["setting", "", "found", "runs"], body)


def tables() -> dict[str, str]:
    """Return each table under its name."""
    stored = {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["cells"]
        for name in ("designs", "two_stage", "discontinuity")
    }
    found = {"complier": complier(stored["designs"]), "change": change(stored["designs"])}
    found |= {"two_stage": two_stage(stored["two_stage"]), "discontinuity": discontinuity(stored["discontinuity"])}
    families = RESULTS / "many_outcomes.json"
    if families.exists():
        found["claims"] = claims(json.loads(families.read_text(encoding="utf-8")))
    return found


def main() -> None:
    for name, table in tables().items():
        page = Path("docs", f"{PAGES[name]}.md")
        text = page.read_text(encoding="utf-8")
        marked = rf"<!-- {name} table -->\n(\n\|[^\n]*(\n\|[^\n]*)*\n)?"
        written = f"<!-- {name} table -->\n\n{table}\n"
        page.write_text(re.sub(marked, written, text), encoding="utf-8")


if __name__ == "__main__":
    main()
