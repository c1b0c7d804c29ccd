"""Checks of what a vault adds to secure sums: shares of noise, paid for first, each session answered once."""

import math

import numpy as np

from dpcausal.audit.finding import Finding
from dpcausal.audit.noise_distribution import noise_faults
from dpcausal.audit.spy import SpyVault
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import LedgerError, QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.ledger import Budget
from dpcausal.queries import ArmMoments, ArmTotals, CovariateSums
from dpcausal.queries.calibration import Asked, NoiseShare, calibrate
from dpcausal.release import Contribution
from dpcausal.schema.scale import Scale
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.vault.door import Sampler, Vault
from dpcausal.vault.preconditions import check_contribution

_HONEST = 3
_SMALL = 0.01
"""The epsilon of each query where many sessions are asked for within one budget."""
_SESSION = "0" * 64


def check_shares(guarantee: Guarantee, draws: int) -> Finding:
    """Check that the shares of so many honest sites add up to the noise that one table would have.

    The share is the one that the door draws. Noise as claimed fails with a probability of at most 1e-9.
    """
    noise = calibrate(ArmMoments(), standard_schema(), guarantee, "zcdp")
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
            [Asked(query, guarantee)], session=session, members="1" * 64, honest=_HONEST, mask=mask[:count]
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


def check_bundle(runs: int) -> Finding:
    """Check a session of many queries: paid for at once, and each number with its own mask, noise and place.

    Three queries are asked so many times in one session of each of some honest sites. Their sum, less masks and exact
    answers, must have the noise of one table, query by query. Noise as claimed fails with a probability of at most 1e-9
    for each query.
    """
    schema, laplace, gaussian = standard_schema(), Guarantee(epsilon=_SMALL), Guarantee(epsilon=_SMALL, delta=1e-6)
    scale = Scale([(30, -1), (60, 1)])
    bundle = (
        Asked(ArmTotals(), laplace),
        Asked(CovariateSums(["age"]), gaussian, (("age", scale),)),
        Asked(ArmMoments(), laplace),
    )
    noises = [each.shared_noise(schema) for each in bundle]
    table = synthetic_table(schema, 50)
    vault = Vault(table, schema, ledger="sqlite://", budget=Budget(epsilon=100, delta=0.01))
    views = [vault.scaled(dict(each.scales)) for each in bundle]
    exact = np.concatenate(
        [
            exact_answer(query, view.schema, view._engine, guarantee).in_order(noise)  # noqa: SLF001 (the audit looks inside)
            for view, (query, guarantee, _), noise in zip(views, bundle, noises, strict=True)
        ]
    )
    asked = [*bundle] * runs
    mask = [(place + 1) * 0x9E3779B97F4A7C15 % 2**64 for place in range(len(exact) * runs)]
    left = np.zeros((runs, len(exact)))
    for site in range(_HONEST):
        found = vault.contribute(asked, session=f"{site:064}", members="1" * 64, honest=_HONEST, mask=mask)
        noisy = [(each - own + 2**63) % 2**64 - 2**63 for each, own in zip(found.masked, mask, strict=True)]
        left += np.array(noisy, dtype=float).reshape(runs, -1) - exact
    faults, end = [], 0
    for (query, *_), noise in zip(bundle, noises, strict=True):
        start, end = end, end + len(noise.scales)
        scales = np.array(noise.scales, dtype=float)
        faults += [f"{query.name}: {fault}" for fault in noise_faults(left[:, start:end], scales, noise.family)]
    spy, count = SpyVault(table, schema), len(exact)
    for _ in range(2):
        spy.contribute(asked[:3], session=_SESSION, members="1" * 64, honest=_HONEST, mask=mask[:count])
    entries = [entry.kind for entry in spy.ledger.entries()]
    if entries.count("debit") != 1 or not all(before[-1] == "debit" for _, before in spy.readings):
        faults.append("a session is not paid for by one debit before the table is read")
    if not math.isclose(vault.ledger.spent.epsilon, _HONEST * len(asked) * _SMALL, rel_tol=1e-9):
        faults.append("a session does not cost the sum of the prices of its queries")
    detail = "; ".join(dict.fromkeys(faults)) or f"sums of {_HONEST} sites with {len(asked):,} queries each"
    return Finding("debit", "several queries in one session", not faults, detail, {"queries": len(asked)})
