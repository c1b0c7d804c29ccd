"""The runs: what each task does, which tasks there are, and what they add up to."""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.dp_cate import boosting, medical, nearness, wide
from benchmarks.papers.dp_cate.contestants import CONTESTANTS, DELTA, QUERIES, REFERENCES, Contestant
from benchmarks.papers.dp_cate.printed import READINGS, Fit, finite, functional, k_anonymous
from benchmarks.papers.dp_cate.tables import Table, Vector, paper
from benchmarks.papers.paper import Result, Task
from dpcausal.estimators.conditional.meta_learners import MetaLearner

Line = dict[str, Any]

N = 2_700
"""What the paper learns from: 90 % of 3,000."""

REPEATS, SLOWEST_REPEATS = 4, 2
"""How many tables are drawn: of Dataset 1, and of Dataset 2, whose thirty covariates take long."""

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
SLOW_EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
QUICK_EPSILONS = (0.1, 1.0, 8.0)
DRAWN = (0.5, 2.0, 8.0)
"""The epsilons of figures that show predictions."""

TABLES = {"Dataset 1": 1, "Dataset 2": 2}
METAS: tuple[MetaLearner, ...] = ("R", "DR")
STAGES = ("forest", "network", "linear")
CLASSES = (5, 25, 100)
"""k of k-anonymity."""

OURS = tuple(each.label for each in CONTESTANTS if each.group == "ours")
PEERS = ("Niu et al. 2022, DP-EBM, R-learner", "Niu et al. 2022, DP-EBM, DR-learner")
NO_PRIVACY = REFERENCES[0].label


@lru_cache(maxsize=2)
def _table(name: str, repeat: int) -> Table:
    return paper(TABLES[name], N, repeat)


def pehe(effects: Vector, table: Table) -> float:
    """Return the error at the paper's queries."""
    return float(np.sqrt(np.mean((effects[:QUERIES] - table.effects[:QUERIES]) ** 2)))


def contest(name: str, repeat: int, label: str, epsilons: tuple[float, ...]) -> list[Line]:
    """Return the error of one of our learners, of DP-EBM or of a learner without privacy."""
    table, contestant = _table(name, repeat), _contestant(label)
    lines = []
    for epsilon in epsilons:
        start = time.process_time()
        found = contestant.ask(table, epsilon, np.random.default_rng((repeat, round(1000 * epsilon))))
        line = {"method": label, "epsilon": epsilon, "pehe": pehe(found.effects, table)}
        if found.low is not None and found.high is not None:
            truth = table.effects
            line["covered"] = float(np.mean((found.low <= truth) & (truth <= found.high)))
        lines.append(line | {"seconds": time.process_time() - start})
    return lines


def reference(name: str, repeat: int) -> list[Line]:
    """Return the error of an R-learner with the same functions without privacy."""
    found = _contestant(NO_PRIVACY).ask(_table(name, repeat), math.inf, np.random.default_rng(0))
    return [{"method": NO_PRIVACY, "epsilon": None, "pehe": pehe(found.effects, _table(name, repeat))}]


def _contestant(label: str) -> Contestant:
    return next(each for each in (*CONTESTANTS, *REFERENCES) if each.label == label)


def printed_finite(name: str, repeat: int, meta: MetaLearner, stage: str) -> Line:
    """Return the error of Theorem 1 as printed."""
    table = _table(name, repeat)
    return _noised(f"printed {meta}, {stage}", table, finite(table, meta, stage), repeat)


def printed_functional(name: str, repeat: int, meta: MetaLearner) -> list[Line]:
    """Return the error of Theorem 2 as printed, with each reading of its ridge."""
    fits = functional(_table(name, repeat), meta)
    return [
        _noised(f"printed {meta}, kernel, ridge of the {reading}", _table(name, repeat), fits[reading], repeat)
        for reading in READINGS
    ]


def _noised(method: str, table: Table, fit: Fit, repeat: int) -> Line:
    lines = [{"method": method, "epsilon": None, "pehe": pehe(fit.effects, table)}]
    for epsilon in EPSILONS:
        noisy = fit.noisy(epsilon, np.random.default_rng((repeat, round(1000 * epsilon), len(method))))
        lines.append({"method": method, "epsilon": epsilon, "pehe": pehe(noisy, table)})
    return {"method": method, "lines": lines, "sd": fit.sd, "effects": [round(float(each), 3) for each in fit.effects]}


