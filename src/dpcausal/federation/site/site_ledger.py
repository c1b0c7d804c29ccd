"""The ledger of a site: where its policy says that it is, and whether it holds all that the site ever answered."""

import json
from pathlib import Path

from dpcausal.errors import LedgerError
from dpcausal.federation.site.policy import Policy, address_in
from dpcausal.federation.site.stores import ResponseStore
from dpcausal.ledger import Ledger
from dpcausal.utils.durable_files import replace_file

MESSAGES = "messages"
"""The folder of a site's responses, with their receipts."""

_RESTORED = "restored.json"


def ledger_address(folder: Path, policy: Policy) -> str:
    """Return the address of a site's ledger."""
    return _address(folder, policy.ledger)


def witness_address(folder: Path, policy: Policy) -> str | None:
    """Return the address of the ledger's witness, or None."""
    return _address(folder, policy.witness) if policy.witness else None


def open_ledger(folder: Path, policy: Policy) -> Ledger:
    """Open a site's ledger. Neither the site's key nor its table is needed.

    Raises:
        LedgerError: If it is absent, broken, behind its witness, or lacks the receipt of an answer.
    """
    ledger = Ledger(ledger_address(folder, policy), witness=witness_address(folder, policy))
    if lost := ledger.check_receipts(ResponseStore(folder / MESSAGES).receipts()):
        raise LedgerError(
            problem=f"The ledger {ledger.address} lacks the receipts of answers that this site paid for: {len(lost)}",
            hint="this ledger was truncated, restored from a backup, or is another one. The site does not answer. "
            "Put the right ledger back, or record the loss with dpcausal ledger restore.",
        )
    _check_restored(folder, ledger)
    return ledger


def has_ledger(folder: Path, policy: Policy) -> bool:
    """Return whether a site's ledger was created."""
    return Ledger.exists(ledger_address(folder, policy))


def mark_restored(folder: Path, ledger: Ledger) -> None:
    """Note that a ledger came from a backup: until the loss is recorded in it, `open_ledger` raises.

    Nobody at the site can tell what was answered after the backup was taken. A person has to state it.
    """
    replace_file(folder / _RESTORED, json.dumps({"after": ledger.entries()[-1].number}))


def _check_restored(folder: Path, ledger: Ledger) -> None:
    mark = folder / _RESTORED
    if not mark.exists():
        return
    after = json.loads(mark.read_text(encoding="ascii"))["after"]
    if not any(entry.kind == "restore" and entry.number > after for entry in ledger.entries()):
        raise LedgerError(
            expected="a ledger that records what was answered after the backup it was restored from",
            got=f"{ledger.address}, which was restored and says nothing about it",
            hint="the site does not answer. State the most that later answers may have cost, with: dpcausal ledger "
            f"restore {ledger.address} --by NAME --reason WHY --lost-epsilon E; 0 if nothing was answered since.",
        )
    mark.unlink(missing_ok=True)


def _address(folder: Path, place: str) -> str:
    address = address_in(folder, place)
    return address if "://" in place or place.endswith(".log") else f"sqlite:///{address}"
