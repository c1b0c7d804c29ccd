"""The tables of the documentation that show stored results of a single suite.

`python -m benchmarks.pages` writes them all. The bake-off, the leaderboard, ordinary and realistic tables and the
papers have figures and files beside their pages, and write these themselves.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks import (
    clusters,
    confounded,
    coverage,
    custom_sums,
    decisions,
    effect_measures,
    experiments,
    growing_tables,
    metric_kinds,
    quantiles,
    secure_masks,
    secure_sums,
    site_checks,
    survival,
)
from benchmarks.papers.paper import written
from benchmarks.parts import PUBLISHED

DOCS = Path(__file__).parents[1] / "docs"


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


def secure_queries(lines: list[dict[str, Any]]) -> str:
    """Return the noise and the coverage of curves, subgroups and metrics of secure sums, beside one table."""
    head = ["part", "numbers", "privacy error over one table's", "sd of the difference over it"]
    head += ["coverage of 95 % intervals", "of one table's"]
    return _lines(
        head,
        [
            [
                line["part"],
                str(line["numbers"]),
                *(f"{line[name]:.2f}" for name in ("privacy_sd_ratio", "difference_over_privacy_sd")),
                *(_percent(line[name]) for name in ("coverage", "coverage_of_one_table")),
            ]
            for line in lines
        ],
    )


def secure_sites(result: dict[str, Any]) -> str:
    """Return bytes and processor time of secure sums of many sites, of which some fall silent."""
    head = ["sites", "silent in rounds 1 to 5", "a site's CPU s", "a site gets", "a site sends"]
    head += ["the coordinator's CPU s", "it sends", "it gets", "largest request"]
    return _lines(
        head,
        [
            [
                f"{run['sites']:,}",
                ", ".join(map(str, run["silent"].values())),
                f"{run['site_seconds']:.1f}",
                *(f"{run[f'site_{way}_bytes'] / 1e3:,.0f} kB" for way in ("received", "sent")),
                f"{run['coordinator_seconds']:.1f}",
                *(f"{run[f'coordinator_{way}_bytes'] / 1e6:,.1f} MB" for way in ("sent", "received")),
                f"{run['largest_request'] / 1e3:,.0f} kB",
            ]
            for name, run in result.items()
            if name != "machine" and any(run["silent"].values())
        ],
    )


def tables() -> dict[str, dict[str, str]]:
    """Return the tables of each page, by the names of their places."""

    def result(name: str) -> Any:  # noqa: ANN401 (what a suite stored)
        return json.loads((PUBLISHED / f"{name}.json").read_text(encoding="utf-8"))

    def cells(name: str) -> Any:  # noqa: ANN401
        return result(name)["cells"]

    adjusted, metrics = confounded.tables(result("confounded")), result("experiments")
    years = growing_tables.tables(result("growing_tables"))
    found: dict[str, dict[str, Any]] = {
        "benchmarks": {"coverage": coverage.page()},
        "clusters": {"coverage": clusters.table(cells("clusters"))},
        "custom-sums": {"coverage": custom_sums.table(cells("custom_sums"))},
        "difference-in-differences": {"change": change(cells("designs"))},
        "discontinuity": {"discontinuity": discontinuity(cells("discontinuity"))},
        "experiments": {
            "coverage": experiments.coverage_table(metrics),
            "cost": experiments.cost_table(metrics),
            "decisions": decisions.decisions_table(result("decisions")),
            "kinds": metric_kinds.kinds_table(result("metric_kinds")),
        },
        "growing-tables": {name: years[name] for name in ("prices", "claims")},
        "instruments": {"complier": complier(cells("designs")), "two_stage": two_stage(cells("two_stage"))},
        "many-outcomes": {"claims": claims(result("many_outcomes"))},
        "pooling-evidence": site_checks.tables(result("site_checks")),
        "proofs/secure_sums": secure_masks.tables(result("secure_masks")),
        "quantiles": {"coverage": quantiles.table(cells("quantiles")), "confounded": adjusted["quantiles"]},
        "ratios": {"coverage": effect_measures.table(cells("effect_measures"))},
        "scaling-measured": {
            "jobs": experiments.jobs_table(metrics),
            "bill": experiments.bill_table(metrics),
        },
        "secure-sums": {
            "coverage": secure_sums.coverage_table(result("secure_sums")["coverage"]),
            "secure queries": secure_queries(result("secure_queries")["parts"]),
            "secure sites": secure_sites(result("secure_sites")),
        },
        "survival": survival.tables(result("survival")) | {"confounded": adjusted["survival"]},
    }
    return {
        page: {name: text if isinstance(text, str) else "\n".join(text) for name, text in each.items()}
        for page, each in found.items()
    }


def rewritten(page: str, text: str) -> str:
    """Return the text of a page with its tables written afresh."""
    return written(text, {name: table.strip().splitlines() for name, table in tables()[page].items()})


def main() -> None:
    for page in tables():
        file = DOCS / f"{page}.md"
        file.write_text(rewritten(page, file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
