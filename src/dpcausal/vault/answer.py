"""What a table says to a query, before noise. It never leaves the vault."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dpcausal.calibration import Noise


@dataclass(frozen=True)
class Answer:
    """What a table says to a query, before noise.

    Attributes:
        ticks: The exact integers, by the names of the query's coordinates.
        public_values: Numbers that may go out as they are; the query's proof says why.
        scales: The size of the noise in coordinates whose sensitivity is the table's own; as private as the ticks.
    """

    ticks: Mapping[str, int]
    public_values: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)

    def in_order(self, noise: Noise) -> tuple[int, ...]:
        """The integers in the order of the coordinates that the noise is for."""
        return tuple(self.ticks[at.name] for at in noise.sensitivity.coordinates)

    def sized(self, noise: Noise) -> Noise:
        """The noise with all of its scales, those of the table too."""
        names = (at.name for at in noise.sensitivity.coordinates)
        pairs = zip(names, noise.scales, strict=True)
        return replace(noise, scales=tuple(self.scales[name] if scale is None else scale for name, scale in pairs))
