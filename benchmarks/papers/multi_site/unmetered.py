"""A vault's answers without its ledger, for experiments that ask one table very often."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.queries import Query
from dpcausal.queries.calibration import Noise, calibrate
from dpcausal.release import Noisy, Receipt, Release
from dpcausal.schema.schema import Schema
from dpcausal.source import WrappedSource
from dpcausal.vault.context import ANSWERS, Answer
from dpcausal.vault.engines import Batch, Engine, ExactInts, with_schema


class Unmetered(WrappedSource):
    """A vault's own answers; nothing is debited, and noise of the vault's laws and sizes comes from a seed.

    It protects nobody. Its queries draw nothing themselves, so that an answer can be used again with new noise.
    """

    _source: dpc.Vault

    def __init__(self, vault: dpc.Vault, generator: Generator) -> None:
        vault._engine = _Remembered(vault._engine)  # type: ignore[assignment] # noqa: SLF001
        super().__init__(vault)
        self._generator = generator
        self._answers = dict[tuple[Query, dpc.Guarantee, Schema], tuple[Answer, Noise]]()

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        """Return the vault's answer with noise."""
        asked = query, guarantee, self.schema
        if asked not in self._answers:
            context = self._source._context(query, guarantee)  # noqa: SLF001
            answer, noise = ANSWERS[type(query)](context), calibrate(query, self.schema, guarantee)
            self._answers[asked] = answer, noise
        answer, noise = self._answers[asked]
        draw = self._generator.laplace if noise.family == "laplace" else self._generator.normal
        drawn = draw(0.0, np.array(answer.sized(noise).scales, dtype=float)).round().astype(int).tolist()
        return Release.of(
            query,
            guarantee,
            noise,
            noisy=Noisy(tuple(tick + each for tick, each in zip(answer.in_order(noise), drawn, strict=True))),
            public_values=answer.public_values,
            receipt=Receipt(query.name, guarantee.epsilon, guarantee.delta, 1, "unmetered"),
        )


class _Remembered:
    """An engine that computes each sum once.

    A fold is known by its columns and its kernel: the function that makes it, or what it is bound to.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self._sums = engine, dict[str, ExactInts]()

    def with_schema(self, schema: Schema) -> "_Remembered":
        return _Remembered(with_schema(self._engine, schema))

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        asked = repr((list(cells.items()), list(sums), whole))
        return self._once(asked, lambda: self._engine.aggregate(cells, sums, whole=whole))

    def fold(self, columns: Sequence[str], kernel: Callable[[Batch], NDArray[Any]]) -> ExactInts:
        of = kernel.func if isinstance(kernel, partial) else kernel
        bound = kernel.args if isinstance(kernel, partial) else getattr(kernel, "__self__", None)
        asked = repr((list(columns), of.__module__, of.__qualname__, bound))
        return self._once(asked, lambda: self._engine.fold(columns, kernel))

    def _once(self, asked: str, compute: Callable[[], ExactInts]) -> ExactInts:
        if asked not in self._sums:
            self._sums[asked] = compute()
        return self._sums[asked].copy()
