"""What can be seen without noise is the same for neighbours."""

from collections.abc import Sequence
from typing import Any

from dpcausal.audit.finding import Finding
from dpcausal.audit.neighbours import Record, worst_pairs
from dpcausal.audit.spy import SpyVault
from dpcausal.audit.tables import table_of
from dpcausal.audit.targets import DRAWS_INSIDE, Target
from dpcausal.calibration import calibrate
from dpcausal.queries.models import Modelled
from dpcausal.release import Release


def check_public_outputs(target: Target, most: int | None = None) -> Finding:
    """On every pair: n, sizes, texts, names, sizes of noise and public values, from real vaults, agree between neighbours."""
    pairs = worst_pairs(target.schema.protects)[:most]
    different = [pair.name for pair in pairs if _seen(target, pair.tables[0]) != _seen(target, pair.tables[1])]
    detail = f"differs on: {', '.join(different)}" if different else f"the same on {len(pairs)} pairs"
    return Finding("public_outputs", target.name, not different, detail, {"pairs": len(pairs)})


def _seen(target: Target, units: Sequence[Record]) -> object:
    vault = SpyVault(table_of(units, target.schema), target.schema)
    releases: list[Any] = [
        # Facts of noisy scores and arms are noisy themselves, and are looked at with the other noisy numbers.
        (
            each.names,
            _sizes(each, target),
            each.receipt.query,
            {} if isinstance(each.query, DRAWS_INSIDE) else each.public_values,
        )
        for each in target.releases(vault)
    ]
    return repr(vault), vault.n, vault.arm_sizes, vault.caveats, str(vault.ledger.spent), releases


def _sizes(release: Release, target: Target) -> object:
    """The sizes of noise; but where a question is asked with noisy models, only that they follow from the question."""
    noise = calibrate(release.query, target.schema, release.guarantee)
    pairs = zip(noise.scales, noise.sensitivity.coordinates, strict=True)
    calibrated = tuple(None if scale is None else scale * at.tick for scale, at in pairs)
    return "as asked" if isinstance(release.query, Modelled) and release.scales == calibrated else release.scales
