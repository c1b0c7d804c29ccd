"""The tables: the paper's, a generated one and IHDP, and the public functions that learners get for each."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

import dpcausal as dpc
from benchmarks import datasets
from benchmarks.papers.dp_cate.tables import PROFILES, Table, named, paper, paper_short, simulated

SLOPES = np.array([1.4, -1.0, 0.8, 0.5, -0.4, 0.3])


def generated(n: int, seed: int) -> Table:
    """Return a confounded table with six even covariates and an effect that is linear in them: seven functions."""
    generator = np.random.default_rng((n, seed))
    x = generator.uniform(-1, 1, (n, len(SLOPES)))
    arms = generator.random(n) < 1 / (1 + np.exp(0.4 * x[:, 1] - 0.6 * x[:, 0]))
    mean = x @ [1.0, 0.5, -0.5, 0.3, 0.2, 0.1] + (1 + x @ SLOPES) * arms
    data = simulated("generated", x, arms, mean + generator.normal(0, 1, n), low=-1, bounds=(-10, 10))
    fresh = np.random.default_rng(0).uniform(-1, 1, (PROFILES, len(SLOPES)))
    return Table(data, named(fresh), 1 + fresh @ SLOPES, dpc.Polynomial(data.names))


def ihdp(folder: Path, realisation: int) -> Table:
    """Return a realisation of IHDP, with the short list of covariates that the leaderboard takes.

    Effects are known for the table's own units only, so these are the profiles here; outside a benchmark they would be
    private.
    """
    whole = datasets.ihdp(folder, realisation)
    data = replace(whole, covariates=tuple(column for column in whole.covariates if column.name in whole.short))
    means = np.loadtxt(folder / "ihdp" / f"ihdp_npci_{realisation}.csv", delimiter=",", usecols=(3, 4))
    profiles = {name: data.column(name) for name in data.names}
    return Table(data, profiles, means[:, 1] - means[:, 0], dpc.Polynomial(data.names))


GENERATED: dict[str, Callable[[int, int], Table]] = {
    "Dataset 1": lambda n, seed: paper(1, n, seed),
    "Dataset 2": lambda n, seed: paper(2, n, seed),
    "Dataset 2, five covariates": paper_short,
    "generated": generated,
}
IHDP = "IHDP"


@lru_cache(maxsize=2)
def table(name: str, n: int, repeat: int, folder: str | None) -> Table:
    """Return a table by its name. Generated ones are new for each repeat; IHDP has ten realisations and one size."""
    if name != IHDP:
        return GENERATED[name](n, repeat)
    if folder is None:
        raise ValueError("IHDP is read from files: say which folder they are in")
    return ihdp(Path(folder), repeat % 10 + 1)
