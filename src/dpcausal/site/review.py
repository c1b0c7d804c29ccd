"""What a person at a site reads before deciding about a study."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from dpcausal.columns import Binary, Indicator, Unit
from dpcausal.effect import format_receipt
from dpcausal.ledger import Ledger
from dpcausal.real import Real
from dpcausal.site.audit_log import LogEntry, StudyStatus
from dpcausal.site.policy import Policy
from dpcausal.study import Study
from dpcausal.text import format_number, table_rows, text_table
from dpcausal.treatment import TableColumn, Treatment, table_column


def objections(policy: Policy, study: Study) -> tuple[str, ...]:
    """Everything about a study that a policy does not allow, in words."""
    unit = study.schema.unit
    read = [*map(table_column, study.schema.columns)] + ([unit.name, unit.by] if unit else [])
    beyond = sorted({column for column in read if column and column not in policy.columns})
    guarantee = study.guarantee(policy.site)
    checks = (
        (study.requester in policy.requesters, f"{study.requester!r} may not ask"),
        (study.method in policy.estimators, f"the estimator {study.method} is not allowed"),
        (not beyond, f"columns that may not be read: {', '.join(beyond)}"),
        (study.schema.protects == policy.protects, f"protects {study.schema.protects}, here it is {policy.protects}"),
        (
            set(study.schema.public_columns) == set(policy.public),
            f"public are {_listed(study.schema.public_columns)}, here they are {_listed(policy.public)}",
        ),
        (unit == policy.unit, f"units are {_unit(unit)}, here they are {_unit(policy.unit)}"),
        (not study.requires, "it requires diagnostics, which are of one table only"),
        (guarantee.epsilon <= policy.epsilon_per_study, f"epsilon is beyond {policy.epsilon_per_study:g}"),
        (guarantee.delta <= policy.delta_per_study, f"delta is beyond {policy.delta_per_study:g}"),
    )
    return tuple(words for holds, words in checks if not holds)


@dataclass(frozen=True)
class Review:
    """A study as one site sees it.

    Attributes:
        study: The study.
        digest: What it is approved by.
        policy: The site's.
        n: The site's number of units; None where the policy does not allow the study, and nothing was read.
        ledger: The site's; None where it has none yet.
        status: What was decided so far.
        decisions: By whom.
    """

    study: Study
    digest: str
    policy: Policy
    n: int | None
    ledger: Ledger | None
    status: StudyStatus
    decisions: tuple[LogEntry, ...]

    def __str__(self) -> str:
        study, site = self.study, self.policy.site
        effect = study.rehearsed(self.n or 10_000, site)
        estimator = ", ".join(f"{name} {value}" for name, value in asdict(study.estimator).items())  # type: ignore[call-overload]
        made = "sums at the coordinator" if study.pooling == "sums" else f"one effect a site, {study.pooling}"
        table = [("digest", self.digest), ("question", study.question), ("asked by", study.requester)]
        table += [("design", study.design), ("who is in it", study.eligibility), ("from when on", study.time_zero)]
        table += [("treatment", _told(study.schema.treatment)), ("outcome", _told(study.schema.outcome))]
        table += table_rows("covariates", tuple(map(_told, study.schema.covariates)))
        table += [("public", _listed(study.schema.public_columns)), ("units", _unit(study.schema.unit))]
        reasons = (f"{name}: {study.confounders.get(name, 'no reason given')}" for name in study.adjusts_for)
        table += table_rows("adjusted for", tuple(reasons) or ("nothing",))
        table += [("bounds", ", ".join(f"{what} {word}" for what, word in study.bounds.items()))]
        table += [("method", effect.method), ("parameters", estimator), ("pooled by", made)]
        table += table_rows("asks for", tuple(map(format_receipt, effect.receipts)))
        table.append(("privacy", str(study.guarantee(site))))
        if self.n is not None:
            sampling = "unknown" if effect.sampling_sd is None else format_number(effect.sampling_sd)
            errors = f"sampling {sampling}, privacy noise {format_number(effect.privacy_sd)}"
            table.append(("standard error", f"to expect from {self.n:,} units here: {errors}"))
        budget = ", ".join(f"{name} {value}" for name, value in self.policy.budget.items())
        table.append(("spent so far", f"{self.ledger.spent if self.ledger else 'nothing'}, of {budget}"))
        table += table_rows("policy", objections(self.policy, study) or ("allows all of this",))
        words = tuple(f"{line.kind} by {line.who} at {line.at}: {line.what}" for line in self.decisions)
        table += table_rows("decisions", words or ("none yet",))
        needed = f" ({self.policy.approvals} must approve)" if self.status == "undecided" else ""
        table.append(("status", f"{self.status}{needed}"))
        return text_table(f"Study {study.name} at {site}", [(label, text) for label, text in table if text])


def _told(column: TableColumn) -> str:
    return f"{_held(column)}; {column.rules}" if column.rules else _held(column)


def _held(column: TableColumn) -> str:
    if isinstance(column, Treatment):
        return f"{column.name}: {column.described}"
    if isinstance(column, Indicator):
        return f"{column.name}: 0 or 1, read from {column.of.name}"
    if isinstance(column, Real):
        return f"{column.name}: a number within {column.low:g} and {column.high:g}"
    if isinstance(column, Binary) and column.labels:
        words = (f"{value} ({label})" for value, label in zip(column.values, column.labels, strict=True))
        return f"{column.name}: {' or '.join(words)}"
    return f"{column.name}: one of {', '.join(map(str, column.values))}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)) or "no columns"


def _unit(unit: Unit | None) -> str:
    return f"{unit.name} ({unit.keep} by {unit.by})" if unit else "the records themselves"
