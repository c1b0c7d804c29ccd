"""What can be seen without noise is the same for neighbours."""

from collections.abc import Sequence
from typing import Any

from dpcausal.audit.finding import Finding
from dpcausal.audit.pairs import Unit, worst_pairs
from dpcausal.audit.subjects import DRAWS_INSIDE, Subject
from dpcausal.audit.tables import table_of
from dpcausal.audit.watch import Watched
from dpcausal.calibration import calibrate
from dpcausal.queries.models import Modelled
from dpcausal.release import Release


def check_public(subject: Subject, most: int | None = None) -> Finding:
    """On every pair: n, sizes, texts, names, sizes of noise and public values, from real vaults, agree between neighbours."""
    pairs = worst_pairs(subject.schema.protects)[:most]
    different = [pair.name for pair in pairs if _seen(subject, pair.tables[0]) != _seen(subject, pair.tables[1])]
    detail = f"differs on: {', '.join(different)}" if different else f"the same on {len(pairs)} pairs"
    return Finding("public", subject.name, not different, detail, {"pairs": len(pairs)})


def _seen(subject: Subject, units: Sequence[Unit]) -> object:
    vault = Watched(table_of(units, subject.schema), subject.schema)
    releases: list[Any] = [
        # Facts of noisy scores and arms are noisy themselves, and are looked at with the other noisy numbers.
        (
            each.names,
            _sizes(each, subject),
            each.receipt.query,
            {} if isinstance(each.query, DRAWS_INSIDE) else each.public_values,
        )
        for each in subject.releases(vault)
    ]
    return repr(vault), vault.n, vault.arm_sizes, vault.caveats, str(vault.ledger.spent), releases


def _sizes(release: Release, subject: Subject) -> object:
    """The sizes of noise; but where a question is asked with noisy models, only that they follow from the question."""
    noise = calibrate(release.query, subject.schema, release.guarantee)
    pairs = zip(noise.scales, noise.sensitivity.coordinates, strict=True)
    calibrated = tuple(None if scale is None else scale * at.step for scale, at in pairs)
    return "as asked" if isinstance(release.query, Modelled) and release.scales == calibrated else release.scales
