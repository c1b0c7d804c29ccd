"""What can be seen without noise is the same for neighbours."""

from collections.abc import Sequence
from typing import Any

from dpcausal.audit.finding import Finding
from dpcausal.audit.neighbours import Record, worst_pairs
from dpcausal.audit.spy import SpyVault
from dpcausal.audit.tables import table_of
from dpcausal.audit.targets import Target
from dpcausal.queries.calibration import calibrate
from dpcausal.release import Release


def check_public_outputs(target: Target, most: int | None = None) -> Finding:
    """Check on every pair that real vaults show the same n, sizes, texts, names, scales and public values."""
    pairs = worst_pairs(target.schema.protects)[:most]
    different = [pair.name for pair in pairs if _seen(target, pair.tables[0]) != _seen(target, pair.tables[1])]
    detail = f"differs on: {', '.join(different)}" if different else f"the same on {len(pairs)} pairs"
    return Finding("public_outputs", target.name, not different, detail, {"pairs": len(pairs)})


def _seen(target: Target, units: Sequence[Record]) -> object:
    vault = SpyVault(table_of(units, target.schema), target.schema)
    releases = target.releases(vault)
    shown: list[Any] = [
        # Public values of a random answer are random too: the attack looks at them with the other noisy numbers.
        (each.names, _scales(each, target), each.receipt.query, {} if inside else each.public_values)
        for each, inside in zip(releases, vault.spy.inside, strict=True)
    ]
    # Only the first query depends on no noisy number: later ones may hold coefficients or means of earlier releases.
    return repr(vault), vault.n, vault.arm_sizes, vault.caveats, str(vault.ledger.spent), releases[0].query, shown


def _scales(release: Release, target: Target) -> object:
    """Return that the scales follow from the query, which is public; or the scales, if they do not."""
    noise = calibrate(release.query, target.schema, release.guarantee)
    pairs = zip(noise.scales, noise.sensitivity.coordinates, strict=True)
    calibrated = tuple(None if scale is None else scale * at.tick for scale, at in pairs)
    return "as calibrated" if release.scales == calibrated else release.scales
