"""Exports of a site's audit log, joined with the prices in its ledger: JSON lines or CSV."""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dpcausal.federation.site.log_entry import LogEntry
from dpcausal.federation.site.signed_changes import verified_changes
from dpcausal.federation.site.site import Site
from dpcausal.ledger import Ledger
from dpcausal.release import Receipt

Format = Literal["jsonl", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
_COLUMNS = ("at", "event", "who", "study", "name", "detail", "epsilon", "delta", "receipts", "signed", "digest")
_FORMULA = ("=", "+", "-", "@")
_EVENTS = {
    "approve": "approved",
    "reject": "rejected",
    "withdraw": "withdrawn by its requester",
    "answer": "request",
    "forged": "request without a valid signature",
    "people": "people changed",
    "key": "key replaced",
    "index": "index made anew",
    "confirm": "settings confirmed",
    "restore": "restored site confirmed: earlier approvals do not count",
}


@dataclass(frozen=True, kw_only=True)
class LoggedEvent:
    """One event of the audit log, with what it cost.

    Attributes:
        name: The name of the study; empty where its file is not there any more.
        detail: The reason of a decision, the code of an answer, or a change and whose signature it has.
        epsilon: What the ledger debited for the releases that left for the first time; None in other events.
        receipts: The receipts of all releases in an answer, those that were paid for before included.
        signed: The signed decision, or the signature of a change; empty in other events.
        digest: The digest of the entry in the audit log.
    """

    at: str
    event: str
    who: str
    study: str
    name: str
    detail: str
    epsilon: float | None
    delta: float | None
    receipts: tuple[str, ...]
    signed: str
    digest: str


def events(site: Site) -> Iterator[LoggedEvent]:
    """Yield the events of a site, verified. A price belongs to the first answer that held its receipt."""
    names = {each.digest: each.name for each in site.studies()}
    prices, paid = _prices(site.ledger()), set[str | None]()
    entries = site.audit_log.entries()
    changes = {each.entry.digest: each.words for each in verified_changes(entries, site.policy.site)}
    for entry in entries:
        receipts = site.receipts(entry.request) if entry.code == "answered" else ()
        fresh = {receipt.digest: receipt for receipt in receipts if receipt.digest not in paid}
        paid.update(fresh)
        spent = [prices.get(digest, (receipt.epsilon, receipt.delta)) for digest, receipt in fresh.items()]
        yield LoggedEvent(
            at=entry.at,
            event=_EVENTS[entry.kind],
            who=entry.who,
            study=entry.study,
            name=names.get(entry.study, ""),
            detail=_detail(entry, changes.get(entry.digest, "")),
            epsilon=math.fsum(epsilon for epsilon, _ in spent) if receipts else None,
            delta=math.fsum(delta for _, delta in spent) if receipts else None,
            receipts=tuple(map(_receipt, receipts)),
            signed=entry.sealed,
            digest=entry.digest,
        )


def exported(site: Site, form: Format) -> bytes:
    """Return the audit log of a site with prices, in a format."""
    found = [vars(event) | {"receipts": list(event.receipts)} for event in events(site)]
    return _json_lines(found) if form == "jsonl" else _csv(found)


def _detail(entry: LogEntry, signed: str) -> str:
    if entry.request:
        return f"{entry.code} (request {entry.request})"
    return f"{entry.what} ({signed})" if signed else entry.what


def _prices(ledger: Ledger) -> dict[str | None, tuple[float, float]]:
    """Return the epsilon and delta of each debit in a ledger, by its digest."""
    entries = ledger.entries()
    granted = {entry.request: entry.events for entry in entries if entry.kind == "grant"}
    debits = {entry.digest: granted[entry.request] for entry in entries if entry.kind == "debit"}
    return {
        digest: (math.fsum(event.epsilon for event in events), math.fsum(event.delta for event in events))
        for digest, events in debits.items()
    }


def _receipt(receipt: Receipt) -> str:
    price = f"epsilon {receipt.epsilon:g}, delta {receipt.delta:g}"
    return f"{receipt.query}: {price}, entry {receipt.entry}, {receipt.digest}"


def _json_lines(found: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(event, sort_keys=True) + "\n" for event in found).encode()


def _csv(found: Sequence[dict[str, Any]]) -> bytes:
    """Return a table with one line for each event. A text that a spreadsheet would take for a formula is quoted."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(_COLUMNS)
    for event in found:
        cells = event | {"receipts": "; ".join(event["receipts"])}
        writer.writerow([_cell(cells[column]) for column in _COLUMNS])
    return file.getvalue().encode()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