def anonymous(name: str, repeat: int, k: int) -> list[Line]:
    """Return the error of the paper's forest on k-anonymous data."""
    table = _table(name, repeat)
    return [{"method": f"{k}-anonymous data, forest", "epsilon": None, "pehe": pehe(k_anonymous(table, k), table)}]


def near(name: str, repeat: int) -> list[Line]:
    """Return how near features come to the kernel."""
    return nearness.nearness(_table(name, repeat))


def curve_by(name: str, label: str, epsilon: float) -> list[float]:
    """Return the effects that one of our learners gives to the paper's queries, of the first table."""
    found = _contestant(label).ask(_table(name, 0), epsilon, np.random.default_rng(0))
    return [round(float(each), 3) for each in found.effects[:QUERIES]]


def tasks(quick: bool, data: Path | None) -> Sequence[Task]:
    """Return the tasks."""
    first, second = (range(2), range(1)) if quick else (range(REPEATS), range(SLOWEST_REPEATS))
    return [
        *(task for repeat in first for task in _dataset_1(quick, repeat)),
        *_others(quick, data),
        *(task for repeat in second for task in _dataset_2(quick, repeat)),
    ]


def _dataset_1(quick: bool, repeat: int) -> list[Task]:
    """Return what Figures 3, 4 and 9 to 15 are about."""
    at, epsilons = ("Dataset 1", repeat), QUICK_EPSILONS if quick else EPSILONS
    known = {each.label for each in CONTESTANTS}
    made = [
        Task(f"finite/Dataset 1/{repeat}/{meta}/{stage}", printed_finite, (*at, meta, stage))
        for meta in METAS
        for stage in STAGES
    ]
    made += [
        Task(f"ours/Dataset 1/{repeat}/{label}", contest, (*at, label, epsilons))
        for label in (*OURS, *PEERS)
        if label in known
    ]
    made.append(Task(f"reference/Dataset 1/{repeat}", reference, at))
    made += [Task(f"functional/Dataset 1/{repeat}/{meta}", printed_functional, (*at, meta)) for meta in METAS]
    made += [Task(f"anonymous/Dataset 1/{repeat}/{k}", anonymous, (*at, k)) for k in CLASSES]
    if repeat < SLOWEST_REPEATS:
        made.append(Task(f"near/Dataset 1/{repeat}", near, at))
    return made


def _dataset_2(quick: bool, repeat: int) -> list[Task]:
    """Return what Figure 5 is about; fewer epsilons for our learners, for thirty covariates take longer."""
    at, epsilons = ("Dataset 2", repeat), QUICK_EPSILONS if quick else SLOW_EPSILONS
    made = [
        Task(f"finite/Dataset 2/{repeat}/R/{stage}", printed_finite, (*at, "R", stage))
        for stage in (STAGES[:2] if quick else STAGES)
    ]
    made.append(Task(f"functional/Dataset 2/{repeat}/R", printed_functional, (*at, "R")))
    made += [Task(f"ours/Dataset 2/{repeat}/{label}", contest, (*at, label, epsilons)) for label in OURS]
    made.append(Task(f"reference/Dataset 2/{repeat}", reference, at))
    made.append(Task(f"anonymous/Dataset 2/{repeat}/{CLASSES[1]}", anonymous, (*at, CLASSES[1])))
    if repeat == 0 and not quick:
        made.append(Task(f"near/Dataset 2/{repeat}", near, at))
    return made


def _others(quick: bool, data: Path | None) -> list[Task]:
    """Return what is shown of one table, and what Figures 6 and 7 are about."""
    size, first = ((1_000, 300), 100) if quick else ((9_659, 4_000), 100)
    known = {each.label for each in CONTESTANTS}
    made = [
        Task(f"curve/{label}/{epsilon:g}", curve_by, ("Dataset 1", label, epsilon))
        for label in (*OURS[:4], *PEERS)
        if label in known
        for epsilon in (DRAWN[::2] if quick else DRAWN)
    ]
    made += [Task(f"wide/{repeat}", wide.asked, (*size, repeat)) for repeat in range(1 if quick else 3)]
    made.append(Task("wide shown", wide.shown, (*size, DRAWN[::2] if quick else DRAWN)))
    made.append(Task("wide printed", wide.printed, (*size, first)))
    own = QUICK_EPSILONS if quick else (1.0, 4.0, 8.0)
    made += [Task(f"nhefs/{along}", medical.curve, (data, along, own)) for along in medical.ALONG]
    return made


