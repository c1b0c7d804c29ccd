"""Engines, samplers and vaults under observation."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from dpcausal.ledger import Budget
from dpcausal.queries.calibration import Noise
from dpcausal.release import Noisy
from dpcausal.schema.schema import Schema
from dpcausal.utils.arrays import Array
from dpcausal.vault.door import Sampler, Vault
from dpcausal.vault.engines import Engine, ObservedEngine

Reading = Callable[[str], None]
"""What is called with the name of the verb each time the table is read."""


class _SpyEngine(ObservedEngine):
    """An engine that reports each reading."""

    def __init__(self, engine: Engine, report: Reading) -> None:
        super().__init__(engine)
        self._report = report

    def _reading(self, verb: str) -> AbstractContextManager[None]:
        self._report(verb)
        return nullcontext()


@dataclass(frozen=True)
class Drawn:
    """One draw: what kind, and what came of it."""

    kind: str
    value: Any


class SpySampler(Sampler):
    """The vault's sampler, which remembers its draws; or gives those of another one again."""

    def __init__(self, again: Sequence[Drawn] = ()) -> None:
        self.drawn: list[Drawn] = []
        self._again = list(again)

    @property
    def inside(self) -> list[list[str]]:
        """The kinds of draws inside each answer: those before the door adds its noise."""
        answers: list[list[str]] = [[]]
        for each in self.drawn:
            if each.kind == "add_noise":
                answers.append([])
            else:
                answers[-1].append(each.kind)
        return answers[:-1]

    def _note(self, kind: str, draw: Callable[[], Any]) -> Any:  # noqa: ANN401 (draws of several types)
        fits = bool(self._again) and self._again[0].kind == kind
        self.drawn.append(self._again.pop(0) if fits else Drawn(kind, draw()))
        return self.drawn[-1].value

    def add_noise(self, ticks: Sequence[int], noise: Noise) -> Noisy:
        """Remember the noise by itself, so that it can be added again to whatever the answer is then."""
        once: Noisy = self._note("add_noise", partial(super().add_noise, [0] * len(ticks), noise))
        return Noisy(tuple(tick + drawn for tick, drawn in zip(ticks, once.ticks, strict=True)))

    def laplace(self, ticks: Sequence[int], scale: float) -> list[int]:
        """Remember the noise by itself."""
        once: list[int] = self._note("laplace", partial(super().laplace, [0] * len(ticks), scale))
        return [tick + drawn for tick, drawn in zip(ticks, once, strict=True)]

    def randomised_response(self, answers: Sequence[int], epsilon: Fraction) -> list[int]:
        """Remember which answers are turned round."""
        once: list[int] = self._note(
            "randomised_response", partial(super().randomised_response, [0] * len(answers), epsilon)
        )
        return [answer ^ turned for answer, turned in zip(answers, once, strict=True)]

    def cube(self, dimensions: int, scale: float) -> Array:
        """Remember the vector."""
        vector: Array = self._note("cube", partial(super().cube, dimensions, scale))
        return vector

    def ball(self, dimensions: int, scale: float) -> Array:
        """Remember the vector."""
        vector: Array = self._note("ball", partial(super().ball, dimensions, scale))
        return vector


class SpyVault(Vault):
    """A real vault with a ledger in memory, which remembers what its ledger held each time its table was read.

    Attributes:
        readings: For each reading, its verb and the kinds of the ledger's entries at that moment.
    """

    __slots__ = ("readings", "spy")

    def __init__(self, table: object, schema: Schema) -> None:
        budget = Budget(epsilon=100, delta=0.1)
        super().__init__(table, schema, ledger="sqlite://", budget=budget)
        self.readings: list[tuple[str, list[str]]] = []
        self._engine = _SpyEngine(self._engine, self._note)
        self._sampler = self.spy = SpySampler()

    def _note(self, verb: str) -> None:
        self.readings.append((verb, [entry.kind for entry in self._ledger.entries()]))
