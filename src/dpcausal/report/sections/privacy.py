"""The sections on privacy: the guarantee, its limitations, software and noise, and the audit trail."""

import platform
from importlib.metadata import version

from dpcausal.page.language import ENGLISH, Language
from dpcausal.price import Amount, Price
from dpcausal.release import Receipt
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.report.section import Item, ReportInputs, Section, Table
from dpcausal.utils.text import message

NOISE = message(
    "Discrete Laplace noise where delta is 0 and discrete Gaussian noise where it is positive, unless the proof of a "
    "query says otherwise; dpcausal's documentation has an index of the proofs."
)
PUBLIC = {
    "record": message("n, the number of units"),
    "record_within_arm": message("n, the number of units, and every unit's arm"),
    "outcome": message("n, the number of units, and every unit's covariates and arm"),
}
SOURCE = message(
    "OpenDP's exact discrete samplers, with entropy from the operating system; no seed can be set. Sums are exact "
    "integers on a public grid, so no floating-point error can reveal them."
)
NOT_GUARANTEED = (
    message("protection from whoever runs the process that reads the table"),
    message("protection against timing: how long an answer took"),
    message("a bound over several sites or data sets that hold records of the same people: their losses add up"),
    message("anything that happened before the table was opened: who is in it, how it was filtered and joined"),
    message("absence of confounding"),
    message("compliance with any law: this report supports a legal assessment and does not replace one"),
)
_LIBRARIES = ("dpcausal", "opendp", "duckdb", "numpy")


def loss_words(say: Language, loss: Amount) -> str:
    """Return an epsilon and a delta, in words."""
    return say("epsilon {epsilon}, delta {delta}", epsilon=say.short(loss.epsilon), delta=say.short(loss.delta))


def privacy(report: ReportInputs) -> Section:
    """State the guarantee of this release, and of everything ever released about the data set."""
    guarantee, ledger, say = report.effect.guarantee, report.ledger_summary, report.say
    variant = say("pure differential privacy, bounded: neighbouring tables have the same number of units")
    if guarantee.delta:
        variant = say("approximate differential privacy, bounded: neighbouring tables have the same number of units")
    items = [
        (say("unit"), privacy_unit(report, say)),
        (say("neighbouring tables"), say.recorded(guarantee.neighbours)),
        (say("variant"), variant),
        (say("this effect"), say("{loss}, for all its queries together", loss=loss_words(say, guarantee))),
        *_diagnostics(report),
        *_study(report),
        (say("proof"), say("proved") if guarantee.proof_status == "proved" else say("NOT PROVED")),
        (say("trust model"), trust_model(report, say)),
    ]
    if ledger is None:
        unknown = say("unknown: no ledger was given with this report")
        if report.effect.sites:
            unknown = say("unknown: every site has its own ledger")
        items.append((say("everything ever released"), unknown))
    else:
        words = {"loss": loss_words(say, ledger.total), "count": len(ledger.payments)}
        total = (
            say("{loss}, in 1 answer", **words) if words["count"] == 1 else say("{loss}, in {count} answers", **words)
        )
        total += "" if ledger.proof_status == "proved" else say("; a part of it is NOT PROVED")
        items += [
            (say("everything ever released"), total),
            (say("budget"), f"{loss_words(say, ledger.budget)} ({ledger.budget.rule})"),
            (say("remaining"), loss_words(say, ledger.remaining)),
            (say("composition"), _composition(ledger.budget.rule, say)),
            *((say("older copy of the ledger restored"), restore) for restore in ledger.restores),
        ]
    return Section("privacy", say("Privacy guarantee"), items=tuple(items), tables=_prices(report))


def _diagnostics(report: ReportInputs) -> list[Item]:
    """Return what diagnostics cost in addition to the effect."""
    if not report.diagnoses:
        return []
    say, alone = report.say, Price.of(each.guarantee for each in report.diagnoses)
    text = say(
        "epsilon {epsilon}, delta {delta}; together with the effect epsilon {all_epsilon}, delta {all_delta}",
        epsilon=say.short(alone.epsilon),
        delta=say.short(alone.delta),
        all_epsilon=say.short(report.price.epsilon),
        all_delta=say.short(report.price.delta),
    )
    return [(say("diagnostics"), text)]


def _study(report: ReportInputs) -> list[Item]:
    """Return what the whole study costs, where it asks for more than this report shows."""
    if report.study is None:
        return []
    price = max((report.study.price(site) for site in ("", *report.study.epsilons)), key=lambda each: each.epsilon)
    more = len(price.parts) > 1 + len(report.diagnoses)
    return [(report.say("price"), loss_words(report.say, price))] if more else []


def count_answers(ledger: LedgerSummary) -> str:
    """Return the number of paid answers, in words."""
    return "1 answer" if len(ledger.payments) == 1 else f"{len(ledger.payments)} answers"