def left_out(quick: bool, data: Path | None) -> Sequence[str]:  # noqa: ARG001
    """Return what this run leaves out, and why; NHEFS ships with the benchmarks."""
    lines = []
    if not boosting.installed():
        lines.append("DP-EBM (Figures 11 and 12): needs the package interpret-core, which is not installed")
    if quick:
        lines.append("most epsilons and repeats, and most of the wide table")
    return [*lines, "MIMIC-III and TCGA themselves: both need an agreement with their owners"]


def result(found: Mapping[str, Any]) -> Result:
    """Return the figures."""
    by_kind: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for key, value in found.items():
        by_kind[key.split("/")[0]][key] = value
    rows: list[Line] = []
    fits: dict[str, Line] = {}
    for kind in ("finite", "functional", "ours", "reference", "anonymous"):
        for key, value in by_kind[kind].items():
            name = key.split("/")[1]
            for each in value if isinstance(value, list) else [value]:
                rows += [line | {"table": name} for line in each.get("lines", [each])]
                if key.startswith((f"{kind}/Dataset 1/0/",)) and "effects" in each:
                    fits[each["method"]] = {"effects": each["effects"], "sd": _rounded(each["sd"])}
    noise: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for kind in ("finite", "functional"):
        for key, value in by_kind[kind].items():
            for each in value if isinstance(value, list) else [value]:
                noise[key.split("/")[1], each["method"]].append(each["sd"])
    table = _table("Dataset 1", 0)
    return {
        "n": N,
        "queries": QUERIES,
        "delta": DELTA,
        "rows": _rows(rows),
        "noise": [
            {"table": name, "method": method, "sd": _rounded(float(np.mean(sds))), "repeats": len(sds)}
            for (name, method), sds in noise.items()
        ],
        "predictions": {
            "x0": [round(float(each), 4) for each in table.profiles["x0"][:QUERIES]],
            "truth": [round(float(each), 3) for each in table.effects[:QUERIES]],
            "printed": fits,
            "ours": {key.removeprefix("curve/"): value for key, value in by_kind["curve"].items()},
        },
        "nearness": _nearness(by_kind["near"]),
        "wide": _wide(by_kind["wide"]) | {"shown": found["wide shown"], "printed": found["wide printed"]},
        "nhefs": list(by_kind["nhefs"].values()),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _rows(runs: Sequence[Line]) -> list[Line]:
    """One row for each table, method and epsilon: mean PEHE over repeats, and its standard error."""
    groups: defaultdict[tuple[Any, ...], list[Line]] = defaultdict(list)
    for run in runs:
        groups[run["table"], run["method"], run["epsilon"]].append(run)
    made = []
    for (name, method, epsilon), group in groups.items():
        errors = np.array([run["pehe"] for run in group])
        covered = [run["covered"] for run in group if "covered" in run]
        row = {"table": name, "method": method, "epsilon": epsilon, "pehe": _rounded(errors.mean())}
        row["se"] = _rounded(errors.std(ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else None
        if covered:
            row |= {"coverage": _rounded(float(np.mean(covered))), "intervals": len(covered)}
        made.append(row | {"repeats": len(group)})
    return made


def _nearness(found: Mapping[str, list[Line]]) -> list[Line]:
    groups: defaultdict[tuple[str, str, int], list[Line]] = defaultdict(list)
    for key, lines in found.items():
        for line in lines:
            groups[key.split("/")[1], line["ridge"], line["features"]].append(line)
    means = ("penalty", "apart", "spread", "pehe_of_features", "pehe_of_kernel")
    return [
        {"table": name, "ridge": ridge, "features": count, "repeats": len(group)}
        | {part: _rounded(float(np.mean([line[part] for line in group]))) for part in means}
        for (name, ridge, count), group in groups.items()
    ]


def _wide(found: Mapping[str, list[Line]]) -> Line:
    runs: defaultdict[str, list[Line]] = defaultdict(list)
    for lines in found.values():
        for line in lines:
            runs[line["way"]].append(line)
    facts = {"epsilon": wide.EPSILON, "effect": wide.EFFECT}
    return facts | {"lines": [{"way": way, **wide.summary(each)} for way, each in runs.items()]}
