"""Pay, then read; answer once; refuse what cannot be paid. Watched on a real vault with a real ledger."""

import contextlib
from collections.abc import Sequence

from dpcausal.audit.finding import Finding
from dpcausal.audit.spy import SpyVault
from dpcausal.audit.targets import TARGETS, Target
from dpcausal.errors import BudgetExceededError, GuaranteeError
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ArmMoments
from dpcausal.testing import standard_schema, synthetic_table

_ASKED = 20


def _spied() -> SpyVault:
    schema = standard_schema()
    return SpyVault(synthetic_table(schema, 50), schema)


def check_debit(targets: Sequence[Target] = TARGETS) -> Finding:
    """Check that at each reading, for any estimator, the ledger's last entry is the debit that pays for it.

    After the first look of a schedule it is the look before, under the same debit.
    """
    unpaid, readings = [], 0
    for target in targets:
        vault = SpyVault(synthetic_table(target.schema, 50), target.schema)
        releases = target.releases(vault)
        debits = {entry.digest for entry in vault.ledger.entries() if entry.kind == "debit"}
        readings += len(vault.readings)
        first = all(kinds[-1] in ("debit", "look") for _, kinds in vault.readings)
        paid = vault.readings and first and debits == {release.receipt.digest for release in releases}
        unpaid += [] if paid else [target.name]
    detail = f"read before paying: {', '.join(unpaid)}" if unpaid else f"{readings} readings, each after its debit"
    return Finding("debit", f"{len(targets)} targets", not unpaid, detail, {"readings": readings})


def check_retry() -> Finding:
    """Check that the same request gives the same answer, reads nothing and costs nothing."""
    vault = _spied()
    answers = {vault.release(ArmMoments(), Guarantee(epsilon=1.0)).values for _ in range(_ASKED)}
    readings, spent = len(vault.readings), vault.ledger.spent.epsilon
    passed = len(answers) == 1 and readings == 1 and spent == 1.0
    detail = f"{_ASKED} requests: {len(answers)} answer(s), {readings} reading(s), epsilon {spent:g} spent"
    return Finding("retry", "Vault.release", passed, detail, {"asked": _ASKED, "answers": len(answers)})


def check_refusal() -> Finding:
    """Check that a request beyond the budget, or weaker than the data set's promise, is refused unread."""
    vault = _spied()
    asked = (
        ("more than the budget", Guarantee(epsilon=100.0, delta=0.0)),
        ("a little more than is left", Guarantee(epsilon=0.001)),
        ("an outcome-level guarantee", Guarantee(epsilon=0.0001, protects="outcome")),
    )
    vault.release(ArmMoments(), Guarantee(epsilon=99.9995))
    read = len(vault.readings)
    answered = []
    for name, guarantee in asked:
        with contextlib.suppress(BudgetExceededError, GuaranteeError):
            vault.release(ArmMoments(), guarantee)
            answered.append(name)
    passed = not answered and len(vault.readings) == read and vault.ledger.spent.epsilon == 99.9995
    detail = f"answered: {', '.join(answered)}" if answered else f"{len(asked)} requests refused, nothing read"
    return Finding("refusal", "Vault.release", passed, detail, {"asked": len(asked)})
