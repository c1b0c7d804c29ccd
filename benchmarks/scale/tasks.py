"""What is measured, each task in a process of its own: `python -m benchmarks.scale.tasks '{"work": "release", …}'`.

A process opens its table and runs once on a small one, so that all it needs is loaded; then it looks at the clock.
"""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.scale import hand
from benchmarks.scale.clock import Watched, clocked, peak_megabytes
from benchmarks.scale.data import Study, drawn, schema
from dpcausal.audit.tables import exact_answer
from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment
from dpcausal.guarantee import Guarantee
from dpcausal.ledger import Budget
from dpcausal.queries import ArmMoments, ArmTotals, Cut, Query, RegressionMoments, StratumContrasts
from dpcausal.schema.schema import Schema
from dpcausal.vault import Vault
from dpcausal.vault.engines.resources import Resources
from dpcausal.vault.numerics.matching import matched

GUARANTEE = Guarantee(epsilon=1.0, delta=1e-6)
NEIGHBOURS = 5
CAP = 3


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Attributes:
        work: What to do, one of `WORKS`.
        table: The folder of its files.
        query: What to ask, one of `QUERIES`.
        rows: For work that needs no files, how much of it there is.
        covariates: Over how many real ones.
        groups: By how many listed ones.
        several: Whether units have several records.
        threads: Of the engine; its own choice if None.
        memory: What the engine may hold, such as "1 GB"; its own choice if None.
        spill: The folder into which it may write what it cannot hold.
    """

    work: str
    table: str = ""
    query: str = ""
    rows: int = 0
    covariates: int = 20
    groups: int = 1
    several: bool = False
    threads: int | None = None
    memory: str | None = None
    spill: str | None = None

    def to_json(self) -> str:
        """Return the task as text for a process."""
        return json.dumps(asdict(self))

    @property
    def schema(self) -> Schema:
        """What is public about its table."""
        return schema(self.covariates, several=self.several)

    @property
    def question(self) -> Query:
        """What it asks."""
        return QUERIES[self.query](self)

    @property
    def small(self) -> pa.Table:
        """A small table of the same kind."""
        return drawn(Study(1_000, self.covariates, several=self.several), 0)


QUERIES: dict[str, Callable[[Task], Query]] = {
    "arm_totals": lambda _: ArmTotals(),
    "arm_moments": lambda _: ArmMoments(),
    "strata": lambda _: StratumContrasts([Cut("g0"), Cut("x0", hand.EDGES)], cap=CAP),
    "groups": lambda task: StratumContrasts([Cut(f"g{place}") for place in range(task.groups)], cap=CAP),
    "moments": lambda task: RegressionMoments([f"x{place}" for place in range(task.covariates)]),
}


def vault(task: Task, table: object) -> Vault:
    """Return the door to a table, with a ledger in memory."""
    resources = Resources(task.memory, task.threads, task.spill)
    return Vault(table, task.schema, ledger="sqlite://", budget=Budget(epsilon=10, delta=1e-3), resources=resources)


def release(task: Task) -> Callable[[], Any]:
    """Return a release from a vault that stands open."""
    vault(task, task.small).release(task.question, GUARANTEE)
    door = vault(task, task.table)
    return lambda: door.release(task.question, GUARANTEE).values


def opening(task: Task) -> Callable[[], Any]:
    """Return the opening of a vault, which counts its units."""
    vault(task, task.small)
    return lambda: vault(task, task.table).n


def answer(task: Task) -> Callable[[], Any]:
    """Return what a release is before noise; of made-up data only, to see that work by hand gives the same."""
    door = vault(task, task.table)
    return lambda: exact_answer(task.question, task.schema, door._engine, GUARANTEE).ticks  # noqa: SLF001


def estimate(task: Task) -> Callable[[], Any]:
    """Regression adjustment from files to effect, the opening of the vault included."""
    adjusted = RegressionAdjustment([f"x{place}" for place in range(task.covariates)])

    def work(table: object) -> dict[str, float]:
        effect = adjusted.estimate(vault(task, table), epsilon=GUARANTEE.epsilon, delta=GUARANTEE.delta)
        return {"effect": effect.estimate, "standard_error": math.hypot(effect.sampling_sd or 0.0, effect.privacy_sd)}

    work(task.small)
    return lambda: work(task.table)


def fixed(task: Task) -> Callable[[], Any]:
    """Return the same integers by SQL written by hand."""
    return _by_hand(task, hand.fixed)


def plain(task: Task) -> Callable[[], Any]:
    """Return sums of columns as they stand, by the shortest SQL."""
    return _by_hand(task, hand.plain)


def _by_hand(task: Task, text: Callable[[str, str, int, int], str]) -> Callable[[], Any]:
    connection = hand.connected(task.threads)
    written = text(task.query, task.table, task.covariates, task.groups)
    return lambda: connection.sql(written).fetchall()


def arrow(task: Task) -> Callable[[], Any]:
    """Second moments by hand in numpy, from Arrow batches."""
    connection = hand.connected(task.threads)
    return lambda: hand.second_moments(connection, task.table, task.covariates).tolist()


def matcher(task: Task) -> Callable[[], Any]:
    """Five neighbours for everyone, of whom none may serve more than twenty."""
    scores, arms = _scores(task.rows)
    matched(scores[:1_000], arms[:1_000], NEIGHBOURS, (9, 9))  # compiled now, not in the measurement
    return lambda: int(matched(scores, arms, NEIGHBOURS, (4 * NEIGHBOURS,) * 2)[0].sum())


def sort(task: Task) -> Callable[[], Any]:
    """Return the sort that matching begins with."""
    scores, _ = _scores(task.rows)
    return lambda: int(np.argsort(scores, kind="stable")[0])


def _scores(units: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Scores that overlap as in a usual study, and arms that go with them."""
    generator = np.random.default_rng(0)
    shares = 1 / (1 + np.exp(-generator.standard_normal(units)))
    arms = (generator.random(units) < shares).astype(np.int64)
    return np.rint(2**40 * shares).astype(np.int64), arms


WORKS: dict[str, Callable[[Task], Callable[[], Any]]] = {
    work.__name__: work for work in (release, opening, answer, estimate, fixed, plain, arrow, matcher, sort)
}


def done(task: Task) -> dict[str, Any]:
    """Do a task, and return what it cost and what it gave."""
    with Watched(task.spill) as spill:
        value, cost = clocked(WORKS[task.work](task))
    return cost | {"peak": peak_megabytes(), "spilled": spill.megabytes, "value": value}


if __name__ == "__main__":
    print(json.dumps(done(Task(**json.loads(sys.argv[1])))))