def _composition(rule: str, say: Language) -> str:
    if rule == "additive":
        return say("epsilons and deltas add up; valid for queries chosen after seeing earlier answers")
    return say("zero-concentrated losses (rho) add up; valid for queries chosen after seeing earlier answers")


def privacy_unit(report: ReportInputs, say: Language = ENGLISH) -> str:
    """Return the privacy unit, in words."""
    unit = report.study.schema.unit if report.study else None
    if unit is None:
        return say("one record of the table")
    words = {"unit": unit.name, "which": unit.keep, "by": unit.by}
    text = say("whoever {unit} identifies; the {which} record by {by}", **words)
    return text + (
        say(", and totals over all records of {columns}", columns=", ".join(unit.added)) if unit.added else ""
    )


def trust_model(report: ReportInputs, say: Language = ENGLISH) -> str:
    """Return who sees data and who sees only noisy answers, in words."""
    if report.effect.sites:
        return say(
            "central at each site, federated between sites: each site adds noise before anything leaves it; the "
            "coordinator and everyone else see only noisy answers"
        )
    return say("central: the data holder adds noise; everyone else sees only noisy answers")


def _prices(report: ReportInputs) -> tuple[Table, ...]:
    say = report.say
    lines = tuple(
        (_query(receipt), say.short(receipt.epsilon), say.short(receipt.delta)) for receipt in report.effect.receipts
    )
    caption = say("Expected cost") if report.effect.rehearsed else say("Cost by query")
    return (Table(caption, (say("query"), say("epsilon"), say("delta")), lines),)


def _query(receipt: Receipt) -> str:
    site = f"{receipt.site}: " if receipt.site else ""
    return f"{site}{receipt.query.replace('_', ' ')}"


def limitations(report: ReportInputs) -> Section:
    """State what is published without noise, and what is not guaranteed."""
    say = report.say
    items = [
        (say("published without noise"), say(PUBLIC[report.effect.guarantee.protects])),
        (
            say("public by declaration"),
            say("the study, the schema, every query, its price, and the scale of its noise"),
        ),
    ]
    if report.ledger_summary is not None:
        recorded = "; ".join((report.ledger_summary.data_set, *report.ledger_summary.versions))
        items.append((say("recorded in the ledger"), recorded))
    items.append((say("not guaranteed"), "; ".join(map(say, NOT_GUARANTEED))))
    return Section("limitations", say("Limitations of the guarantee"), items=tuple(items))


def provenance(report: ReportInputs) -> Section:
    """State the noise, the random source and the versions."""
    say = report.say
    versions = ", ".join((*(f"{name} {version(name)}" for name in _LIBRARIES), f"Python {platform.python_version()}"))
    items = (
        (say("noise"), say(NOISE)),
        (say("random source"), say(SOURCE)),
        (say("versions"), versions),
        (
            say("checks"),
            say("dpcausal audit attacks every guarantee of an installation; run it where the table is stored"),
        ),
    )
    notes = (
        say("Versions are those of the installation that wrote this report."),
        say(
            "The proofs are dpcausal's own. OpenDP has not yet put its samplers through the last stage of its vetting."
        ),
    )
    return Section("provenance", say("Noise and software"), items=items, notes=notes)


def audit_trail(report: ReportInputs) -> Section:
    """List approvals, digests and receipts."""
    effect, ledger, study, say = report.effect, report.ledger_summary, report.study, report.say
    receipts = [receipt for each in (effect, *report.diagnoses) for receipt in each.receipts]
    items = [(say("date of this report"), report.date.isoformat())]
    if study is not None:
        exact = say("{digest} (of its exact text: the digest that sites approve)", digest=study.digest)
        items.append((say("SHA-256 of the study file"), exact))
        items += [(say("requester"), study.requester)] * bool(study.requester)
    approvals = say("not recorded for a single table")
    if effect.sites:
        approvals = say("each site approved the study by its digest, and records in its audit log who did")
    items.append((say("approvals"), approvals))
    if ledger is not None:
        items += [
            (say("first ledger entry"), ledger.opening),
            (say("last ledger entry"), ledger.head),
            (
                say("verified ledger entries"),
                say("{count}, each with the digest of the one before", count=ledger.entries),
            ),
            (
                say("receipts in this ledger"),
                say("{found} of {all}", found=ledger.receipts_found, all=len(receipts)),
            ),
        ]
    lines = tuple(
        (
            _query(receipt),
            "" if receipt.entry is None else str(receipt.entry),
            receipt.on or "",
            receipt.digest or say("none: rehearsed"),
        )
        for receipt in receipts
    )
    head = (say("query"), say("ledger entry"), say("date"), say("digest of the debit"))
    table = Table(say("Receipts"), head, lines)
    notes = (say("Store receipts apart from the ledger: they show whether the whole ledger was replaced."),)
    return Section("audit_trail", say("Audit trail"), items=tuple(items), tables=(table,), notes=notes)
