"""What a site allows, whoever asks: a file that the site owns."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from dpcausal.columns import Unit
from dpcausal.errors import DpcausalError, StudyError
from dpcausal.federation.signatures import is_name, is_public_key
from dpcausal.plain_text import is_plain_text
from dpcausal.validation import build, check_keys, is_number, is_version

FILE = "policy.toml"
KEY = "site.key"

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
_OPTIONAL = ("public", "allow_unproved", "unit", "witness", "allow_check")
_UNITS = {"MB": 10**6, "GB": 10**9}


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a site allows.

    Attributes:
        site: The site's name.
        table: Where its table lies, as a `Vault` takes it; a file is looked for in the site's folder.
        ledger: Where its ledger lies: a file in the site's folder, or an SQLAlchemy address.
        as_of: Which version of the data the table is, as the ledger knows it: a date or a name.
        protects: What one unit may change between neighbouring tables.
        columns: The columns that a study may read.
        public: Where `protects` is not `record`, the columns whose values are public: a study must declare just these.
        estimators: The estimators that a study may name.
        epsilon_per_study: The most that one study may cost.
        delta_per_study: Likewise.
        minimum_units: With fewer units the site does not answer.
        approvals: How many people must approve a study; one who rejects it is enough to stop it.
        seconds: How long a computation may take.
        memory: How much memory it may take, for instance `2 GB`.
        budget: What may ever be spent: epsilon, delta and rule, as `Budget` takes them.
        requesters: Who may ask: public keys by name.
        allow_unproved: Queries without a proof that are allowed all the same.
        unit: Which column says whose a record is, where people have several.
        witness: Where the ledger's witness lies, if it has one.
        allow_check: Whether `dpcausal check` may look at the table, which tells exact counts and some cells.
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
    allow_unproved: tuple[str, ...] = ()
    unit: Unit | None = field(default=None)
    witness: str = ""
    allow_check: bool = True

    def __post_init__(self) -> None:
        for holds, expected in (
            (is_name(self.site), "site: a name of letters, digits, - and _"),
            (all(is_plain_text(each) and each for each in (self.table, self.ledger)), "table and ledger: texts"),
            (is_version(self.as_of), "as_of: a date or a name, such as 2026-06-30, in quotation marks"),
            (is_plain_text(self.witness), "witness: a text"),
            (_are_texts(self.columns) and _are_texts(self.estimators), "columns and estimators: lists of names"),
            (_are_texts(self.allow_unproved) and _are_texts(self.public), "allow_unproved and public: lists of names"),
            (self.ledger != "sqlite://" and ":memory:" not in self.ledger, "a ledger that does not forget"),
            (is_number(self.epsilon_per_study) and self.epsilon_per_study > 0, "epsilon_per_study: greater than 0"),
            (is_number(self.delta_per_study) and 0 <= self.delta_per_study < 0.5, "delta_per_study: below 0.5"),
            (_is_count(self.minimum_units, 2), "minimum_units: a number of at least 2"),
            (_is_count(self.approvals, 1), "approvals: a number of at least 1"),
            (is_number(self.seconds) and 0 < self.seconds <= 86_400, "seconds: from above 0 to a day"),
            (self._bytes() is not None, "memory: for instance 500 MB or 2 GB"),
            (isinstance(self.budget, Mapping), "a [budget] with epsilon and delta"),
            (isinstance(self.allow_check, bool), "allow_check: true or false"),
            (
                isinstance(self.requesters, Mapping) and all(map(is_public_key, self.requesters.values())),
                "requesters: public keys",
            ),
            (all(map(is_plain_text, self.requesters)), "requesters: names without control characters"),
        ):
            if not holds:
                raise StudyError(expected=f"in {FILE}, {expected}", got="something else", hint="correct the file.")

    @property
    def memory_bytes(self) -> int:
        """How much memory a computation may take."""
        return self._bytes() or 0

    def _bytes(self) -> int | None:
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(MB|GB)", self.memory) if isinstance(self.memory, str) else None
        return int(float(found[1]) * _UNITS[found[2]]) if found else None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The policy of the site in a folder."""
        try:
            document = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StudyError(
                expected=f"a readable {FILE} in the site's folder",
                got=f"{folder} ({type(error).__name__})",
                hint="make a site with: dpcausal site init FOLDER NAME.",
            ) from None
        try:
            check_keys("policy", document, _NEEDED, _OPTIONAL)
            unit = build("unit", Unit, document["unit"]) if "unit" in document else None
        except DpcausalError as error:
            raise StudyError(expected=error.expected, got=error.got, hint=f"correct {FILE}.") from None
        lists = {name: _tuple(document.get(name, ())) for name in ("columns", "estimators", "public", "allow_unproved")}
        return cls(**document | lists | {"unit": unit})


def address_in(folder: Path, address: str) -> str:
    """Where a table lies: a file's name is looked for in a folder, an address of a server is as it is."""
    return address if "://" in address else str(folder / address)


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else value


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(map(is_plain_text, values))


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
