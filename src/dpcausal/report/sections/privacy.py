"""The sections on privacy: the guarantee, its limitations, software and noise, and the audit trail."""

import platform
from collections.abc import Iterator
from importlib.metadata import version

from dpcausal.page.numbers import short
from dpcausal.price import Amount, Price
from dpcausal.release import Receipt
from dpcausal.report.section import Item, ReportInputs, Section, Table

NOISE = (
    "Discrete Laplace noise where delta is 0 and discrete Gaussian noise where it is positive, unless the proof of a "
    "query says otherwise; dpcausal's documentation has an index of the proofs."
)
PUBLIC = {
    "record": "n, the number of units",
    "record_within_arm": "n, the number of units, and every unit's arm",
    "outcome": "n, the number of units, and every unit's covariates and arm",
}
SOURCE = (
    "OpenDP's exact discrete samplers, with entropy from the operating system; no seed can be set. Sums are exact "
    "integers on a public grid, so no floating-point error can reveal them."
)
NOT_GUARANTEED = (
    "protection from whoever runs the process that reads the table",
    "protection against timing: how long an answer took",
    "a bound over several sites or data sets that hold records of the same people: their losses add up",
    "anything that happened before the table was opened: who is in it, how it was filtered and joined",
    "absence of confounding",
    "compliance with any law: this report supports a legal assessment and does not replace one",
)
_LIBRARIES = ("dpcausal", "opendp", "duckdb", "numpy")


def loss_words(loss: Amount) -> str:
    """Return an epsilon and a delta, in words."""
    return f"epsilon {short(loss.epsilon)}, delta {short(loss.delta)}"


def privacy(report: ReportInputs) -> Section:
    """State the guarantee of this release, and of everything ever released about the data set."""
    guarantee, ledger = report.effect.guarantee, report.ledger_summary
    kind = "approximate" if guarantee.delta else "pure"
    items = [
        ("unit", privacy_unit(report)),
        ("neighbouring tables", guarantee.neighbours),
        ("variant", f"{kind} differential privacy, bounded: neighbouring tables have the same number of units"),
        ("this effect", f"{loss_words(guarantee)}, for all its queries together"),
        *_more(report),
        ("trust model", trust_model(report)),
    ]
    if ledger is None:
        why = "every site has its own ledger" if report.effect.sites else "no ledger was given with this report"
        items.append(("everything ever released", f"unknown: {why}"))
    else:
        count = len(ledger.payments)
        items += [
            ("everything ever released", f"{loss_words(ledger.total)}, in {count} answer{'s' * (count != 1)}"),
            ("budget", f"{loss_words(ledger.budget)} ({ledger.budget.rule})"),
            ("remaining", loss_words(ledger.remaining)),
            ("composition", _composition(ledger.budget.rule)),
            *(("older copy of the ledger restored", restore) for restore in ledger.restores),
        ]
    return Section("privacy", "Privacy guarantee", items=tuple(items), tables=_prices(report))


def _more(report: ReportInputs) -> Iterator[Item]:
    """Yield what diagnostics cost in addition to the effect, and the whole study, where it asks for more than both."""
    if report.diagnoses:
        alone = Price.of(each.guarantee for each in report.diagnoses)
        yield "diagnostics", f"{loss_words(alone)}; together with the effect {loss_words(report.price)}"
    if report.study is not None:
        price = max((report.study.price(site) for site in ("", *report.study.epsilons)), key=lambda each: each.epsilon)
        if len(price.parts) > 1 + len(report.diagnoses):
            yield "price", loss_words(price)


def _composition(rule: str) -> str:
    losses = "epsilons and deltas" if rule == "additive" else "zero-concentrated losses (rho)"
    return f"{losses} add up; valid for queries chosen after seeing earlier answers"


