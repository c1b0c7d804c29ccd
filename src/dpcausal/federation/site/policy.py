"""The policy of a site: what it allows, whoever asks. The site owns this file."""

import codecs
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpcausal.errors import DpcausalError, StudyError, redact_errors
from dpcausal.schema.columns import Unit
from dpcausal.schema.mapping import ColumnMapping
from dpcausal.study.secure_settings import SecureSettings
from dpcausal.utils.plain_text import is_plain_text
from dpcausal.utils.validation import build, check_format, check_keys, is_name, is_number, is_public_key, is_version

if TYPE_CHECKING:
    from dpcausal.ledger.requester import Requester
    from dpcausal.queries import CustomSums
    from dpcausal.queries.calibration import Asked
    from dpcausal.schema.schema import Schema

FILE = "policy.toml"
KEY = "site.key"
VERSION = 2
"""The version of the format of the policy file."""

_RENAMED = {"askers": "requesters"}

_NEEDED = (
    "site",
    "table",
    "ledger",
    "as_of",
    "protects",
    "columns",
    "estimators",
    "epsilon_per_study",
    "delta_per_study",
    "minimum_units",
    "approvals",
    "seconds",
    "memory",
    "budget",
    "requesters",
)
_OPTIONAL = (
    "public",
    "approval_days",
    "unit",
    "witness",
    "allow_check",
    "entry",
    "secure_sums",
    "custom_sums",
    "requester_budgets",
    "mapping",
    "tables",
    "signed_changes",
)
_MOST_DAYS = 3_650
_UNITS = {"MB": 10**6, "GB": 10**9}


@dataclass(frozen=True, kw_only=True)
class SecureSums:
    """The secure sums in which a site takes part.

    Attributes:
        honest: The smallest `honest` of a study.
        colluding: The number of the listed sites that may collude. In a study, `colluding` must be so large, and larger
            by one for each site that is not listed.
        sites: The public keys of the sites that this one knows, by name.

    Example:
        >>> SecureSums(honest=2, colluding=1, sites={"south": "5a" * 32}).honest
        2
    """

    honest: int
    colluding: int
    sites: Mapping[str, str]

    def __post_init__(self) -> None:
        listed = isinstance(self.sites, Mapping) and all(
            is_name(site) and is_public_key(key) for site, key in self.sites.items()
        )
        if not (listed and _is_count(self.honest, 2) and _is_count(self.colluding, 0)):
            raise StudyError(
                problem=f"In {FILE}, [secure_sums] needs honest of at least 2, colluding of at least 0, and "
                "[secure_sums.sites] names with public keys of 64 digits",
                hint="each site prints its own key with: dpcausal site key FOLDER.",
            )

    def objections(self, site: str, terms: SecureSettings) -> tuple[str, ...]:
        """Return what speaks against taking part in a secure sum, in words."""
        others = {name: key for name, key in terms.sites.items() if name != site}
        replaced = sorted(name for name, key in others.items() if self.sites.get(name, key) != key)
        unlisted = sorted(name for name in others if name not in self.sites)
        colluding = self.colluding + len(unlisted)
        besides = f", {len(unlisted)} of them because it does not list {', '.join(unlisted)}" if unlisted else ""
        checks = (
            (not replaced, f"keys that are not those in the policy: {', '.join(replaced)}"),
            (terms.honest >= self.honest, f"honest is {terms.honest}, the policy requires at least {self.honest}"),
            (
                terms.colluding >= colluding,
                f"colluding is {terms.colluding}, the policy requires at least {colluding}{besides}",
            ),
        )
        return tuple(words for holds, words in checks if not holds)


@dataclass(frozen=True, kw_only=True)
class CustomSumsAllowed:
    """The sums of their own that studies may describe, whatever formula they are for.

    Attributes:
        columns: The columns that they may be made of, apart from the treatment.
        coordinates: How many sums one query may have, in all cells together.
        epsilon: The largest epsilon of one query.

    Example:
        >>> CustomSumsAllowed(columns=("score", "dose"), coordinates=20, epsilon=1.0).coordinates
        20
    """

    columns: Sequence[str]
    coordinates: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _tuple(self.columns))
        sized = _is_count(self.coordinates, 1) and is_number(self.epsilon) and self.epsilon > 0
        if not (_are_texts(self.columns) and sized):
            raise StudyError(
                problem=f"In {FILE}, [custom_sums] needs columns, coordinates of at least 1 and epsilon above 0",
                hint='write for instance columns = ["score", "dose"], coordinates = 20 and epsilon = 1.0.',
            )

    def objections(self, query: "CustomSums", epsilon: float, schema: "Schema") -> tuple[str, ...]:
        """Return what speaks against a query, in words."""
        from dpcausal.schema.treatment import table_column  # noqa: PLC0415 (a heavy import)

        read = {column.name: table_column(column) for column in schema.columns}
        own = [read.get(name, name) for name in query.columns if name != schema.treatment.name]
        beyond = sorted({name for name in own if name not in self.columns})
        count = len(query.names(schema))
        checks = (
            (not beyond, f"sums may not be made of: {', '.join(beyond)}"),
            (count <= self.coordinates, f"a query has {count:,} sums, the policy allows {self.coordinates:,}"),
            (epsilon <= self.epsilon, f"a query of sums has epsilon {epsilon:g}, the policy allows {self.epsilon:g}"),
        )
        return tuple(words for holds, words in checks if not holds)


