"""Checks of what a vault adds to secure sums: shares of noise, paid for first, each session answered once."""

import numpy as np

from dpcausal.audit.finding import Finding
from dpcausal.audit.noise_distribution import noise_faults
from dpcausal.audit.spy import SpyVault
from dpcausal.calibration import NoiseShare, calibrate
from dpcausal.errors import LedgerError, QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ArmMoments, ArmTotals
from dpcausal.release import Contribution
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.vault.door import Sampler
from dpcausal.vault.preconditions import check_contribution

_HONEST = 3
_SESSION = "0" * 64


def check_shares(guarantee: Guarantee, draws: int) -> Finding:
    """Check that the shares of so many honest sites add up to the noise that one table would have.

    The share is the one that the door draws. Noise as claimed fails with a probability of at most 1e-9.
    """
    noise = calibrate(ArmMoments(), standard_schema(), guarantee)
    (share,) = check_contribution([ArmMoments()], [noise], _HONEST, [0] * len(noise.scales))
    many = NoiseShare(share.family, share.scales * draws, share.honest)
    shares = [Sampler().add_noise_share([0] * len(many.scales), many) for _ in range(_HONEST)]
    summed = np.sum(shares, axis=0, dtype=float).reshape(draws, -1)
    faults = list(noise_faults(summed, np.array(noise.scales, dtype=float), noise.family))
    detail = "; ".join(dict.fromkeys(faults)) or f"{draws:,} sums of {_HONEST} shares as claimed"
    return Finding("noise", f"shares of {noise.family} noise", not faults, detail, {"draws": draws})


def check_session() -> Finding:
    """Check that a session is paid for before the table is read, answered once, and asked nothing else."""
    vault, guarantee = SpyVault(synthetic_table(standard_schema(), 50), standard_schema()), Guarantee(epsilon=1.0)
    mask = [2**63 + 12_345] * 8

    def contribute(query: ArmMoments | ArmTotals, session: str = _SESSION) -> Contribution:
        count = len(calibrate(query, vault.schema, guarantee).scales)
        return vault.contribute(
            [(query, guarantee)], session=session, members="1" * 64, honest=_HONEST, mask=mask[:count]
        )

    answers = {contribute(ArmMoments()).masked for _ in range(3)}
    faults = [] if len(answers) == 1 else ["a session has several answers"]
    if not all(kinds[-1] == "debit" for _, kinds in vault.readings):
        faults.append("the table is read before the debit")
    try:
        contribute(ArmTotals())
        faults.append("one mask hides the answers to two questions")
    except (LedgerError, QueryError):
        pass
    if len(vault.readings) != 1 or vault.ledger.spent.epsilon != 1.0:
        faults.append("the table is read, or the price paid, more than once")
    detail = "; ".join(faults) or "one session: paid, read and answered once"
    return Finding("debit", "Vault.contribute", not faults, detail, {"readings": len(vault.readings)})