def privacy_unit(report: ReportInputs) -> str:
    """Return the privacy unit, in words."""
    unit = report.study.schema.unit if report.study else None
    if unit is None:
        return "one record of the table"
    totals = f", and totals over all records of {', '.join(unit.added)}" if unit.added else ""
    return f"whoever {unit.name} identifies; the {unit.keep} record by {unit.by}{totals}"


def trust_model(report: ReportInputs) -> str:
    """Return who sees data and who sees only noisy answers, in words."""
    if report.effect.sites:
        return (
            "central at each site, federated between sites: each site adds noise before anything leaves it; the "
            "coordinator and everyone else see only noisy answers"
        )
    return "central: the data holder adds noise; everyone else sees only noisy answers"


def _prices(report: ReportInputs) -> tuple[Table, ...]:
    lines = tuple((_query(receipt), short(receipt.epsilon), short(receipt.delta)) for receipt in report.effect.receipts)
    caption = "Expected cost" if report.effect.rehearsed else "Cost by query"
    return (Table(caption, ("query", "epsilon", "delta"), lines),)


def _query(receipt: Receipt) -> str:
    site = f"{receipt.site}: " if receipt.site else ""
    return f"{site}{receipt.query.replace('_', ' ')}"


def limitations(report: ReportInputs) -> Section:
    """State what is published without noise, and what is not guaranteed."""
    items = [
        ("published without noise", PUBLIC[report.effect.guarantee.protects]),
        ("public by declaration", "the study, the schema, every query, its price, and the scale of its noise"),
    ]
    if report.ledger_summary is not None:
        recorded = "; ".join((report.ledger_summary.data_set, *report.ledger_summary.versions))
        items.append(("recorded in the ledger", recorded))
    items.append(("not guaranteed", "; ".join(NOT_GUARANTEED)))
    return Section("limitations", "Limitations of the guarantee", items=tuple(items))


def provenance(_report: ReportInputs) -> Section:
    """State the noise, the random source and the versions."""
    versions = ", ".join((*(f"{name} {version(name)}" for name in _LIBRARIES), f"Python {platform.python_version()}"))
    items = (
        ("noise", NOISE),
        ("random source", SOURCE),
        ("versions", versions),
        ("checks", "dpcausal audit attacks every guarantee of an installation; run it where the table is stored"),
    )
    notes = (
        "Versions are those of the installation that wrote this report.",
        "The proofs are dpcausal's own. OpenDP has not yet put its samplers through the last stage of its vetting.",
    )
    return Section("provenance", "Noise and software", items=items, notes=notes)


def audit_trail(report: ReportInputs) -> Section:
    """List approvals, digests and receipts."""
    effect, ledger, study = report.effect, report.ledger_summary, report.study
    receipts = [receipt for each in (effect, *report.diagnoses) for receipt in each.receipts]
    items = [("date of this report", report.date.isoformat())]
    if study is not None:
        exact = f"{study.digest} (of its exact text: the digest that sites approve)"
        items.append(("SHA-256 of the study file", exact))
        items += [("requester", study.requester)] * bool(study.requester)
    sites = "each site approved the study by its digest, and records in its audit log who did"
    items.append(("approvals", sites if effect.sites else "not recorded for a single table"))
    if ledger is not None:
        items += [
            ("first ledger entry", ledger.opening),
            ("last ledger entry", ledger.head),
            ("verified ledger entries", f"{ledger.entries}, each with the digest of the one before"),
            ("receipts in this ledger", f"{ledger.receipts_found} of {len(receipts)}"),
        ]
    lines = tuple(
        (
            _query(receipt),
            "" if receipt.entry is None else str(receipt.entry),
            receipt.on or "",
            receipt.digest or "none: rehearsed",
        )
        for receipt in receipts
    )
    head = ("query", "ledger entry", "date", "digest of the debit")
    table = Table("Receipts", head, lines)
    notes = ("Store receipts apart from the ledger: they show whether the whole ledger was replaced.",)
    return Section("audit_trail", "Audit trail", items=tuple(items), tables=(table,), notes=notes)
