"""The sections of a report about privacy: what is promised, what is not, by what, and where it is written down."""

import math
import platform
from importlib.metadata import version

from dpcausal.release import Receipt
from dpcausal.report.inputs import ReportInputs
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.report.section import Section, Table

NOISE = (
    "Discrete Laplace noise where delta is 0, discrete Gaussian noise where it is not, unless a question's proof says "
    "otherwise; the index of the proofs in dpcausal's documentation says where each question has its own."
)
PUBLIC = {
    "record": "n, the number of units",
    "record_within_arm": "n, the number of units, and every unit's arm",
    "outcome": "n, the number of units, and every unit's covariates and arm",
}
SOURCE = (
    "OpenDP's exact discrete samplers on the operating system's entropy; there is no seed and none can be given. Sums "
    "are exact integers on a public grid, so that no floating-point number carries noise or hides a sum."
)
NOT_PROMISED = (
    "anything against whoever runs the process that reads the table",
    "anything about how long an answer took",
    "anything about people with records at several sites or in several data sets: their losses add up",
    "anything about the table before it came here: who is in it, and how it was filtered and joined",
    "that the estimate is free of confounding",
    "compliance with any law: this report supports an assessment and is none",
)
_LIBRARIES = ("dpcausal", "opendp", "duckdb", "numpy")


def _besides(report: ReportInputs) -> list[tuple[str, str]]:
    """What diagnostics cost on top of the effect."""
    if not report.diagnoses:
        return []
    prices = [each.guarantee for each in report.diagnoses]
    epsilon, delta = (math.fsum(getattr(price, part) for price in prices) for part in ("epsilon", "delta"))
    whole = report.effect.guarantee.epsilon + epsilon, report.effect.guarantee.delta + delta
    together = f"together with this release epsilon {whole[0]:g}, delta {whole[1]:g}"
    return [("diagnostics besides", f"epsilon {epsilon:g}, delta {delta:g}; {together}")]


def privacy(report: ReportInputs) -> Section:
    """What is promised for this release, and for everything ever released about the data set."""
    guarantee, spent = report.effect.guarantee, report.ledger_summary
    kind = "approximate" if guarantee.delta else "pure"
    items = [
        ("unit", privacy_unit(report)),
        ("neighbours", guarantee.neighbours),
        ("variant", f"{kind} differential privacy, bounded: neighbouring tables have as many units"),
        ("this release", f"epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}, in all its questions together"),
        *_besides(report),
        ("proof_status", "proved" if guarantee.proof_status == "proved" else "NOT PROVED"),
        ("model", model(report)),
    ]
    if spent is None:
        where = "each site has its own; none was given" if report.effect.sites else "none was given with this report"
        items.append(("everything ever released", f"not known here: the ledger says ({where})"))
    else:
        unproved = "" if spent.proof_status == "proved" else "; a part of it is NOT PROVED"
        items += [
            ("everything ever released", f"{spent.total}, in {answers(spent)}{unproved}"),
            ("budget", f"{spent.budget}"),
            ("left", f"{spent.left}"),
            ("rule of addition", _rule(spent.budget.rule)),
            *(("an older copy of the ledger was restored", told) for told in spent.restores),
        ]
    return Section("privacy", "What is promised", items=tuple(items), tables=_bill(report))


def answers(spent: LedgerSummary) -> str:
    """How many answers were paid for."""
    return "1 answer" if len(spent.payments) == 1 else f"{len(spent.payments)} answers"


def _rule(rule: str) -> str:
    kind = "epsilons and deltas add up" if rule == "additive" else "zero-concentrated losses (rho) add up"
    return f"{kind}; it holds for questions chosen after seeing earlier answers"


def privacy_unit(report: ReportInputs) -> str:
    """Whose data the promise is about."""
    unit = report.study.schema.unit if report.study else None
    return f"whoever {unit.name} names; {unit.keep} record by {unit.by}" if unit else "one record of the table"


def model(report: ReportInputs) -> str:
    """Who sees data, and who only sees what was made noisy."""
    if report.effect.sites:
        return (
            "central at each site, federated between them: each adds noise before anything leaves it; the coordinator "
            "and everybody else see noisy answers only"
        )
    return "central: whoever holds the table adds noise; everybody else sees noisy answers only"


def _bill(report: ReportInputs) -> tuple[Table, ...]:
    lines = tuple((_asked(receipt), f"{receipt.epsilon:g}", f"{receipt.delta:g}") for receipt in report.effect.receipts)
    paid = "What it would cost" if report.effect.rehearsed else "What was paid, step by step"
    return (Table(paid, ("question", "epsilon", "delta"), lines),)


def _asked(receipt: Receipt) -> str:
    site = f"{receipt.site}: " if receipt.site else ""
    return f"{site}{receipt.query.replace('_', ' ')}"


def limitations(report: ReportInputs) -> Section:
    """What is published as it is, and what nobody promises."""
    items = [
        ("published without noise", PUBLIC[report.effect.guarantee.protects]),
        ("public by declaration", "the study, the schema, every question, its price, and the size of its noise"),
    ]
    if report.ledger_summary is not None:
        items.append(
            ("as the ledger holds it", "; ".join((report.ledger_summary.data_set, *report.ledger_summary.versions)))
        )
    says = ("What is not promised:",)
    return Section("limitations", "What was not protected", paragraphs=says, items=tuple(items), notes=NOT_PROMISED)


def provenance() -> Section:
    """By what it was made."""
    items = (
        ("noise", NOISE),
        ("random source", SOURCE),
        *((f"version of {name}", version(name)) for name in _LIBRARIES),
        ("version of Python", platform.python_version()),
        ("checks", "dpcausal audit tries to break every guarantee of an installation; run it where the table is"),
    )
    notes = (
        "Versions are those of the installation that wrote this report.",
        "The proofs are dpcausal's own. The samplers are OpenDP's, which has not passed them through its last vetting.",
    )
    return Section("provenance", "How it was made", items=items, notes=notes)


def record(report: ReportInputs) -> Section:
    """Where it is written down: approvals, hashes, receipts."""
    effect, spent, study = report.effect, report.ledger_summary, report.study
    receipts = [receipt for each in (effect, *report.diagnoses) for receipt in each.receipts]
    items = [("report made on", report.date.isoformat())]
    if study is not None:
        items.append(("study, SHA-256", f"{study.digest} (of the file to the letter, which is what sites approve)"))
        items += [("asked by", study.requester)] * bool(study.requester)
    approvals = "each site approved the study by its digest and keeps the names of who did in its audit log"
    items.append(("approvals", approvals if effect.sites else "none are recorded for a single table"))
    if spent is not None:
        items += [
            ("ledger, first entry", spent.opening),
            ("ledger, last entry", spent.head),
            ("ledger, entries verified", f"{spent.entries}, each holding the digest of the one before"),
            ("receipts in this ledger", f"{spent.found} of {len(receipts)}"),
        ]
    lines = tuple(
        (
            _asked(receipt),
            "" if receipt.entry is None else str(receipt.entry),
            receipt.on or "",
            receipt.digest or "none: rehearsed",
        )
        for receipt in receipts
    )
    table = Table("Receipts", ("question", "ledger entry", "paid on", "digest of the debit"), lines)
    notes = ("Keep receipts apart from the ledger: a ledger that was replaced as a whole does not hold them.",)
    return Section("record", "Where it is written down", items=tuple(items), tables=(table,), notes=notes)
