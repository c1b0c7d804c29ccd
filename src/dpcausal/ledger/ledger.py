"""The ledger of one data set."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Connection

from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.guarantee import Event, Standing
from dpcausal.ledger.accounting import tight_epsilon
from dpcausal.ledger.chain import Entry, Kind
from dpcausal.ledger.rules import Budget, Spending, Total
from dpcausal.ledger.store import Store


@dataclass(frozen=True)
class DataSet:
    """The public facts that tie a ledger to its data set.

    Attributes:
        n: The number of units.
        protects: What the schema says one unit may change.
        unit: How several records of one unit become one, if they do.
        public: The columns that are declared public. Another vault of the same ledger cannot declare others.
        heuristics: The queries without a proof that are allowed. Another vault of the same ledger cannot allow others.
    """

    n: int
    protects: str
    unit: str | None
    public: tuple[str, ...] = ()
    heuristics: tuple[str, ...] = ()

    def __str__(self) -> str:
        unit = f" by {self.unit}" if self.unit else ""
        public = f"public columns {', '.join(self.public)}" if self.public else "no public columns"
        unproved = f", allows without proof {', '.join(self.heuristics)}" if self.heuristics else ""
        return f"{self.n} units{unit}, protects {self.protects}, {public}{unproved}"


class Ledger:
    """What may be, and was, spent on one data set.

    A request is granted (its price is reserved), debited (spent for good, durably, before any record is read) and at
    last released (its answer is stored). Each happens at most once, in this order. There are no refunds: a request that
    was interrupted can be made again and is not debited again; a request that was answered gives the stored answer.

    Args:
        url: An SQLAlchemy address: `sqlite:///file.db`, `postgresql+psycopg://…`, or `sqlite://` for one in memory.
        budget: The most that may be spent. Needed to open a new ledger; an existing one remembers its own.
        data_set: What the ledger belongs to. Likewise.

    Example:
        >>> ledger = Ledger("sqlite://", Budget(epsilon=3), DataSet(n=445, protects="record", unit=None))
        >>> ledger
        Ledger(in memory: forgets everything when this process ends; spent epsilon 0, delta 0; ...)
    """

    def __init__(self, url: str, budget: Budget | None = None, data_set: DataSet | None = None) -> None:
        self._store = Store(url)
        self._head: Entry | None = None
        self._total = Total()
        self._granted: dict[str, Event] = {}
        self._debits: dict[str, Entry] = {}
        self._releases: dict[str, Entry] = {}
        with self._store.exclusive() as connection:
            if not self._store.exists(connection):
                self._open(connection, budget, data_set)
            self._catch_up(connection)
        self.check(budget, data_set)

    def _open(self, connection: Connection, budget: Budget | None, data_set: DataSet | None) -> None:
        if budget is None or data_set is None:
            raise LedgerError(
                expected="an existing ledger, or a budget for a new one",
                got=f"nothing at {self._store.address}",
                hint="open it through a vault, with budget=Budget(epsilon=…, delta=…).",
            )
        self._store.create(connection)
        opening = {"budget": budget.to_dict(), "data_set": asdict(data_set)}
        self._store.append(connection, Entry.after(None, "open", "", opening))

    def check(self, budget: Budget | None, data_set: DataSet | None) -> None:
        """Raise unless this ledger was opened with this budget and for this data set; None is not checked."""
        for what, given, held in (("budget", budget, self.budget), ("data set", data_set, self.data_set)):
            if given is not None and given != held:
                raise LedgerError(
                    expected=f"the {what} that this ledger was opened with, {held}",
                    got=str(given),
                    hint="a ledger belongs to one data set and one budget; use another ledger for another one.",
                )

    def _catch_up(self, connection: Connection) -> None:
        """Read and verify what was appended since the last look, by this process or another."""
        entries = self._store.entries_from(connection, self._head.number if self._head else 0)
        if self._head is not None and next(entries, None) != self._head:
            raise LedgerError(
                expected=f"entry {self._head.number} as it was read before",
                got="another or none",
                hint="the ledger was cut or replaced while in use; restore it before releasing anything.",
            )
        for entry in entries:
            entry.check_follows(self._head)
            self._apply(entry)
            self._head = entry
        if self._head is None:
            raise LedgerError(
                expected="a ledger with an opening entry", got="an empty table", hint="restore it from a copy."
            )

    def _apply(self, entry: Entry) -> None:
        content, request = entry.content, entry.request
        if entry.kind == "open" and entry.number == 0:
            self.budget = Budget(**content["budget"])
            facts = content["data_set"]
            lists = {name: tuple(facts.get(name, ())) for name in ("public", "heuristics")}
            self.data_set = DataSet(**facts | lists)
        elif entry.kind == "grant" and request not in self._granted:
            self._granted[request] = Event(**content["event"])
            self._total = self._total.plus(self._granted[request])
        elif entry.kind == "debit" and request in self._granted and request not in self._debits:
            self._debits[request] = entry
        elif entry.kind == "release" and request in self._debits and request not in self._releases:
            self._releases[request] = replace(entry, body="")  # bodies stay in the store
        else:
            raise LedgerError(
                expected="grant, debit and release of each request once and in this order",
                got=f"a {entry.kind} out of order at entry {entry.number}",
                hint="restore the ledger from a copy that verifies; do not release anything before.",
            )

    def _append(self, connection: Connection, kind: Kind, request: str, content: dict[str, Any]) -> Entry:
        entry = Entry.after(self._head, kind, request, content)
        self._store.append(connection, entry)
        return entry

    def grant(self, request: str, event: Event, question: dict[str, Any]) -> None:
        """Reserve the price of a request; nothing happens if it is reserved already.

        Raises:
            BudgetExceededError: If the budget does not have this much left. Nothing is reserved then.
        """
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            if request in self._granted:
                self._check_price(request, event)
                return
            if not self.budget.covers(self._total.plus(event)):
                expected, got, hint = self.budget.refusal(self._total, event)
                raise BudgetExceededError(expected=expected, got=got, hint=f"{hint} Nothing was spent.")
            self._append(connection, "grant", request, {"event": event.to_dict(), "question": question})

    def _check_price(self, request: str, event: Event) -> None:
        """A reservation pays for what was reserved: another version of dpcausal may price a request otherwise."""
        if self._granted[request] != event:
            raise LedgerError(
                expected=f"the price that was reserved for this request, {self._granted[request]}",
                got=str(event),
                hint="finish the request with the version of dpcausal that began it, or ask for another epsilon.",
            )

    def debit(self, request: str) -> Entry:
        """Spend what was reserved for a request, durably; nothing more is spent if it was spent already."""
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            if request in self._debits:
                return self._debits[request]
            if request not in self._granted:
                raise LedgerError(
                    expected="a request that was granted", got="one that was not", hint="grant it before the debit."
                )
            return self._append(connection, "debit", request, {})

    def store(self, request: str, release: str) -> str:
        """Keep the answer to a request, and return the answer that is kept: the first one, for ever."""
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            kept = self._kept(connection, request)
            if kept is not None:
                return kept
            if request not in self._debits:
                raise LedgerError(
                    expected="a request that was debited", got="one that was not", hint="debit it before the answer."
                )
            self._append(connection, "release", request, {"release": json.loads(release)})
            return release

    def stored(self, request: str) -> str | None:
        """The answer kept for a request, or None."""
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            return self._kept(connection, request)

    def _kept(self, connection: Connection, request: str) -> str | None:
        if request not in self._releases:
            return None
        known = self._releases[request]
        entry = next(self._store.entries_from(connection, known.number))
        if replace(entry, body="") != known or not entry.is_whole:
            raise LedgerError(
                expected=f"entry {known.number} as it was read before",
                got="another",
                hint="the ledger was changed while in use; restore it before releasing anything.",
            )
        return json.dumps(entry.content["release"], sort_keys=True)

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, verified from the first to the last."""
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            entries = tuple(self._store.entries_from(connection, 0))
        for previous, entry in zip((None, *entries), entries, strict=False):
            entry.check_follows(previous)
        return entries

    @property
    def spent(self) -> Spending:
        """What has been reserved or spent so far."""
        return self.budget.spent(self._current())

    @property
    def remaining(self) -> Spending:
        """What is left of the budget."""
        return self.budget.remaining(self._current())

    @property
    def standing(self) -> Standing:
        """Whether all that was granted is proved; one heuristic release makes the total heuristic."""
        self._current()
        return self._standing()

    def _standing(self) -> Standing:
        heuristic = any(event.family == "heuristic" for event in self._granted.values())
        return "heuristic" if heuristic else "proved"

    def tight_epsilon(self, delta: float) -> float:
        """The tightest epsilon at `delta` for everything spent, had all questions been fixed before the first answer.

        For reports. The budget itself is kept by the rule that also holds for questions chosen along the way.
        """
        self._current()
        return tight_epsilon(list(self._granted.values()), delta)

    def _current(self) -> Total:
        with self._store.exclusive() as connection:
            self._catch_up(connection)
        return self._total

    def __repr__(self) -> str:
        # As last seen, without a look at the store: a debugger may print this while the store is locked.
        place = "in memory: forgets everything when this process ends" if self._store.forgets else self._store.address
        if self._head is None:
            return f"Ledger({place}; not open)"
        unproved = "" if self._standing() == "proved" else ", of which a part without proof"
        return f"Ledger({place}; spent {self.budget.spent(self._total)}{unproved}; budget {self.budget})"
