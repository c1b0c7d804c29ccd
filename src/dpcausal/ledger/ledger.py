"""The ledger of one data set."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, Self

from sqlalchemy import Connection

from dpcausal.errors import LedgerError
from dpcausal.guarantee import Event
from dpcausal.ledger import refusals, verification
from dpcausal.ledger.accounting import tight_epsilon
from dpcausal.ledger.allocation import Allocation
from dpcausal.ledger.answers import Answers
from dpcausal.ledger.budget import Budget, Spending, Total
from dpcausal.ledger.chain import Entry, broken_at
from dpcausal.ledger.data_set import DataSet, check_version
from dpcausal.ledger.journal import begin
from dpcausal.ledger.older_results import warn_of_older_results
from dpcausal.ledger.requester import Requester, Share, charged_to
from dpcausal.ledger.restoring import Lost, check_line, stated_event
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.ledger.store import Store
from dpcausal.ledger.witness import open_witness
from dpcausal.release import Receipt
from dpcausal.schema.layer import LayerClaim
from dpcausal.utils.other_names import OtherNames, called_as
from dpcausal.utils.text import html_bar, html_table

_FILE = "sqlite:///"
"""How the address of a ledger in a file begins."""


class Ledger(OtherNames, Answers):
    """The budget of one data set, and everything spent from it.

    A request is granted (its price is reserved), debited (spent for good, durably, before any record is read) and
    released (its answer is stored). Each happens at most once, in this order. There are no refunds: a request that was
    interrupted can be made again and is not debited again; a request that was answered gives the stored answer. A
    schedule of looks is granted and debited once, and each of its looks is answered at most once, in order.

    `Ledger(url)` opens an existing ledger and verifies what follows its last checkpoint; `verify` reads all of it.
    `Ledger.create` creates a new one, and `Ledger.open_or_create` does what is due.

    Args:
        url: A file such as `ledger.db`, or an SQLAlchemy address, for instance `postgresql+psycopg://…`. That of an
            experiment's ledger, which `Population.allocate` creates, ends in `?ledger=…`.
        witness: Where the witness is, for a ledger that was created with one.

    Example:
        >>> ledger = Ledger.create("sqlite://", Budget(epsilon=3), as_of="2026-06-30")
        >>> ledger
        Ledger(in memory: forgets everything when this process ends; spent epsilon 0, delta 0; ...)
    """

    _example = 'Ledger("study.db"), or Ledger.open_or_create("study.db", Budget(epsilon=3), as_of="2026-06-30")'
    _instead: ClassVar[Mapping[str, str]] = {
        "reset clear delete refund undo": "what was spent stays spent: nothing takes it back.",
        "total_spent used": "write ledger.spent.",
        "left available": "write ledger.remaining.",
        "history log entries queries": "list what was answered with: dpcausal ledger show LEDGER.",
    }

    study: str = ""  # the digest of the study that the next debits are for, as a site names it
    spends: bool = True  # whether it pays for what it was not debited for yet
    requester: Requester | None = None  # who pays for the next requests, as a site names it

    def __init__(self, url: str | Path, *, witness: str | None = None) -> None:
        self._open(Store(url), open_witness(witness) if witness else None)

    @classmethod
    @called_as('Ledger.create("study.db", Budget(epsilon=3), as_of="2026-06-30")')
    def create(cls, url: str | Path, budget: Budget, *, as_of: str | None = None, witness: str | None = None) -> Self:
        """Create a ledger where there is none.

        Args:
            url: Where, as for `Ledger`; or `sqlite://` for one in memory that forgets.
            budget: The most that may ever be spent. It cannot be raised later.
            as_of: The version of the data, as a public date or name. Optional only in memory.
            witness: A second place, on another disk or server, that records the number and digest of the last entry
                before any answer leaves: a text file whose name ends in `.log`, or an SQLAlchemy address. From then on
                the ledger works only together with it, and refuses when it was truncated or restored from a copy.

        Warns where JSON files of results stand beside the new file, which another ledger paid for.

        Raises:
            LedgerError: If there is a ledger already.
        """
        refusals.check_is_budget(budget)
        store, watching = Store(url), open_witness(witness) if witness else None
        if as_of is not None or not store.forgets:
            check_version(as_of)
        if store.name:
            raise refusals.not_allocated(store)
        refusals.check_apart(store, watching)
        with store.exclusive() as connection:
            begin(store, connection, watching, {"budget": budget.to_dict(), "as_of": as_of})
        if not store.forgets and store.place.startswith(_FILE):
            warn_of_older_results(Path(store.place.removeprefix(_FILE)))
        ledger = cls.__new__(cls)
        ledger._open(store, watching)  # noqa: SLF001 (its own)
        return ledger

    @classmethod
    @called_as('Ledger.open_or_create("study.db", Budget(epsilon=3), as_of="2026-06-30")')
    def open_or_create(
        cls, url: str | Path, budget: Budget, *, as_of: str | None = None, witness: str | None = None
    ) -> Self:
        """Open a ledger, or create it where there is none: for a notebook, whose cells are run again.

        A ledger that is there must have this budget and know this version of the data: neither is ever changed.
        Whoever removes the file removes the record of what was spent, and this would begin anew. Use `Ledger(url)`
        where a ledger must be there.

        Args:
            url: Where, as for `create`.
            budget: The most that may ever be spent, as it was when the ledger was created.
            as_of: The version of the data.
            witness: Where the witness is, as for `create`.

        Raises:
            LedgerError: If the ledger that is there has another budget, or does not know this version.

        Example:
            >>> ledger = Ledger.open_or_create("sqlite://", Budget(epsilon=3), as_of="2026-06-30")
            >>> ledger.remaining.epsilon
            3.0
        """
        refusals.check_is_budget(budget)
        if not cls.exists(url):
            return cls.create(url, budget, as_of=as_of, witness=witness)
        ledger = cls(url, witness=witness)
        ledger.check_budget(budget)
        if as_of not in ledger.versions:
            raise refusals.undeclared(as_of, ledger._store, ledger._current())
        return ledger

    @staticmethod
    def exists(url: str | Path) -> bool:
        """Return whether there is a ledger at an address."""
        store = Store(url)
        if store.is_absent:
            return False
        with store.exclusive() as connection:
            return store.exists(connection)

    @classmethod
    def restore(  # noqa: PLR0913
        cls,
        url: str | Path,
        *,
        by: str,
        reason: str,
        copy: str | None = None,
        witness: str | None = None,
        receipts: Iterable[Receipt] = (),
        lost_epsilon: float | None = None,
        lost_delta: float = 0.0,
    ) -> Self:
        """Restore an older copy of a ledger, on purpose, and record what may be spent twice because of it.

        What the copy lacks is counted as spent once more, so that the budget holds whatever is asked again.

        Args:
            url: Where the ledger belongs. Without `copy`, the older ledger is there already.
            copy: Where the copy is. Nothing may be at `url` then.
            witness: Where the witness is, for a ledger that has one.
            receipts: All known receipts, for instance those of effects.
            lost_epsilon: The largest total epsilon of lost answers without a receipt; needed where there may be some.
            lost_delta: Their largest total delta.

        Raises:
            LedgerError: If the copy is damaged or of another ledger, or if the price of what is lost is unknown.
        """
        check_line("by", by)
        check_line("reason", reason)
        store, watching = Store(url), open_witness(witness) if witness else None
        older = cls.__new__(cls)
        older._open(Store(copy) if copy else store, watching, restoring=True)  # noqa: SLF001 (its own)
        if older.allocation:
            raise refusals.not_restored(older.allocation)
        entries = older.entries()
        lost = Lost.of(entries, receipts, watching, older.opening)
        stated = stated_event(lost_epsilon, lost_delta, older.budget.rule)
        lost.check_stated(stated)
        events = [event.to_dict() for event in lost.events(stated, older.budget.rule)]
        missing = [receipt.digest for receipt in lost.receipts]
        content = {"by": by, "reason": reason, "lost": str(lost), "events": events, "receipts": missing}
        older._put_back(store, content, entries if copy else ())  # noqa: SLF001 (its own)
        return cls(url, witness=witness)

    def _blank(self) -> RunningTotal:
        return RunningTotal()

    def _read_opening(self, opening: dict[str, Any]) -> None:
        allocated = opening.get("allocation")
        self.allocation = Allocation.from_dict(allocated) if allocated else None

    @property
    def claim(self) -> LayerClaim | None:
        """The buckets of a layer whose units are those of its tables, as the population allocated them; or None."""
        return self.allocation.claim if self.allocation else None

    def _check_open(self) -> None:
        """Raise unless budget may be reserved: the ledger is open, and today is within its period if it has one."""
        if self._running.closed:
            raise refusals.closed(self._store)
        if self.allocation:
            self.allocation.check_day()

    def close_within(self, connection: Connection) -> Total:
        """Grant nothing any more, and return what was never granted, in a transaction of the population's.

        For `Population.close`, which takes it back in the same transaction. What was reserved counts as granted.
        """
        with self._lock:
            self._store.take_lock(connection)
            running = verification.to_the_end(self._store, connection, self._running)
            if self._witness is not None:
                verification.check_witnessed(self._store, connection, running, self._witness)
            if running.closed:
                raise refusals.closed(self._store)
            for entry in running.followed_by("close", "", {}):
                self._store.append(connection, entry)
            return self.budget.unspent(running.total)

    def check_budget(self, budget: Budget | None) -> None:
        """Raise unless this is the budget that the ledger was created with; None is not checked."""
        if budget is not None and budget != self.budget:
            raise refusals.other_budget(self.budget, budget)

    def check_data_set(self, as_of: str | None, data_set: DataSet, n: int | None = None) -> None:
        """Raise unless this version was declared, and everything public is as it was first declared.

        To be called before a table is opened: without n, nothing of the table is needed.
        """
        with self._transaction() as connection:
            self._check_data_set(connection, as_of, data_set, n)

    def _check_data_set(self, connection: Connection, as_of: str | None, data_set: DataSet, n: int | None) -> None:
        if as_of is not None:
            check_version(as_of)
        if as_of not in self._running.versions:
            raise refusals.undeclared(as_of, self._store, self._running)
        if self._running.data_set is None:
            self._check_first(connection, data_set)
        if self._running.data_set not in (None, data_set):
            raise refusals.other_data_set(self._running.data_set, data_set)
        if n is not None and self._running.versions[as_of] not in (None, n):
            raise refusals.other_count(as_of)

    def _check_first(self, connection: Connection, data_set: DataSet) -> None:
        """Raise where the first vault may not declare a data set, or not this one."""
        if self.allocation:
            self.allocation.check_data_set(data_set)
        self._check_restored(connection)

    def check_may_open(self) -> None:
        """Raise where no vault may be opened any more: the answers that were lost rest on what the copy lacks."""
        with self._transaction() as connection:
            if self._running.data_set is None:
                self._check_restored(connection)

    def _check_restored(self, connection: Connection) -> None:
        restores = self._store.entries_of_kind(connection, "restore")
        if any(event.epsilon > 0 for entry in restores for event in entry.events):
            raise refusals.restored_before_its_data_set()

    def bind(self, as_of: str | None, data_set: DataSet, n: int) -> None:
        """Bind a version to its number of units; raise, without naming a number, where it is bound to another."""
        with self._transaction() as connection:
            self._check_data_set(connection, as_of, data_set, n)
            if self._running.versions[as_of] is None:
                content = {"as_of": as_of, "data_set": data_set.to_dict(), "n": n}
                self._append(connection, "bind", as_of or "", content)

    def add_version(self, as_of: str) -> None:
        """Declare that the data set has another version, which shares the budget with those before it.

        Raises:
            LedgerError: If it was declared before.
        """
        check_version(as_of)
        with self._transaction() as connection:
            if as_of in self._running.versions:
                raise refusals.declared_before(as_of, self._running)
            self._append(connection, "version", as_of, {"as_of": as_of})

    @property
    def versions(self) -> dict[str | None, int | None]:
        """The number of units of each version of the data; None where no vault was opened on it yet."""
        return dict(self._current().versions)

    @property
    def data_set(self) -> DataSet | None:
        """The public facts about the data; None before the first vault."""
        return self._current().data_set

    def grant(self, request: str, price: Event | Sequence[Event], question: dict[str, Any]) -> None:
        """Reserve the price of a request, or of several queries in one request; nothing happens if it is reserved.

        Raises:
            BudgetExceededError: If the budget does not have this much left. Nothing is reserved then.
        """
        events = [price] if isinstance(price, Event) else [*price]
        with self._transaction() as connection:
            made = self._request(connection, request)
            if not self.spends and "debit" not in made:
                raise refusals.spends_nothing()
            if "grant" in made:
                self._check_unanswered_since(connection, made["grant"])
                refusals.check_granted(made["grant"], events, question)
                return
            self._check_open()
            self._check_covers(events)
            plain = [event.to_dict() for event in events]
            priced = {"event": plain[0]} if len(plain) == 1 else {"events": plain}
            payer = {"requester": self.requester.name} if self.requester else {}
            self._append(connection, "grant", request, priced | payer | {"question": question})

    def _check_covers(self, events: Sequence[Event]) -> None:
        """Refuse prices that do not fit into the budget, or into what the requester may spend of it."""
        refusals.check_covers(self.budget, self._running.total, events)
        if self.requester and self.requester.cap:
            charged = charged_to(self.requester.name, self._running.total, self._running.by_requester)
            refusals.check_covers(self.requester.cap, charged, events, f" of what {self.requester.name} may spend")

    def share(self, requester: Requester, prices: Iterable[Event] = ()) -> Share | None:
        """Return what is left of what a requester may spend, now and after these prices; None without a cap."""
        current = self._current()
        return Share.of(requester, charged_to(requester.name, current.total, current.by_requester), prices)

    def check_affords(self, prices: Mapping[str, Event]) -> None:
        """Raise unless all these requests fit together into what is left; reserved ones are already paid for.

        For several queries whose answers are of use only together. Reserves nothing.

        Raises:
            BudgetExceededError: If they do not fit.
        """
        with self._transaction() as connection:
            due = [event for request, event in prices.items() if "grant" not in self._request(connection, request)]
            if due:
                self._check_open()
            self._check_covers(due)

    def _check_unanswered_since(self, connection: Connection, grant: Entry) -> None:
        """Raise unless the chain holds from a reservation on: a lost answer would be drawn and released twice."""
        start = verification.at_checkpoint_before(self._store, connection, grant.number, self._blank())
        running = verification.to_the_end(self._store, connection, start)
        if running != self._running:
            raise broken_at(grant.number)

    def debit(self, request: str) -> Entry:
        """Spend what was reserved for a request, durably; nothing more is spent if it was spent already."""
        with self._transaction() as connection:
            made = self._request(connection, request)
            if "debit" in made:
                return made["debit"]
            if "grant" not in made:
                raise LedgerError(
                    expected="a request that was granted", got="one that was not", hint="grant it before the debit."
                )
            if self.allocation:
                self.allocation.check_day()
            return self._append(connection, "debit", request, {"study": self.study} if self.study else {})

    def check_receipts(self, receipts: Iterable[Receipt]) -> tuple[Receipt, ...]:
        """Return the receipts whose debits this ledger does not hold; none, if all is well.

        A missing receipt means that this ledger was truncated, restored from a copy, or is another one. Receipts of
        rehearsals, and joint receipts of several sites, belong to no ledger and are skipped; so are those that were
        counted as lost when a copy was restored.
        """
        with self._transaction() as connection:
            restores = self._store.entries_of_kind(connection, "restore")
            known = {digest for entry in restores for digest in entry.content["receipts"]}
            return tuple(
                each
                for each in receipts
                if each.entry is not None and each.digest not in known and not self._holds(connection, each)
            )

    def _holds(self, connection: Connection, receipt: Receipt) -> bool:
        found = self._store.entries_from(connection, receipt.entry or 0, 1)
        return bool(found) and (found[0].number, found[0].digest) == (receipt.entry, receipt.digest)

    def record_site(self, state: Mapping[str, Any]) -> None:
        """Record the state of the site that this ledger belongs to, so that an older copy of its files is detected."""
        with self._transaction() as connection:
            self._append(connection, "site", str(self._running.sighting.number + 1), {"state": dict(state)})

    @property
    def site_state(self) -> dict[str, Any] | None:
        """The last recorded state of the site; None where there is none, or an older ledger was restored since."""
        with self._transaction() as connection:
            last = self._store.last_of_kinds(connection, ("site", "restore"))
            return last.content["state"] if last and last.kind == "site" else None

    def site_states(self) -> tuple[dict[str, Any], ...]:
        """Return all recorded states of the site, the oldest first."""
        with self._transaction() as connection:
            return tuple(entry.content["state"] for entry in self._store.entries_of_kind(connection, "site"))

    @property
    def spent(self) -> Spending:
        """The amount reserved or spent so far."""
        return self.budget.spent(self._current().total)

    @property
    def remaining(self) -> Spending:
        """The remaining budget; nothing once the ledger is closed."""
        current = self._current()
        return self.budget.remaining(self.budget.cap if current.closed else current.total)

    def remaining_after(self, prices: Iterable[Event]) -> Spending | None:
        """Return what these prices would leave of the budget; None where they do not fit."""
        total = reduce(Total.plus, prices, self._current().total)
        return self.budget.remaining(total) if self.budget.covers(total) else None

    def tight_epsilon(self, delta: float) -> float:
        """Return the tightest epsilon at `delta` for everything spent, if all queries were fixed in advance.

        For reports. The budget itself follows its rule, which also holds for adaptive queries. Reads and verifies the
        whole ledger. A positive delta needs the extra `accounting`.
        """
        return tight_epsilon((event for entry in self._verified() for event in entry.events), delta)

    def __repr__(self) -> str:
        # As last seen, without a look at the store: a debugger may print this while the store is locked.
        place = "in memory: forgets everything when this process ends" if self._store.forgets else self._store.address
        return f"Ledger({place}; spent {self.budget.spent(self._running.total)}; budget {self.budget})"

    def _repr_html_(self) -> str:
        """Return the same for a notebook, with the spent share of epsilon as a bar."""
        share = self.budget.spent(self._running.total).epsilon / self.budget.epsilon
        place, spent, budget = repr(self).removeprefix("Ledger(").removesuffix(")").rsplit("; ", 2)
        table = [("spent", spent.removeprefix("spent ")), ("budget", budget.removeprefix("budget ")), ("place", place)]
        return html_table("Ledger", table, html_bar(share))
