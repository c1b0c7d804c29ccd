"""PP-IPW: Lee, Gresele, Park and Muandet (2019), `python -m benchmarks.papers pp-ipw`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers.paper import Paper, Result, Task
from benchmarks.papers.pp_ipw import real, synthetic
from benchmarks.papers.pp_ipw.algorithm import EPSILONS
from benchmarks.papers.pp_ipw.bounds import counterexamples
from benchmarks.papers.pp_ipw.claims import claims
from benchmarks.papers.pp_ipw.figures import draw
from benchmarks.papers.pp_ipw.page import tables, text

_BLOCK = 10
"""Trials, or simulated tables, of one task."""
_SETTINGS = [(epsilon, m) for m in synthetic.FITTED_ON for epsilon in EPSILONS]
_SPLIT_SETTINGS = list(
    dict.fromkeys(
        [
            *((epsilon, synthetic.FIXED_FITTED_ON) for epsilon in EPSILONS),
            *((synthetic.FIXED_EPSILON, m) for m in synthetic.FITTED_ON),
        ]
    )
)
"""For the corrected method: each epsilon of Figures 2a and 2b, each m of Figures 2c and 2d."""


def _tasks(quick: bool, data: Path | None) -> list[Task]:
    trials, vaults, signs = (10, 1, 10) if quick else (100, 8, 120)
    settings = _SPLIT_SETTINGS[:5:2] if quick else _SPLIT_SETTINGS
    tasks = []
    for effect in synthetic.EFFECTS:
        tasks += [
            Task(f"printed/{effect:g}/{first}", synthetic.printed, (effect, first, _BLOCK, _SETTINGS))
            for first in range(0, trials, _BLOCK)
        ]
        for place in range(vaults):
            epsilons = tuple(dict.fromkeys(epsilon for epsilon, _ in settings))
            tasks += [
                Task(f"vaults/{effect:g}/split {place}", synthetic.split_vaults, (effect, place, settings)),
                Task(f"vaults/{effect:g}/whole {place}", synthetic.whole_vaults, (effect, place, epsilons)),
            ]
    for kind in synthetic.SIGNS:
        several = signs if kind == synthetic.TRIAL else max(signs * 3 // 10, 1)
        tasks += [
            Task(f"signs/{kind}/{first}", synthetic.signs, (kind, first, min(_BLOCK, several)))
            for first in range(0, several, _BLOCK)
        ]
    if data is not None:
        tasks += _data_tasks(quick, str(data))
    return tasks


def _data_tasks(quick: bool, folder: str) -> list[Task]:
    parts = 2 if quick else 10  # of Lalonde's runs; of IHDP, realisations
    runs, vaults = (20, {"IHDP": 1, "Lalonde": 1}) if quick else (100, {"IHDP": 2, "Lalonde": 3})
    tasks = []
    for name in ("IHDP", "Lalonde"):
        for part in range(1, parts + 1):
            tasks += [
                Task(f"tables/{name}/printed/{part}", real.printed, (name, part, runs, folder)),
                Task(f"tables/{name}/corrected/{part}", real.corrected, (name, part, runs, folder)),
                Task(f"tables/{name}/vaults/{part}", real.vaults, (name, part, vaults[name], folder)),
            ]
    return tasks


def _left_out(quick: bool, data: Path | None) -> list[str]:
    lines = ["990 of IHDP's 1,000 realisations, which are not in the public repository that has the first ten"]
    if data is None:
        lines = ["Tables 2 and 3, which need IHDP and Lalonde: give --data FOLDER"]
    if quick:
        lines.append("most repeats: 10 of 100 trials, one table through vaults for each effect, three epsilons there")
    return lines


def _result(found: Mapping[str, Any]) -> Result:
    def under(*words: str) -> list[Any]:
        start = "/".join(words) + "/"
        return [value for key, value in found.items() if key.startswith(start)]

    lines: dict[str, list[dict[str, Any]]] = {"synthetic": [], "vaults": [], "signs": [], "tables": []}
    for effect in synthetic.EFFECTS:
        trials = [trial for block in under("printed", f"{effect:g}") for trial in block]
        lines["synthetic"] += synthetic.summary(effect, trials, _SETTINGS)
        lines["vaults"] += synthetic.vault_summary(effect, under("vaults", f"{effect:g}"))
    for kind in synthetic.SIGNS:
        lines["signs"] += synthetic.planned_signs(kind, [table for block in under("signs", kind) for table in block])
    for name in real.PRINTED:
        kinds = {kind: under("tables", name, kind) for kind in ("printed", "corrected", "vaults")}
        lines["tables"] += real.summary(name, kinds) if all(kinds.values()) else []
    return {"paper": "pp-ipw", **lines, "counterexamples": counterexamples()}


PAPER = Paper(
    name="pp-ipw",
    title="PP-IPW: Lee, Gresele, Park and Muandet (2019), Privacy-Preserving Causal Inference via Inverse Probability "
    "Weighting",
    tasks=_tasks,
    left_out=_left_out,
    result=_result,
    text=text,
    draw=draw,
    tables=tables,
    claims=claims,
)

__all__: Sequence[str] = ["PAPER"]
