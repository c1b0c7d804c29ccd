"""Exports of a site's audit log, joined with the prices in its ledger: JSON lines, CSV, or an RO-Crate."""

import csv
import io
import json
import math
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from dpcausal.federation.site.people import identity
from dpcausal.federation.site.site import Site
from dpcausal.ledger import Ledger
from dpcausal.release import Receipt

Format = Literal["jsonl", "csv", "ro-crate"]
FORMATS: tuple[Format, ...] = get_args(Format)
_COLUMNS = ("at", "event", "who", "study", "name", "detail", "epsilon", "delta", "receipts", "signed", "digest")
_FORMULA = ("=", "+", "-", "@")
_EVENTS = {
    "approve": "approved",
    "reject": "rejected",
    "answer": "request",
    "forged": "request without a valid signature",
    "people": "people changed",
    "index": "index made anew",
    "confirm": "settings confirmed",
    "restore": "restored site confirmed: earlier approvals do not count",
}


@dataclass(frozen=True, kw_only=True)
class LoggedEvent:
    """One event of the audit log, with what it cost.

    Attributes:
        at: The time; of an answer the day.
        event: What happened.
        who: Who decided, or the requester.
        study: The digest of the study.
        name: The name of the study; empty where its file is not there any more.
        detail: The reason of a decision, or the code of an answer.
        epsilon: What the ledger debited for the releases that left for the first time; None in other events.
        delta: The same for delta.
        receipts: The receipts of all releases in an answer, those that were paid for before included.
        signed: The signed decision; empty in other events.
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
    """Yield the events of a site, verified. A price belongs to the first answer that held its receipt.

    Raises:
        LedgerError: If the audit log or the ledger is not intact.
    """
    names = {each.digest: each.name for each in site.studies()}
    prices, paid = _prices(site.ledger()), set[str | None]()
    for entry in site.audit_log.stream():
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
            detail=f"{entry.code} (request {entry.request})" if entry.request else entry.what,
            epsilon=math.fsum(epsilon for epsilon, _ in spent) if receipts else None,
            delta=math.fsum(delta for _, delta in spent) if receipts else None,
            receipts=tuple(map(_receipt, receipts)),
            signed=entry.sealed,
            digest=entry.digest,
        )


def exported(site: Site, form: Format) -> bytes:
    """Return the audit log of a site with prices, in a format; an RO-Crate is a zip file."""
    found = [vars(event) | {"receipts": list(event.receipts)} for event in events(site)]
    if form == "jsonl":
        return _json_lines(found)
    if form == "csv":
        return _csv(found)
    return _crate(site, found)


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


def _crate(site: Site, found: Sequence[dict[str, Any]]) -> bytes:
    """Return an RO-Crate 1.1 as a zip file: the events, the studies that they name, and the metadata."""
    studies = {digest: site.inbox.intact(digest) for digest in sorted({event["study"] for event in found} - {""})}
    files = {f"studies/{digest}.toml": text.encode() for digest, text in studies.items() if text is not None}
    files["events.jsonl"] = _json_lines(found)
    metadata = _metadata(site.policy.site, found, sorted(files), datetime.now(UTC).date().isoformat())
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ro-crate-metadata.json", json.dumps({"@context": _CONTEXT, "@graph": metadata}, indent=2))
        for name, content in files.items():
            archive.writestr(name, content)
    return output.getvalue()


_CONTEXT = "https://w3id.org/ro/crate/1.1/context"


def _metadata(site: str, found: Sequence[dict[str, Any]], files: Sequence[str], day: str) -> list[dict[str, Any]]:
    people = sorted({event["who"] for event in found if event["who"]}, key=identity)
    named = {f"studies/{event['study']}.toml": event["name"] for event in found}
    return [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": f"Audit log of the site {site}",
            "description": "Decisions about studies, requests and answers, with the privacy budget that each spent.",
            "datePublished": day,
            "license": {"@id": "#internal"},
            "author": {"@id": "#site"},
            "publisher": {"@id": "#site"},
            "hasPart": [{"@id": file} for file in files],
            "mentions": [{"@id": f"#{event['digest']}"} for event in found],
        },
        {"@id": "#site", "@type": "Organization", "name": site},
        {
            "@id": "#internal",
            "@type": "CreativeWork",
            "name": "For the site's own records",
            "description": "Not licensed for publication: the site decides who may read it.",
        },
        *(
            {
                "@id": file,
                "@type": "File",
                "name": named.get(file) or file,
                "encodingFormat": "application/toml" if file.endswith(".toml") else "application/jsonl",
            }
            for file in files
        ),
        *({"@id": f"#person-{place}", "@type": "Person", "name": name} for place, name in enumerate(people)),
        *(_action(event, people, files) for event in found),
    ]


def _action(event: dict[str, Any], people: Sequence[str], files: Sequence[str]) -> dict[str, Any]:
    """Return an event as an action of schema.org; what it cost is in its description."""
    spent = "" if event["epsilon"] is None else f"; spent epsilon {event['epsilon']:g}, delta {event['delta']:g}"
    action: dict[str, Any] = {
        "@id": f"#{event['digest']}",
        "@type": "AssessAction" if event["signed"] else "Action",
        "name": event["event"],
        "description": f"{event['detail']}{spent}" or event["event"],
        "endTime": event["at"],
    }
    if event["who"]:
        action["agent"] = {"@id": f"#person-{people.index(event['who'])}"}
    if f"studies/{event['study']}.toml" in files:
        action["object"] = {"@id": f"studies/{event['study']}.toml"}
    return action
