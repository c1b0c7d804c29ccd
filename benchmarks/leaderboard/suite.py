"""The suite: which tables, which epsilons, how often."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.leaderboard.contestants import DELTA, GROUPS, Group
from benchmarks.leaderboard.summary import choices, lines
from benchmarks.leaderboard.tables import FROM_FILES, generated_name
from benchmarks.leaderboard.work import Task, done

CLASSIC_EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)


@dataclass(frozen=True)
class Plan:
    """How often a table is asked, as a share of the repeats, and with which epsilons."""

    share: float
    epsilons: tuple[float, ...]


PLANS: dict[str, Plan] = {
    generated_name(20_000, 10): Plan(1.0, (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)),
    generated_name(100_000, 10): Plan(1.0, (0.5, 1.0)),
    generated_name(1_000, 10): Plan(0.4, (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)),
    generated_name(5_000, 10): Plan(0.4, (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)),
    generated_name(20_000, 4): Plan(0.4, (0.1, 0.5, 1.0, 4.0)),
    generated_name(20_000, 20): Plan(0.4, (0.1, 0.5, 1.0, 4.0)),
    generated_name(20_000, 10, -1): Plan(0.4, (0.5, 1.0, 4.0)),
    generated_name(1_000_000, 10): Plan(0.06, (0.1, 1.0)),
    "Synth": Plan(1.0, CLASSIC_EPSILONS),
    "Lalonde": Plan(1.0, CLASSIC_EPSILONS),
    **{f"IHDP {place}": Plan(0.1, CLASSIC_EPSILONS) for place in range(1, 11)},
    **{f"ACIC {place}": Plan(0.1, CLASSIC_EPSILONS) for place in range(1, 11)},
    **dict.fromkeys(("Twins", "STAR", "IST", "Hillstrom"), Plan(0.2, (0.5, 1.0, 4.0))),
}
"""Every table. The ten realisations of IHDP and of ACIC count as one data set each."""


def leaderboard(  # noqa: PLR0913
    names: Sequence[str],
    folder: str | None,
    results: str,
    *,
    repeats: int,
    workers: int,
    epsilons: Sequence[float] | None = None,
    groups: Sequence[Group] = GROUPS,
) -> dict[str, Any]:
    """Run what has not been run yet, and sum up."""
    tasks = [
        Task(name, repeat, epsilon, group, folder, results)
        for group in groups
        for name in names
        for epsilon in PLANS[name].epsilons
        if epsilons is None or epsilon in epsilons
        for repeat in range(max(round(repeats * PLANS[name].share), 1))
    ]
    runs = done(tasks, workers)
    return {"suite": "leaderboard", "delta": DELTA, "lines": lines(runs), "choices": choices(runs)}


def tables_for(folder: str | None) -> list[str]:
    """All tables, or those that need no files."""
    return [name for name in PLANS if folder or name not in FROM_FILES]
