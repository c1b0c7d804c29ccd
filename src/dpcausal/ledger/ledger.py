"""The ledger of one data set."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from sqlalchemy import Connection

from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.guarantee import Event, Standing
from dpcausal.ledger.accounting import tight_epsilon
from dpcausal.ledger.balance import Balance, last_checkpoint_up_to
from dpcausal.ledger.chain import Entry, Kind, broken_at, digest_of
from dpcausal.ledger.life import check_life
from dpcausal.ledger.rules import Budget, Spending, Total
from dpcausal.ledger.store import Store

_PIECE = 900  # how many entries are in memory at once; older versions of SQLite take no more than 999 parameters


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

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """The facts as an opening entry holds them."""
        return cls(**facts | {name: tuple(facts.get(name, ())) for name in ("public", "heuristics")})

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

    Opening a ledger verifies what follows its last checkpoint, and `verify` all of it.

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
        self._balance = Balance()
        with self._store.exclusive() as connection:
            if not self._store.exists(connection):
                self._open(connection, budget, data_set)
            last = self._check_count(connection)
            self._balance = self._to_the_end(connection, self._at_checkpoint_before(connection, last))
            opening = self._entry(connection, 0).content
        self.budget, self.data_set = Budget(**opening["budget"]), DataSet.from_dict(opening["data_set"])
        self.check(budget, data_set)

    def _open(self, connection: Connection, budget: Budget | None, data_set: DataSet | None) -> None:
        if budget is None or data_set is None:
            raise LedgerError(
                expected="an existing ledger, or a budget for a new one",
                got=f"nothing at {self._store.address}",
                hint="open it through a vault, with budget=Budget(epsilon=…, delta=…).",
            )
        self._store.create(connection)
        self._append(connection, "open", "", {"budget": budget.to_dict(), "data_set": asdict(data_set)})

    def check(self, budget: Budget | None, data_set: DataSet | None) -> None:
        """Raise unless this ledger was opened with this budget and for this data set; None is not checked."""
        fixed = (
            f"leave the budget out: this ledger's is {self.budget} and cannot be raised; a new ledger for the same "
            "people would add to it."
        )
        other = (
            "check the table and its schema; if these are the same people, a new ledger adds to what was spent: ask "
            "who keeps the budget."
        )
        for what, given, held, hint in (
            ("budget", budget, self.budget, fixed),
            ("data set", data_set, self.data_set, other),
        ):
            if given is not None and given != held:
                raise LedgerError(
                    expected=f"the {what} that this ledger was opened with, {held}", got=str(given), hint=hint
                )

    def _check_count(self, connection: Connection) -> int:
        """The number of the last entry; raise unless there are as many entries as it says."""
        count, last = self._store.extent(connection)
        if count != last + 1:
            raise LedgerError(
                expected=f"{last + 1} entries, as the number of the last one says",
                got=f"{count}",
                hint="entries were removed or put in; restore the ledger from a copy that verifies.",
            )
        return last

    def _at_checkpoint_before(self, connection: Connection, number: int) -> Balance:
        """The balance at the last checkpoint up to an entry; where there is none, at the opening."""
        opening = Balance().after(self._entry(connection, 0))
        place = self._entry(connection, last_checkpoint_up_to(number))
        # Where a ledger was begun by a version without checkpoints, another entry may stand here.
        return opening.at(place) if place.kind == "checkpoint" else opening

    def _entry(self, connection: Connection, number: int) -> Entry:
        for entry in self._store.entries_from(connection, number, 1):
            if entry.number == number:
                return entry
        raise broken_at(number)

    def _catch_up(self, connection: Connection) -> None:
        """Read and verify what was appended since the last look, by this process or another."""
        self._balance = self._to_the_end(connection, self._balance)

    def _to_the_end(self, connection: Connection, balance: Balance) -> Balance:
        """The balance at the last entry; all entries on the way are verified."""
        while True:
            balance, entries = self._read_on(connection, balance)
            if len(entries) < _PIECE:
                return balance

    def _read_on(self, connection: Connection, balance: Balance) -> tuple[Balance, list[Entry]]:
        """The next piece of the chain, verified, and the balance after it."""
        known = [balance.head] if balance.head else []
        entries = self._store.entries_from(connection, known[0].number if known else 0, _PIECE + len(known))
        if entries[: len(known)] != known:
            raise LedgerError(
                expected=f"entry {known[0].number} as it was read before",
                got="another or none",
                hint="the ledger was cut or replaced while in use; restore it before releasing anything.",
            )
        new = entries[len(known) :]
        for entry in new:
            balance = balance.after(entry)
        for kinds in self._store.kinds_of(connection, {entry.request for entry in new}).values():
            check_life(kinds)
        return balance, new

    def _append(self, connection: Connection, kind: Kind, request: str, content: dict[str, Any]) -> Entry:
        """Write an entry, and with it the checkpoint that is due before it: both or none of them."""
        entries = self._balance.followed_by(kind, request, content)
        for entry in entries:
            self._store.append(connection, entry)
        return entries[-1]

    def _life(self, connection: Connection, request: str) -> dict[Kind, Entry]:
        """The entries of one request, each whole, looked up each time: there are too many requests to remember."""
        entries = self._store.entries_of(connection, request)
        check_life([entry.kind for entry in entries])
        for entry in entries:
            entry.check_whole()
        return {entry.kind: entry for entry in entries}

    def grant(self, request: str, event: Event, question: dict[str, Any]) -> None:
        """Reserve the price of a request; nothing happens if it is reserved already.

        Raises:
            BudgetExceededError: If the budget does not have this much left. Nothing is reserved then.
        """
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            life = self._life(connection, request)
            if "grant" in life:
                self._check_unanswered_since(connection, life["grant"])
                _check_price(life["grant"].event, event)
                return
            if not self.budget.covers(self._balance.total.plus(event)):
                expected, got, hint = self.budget.refusal(self._balance.total, event)
                raise BudgetExceededError(
                    expected=expected, got=got, hint=f"{hint} Nothing was spent on this question."
                )
            self._append(connection, "grant", request, {"event": event.to_dict(), "question": question})

    def check_whole(self, asks: Sequence[tuple[dict[str, Any], Event]]) -> None:
        """Raise unless questions, each with its price, fit into what is left, or the first was answered already.

        Those that follow may be asked with other numbers in them than here: they are told apart by their place.

        Raises:
            BudgetExceededError: If they do not fit.
        """
        requests = [digest_of(question) for question, _ in asks]
        if self.stored(requests[0]) is None:
            names = (f"{request} {place}" if place else request for place, request in enumerate(requests))
            self.check_affords(dict(zip(names, (event for _, event in asks), strict=True)))

    def check_affords(self, prices: Mapping[str, Event]) -> None:
        """Raise unless all these requests fit together into what is left; what is reserved already is paid for.

        For whoever asks several questions and has no use for a part of the answers. Reserves nothing.

        Raises:
            BudgetExceededError: If they do not fit.
        """
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            spent = self._balance.total
            due = [event for request, event in prices.items() if "grant" not in self._life(connection, request)]
        price, total = Total(), spent
        for event in due:
            price, total = price.plus(event), total.plus(event)
        if self.budget.covers(total):
            return
        alone = next((event for event in due if not self.budget.covers(spent.plus(event))), None)
        expected, got, hint = (
            self.budget.refusal(spent, alone)
            if alone
            else (
                f"a price within what is left of the budget, {self.budget.remaining(spent)}",
                f"{len(due)} questions for {self.budget.spent(price)} in all",
                f"ask for less; the budget is {self.budget}.",
            )
        )
        raise BudgetExceededError(expected=expected, got=got, hint=f"{hint} Nothing was spent.")

    def _check_unanswered_since(self, connection: Connection, grant: Entry) -> None:
        """Raise unless the chain holds from a reservation on: a lost answer to it would be drawn, and told, twice."""
        balance = self._to_the_end(connection, self._at_checkpoint_before(connection, grant.number))
        if balance != self._balance:
            raise broken_at(grant.number)

    def debit(self, request: str) -> Entry:
        """Spend what was reserved for a request, durably; nothing more is spent if it was spent already."""
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            life = self._life(connection, request)
            if "debit" in life:
                return life["debit"]
            if "grant" not in life:
                raise LedgerError(
                    expected="a request that was granted", got="one that was not", hint="grant it before the debit."
                )
            return self._append(connection, "debit", request, {})

    def store(self, request: str, release: str) -> str:
        """Keep the answer to a request, and return the answer that is kept: the first one, for ever."""
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            life = self._life(connection, request)
            if "release" in life:
                return _kept(life["release"])
            if "debit" not in life:
                raise LedgerError(
                    expected="a request that was debited", got="one that was not", hint="debit it before the answer."
                )
            self._append(connection, "release", request, {"release": json.loads(release)})
            return release

    def stored(self, request: str) -> str | None:
        """The answer kept for a request, or None."""
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            life = self._life(connection, request)
            return _kept(life["release"]) if "release" in life else None

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, verified from the first to the last."""
        return tuple(self._verified())

    def verify(self) -> None:
        """Raise unless every entry, from the first to the last, is what it was and where it was when it was written.

        Needs little memory, and lets others use the ledger meanwhile.

        Raises:
            LedgerError: If an entry was changed, removed or put in, or a checkpoint does not say what the entries
                before it come to.
        """
        deque(self._verified(), maxlen=0)

    def _verified(self) -> Iterator[Entry]:
        balance = Balance()
        while True:
            with self._store.exclusive() as connection:
                self._catch_up(connection)  # so that what this process has seen before is part of what is verified
                balance, entries = self._read_on(connection, balance)
                if not entries:
                    self._check_count(connection)
                    return
            yield from entries

    @property
    def spent(self) -> Spending:
        """What has been reserved or spent so far."""
        return self.budget.spent(self._current().total)

    @property
    def remaining(self) -> Spending:
        """What is left of the budget."""
        return self.budget.remaining(self._current().total)

    @property
    def opening(self) -> str:
        """The digest of the first entry, which no other ledger has."""
        return self._balance.opening

    @property
    def standing(self) -> Standing:
        """Whether all that was granted is proved; one heuristic release makes the total heuristic."""
        return self._current().standing

    def tight_epsilon(self, delta: float) -> float:
        """The tightest epsilon at `delta` for everything spent, had all questions been fixed before the first answer.

        For reports. The budget itself is kept by the rule that also holds for questions chosen along the way. Reads
        and verifies the whole ledger.
        """
        return tight_epsilon((entry.event for entry in self._verified() if entry.kind == "grant"), delta)

    def _current(self) -> Balance:
        with self._store.exclusive() as connection:
            self._catch_up(connection)
            return self._balance

    def __repr__(self) -> str:
        # As last seen, without a look at the store: a debugger may print this while the store is locked.
        place = "in memory: forgets everything when this process ends" if self._store.forgets else self._store.address
        if self._balance.head is None:
            return f"Ledger({place}; not open)"
        unproved = "" if self._balance.standing == "proved" else ", of which a part without proof"
        return f"Ledger({place}; spent {self.budget.spent(self._balance.total)}{unproved}; budget {self.budget})"


def _check_price(reserved: Event, event: Event) -> None:
    """A reservation pays for what was reserved: another version of dpcausal may price a request otherwise."""
    if reserved != event:
        raise LedgerError(
            expected=f"the price that was reserved for this request, {reserved}",
            got=str(event),
            hint="finish the request with the version of dpcausal that began it, or ask for another epsilon.",
        )


def _kept(release: Entry) -> str:
    return json.dumps(release.content["release"], sort_keys=True)