@dataclass(frozen=True, kw_only=True)
class SiteTable:
    """A further table of a site, which studies name. Its people may be in other tables: all share one ledger.

    Attributes:
        table: Its address, as in the policy.
        as_of: The version of its data, which no other table of the site has.
        columns: The columns that a study may read, as studies call them.
        mapping: Those that are called or coded otherwise in the table.
    """

    table: str
    as_of: str
    columns: tuple[str, ...]
    mapping: ColumnMapping = field(default_factory=ColumnMapping)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _tuple(self.columns))
        if isinstance(self.mapping, Mapping):
            object.__setattr__(self, "mapping", ColumnMapping.from_dict(self.mapping))
        named = is_plain_text(self.table) and self.table and is_version(self.as_of)
        if not (named and _are_texts(self.columns) and isinstance(self.mapping, ColumnMapping)):
            raise StudyError(
                problem=f"In {FILE}, a table of [tables] needs table, as_of and columns, and may have a mapping",
                hint='for instance table = "labs.parquet", as_of = "labs 2026-06-30" and columns = ["arm", "score"].',
            )
        if unknown := sorted(self.mapping.columns.keys() - {*self.columns}):
            raise StudyError(
                problem=f"In {FILE}, a mapping is for columns that no study may read: {', '.join(unknown)}",
                hint="list them in columns, by the names that studies use.",
            )


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a site allows.

    Attributes:
        table: The address of its table, as `Vault` takes it; a file name is relative to the site's folder.
        ledger: The address of its ledger: a file in the site's folder, or an SQLAlchemy address.
        as_of: The version of the data, as in the ledger: a date or a name.
        protects: The privacy unit: what may differ between neighbouring tables.
        columns: The columns that a study may read.
        public: Where `protects` is not `record`, the columns with public values: a study must declare the same.
        estimators: The estimators that a study may name.
        epsilon_per_study: The largest epsilon of one study.
        delta_per_study: The largest delta of one study.
        minimum_units: The smallest number of units with which the site answers.
        approvals: The number of people who must approve a study; one rejection is enough to stop it.
        approval_days: For how many days an approval counts after it was signed; None for without end.
        seconds: The time limit of a computation.
        memory: The memory limit of a computation, for instance `2 GB`.
        budget: The budget for all studies: epsilon, delta and rule, as `Budget` takes them.
        requesters: The public keys of those who may ask, by name.
        requester_budgets: The most that some of them may each spend of the budget, by name.
        unit: The column that identifies people, where they have several records.
        witness: The address of the ledger's witness, if it has one.
        entry: The column by which people enter a growing table, if schedules of looks are to be paid for once: a study
            must declare the same.
        allow_check: Whether `dpcausal check` may inspect the table; it prints exact counts and some cells.
        secure_sums: The secure sums in which the site takes part, which also need a witness; None for no secure sum.
        custom_sums: The sums of their own that studies may describe; None for none.
        mapping: The columns of the table that studies call otherwise.
        tables: The further tables of the site, by the names that studies use.
        signed_changes: Whether each change of people, keys and settings needs the signature of a person of the site.
    """

    site: str
    table: str
    ledger: str
    as_of: str
    protects: str
    columns: tuple[str, ...]
    estimators: tuple[str, ...]
    epsilon_per_study: float
    delta_per_study: float
    minimum_units: int
    approvals: int
    seconds: float
    memory: str
    budget: Mapping[str, Any]
    requesters: Mapping[str, str]
    public: tuple[str, ...] = ()
    unit: Unit | None = field(default=None)
    witness: str = ""
    entry: str = ""
    allow_check: bool = True
    secure_sums: SecureSums | None = None
    custom_sums: CustomSumsAllowed | None = None
    approval_days: int | None = None
    requester_budgets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    mapping: ColumnMapping = field(default_factory=ColumnMapping)
    tables: Mapping[str, SiteTable] = field(default_factory=dict)
    signed_changes: bool = False

    def __post_init__(self) -> None:
        for holds, expected in (
            (is_name(self.site), "site: a name of letters, digits, - and _"),
            (all(is_plain_text(each) and each for each in (self.table, self.ledger)), "table and ledger: text"),
            (is_version(self.as_of), "as_of: a date or a name, such as 2026-06-30, in quotation marks"),
            (is_plain_text(self.witness), "witness: text"),
            (is_plain_text(self.entry), "entry: the name of a column"),
            (_are_texts(self.columns) and _are_texts(self.estimators), "columns and estimators: lists of names"),
            (_are_texts(self.public), "public: a list of names"),
            (self.ledger != "sqlite://" and ":memory:" not in self.ledger, "a ledger on disk, not in memory"),
            (is_number(self.epsilon_per_study) and self.epsilon_per_study > 0, "epsilon_per_study: greater than 0"),
            (is_number(self.delta_per_study) and 0 <= self.delta_per_study < 0.5, "delta_per_study: below 0.5"),
            (_is_count(self.minimum_units, 2), "minimum_units: a number of at least 2"),
            (_is_count(self.approvals, 1), "approvals: a number of at least 1"),
            (
                self.approval_days is None or (_is_count(self.approval_days, 1) and self.approval_days <= _MOST_DAYS),
                f"approval_days: a number of days from 1 to {_MOST_DAYS:,}",
            ),
            (is_number(self.seconds) and 0 < self.seconds <= 86_400, "seconds: from above 0 to a day"),
            (self._bytes() is not None, "memory: for instance 500 MB or 2 GB"),
            (isinstance(self.budget, Mapping), "a [budget] with epsilon and delta"),
            (isinstance(self.allow_check, bool), "allow_check: true or false"),
            (isinstance(self.signed_changes, bool), "signed_changes: true or false"),
            (
                isinstance(self.requesters, Mapping) and all(map(is_public_key, self.requesters.values())),
                "requesters: each name with a public key of 64 digits from 0 to f, in quotation marks",
            ),
            (all(map(is_plain_text, self.requesters)), "requesters: names without control characters"),
            (all(map(is_name, self.tables)), "tables: names of letters, digits, - and _"),
            # A schedule of looks is paid for once because a unit enters in one and the same look, wherever it is read.
            (
                not self.entry or not (self.tables or self.entry in self.mapping.columns),
                "entry: only for a site with one table, and not a mapped column",
            ),
            (
                self._caps_are_sound(),
                "requester_budgets: numbers that fit [budget], for names in requesters, each with its own key",
            ),
        ):
            if not holds:
                raise StudyError(problem=f"{FILE} needs {expected}", hint="correct this line.")

        SiteTable(
            table=self.table, as_of=self.as_of, columns=self.columns, mapping=self.mapping
        )  # raises if it is none

    @property
    def versions(self) -> tuple[str, ...]:
        """The version of the data of each table, that of the first one first."""
        return (self.as_of, *(each.as_of for each in self.tables.values()))

    def serving(self, table: str) -> Self:
        """Return the policy for studies of one table; for a study that names none, that of the first table."""
        return replace(self, **vars(self.tables[table])) if table in self.tables else self

    @property
    def memory_bytes(self) -> int:
        """The memory limit of a computation, in bytes."""
        return self._bytes() or 0

    def _bytes(self) -> int | None:
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(MB|GB)", self.memory) if isinstance(self.memory, str) else None
        return int(float(found[1]) * _UNITS[found[2]]) if found else None

    def _caps_are_sound(self) -> bool:
        caps = self.requester_budgets
        if not caps:
            return caps == {}
        return (
            isinstance(caps, Mapping)
            and caps.keys() <= self.requesters.keys()
            and len({*self.requesters.values()}) == len(self.requesters)
            and all(
                isinstance(each, Mapping) and {"epsilon"} <= {*each} <= {"epsilon", "delta"} for each in caps.values()
            )
            and all(map(self._is_cap, caps))
        )

    def _is_cap(self, name: str) -> bool:
        try:
            return self.requester(name).cap is not None
        except (DpcausalError, TypeError):
            return False

    def requester(self, name: str) -> "Requester":
        """Return a requester as the ledger charges it: under the rule of the whole budget, and with its delta."""
        from dpcausal.ledger import Budget  # noqa: PLC0415 (a heavy import)
        from dpcausal.ledger.requester import Requester  # noqa: PLC0415

        cap = self.requester_budgets.get(name)
        return Requester(name, Budget(**{**self.budget, **cap}) if cap else None)

    def secure_objections(self, terms: SecureSettings) -> tuple[str, ...]:
        """Return what the policy has against a secure sum, in words."""
        listed = () if self.site in terms.sites else (f"its table [sites] does not list {self.site}",)
        if self.secure_sums is None:
            return (*listed, "secure sums are not allowed: the policy has no table [secure_sums]")
        unwitnessed = () if self.witness else ("secure sums need a witness of the ledger, and the policy names none",)
        return (*listed, *unwitnessed, *self.secure_sums.objections(self.site, terms))

    def custom_objections(self, asked: "Sequence[Asked]", schema: "Schema") -> tuple[str, ...]:
        """Return what the policy has against sums that a study describes, in words."""
        from dpcausal.queries import CustomSums  # noqa: PLC0415 (a heavy import)

        described = [(each.query, each.guarantee.epsilon) for each in asked if isinstance(each.query, CustomSums)]
        if described and self.custom_sums is None:
            return ("sums that a study describes are not allowed: the policy has no table [custom_sums]",)
        found = (self.custom_sums.objections(*each, schema) for each in described if self.custom_sums)
        return tuple(dict.fromkeys(words for each in found for words in each))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the policy of the site in a folder.

        Raises:
            StudyError: If the file is absent, of another version, or not a policy.
        """
        with redact_errors(OSError, ValueError, instead=lambda error: _unreadable(folder, error)):
            document = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
        check_format(FILE, document, VERSION, _RENAMED)
        del document["version"]
        try:
            check_keys("policy", document, _NEEDED, _OPTIONAL)
            unit = build("unit", Unit, document["unit"]) if "unit" in document else None
            kinds: dict[str, Any] = {"secure_sums": SecureSums, "custom_sums": CustomSumsAllowed}
            sums = {name: build(f"[{name}]", kinds[name], document[name]) for name in kinds if name in document}
            tables = {name: build(f"[tables.{name}]", SiteTable, each) for name, each in _named(document, "tables")}
            mapping = ColumnMapping.from_dict(dict(_named(document, "mapping")))
            _check_versions(document["as_of"], tables)
        except DpcausalError as error:
            raise StudyError(problem=error.problem, hint=f"correct {FILE}.") from None
        lists = {name: _tuple(document.get(name, ())) for name in ("columns", "estimators", "public")}
        return cls(**document | lists | sums | {"unit": unit, "tables": tables, "mapping": mapping})


