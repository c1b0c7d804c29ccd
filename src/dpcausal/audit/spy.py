"""An engine under observation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from dpcausal.ledger import Budget
from dpcausal.schema import Schema
from dpcausal.vault import Vault
from dpcausal.vault.engines import Batch, Engine, ExactInts
from dpcausal.vault.numerics.learners import Learner

Reading = Callable[[str], None]
"""What is called with the name of the verb each time the table is read."""


class _SpyEngine:
    """An engine that says when it is read."""

    def __init__(self, engine: Engine, reading: Reading) -> None:
        self._engine, self._reading = engine, reading

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        self._reading("aggregate")
        return self._engine.aggregate(cells, sums, whole=whole)

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        self._reading("fold")
        return self._engine.fold(columns, kernel)

    def collect(
        self,
        columns: Sequence[str],
        limit: int,
        kernel: Callable[[Batch], Batch] | None = None,
        *,
        whole: bool = False,
    ) -> Batch:
        self._reading("collect")
        return self._engine.collect(columns, limit, kernel, whole=whole)


class SpyVault(Vault):
    """A real vault with a ledger in memory, which keeps what its ledger held each time its table was read.

    Attributes:
        readings: For each reading, its verb and the kinds of the ledger's entries at that moment.
    """

    __slots__ = ("readings",)

    def __init__(self, table: object, schema: Schema, learners: Mapping[str, Learner] | None = None) -> None:
        budget = Budget(epsilon=100, delta=0.1)
        super().__init__(table, schema, ledger="sqlite://", budget=budget, learners=learners)
        self.readings: list[tuple[str, list[str]]] = []
        self._engine = _SpyEngine(self._engine, self._note)

    def _note(self, verb: str) -> None:
        self.readings.append((verb, [entry.kind for entry in self._ledger.entries()]))
