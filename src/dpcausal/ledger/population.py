"""The ledger of a population: one budget, from which every experiment on the same people has its own."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Connection

from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.ledger import refusals, verification
from dpcausal.ledger.allocated_total import AllocatedTotal, label_of, plain_total, total_of
from dpcausal.ledger.allocation import MONTHS, Allocation, Days, Period, check_name, today
from dpcausal.ledger.budget import Budget, Spending
from dpcausal.ledger.chain import Entry, broken_at
from dpcausal.ledger.data_set import check_version
from dpcausal.ledger.journal import Journal, begin
from dpcausal.ledger.ledger import Ledger
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.ledger.store import Store, named
from dpcausal.ledger.witness import Witness, open_witness
from dpcausal.schema import PROTECTS, Protects

_AT_ONCE = 100  # ledgers that are verified while others wait


@dataclass(frozen=True)
class AllocatedExperiment:
    """One experiment of a population.

    Attributes:
        name: Its name.
        budget: The budget that was allocated to it.
        ledger: The address of its ledger.
        period: The period in which it may be spent; empty where the population's budget is never renewed.
        returned: What it gave back when it was closed; None while it is open.
    """

    name: str
    budget: Budget
    ledger: str
    period: str
    returned: Spending | None


class Population(Journal[AllocatedTotal]):
    """The budget of a group of people, from which every experiment on them has its own.

    An experiment's whole budget is taken out of the population's in the transaction that creates the experiment's
    ledger. That is an ordinary `Ledger`, in the same database. As no ledger ever exceeds its budget, everything that is
    ever released about these people, by all experiments together, stays within the population's budget.

    Each experiment's unit must be a person of the population.

    Args:
        url: An SQLAlchemy address of a database: `sqlite:///file.db`, or `postgresql+psycopg://…` for many experiments.
        name: The name of the population. A database may hold several.
        witness: Where the witness is, for a population that was created with one.

    Attributes:
        name: The name of the population.
        period: After which calendar period the budget is renewed; None if never.
        protects: The least that each experiment must protect.

    Example:
        >>> import tempfile
        >>> place = f"sqlite:///{tempfile.mkdtemp()}/population.db"
        >>> shoppers = Population.create(place, "shoppers", Budget(epsilon=3))
        >>> ledger = shoppers.allocate("checkout-button", Budget(epsilon=0.5), as_of="2026-06-30")
        >>> print(shoppers.remaining)
        epsilon 2.5, delta 0
        >>> print(shoppers.close("checkout-button"))
        epsilon 0.5, delta 0
    """

    def __init__(self, url: str, name: str, *, witness: str | None = None) -> None:
        check_name("population", name)
        self._open(_store(url, name), open_witness(witness) if witness else None)

    @classmethod
    def create(  # noqa: PLR0913
        cls,
        url: str,
        name: str,
        budget: Budget,
        *,
        period: Period | None = None,
        protects: Protects = "record",
        witness: str | None = None,
    ) -> Self:
        """Create a population where there is none of this name.

        Args:
            url: Where, as for `Population`. The ledgers of its experiments will be in the same database.
            name: Its name.
            budget: The most that all experiments together may ever spend, or may spend in each period. It cannot be
                raised later.
            period: After which calendar period the budget is renewed, by UTC: `month`, `quarter` or `year`. The
                guarantee is then the budget for each person in each period, and over k periods k times that.
            protects: The least that each experiment must protect, as in `Schema`.
            witness: A second place that records the number and digest of the last entry, as for a `Ledger`.

        Raises:
            LedgerError: If there is one already.
        """
        check_name("population", name)
        if (period is not None and period not in MONTHS) or protects not in PROTECTS:
            raise LedgerError(
                expected=f"period: {', '.join(MONTHS)} or none; protects: {', '.join(PROTECTS)}",
                got=f"period={period!r}, protects={protects!r}",
                hint="leave both out for a budget that is never renewed and whole records that are protected.",
            )
        store, watching = _store(url, name), open_witness(witness) if witness else None
        refusals.check_apart(store, watching)
        content = {"budget": budget.to_dict(), "population": {"name": name, "period": period, "protects": protects}}
        with store.exclusive() as connection:
            begin(store, connection, watching, content)
        return cls(url, name, witness=witness)

    def _blank(self) -> AllocatedTotal:
        return AllocatedTotal()

    def _read_opening(self, opening: dict[str, Any]) -> None:
        about = opening["population"]
        self.name: str = about["name"]
        self.period: Period | None = about["period"]
        self.protects: Protects = about["protects"]

    def allocate(self, experiment: str, budget: Budget, *, as_of: str, witness: str | None = None) -> Ledger:
        """Take an experiment's whole budget out of the population's, and create the experiment's ledger with it.

        Both happen in one transaction. Asked again, this opens the ledger and takes nothing more; so ask again if you
        do not know whether it happened. Where the population's budget is renewed, the experiment may spend its part
        until the period ends, and needs another allocation in the next.

        Args:
            experiment: The name of the experiment.
            budget: The most that it may ever spend, by the same rule as the population's.
            as_of: The version of the experiment's data, as for `Ledger.create`.
            witness: A witness for the experiment's ledger.

        Raises:
            BudgetExceededError: If the population does not have this much left. Nothing is taken then.
            LedgerError: If the experiment has another budget, version or witness already.
        """
        check_name("experiment", experiment)
        check_version(as_of)
        if budget.rule != self.budget.rule:
            raise LedgerError(
                expected=f"a budget with the population's rule, {self.budget.rule}",
                got=str(budget),
                hint="sums of epsilon and sums of rho cannot be added up exactly; use one rule for all experiments.",
            )
        watching = open_witness(witness) if witness else None
        place = watching.address if watching else None
        allocation = self._allocation(experiment)
        store = self._store.beside(allocation.ledger)
        refusals.check_apart(store, watching)
        terms = {"budget": budget.to_dict(), "as_of": as_of, "witness": place}
        with self._transaction() as connection:
            made = self._made(connection, allocation)
            if made is None:
                self._take(connection, allocation, store, watching, terms)
            else:
                _check_terms(experiment, {name: made[name] for name in terms}, terms)
                if not store.exists(connection):
                    raise _lost(experiment)
        return _opened(store, watching)

    def _allocation(self, experiment: str) -> Allocation:
        days = Days.around(today(), self.period) if self.period else None
        return Allocation(self.name, self.opening, experiment, self.protects, days)

    def _made(self, connection: Connection, allocation: Allocation) -> dict[str, Any] | None:
        found = self._store.entries_of(connection, allocation.key, ["allocate"])
        for entry in found:
            entry.check_digest()
        return found[0].content if found else None

    def _take(
        self,
        connection: Connection,
        allocation: Allocation,
        store: Store,
        witness: Witness | None,
        terms: dict[str, Any],
    ) -> None:
        budget, allocated = Budget(**terms["budget"]), self._running.of(allocation.days)
        if not self.budget.covers(allocated + budget.cap):
            raise BudgetExceededError(
                expected=f"{self.budget.remaining(allocated)} of {self.name}'s budget",
                got=f"{budget} for the experiment {allocation.experiment}",
                hint="allocate less, or close an experiment that has ended: what it never used goes back. Nothing was "
                "allocated.",
            )
        store.take_lock(connection)
        opening = begin(store, connection, witness, {**terms, "allocation": allocation.to_dict()})
        content = {**terms, "allocation": allocation.to_dict(), "ledger": opening.digest}
        self._append(connection, "allocate", allocation.key, content)

    def close(self, experiment: str, *, witness: str | None = None) -> Spending:
        """End an experiment for good: its ledger grants nothing any more, and what it never granted goes back.

        What was reserved for a query counts as spent, and its answer can still be drawn and read. Closed again, this
        returns what was returned then. Where the population's budget is renewed, this closes the experiment of the
        current period.

        Args:
            experiment: The name of the experiment.
            witness: The witness of the experiment's ledger, if it has one.

        Returns:
            What went back to the population.
        """
        check_name("experiment", experiment)
        allocation = self._allocation(experiment)
        store = self._store.beside(allocation.ledger)
        with self._transaction() as connection:
            made = self._made(connection, allocation)
            if made is None:
                raise LedgerError(
                    expected="an experiment of this population" + (f" in {allocation.days}" if allocation.days else ""),
                    got=repr(experiment),
                    hint="list them with: dpcausal population show.",
                )
            if not store.exists(connection):
                raise _lost(experiment)
            before = self._store.entries_of(connection, allocation.key, ["close"])
        budget = Budget(**made["budget"])
        if before:
            return _returned(budget, before[0])
        # Opened before the transaction that closes it. Whoever closes it in between is found by both locks.
        ledger = _opened(store, open_witness(witness) if witness else None)
        with self._transaction() as connection:
            before = self._store.entries_of(connection, allocation.key, ["close"])
            if not before:
                unspent = ledger.close_within(connection)
                content = {"allocation": allocation.to_dict(), "returned": plain_total(unspent)}
                before = [self._append(connection, "close", allocation.key, content)]
        _ = ledger.spent  # reads the end of the ledger, and so reports it to its witness
        return _returned(budget, before[0])

    @property
    def allocated(self) -> Spending:
        """What is allocated and was not returned; where the budget is renewed, in the current period."""
        return self.budget.spent(self._current().of(self._days))

    @property
    def remaining(self) -> Spending:
        """What can still be allocated; where the budget is renewed, in the current period."""
        return self.budget.remaining(self._current().of(self._days))

    @property
    def _days(self) -> Days | None:
        return Days.around(today(), self.period) if self.period else None

    @property
    def guarantee(self) -> str:
        """What the budget guarantees to each person, in words."""
        amount = f"epsilon {self.budget.epsilon:g}" + (f", delta {self.budget.delta:g}" if self.budget.delta else "")
        if self.period is None:
            return f"the guarantee is {amount} per person, over all experiments together"
        return (
            f"the guarantee is {amount} per person in each {self.period}; over k {self.period}s k times that, over all "
            "experiments together"
        )

    def experiments(self) -> tuple[AllocatedExperiment, ...]:
        """Return every experiment, in the order of allocation. All entries are verified."""
        entries = self.entries()
        closed = {entry.request: entry for entry in entries if entry.kind == "close"}
        return tuple(
            self._experiment(entry, closed.get(entry.request)) for entry in entries if entry.kind == "allocate"
        )

    def _experiment(self, entry: Entry, closed: Entry | None) -> AllocatedExperiment:
        content = entry.content
        allocation, budget = Allocation.from_dict(content["allocation"]), Budget(**content["budget"])
        return AllocatedExperiment(
            name=allocation.experiment,
            budget=budget,
            ledger=named(self._store.place, allocation.ledger),
            period=label_of(allocation.days),
            returned=_returned(budget, closed) if closed else None,
        )

    def verify(self) -> None:
        """Raise unless every entry is as it was written, and each experiment's ledger is there and agrees with them.

        Here the digest of each ledger's opening entry is compared, and a ledger that was closed is read from its last
        checkpoint on, to see that it granted no more. `Ledger.verify` verifies the other entries of a ledger.
        """
        pairs: dict[str, tuple[Entry, Entry | None]] = {}
        for entry in self._verified():
            if entry.kind == "allocate":
                pairs[entry.request] = entry, None
            elif entry.kind == "close":
                if entry.request not in pairs:
                    raise broken_at(entry.number)
                pairs[entry.request] = pairs[entry.request][0], entry
        waiting = iter(pairs.values())
        while some := list(itertools.islice(waiting, _AT_ONCE)):
            with self._transaction() as connection:
                for allocated, closed in some:
                    self._check_ledger(connection, allocated, closed)

    def _check_ledger(self, connection: Connection, allocated: Entry, closed: Entry | None) -> None:
        content = allocated.content
        allocation = Allocation.from_dict(content["allocation"])
        store = self._store.beside(allocation.ledger)
        if not store.exists(connection):
            raise _lost(allocation.experiment)
        opening = verification.entry_at(store, connection, 0)
        opening.check_digest()
        agrees = opening.digest == content["ledger"]
        if agrees and closed is not None:
            last = store.extent(connection)[1]
            start = verification.at_checkpoint_before(store, connection, last, RunningTotal())
            running = verification.to_the_end(store, connection, start)
            returned = total_of(closed.content["returned"])
            agrees = running.closed and Budget(**content["budget"]).unspent(running.total) == returned
        if not agrees:
            raise LedgerError(
                expected=f"the ledger of the experiment {allocation.experiment} as the population recorded it",
                got="another",
                hint="it was exchanged or changed; restore the database from a copy that verifies.",
            )

    def __repr__(self) -> str:
        # As last seen, without a look at the store: a debugger may print this while the store is locked.
        allocated = self.budget.spent(self._running.of(self._days))
        return f"Population({self.name} at {self._store.place}; allocated {allocated}; budget {self.budget})"


def _store(url: str, name: str) -> Store:
    store = Store(named(url, name))
    if store.forgets:
        raise LedgerError(
            expected="a population that is stored",
            got="one in memory",
            hint='name a file, "sqlite:///population.db", or a PostgreSQL database.',
        )
    return store


def _opened(store: Store, witness: Witness | None) -> Ledger:
    ledger = Ledger.__new__(Ledger)
    ledger._open(store, witness)  # noqa: SLF001 (of the same package; by a store, which knows the password)
    return ledger


def _check_terms(experiment: str, made: Mapping[str, Any], terms: Mapping[str, Any]) -> None:
    """Raise unless an experiment is asked for on the terms of its allocation."""
    if made != terms:
        held = f"{Budget(**made['budget'])}, as of {made['as_of']}"
        raise LedgerError(
            expected=f"what was allocated to the experiment {experiment}: {held}, witness {made['witness'] or 'none'}",
            got=f"{Budget(**terms['budget'])}, as of {terms['as_of']}, witness {terms['witness'] or 'none'}",
            hint="a budget cannot be changed; give another experiment another name, and declare another version of the "
            "data with Ledger.add_version.",
        )


def _lost(experiment: str) -> LedgerError:
    return LedgerError(
        expected=f"the ledger of the experiment {experiment}, which was created together with its allocation",
        got="none",
        hint="somebody removed it. What it spent is unknown, so it is not created again; restore the database from a "
        "copy that verifies.",
    )


def _returned(budget: Budget, closed: Entry) -> Spending:
    closed.check_digest()
    return budget.remaining(budget.cap - total_of(closed.content["returned"]))