def _named(document: Mapping[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    """Return the tables of TOML with names of their own under one name."""
    tables = document.get(name, {})
    if not isinstance(tables, dict):
        raise StudyError(problem=f"{name} is no table", hint=f"write [{name}.NAME] before its lines.")
    return tables.items()


def _check_versions(first: object, tables: Mapping[str, SiteTable]) -> None:
    """Raise unless each table has a version of its own: the ledger tells their questions apart by nothing else."""
    if len({first, *(each.as_of for each in tables.values())}) <= len(tables):
        raise StudyError(
            problem="Two tables of the site have the same as_of", hint='name the table too: "labs 2026-06-30".'
        )


def address_in(folder: Path, address: str) -> str:
    """Return the address of a table: a file name is relative to the folder, the address of a server is unchanged."""
    return address if "://" in address else str(folder / address)


def _unreadable(folder: Path, error: Exception) -> StudyError:
    """Return the error for a policy that is absent, may not be read, or is no TOML in UTF-8."""
    file = folder / FILE
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return StudyError(
            problem=f"There is no site in {folder}: it has no {FILE}",
            hint="check the path and the working folder; a new site is created with: dpcausal site init FOLDER NAME.",
        )
    if isinstance(error, OSError):
        return StudyError(
            problem=f"{file} cannot be read ({error.strerror})",
            hint="run the command as the user to whom the site's folder belongs.",
        )
    if isinstance(error, UnicodeDecodeError):
        return StudyError(
            problem=f"{file} is not in UTF-8, which an editor may have changed",
            hint="save it in UTF-8, or write letters without accents in its comments.",
        )
    if file.read_bytes().startswith(codecs.BOM_UTF8):
        return StudyError(
            problem=f"{file} begins with a byte order mark, which some editors add", hint="save it in UTF-8 without it."
        )
    return StudyError(
        problem=f"{file} is not valid TOML: {error}",
        hint='write texts between straight quotation marks, as in table = "table.parquet"; numbers with a point, as '
        "in 3.0; true and false without quotation marks.",
    )


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else value


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(map(is_plain_text, values))


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
