"""Prices: what several parts of an analysis cost together. Only this module adds them up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

from dpcausal.guarantee import exact


class Amount(Protocol):
    """Anything with an epsilon and a delta: a guarantee, a receipt, an event of a ledger, another price."""

    @property
    def epsilon(self) -> float:
        """The epsilon."""
        ...

    @property
    def delta(self) -> float:
        """The delta."""
        ...


@dataclass(frozen=True)
class Part:
    """The price of one part."""

    name: str
    epsilon: float
    delta: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}: epsilon {self.epsilon:g}, delta {self.delta:g}"


@dataclass(frozen=True)
class Price:
    """What several parts cost together, as decimals add up.

    No ledger debits more. It debits less where a question was answered before, is asked twice, or is answered with
    Laplace noise, which needs no delta. A ledger with the rule `zcdp` debits rho, as `Study.debits` says.

    Example:
        >>> price = Price((Part("overlap", 0.1), Part("effect", 0.2, 1e-6)))
        >>> print(price)
        epsilon 0.3, delta 1e-06
    """

    parts: tuple[Part, ...]

    @classmethod
    def of_study(cls, document: Mapping[str, Any], site: str = "") -> Self:
        """Return the price of all that a study asks of a site, from its plain values, without reading the study."""
        epsilon = document.get("epsilons", {}).get(site, document["epsilon"])
        required = document.get("requires", {}).items()
        secondary = document.get("secondary", {}).items()
        return cls(
            (
                *(Part(f"required {name}", float(each["epsilon"])) for name, each in required),
                Part("effect", float(epsilon), float(document.get("delta", 0.0))),
                *(
                    Part(f"secondary {label}", float(each["epsilon"]), float(each.get("delta", 0.0)))
                    for label, each in secondary
                ),
            )
        )

    @classmethod
    def of(cls, amounts: Iterable[Amount]) -> Self:
        """Return the price of amounts together."""
        return cls(tuple(Part("", each.epsilon, each.delta) for each in amounts))

    @property
    def epsilon(self) -> float:
        """The epsilon of all parts together."""
        return float(self._sum("epsilon"))

    @property
    def delta(self) -> float:
        """The delta of all parts together."""
        return float(self._sum("delta"))

    def is_within(self, **most: float) -> bool:
        """Return whether the price is at most so much epsilon or delta, exactly: `price.is_within(epsilon=1.0)`."""
        return all(self._sum(what) <= exact(limit) for what, limit in most.items())

    def _sum(self, what: str) -> Fraction:
        return sum((exact(getattr(part, what)) for part in self.parts), Fraction(0))

    @property
    def lines(self) -> tuple[str, ...]:
        """The price in words: the total and, where there are several, the parts."""
        return (str(self), *map(str, self.parts if len(self.parts) > 1 else ()))

    def to_dict(self) -> dict[str, Any]:
        """Return the price as plain values."""
        parts = [{"part": part.name, "epsilon": part.epsilon, "delta": part.delta} for part in self.parts]
        return {"epsilon": self.epsilon, "delta": self.delta, "parts": parts}

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"
