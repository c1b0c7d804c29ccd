"""The ledger of a population: one budget, from which every experiment on the same people has its own."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

from sqlalchemy import Connection

from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.ledger import refusals, verification
from dpcausal.ledger.allocated_total import AllocatedTotal, label_of, layers_of
from dpcausal.ledger.allocation import MONTHS, AllocatedExperiment, Allocation, Days, Period, check_name, today
from dpcausal.ledger.budget import Budget, Spending
from dpcausal.ledger.chain import Entry, broken_at
from dpcausal.ledger.data_set import check_version
from dpcausal.ledger.journal import Journal, begin
from dpcausal.ledger.layers import Bucket, plain_total, total_of
from dpcausal.ledger.ledger import Ledger
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.ledger.store import Store, named
from dpcausal.ledger.witness import Witness, open_witness
from dpcausal.schema.layer import Layer, LayerClaim
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.utils.other_names import Constructor

_AT_ONCE = 100  # ledgers that are verified while others wait


class Population(Journal[AllocatedTotal], metaclass=Constructor):
    """The budget of a group of people, from which every experiment on them has its own.

    An experiment's whole budget is taken out of the population's in the transaction that creates the experiment's
    ledger. That is an ordinary `Ledger`, in the same database. As no ledger ever exceeds its budget, everything that is
    ever released about these people, by all experiments together, stays within the population's budget.

    What the sum over experiments rests on is declared here, once: who is a person, what is protected, and what is
    public. An experiment that declares anything else is refused.

    Args:
        url: An SQLAlchemy address of a database: `sqlite:///file.db`, or `postgresql+psycopg://…` for many experiments.
        name: The name of the population. A database may hold several.
        witness: Where the witness is, for a population that was created with one.

    Attributes:
        name: The name of the population.
        period: After which calendar period the budget is renewed; None if never.
        protects: The least that each experiment must protect.
        unit: The column that identifies a person in every experiment's table; empty where each record is a person.
        public: The columns that an experiment may declare public.
        layers: The layers of exclusive experiments, by name.

    Example:
        >>> import tempfile
        >>> place = f"sqlite:///{tempfile.mkdtemp()}/population.db"
        >>> shoppers = Population.create(place, "shoppers", Budget(epsilon=3))
        >>> ledger = shoppers.allocate("checkout-button", Budget(epsilon=0.5), as_of="2026-06-30")
        >>> print(shoppers.remaining)
        epsilon 2.5, delta 0
        >>> print(shoppers.close("checkout-button"))
        epsilon 0.5, delta 0

        Experiments of a layer have different people, and cost each of them what the costliest bucket costs:

        >>> readers = Population.create(place, "readers", Budget(epsilon=3), layers={"page": Layer("bucket", 10)})
        >>> for at, name in enumerate(["headline", "picture"]):
        ...     part = range(5 * at, 5 * at + 5)
        ...     ledger = readers.allocate(name, Budget(epsilon=1), as_of="week 12", layer="page", buckets=part)
        >>> print(readers.allocated)
        epsilon 1, delta 0
    """

    _example = (
        'Population("sqlite:///people.db", "shoppers"), or '
        'Population.create("sqlite:///people.db", "shoppers", Budget(epsilon=3))'
    )

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
        unit: str = "",
        public: Sequence[str] = (),
        layers: Mapping[str, Layer] | None = None,
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
            unit: The column that identifies a person: each experiment's schema must have a `Unit` of this name. Left
                out, each record of each table is a person, and no schema may have a `Unit`.
            public: Where `protects` is not `record`, the columns with public values: no experiment may declare others.
            layers: For exclusive experiments: public columns of buckets, by the name of their layer. The bucket of each
                person is public, never changes, and is the same in every table.
            witness: A second place that records the number and digest of the last entry, as for a `Ledger`.

        Raises:
            LedgerError: If there is one already.
        """
        check_name("population", name)
        if (period is not None and period not in MONTHS) or protects not in PROTECTS:
            raise LedgerError(
                problem=f"period must be one of {', '.join(MONTHS)} or None, and protects one of "
                f"{', '.join(PROTECTS)}, "
                f"not period={period!r} and protects={protects!r}",
                hint="leave both out for a budget that is never renewed and whole records that are protected.",
            )
        for holds, expected, hint in (
            (isinstance(unit, str), "as unit the name of a column", 'write unit="user", or leave it out.'),
            (
                not isinstance(public, str) and bool(public) == (protects != "record"),
                "a list of public columns where protects is not 'record', and none where it is",
                'write for instance protects="record_within_arm", public=["arm"].',
            ),
        ):
            if not holds:
                got = f"unit={unit!r}, protects={protects!r}, public={public!r}"
                raise LedgerError(expected=expected, got=got, hint=hint)
        declared = _checked_layers(layers or {}, unit)
        store, watching = _store(url, name), open_witness(witness) if witness else None
        refusals.check_apart(store, watching)
        about: dict[str, Any] = {
            "name": name,
            "period": period,
            "protects": protects,
            "unit": unit,
            "public": sorted(public),
        }
        about |= {"layers": declared} if declared else {}
        content = {"budget": budget.to_dict(), "population": about}
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
        self.unit: str = about["unit"]
        self.public = tuple(about["public"])
        self.layers = layers_of(about)

    def allocate(  # noqa: PLR0913
        self,
        experiment: str,
        budget: Budget,
        *,
        as_of: str,
        layer: str = "",
        buckets: Iterable[int] = (),
        witness: str | None = None,
    ) -> Ledger:
        """Take an experiment's whole budget out of the population's, and create the experiment's ledger with it.

        Both happen in one transaction. Asked again, this opens the ledger and takes nothing more; so ask again if you
        do not know whether it happened. Where the population's budget is renewed, the experiment may spend its part
        until the period ends, and needs another allocation in the next.

        Args:
            experiment: The name of the experiment.
            budget: The most that it may ever spend, by the same rule as the population's.
            as_of: The version of the experiment's data, as for `Ledger.create`.
            layer: For an experiment on some people only: the layer in which it has buckets. Vaults on its ledger take
                no others into the table, and it costs only the people in its own.
            buckets: The numbers of its buckets in the layer. No other open experiment has one of them.
            witness: A witness for the experiment's ledger.

        Raises:
            BudgetExceededError: If the population does not have this much left. Nothing is taken then.
            LedgerError: If the experiment has another budget, version, witness or other buckets already, or another
                experiment has one of these.
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
        # Buckets without a layer are a mistake: the experiment would be on everybody.
        allocation = self._allocation(experiment, self.claim(layer, buckets) if layer or buckets != () else None)
        store = self._store.beside(allocation.ledger)
        refusals.check_apart(store, watching)
        terms = {"budget": budget.to_dict(), "as_of": as_of, "witness": place}
        claim = allocation.claim.to_dict() if allocation.claim else None
        with self._transaction() as connection:
            made = self._made(connection, allocation)
            if made is None:
                self._take(connection, allocation, store, watching, terms)
            else:
                held = {name: made[name] for name in terms} | {"claim": made["allocation"].get("claim")}
                refusals.check_terms(experiment, held, terms | {"claim": claim})
                if not store.exists(connection):
                    raise refusals.lost(experiment)
        return _opened(store, watching)

    def claim(self, layer: str, buckets: Iterable[int]) -> LayerClaim:
        """Return the claim to some buckets of a layer.

        Raises:
            LedgerError: If there is no such layer.
            SchemaError: If it has no such buckets.
        """
        if not layer and self.layers:
            raise LedgerError(
                problem="Buckets were given, and no layer that they are of",
                hint=f"name one of the layers of {self.name}, {', '.join(self.layers)}: layer=, or --layer.",
            )
        if layer not in self.layers:
            raise LedgerError(
                problem=f"The population {self.name} has no layer {repr(layer)[:100]}; it has "
                f"{', '.join(self.layers) or 'none'}",
                hint='layers are declared when a population is created: layers={"page": Layer("bucket", 100)}.',
            )
        return self.layers[layer].claim(layer, buckets)

    def remaining_in(self, layer: str, buckets: Iterable[int]) -> Spending:
        """Return what an experiment with these buckets of a layer can still have."""
        return self.budget.remaining(self._current().of(self._days).total_beside(self.claim(layer, buckets)))

    def buckets(self, layer: str) -> tuple[Bucket, ...]:
        """Return the buckets of a layer, each with what it cost and the open experiment that has it."""
        declared = self.claim(layer, [0]).layer
        return tuple(self._current().of(self._days).buckets_of(layer, declared))

    def _allocation(self, experiment: str, claim: LayerClaim | None = None) -> Allocation:
        days = Days.around(today(), self.period) if self.period else None
        return Allocation(self.name, self.opening, experiment, self.protects, days, self.unit, self.public, claim)

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
        budget, now = Budget(**terms["budget"]), self._running.of(allocation.days)
        claim = allocation.claim
        if claim is not None and (taken := now.holders(claim) - {""}):
            raise refusals.buckets_taken(claim, taken)
        allocated = now.total if claim is None else now.total_beside(claim)
        if not self.budget.covers(allocated + budget.cap):
            raise BudgetExceededError(
                problem=f"Budget exceeded: the experiment {allocation.experiment} asks for {budget}, and "
                f"{self.budget.remaining(allocated)} of {self.name}'s budget is left",
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
                    problem=f"This population has no experiment {experiment!r}"
                    + (f" in {allocation.days}" if allocation.days else ""),
                    hint="list them with: dpcausal population show.",
                )
            if not store.exists(connection):
                raise refusals.lost(experiment)
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
                content = {"allocation": made["allocation"], "returned": plain_total(unspent)}
                before = [self._append(connection, "close", allocation.key, content)]
        _ = ledger.spent  # reads the end of the ledger, and so reports it to its witness
        return _returned(budget, before[0])

    @property
    def allocated(self) -> Spending:
        """What is allocated and was not returned; where the budget is renewed, in the current period."""
        return self.budget.spent(self._current().of(self._days).total)

    @property
    def remaining(self) -> Spending:
        """What can still be allocated; where the budget is renewed, in the current period."""
        return self.budget.remaining(self._current().of(self._days).total)

    @property
    def _days(self) -> Days | None:
        return Days.around(today(), self.period) if self.period else None

    @property
    def guarantee(self) -> str:
        """What the budget guarantees to each person, in words."""
        amount = f"epsilon {self.budget.epsilon:g}" + (f", delta {self.budget.delta:g}" if self.budget.delta else "")
        each = f" in each {self.period}; over k {self.period}s k times that" if self.period else ""
        return f"the guarantee is {amount} per person{each}, over all experiments together"

    def experiments(self) -> tuple[AllocatedExperiment, ...]:
        """Return every experiment, in the order of allocation. All entries are verified."""
        entries = self.entries()
        closed = {entry.request: entry for entry in entries if entry.kind == "close"}
        allocated = [entry for entry in entries if entry.kind == "allocate"]
        return tuple(self._experiment(entry, closed.get(entry.request)) for entry, _ in self._ledgers_of(allocated))

    def _ledgers_of(self, allocated: Iterable[Entry]) -> Iterator[tuple[Entry, RunningTotal]]:
        """Yield each allocation with the running total of its ledger, read from the last checkpoint on."""
        waiting = iter(allocated)
        while some := list(itertools.islice(waiting, _AT_ONCE)):
            with self._transaction() as connection:
                found = [(entry, self._ledger_of(connection, entry)) for entry in some]
            yield from found

    def _ledger_of(self, connection: Connection, allocated: Entry) -> RunningTotal:
        allocation = Allocation.from_dict(allocated.content["allocation"])
        store = self._store.beside(allocation.ledger)
        if not store.exists(connection):
            raise refusals.lost(allocation.experiment)
        last = store.extent(connection)[1]
        start = verification.at_checkpoint_before(store, connection, last, RunningTotal())
        return verification.to_the_end(store, connection, start)

    def _experiment(self, entry: Entry, closed: Entry | None) -> AllocatedExperiment:
        content = entry.content
        allocation, budget = Allocation.from_dict(content["allocation"]), Budget(**content["budget"])
        return AllocatedExperiment(
            name=allocation.experiment,
            budget=budget,
            ledger=named(self._store.place, allocation.ledger),
            period=label_of(allocation.days),
            returned=_returned(budget, closed) if closed else None,
            claim=allocation.claim,
        )

    def verify(self) -> None:
        """Raise unless every entry is as it was written, and each experiment's ledger is there and agrees with them.

        Each ledger is read from its last checkpoint on. The digest of its opening entry is compared, and where it was
        closed, what it granted. `Ledger.verify` verifies the other entries of a ledger.
        """
        pairs: dict[str, tuple[Entry, Entry | None]] = {}
        for entry in self._verified():
            if entry.kind == "allocate":
                pairs[entry.request] = entry, None
            elif entry.kind == "close":
                if entry.request not in pairs:
                    raise broken_at(entry.number)
                pairs[entry.request] = pairs[entry.request][0], entry
        for allocated, running in self._ledgers_of(entry for entry, _ in pairs.values()):
            self._check_ledger(allocated, running, pairs[allocated.request][1])

    def _check_ledger(self, allocated: Entry, running: RunningTotal, closed: Entry | None) -> None:
        content = allocated.content
        agrees = running.opening == content["ledger"]
        if closed is not None:
            returned = total_of(closed.content["returned"])
            agrees &= running.closed and Budget(**content["budget"]).unspent(running.total) == returned
        if not agrees:
            experiment = content["allocation"]["experiment"]
            raise LedgerError(
                expected=f"the ledger of the experiment {experiment} as the population recorded it",
                got="another",
                hint="it was exchanged or changed; restore the database from a copy that verifies.",
            )

    def __repr__(self) -> str:
        # As last seen, without a look at the store: a debugger may print this while the store is locked.
        allocated = self.budget.spent(self._running.of(self._days).total)
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


def _checked_layers(layers: Mapping[str, Layer], unit: str) -> dict[str, Any]:
    """Return layers as plain values; raise unless each is one, with a column of its own."""
    columns = [each.column for each in layers.values() if isinstance(each, Layer)]
    if len({unit, *columns}) != len(layers) + 1:
        raise LedgerError(
            expected="layers by name, each with a column of its own that is not the unit",
            got=repr(dict(layers))[:200],
            hint='write for instance layers={"page": Layer("bucket", 100)}.',
        )
    for name in layers:
        check_name("layer", name)
    return {name: asdict(layer) for name, layer in layers.items()}


def _opened(store: Store, witness: Witness | None) -> Ledger:
    ledger = Ledger.__new__(Ledger)
    ledger._open(store, witness)  # noqa: SLF001 (of the same package; by a store, which knows the password)
    return ledger


def _returned(budget: Budget, closed: Entry) -> Spending:
    closed.check_digest()
    return budget.remaining(budget.cap - total_of(closed.content["returned"]))
