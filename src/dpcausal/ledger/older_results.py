"""Results beside a new ledger that it did not pay for: a sign that an older ledger of the same people was lost."""

import json
import warnings
from pathlib import Path

_MOST_FILES, _MOST_BYTES = 50, 2_000_000
"""How many files are opened, and how large they may be: effects and releases are far smaller."""


def paid_elsewhere(folder: Path) -> list[str]:
    """Return the names of the JSON files in a folder that hold receipts of a ledger; only what was released is read."""
    found = []
    for path in sorted(folder.glob("*.json"))[:_MOST_FILES]:
        try:
            document = json.loads(path.read_text(encoding="utf-8")) if path.stat().st_size <= _MOST_BYTES else None
        except (OSError, ValueError):
            continue
        receipts = document.get("receipts") if isinstance(document, dict) else None
        if isinstance(receipts, list) and any(isinstance(each, dict) and each.get("entry") for each in receipts):
            found.append(path.name)
    return found


def warn_of_older_results(ledger: Path) -> None:
    """Warn where results stand beside a ledger that was just created."""
    if names := paid_elsewhere(ledger.parent):
        warnings.warn(
            f"{ledger.name} is new, but {', '.join(names)} beside it was paid for from another ledger. If these are "
            "the same people, a new ledger would let their budget be spent twice: delete it and open the old one, or "
            "recover that with Ledger.restore (dpcausal ledger restore). Otherwise move the results elsewhere.",
            stacklevel=3,
        )
