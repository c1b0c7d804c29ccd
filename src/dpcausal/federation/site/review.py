"""The review of a study: what a person at a site reads before deciding."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from dpcausal.errors import SchemaError
from dpcausal.federation.site.consequences import Consequences
from dpcausal.federation.site.decisions import StudyStatus, is_in_time, waits
from dpcausal.federation.site.log_entry import LogEntry
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.summary import in_short
from dpcausal.ledger import Ledger
from dpcausal.price import Price
from dpcausal.release import format_receipt
from dpcausal.schema.columns import Binary, Indicator, Unit
from dpcausal.schema.real import Real
from dpcausal.schema.treatment import TableColumn, Treatment, table_column
from dpcausal.study.secure_settings import SecureSettings
from dpcausal.study.study import Study
from dpcausal.utils.text import format_number, table_rows, text_table


def objections(policy: Policy, study: Study) -> tuple[str, ...]:
    """Return everything about a study that a policy does not allow, in words."""
    policy, unit = policy.serving(study.table), study.schema.unit
    read = [*map(table_column, study.schema.columns)] + ([unit.name, unit.by] if unit else [])
    beyond = sorted({column for column in read if column and column not in policy.columns})
    price = study.price(policy.site)
    secondary = [each.method for each in study.secondary_analyses().values()]
    unknown = [name for name in (*study.methods, *dict.fromkeys(secondary)) if name not in policy.estimators]
    checks = (
        (study.requester in policy.requesters, f"{study.requester!r} may not ask"),
        (not study.table or study.table in policy.tables, f"this site has no table {study.table!r}"),
        (not unknown, f"the estimator {', '.join(unknown)} is not allowed"),
        (not beyond, f"columns that may not be read: {', '.join(beyond)}"),
        (
            study.schema.protects == policy.protects,
            f"protects is {study.schema.protects}, the policy has {policy.protects}",
        ),
        (
            set(study.schema.public_columns) == set(policy.public),
            f"public columns are {_listed(study.schema.public_columns)}, the policy has {_listed(policy.public)}",
        ),
        (
            (unit.identity if unit else None) == policy.unit,
            f"units are {_unit(unit)}, the policy has {_unit(policy.unit)}",
        ),
        (
            (study.schema.entry or "") == policy.entry,
            f"units enter by {study.schema.entry or 'no column'}, the policy has {policy.entry or 'no column'}",
        ),
        (
            not study.requires or study.secure_settings is not None,
            "it requires diagnostics, which need a single table or secure sums",
        ),
        (price.is_within(epsilon=policy.epsilon_per_study), f"epsilon is above {policy.epsilon_per_study:g}"),
        (price.is_within(delta=policy.delta_per_study), f"delta is above {policy.delta_per_study:g}"),
    )
    secure = policy.secure_objections(study.secure_settings) if study.secure_settings else ()
    described = policy.custom_objections(study.site_questions(site=policy.site), study.schema)
    return (*(words for holds, words in checks if not holds), *_unmapped(policy, study), *secure, *described)


def _unmapped(policy: Policy, study: Study) -> tuple[str, ...]:
    """Return why the mapping of a table cannot serve a study, in words; nothing if it can."""
    try:
        policy.mapping.local(study.schema)
    except SchemaError as error:
        return (error.problem,)
    return ()


OWED = "paid, answer not yet fetched"


@dataclass(frozen=True)
class ReceivedStudy:
    """A study in the inbox of a site.

    Attributes:
        name: Its name; empty where its file was changed.
        requester: Who requests it; empty where its file was changed.
        price: Its price at this site; nothing where its file was changed.
        status: What was decided about it, or that its file was changed after it was received.
        answered: Whether this site answered it, and paid for that.
        owed: Whether all of it was paid for, as by a site that was stopped then: the answer is sent when it is fetched.
    """

    digest: str
    name: str
    requester: str
    price: Price
    status: StudyStatus | Literal["changed"]
    answered: bool = False
    owed: bool = False

    @property
    def words(self) -> str:
        """What was decided about it, and what became of it."""
        return f"{self.status}, answered" if self.answered else f"{self.status}{f'; {OWED}' if self.owed else ''}"

    @property
    def waits(self) -> bool:
        """Whether people have to decide about it, for the first time or again."""
        return waits(self.status, is_paid=self.answered or self.owed)


@dataclass(frozen=True, kw_only=True)
class Review:
    """A study as one site sees it.

    Attributes:
        digest: The SHA-256 of its text: what people approve.
        n: The site's number of units; None where the policy does not allow the study, and nothing was read.
        ledger: The site's ledger; None where it has none yet.
        consequences: What an answer would cost, leave and send; None where the policy does not allow the study, or
            there is no ledger.
        pending: The other studies that wait for a decision.
        earlier: The digest of the version of this study that was received before; empty where there is none.
    """

    study: Study
    digest: str
    policy: Policy
    n: int | None
    ledger: Ledger | None
    status: StudyStatus
    decisions: tuple[LogEntry, ...]
    consequences: Consequences | None = None
    pending: tuple[ReceivedStudy, ...] = ()
    earlier: str = ""
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return text_table(f"Study {self.study.name} at {self.policy.site}", [*self.in_short(), ("", ""), *self.lines()])

    def in_short(self) -> tuple[tuple[str, str], ...]:
        """Return what to know first, in plain words: who asks what about whom, what leaves, and what it costs."""
        return in_short(
            self.study,
            self.policy,
            n=self.n,
            ledger=self.ledger,
            consequences=self.consequences,
            status=self.status,
            allowed=not objections(self.policy, self.study),
            pending=Price.of(each.price for each in self.pending) if self.pending else None,
        )

    def lines(self) -> list[tuple[str, str]]:
        """Return the review as labels with texts; a text without a label belongs to the label before it."""
        study, site = self.study, self.policy.site
        effect = study.rehearsed(self.n or 10_000, site)
        estimator = ", ".join(f"{name} {value}" for name, value in asdict(study.estimator).items())  # type: ignore[call-overload]
        table = [("digest", self.digest), ("question", study.question), ("requester", study.requester)]
        table += [("design", study.design), ("eligibility", study.eligibility), ("time zero", study.time_zero)]
        table += [("treatment", _described(study.schema.treatment)), ("outcome", _described(study.schema.outcome))]
        table += table_rows("covariates", tuple(map(_described, study.schema.covariates)))
        mapping = self.policy.mapping
        table += table_rows(
            "read here", (*mapping.lines(study.schema), f"mapping {mapping.digest}") if mapping.digest else ()
        )
        table += [
            ("table", study.table),
            ("public", _listed(study.schema.public_columns)),
            ("units", _unit(study.schema.unit)),
        ]
        table += [("units enter by", study.schema.entry)] if study.schema.entry else []
        reasons = (f"{name}: {study.confounders.get(name, 'no reason given')}" for name in study.adjusts_for)
        nothing = "as its formula does" if study.method == "formula_estimator" else "nothing"
        table += table_rows("adjusted for", tuple(reasons) or (nothing,))
        table += [("bounds", ", ".join(f"{what} {word}" for what, word in study.bounds.items()))]
        inner = " of ".join(study.methods) if len(study.methods) > 1 else ""
        table += [
            ("estimator", inner),
            ("method", effect.method),
            ("parameters", estimator),
            ("pooling", study.pooling_in_words),
        ]
        table += table_rows("secure sums", self._secure_words(study.secure_settings) if study.secure_settings else ())
        table += table_rows("queries", tuple(map(format_receipt, effect.receipts)))
        table += table_rows("sums", self._described_sums())
        table.append(("privacy", str(study.guarantee(site))))
        table += table_rows("price", study.price(site).lines)
        if self.n is not None and study.secure_settings is None:
            sampling = "unknown" if effect.sampling_sd is None else format_number(effect.sampling_sd)
            errors = f"sampling {sampling}, privacy noise {format_number(effect.privacy_sd)}"
            table.append(("standard error", f"expected with {self.n:,} units: {errors}"))
        budget = ", ".join(f"{name} {value}" for name, value in self.policy.budget.items())
        table.append(("spent so far", f"{self.ledger.spent if self.ledger else 'nothing'}, of {budget}"))
        table += self._outlook()
        table += table_rows("policy", (*objections(self.policy, study), *self._too_few) or ("allows the study",))
        table += table_rows("decisions", tuple(map(self._decision, self.decisions)) or ("none yet",))
        needed = f" (approvals needed: {self.policy.approvals})" if self.status in {"undecided", "expired"} else ""
        table.append(("status", f"{self.status}{needed}"))
        return [(label, text) for label, text in table if text]

    @property
    def _too_few(self) -> tuple[str, ...]:
        """Why the table is too small for an answer, in words; nothing if it is not."""
        least = self.policy.minimum_units
        if self.n is None or self.n >= least:
            return ()
        return (f"allows the study, but the table has {self.n:,} units, and minimum_units is {least:,}: no answer",)

    def _decision(self, entry: LogEntry) -> str:
        """Return a decision in words."""
        days = self.policy.approval_days
        ends = f", for {days} days" if days and entry.kind == "approve" else ""
        expired = ", expired" if ends and not is_in_time(entry.time, days) else ""
        return f"{entry.kind} by {entry.who} at {entry.at}{ends}{expired}: {entry.what}"

    def _described_sums(self) -> tuple[str, ...]:
        """Return what a unit adds to each sum that the study describes."""
        from dpcausal.queries import CustomSums  # noqa: PLC0415 (a heavy import)

        asked = (each.query for each in self.study.site_questions(site=self.policy.site))
        texts = (each.texts.items() for each in asked if isinstance(each, CustomSums))
        return tuple(dict.fromkeys(f"{name}: {' '.join(text.split())}" for each in texts for name, text in each))

    def _secure_words(self, settings: SecureSettings) -> tuple[str, ...]:
        """Return what a study with secure sums means for a site."""
        honest, colluding = settings.honest, settings.colluding
        return (
            f"the coordinator sees the sum over at least {settings.threshold} sites, and no site's own numbers",
            f"each site adds a share of the noise: the shares of {honest} honest sites are the whole noise",
            f"the guarantee holds if at most {colluding} of these sites collude with the coordinator",
            "a site that reads the result counts as one of them",
            "with more of them, the units of this site have less noise than the guarantee needs",
            f"from {settings.exposing} on, they can open this site's own numbers, with 1/{honest} of the noise",
            "the price is spent when the masked numbers leave, also if the sum is never opened",
            *(f"{site}: public key {key}, {self._known(site, key)}" for site, key in sorted(settings.sites.items())),
        )

    def _known(self, site: str, key: str) -> str:
        """Return what the policy says about a site's key."""
        listed = self.policy.secure_sums.sites.get(site) if self.policy.secure_sums else None
        if site == self.policy.site:
            return "this site"
        return "as in the policy" if listed == key else "not as in the policy" if listed else "not in the policy"

    def _outlook(self) -> list[tuple[str, str]]:
        """Return what would be left and what would leave, what else is waiting, and what changed, as lines."""
        table = []
        if self.consequences:
            left = self.consequences.left
            table.append(("left after it", str(left) if left else "the budget has too little left for this study"))
            committed, share = self.consequences.committed, self.consequences.share
            table += [
                ("share", str(share) if share else ""),
                ("committed", str(committed) if committed.studies else ""),
                ("warning", self.consequences.warning),
            ]
            free = ", ".join(self.consequences.free)
            table.append(("answered before", f"{free}: free, the stored answer is sent again" if free else ""))
            table += table_rows("would leave", self.consequences.numbers)
        if self.pending:
            total = Price.of(each.price for each in self.pending)
            table.append(("also waiting", f"other studies: {len(self.pending):,}, of {total} in total"))
        if self.earlier:
            words = "its earlier version in the lines below; the digest of that was:"
            table += table_rows("differs from", (words, self.earlier, *self.changes))
        return table


def _described(column: TableColumn) -> str:
    return f"{_values(column)}; {column.rules}" if column.rules else _values(column)


def _values(column: TableColumn) -> str:
    if isinstance(column, Treatment):
        return f"{column.name}: {column.described}"
    if isinstance(column, Indicator):
        return f"{column.name}: 0 or 1, read from {column.of.name}"
    if isinstance(column, Real):
        further = f", {column.in_models}" if column.in_models else ""
        return f"{column.name}: a number between {column.low:g} and {column.high:g}{further}"
    if isinstance(column, Binary) and column.labels:
        words = (f"{value} ({label})" for value, label in zip(column.values, column.labels, strict=True))
        return f"{column.name}: {' or '.join(words)}"
    return f"{column.name}: one of {', '.join(map(str, column.values))}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)) or "no columns"


def _unit(unit: Unit | None) -> str:
    return str(unit) if unit else "records"
