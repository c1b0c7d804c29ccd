"""The errors of a ledger that refuses: what was expected, what was found, and what to do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from shlex import quote
from typing import Any

from dpcausal.errors import BudgetExceededError, LedgerError
from dpcausal.guarantee import Event
from dpcausal.ledger.allocation import Allocation
from dpcausal.ledger.budget import Budget, Total
from dpcausal.ledger.chain import Entry
from dpcausal.ledger.data_set import DataSet
from dpcausal.ledger.running_total import RunningTotal
from dpcausal.ledger.store import Store
from dpcausal.ledger.witness import Witness
from dpcausal.schema.layer import LayerClaim
from dpcausal.utils.hash_chain import digest_of


def there_already(store: Store) -> LedgerError:
    """Refuse to create a ledger where there is one."""
    return LedgerError(
        problem=f"There is a ledger already at {store.address}",
        hint="use that one: a second ledger for the same people would add to its budget. In Python "
        "Ledger.open_or_create(…) opens it, with the arguments of create.",
    )


def check_is_budget(budget: object) -> None:
    """Refuse a budget that is a number or anything else."""
    if not isinstance(budget, Budget):
        number = budget if isinstance(budget, int | float) else 3
        raise LedgerError(
            problem=f"The budget must be a Budget, not {budget!r}", hint=f"write Budget(epsilon={number})."
        )


def check_apart(store: Store, witness: Witness | None) -> None:
    """Refuse a witness in the ledger's own place."""
    if witness is not None and witness.address == store.place:
        raise LedgerError(
            expected="a witness in another place than the ledger",
            got=witness.address,
            hint="whatever happens to the ledger would happen to its witness; name another disk or server.",
        )


def not_allocated(store: Store) -> LedgerError:
    """Refuse to create a ledger by a name, which is how those of a population are addressed."""
    return LedgerError(
        problem=f"{store.address} would be a ledger of a population without a budget from it",
        hint="allocate the budget: Population.allocate, or dpcausal population allocate. For a ledger of its own leave "
        "?ledger=… out.",
    )


def not_restored(allocation: Allocation) -> LedgerError:
    """Refuse to restore an experiment's ledger without its population."""
    return LedgerError(
        problem=f"The ledger of the experiment {allocation.experiment} has its budget from the population "
        f"{allocation.population}",
        hint="an older copy could hold what the experiment gave back since; the ledgers of a population cannot be "
        "restored one by one.",
    )


def spends_nothing() -> BudgetExceededError:
    """Refuse to pay for a request, where only what was paid for before may be answered."""
    return BudgetExceededError(
        expected="a request that was debited in time",
        got="one that was not",
        hint="let people approve the study again; what was paid for is not paid for again.",
    )


def check_terms(experiment: str, made: Mapping[str, Any], terms: Mapping[str, Any]) -> None:
    """Raise unless an experiment is asked for on the terms of its allocation."""
    if made != terms:
        held, asked = (
            f"{Budget(**each['budget'])}, as of {each['as_of']}, witness {each['witness'] or 'none'}, "
            f"{LayerClaim.from_dict(each['claim']) if each['claim'] else 'no buckets'}"
            for each in (made, terms)
        )
        raise LedgerError(
            problem=f"The experiment {experiment} was allocated {held}, and is now asked for with {asked}",
            hint="a budget cannot be changed; give another experiment another name, and declare another version of the "
            "data with Ledger.add_version.",
        )


def buckets_taken(claim: LayerClaim, holders: Iterable[str]) -> LedgerError:
    """Refuse buckets that an open experiment has."""
    return LedgerError(
        problem=f"Of {claim}, {', '.join(sorted(holders))} has some, and is still open",
        hint="take free ones, which dpcausal population show lists, or close the experiment that has them. Nothing was "
        "allocated.",
    )


def lost(experiment: str) -> LedgerError:
    """Refuse a population without the ledger of one of its experiments."""
    return LedgerError(
        problem=f"The ledger of the experiment {experiment}, which was created together with its allocation, is gone",
        hint="somebody removed it. What it spent is unknown, so it is not created again; restore the database from a "
        "copy that verifies.",
    )


def closed(store: Store) -> LedgerError:
    """Refuse to spend from a ledger that was closed."""
    return LedgerError(
        problem=f"{store.address} was closed: what it had left went back to its population",
        hint="stored answers can still be read; for a new query, allocate a budget to an experiment of another name.",
    )


def other_budget(held: Budget, given: Budget) -> LedgerError:
    """Refuse a budget that is not the ledger's."""
    return LedgerError(
        problem=f"This ledger was created with the budget {held}, and was now given {given}",
        hint=f"leave the budget out: this ledger's is {held} and cannot be raised; a new ledger for the same people "
        "would add to it.",
    )


def other_data_set(held: DataSet | None, given: DataSet) -> LedgerError:
    """Refuse a schema that declares something else public, or another column by which units enter."""
    hint = (
        "check the table and its schema; if these are the same people, a new ledger adds to what was spent: ask who "
        "keeps the budget."
    )
    if held is not None and replace(held, entry=given.entry) == given:
        hint = (
            f"write entry={held.entry!r} in the schema, as this ledger's first vault did."
            if held.entry
            else "leave entry out of the schema: the first vault of this ledger declared none, so that a schedule of "
            "looks cannot be paid for here. Ask for looks one by one."
        )
    return LedgerError(problem=f"This ledger is for another data set: {held}. What was given is {given}", hint=hint)


def restored_before_its_data_set() -> LedgerError:
    """Refuse to declare anew what lost answers rested on."""
    return LedgerError(
        problem="This ledger was restored from a copy of before its first vault, and does not hold the data set of the "
        "lost answers",
        hint="restore a later copy. The lost answers rest on a unit and on public columns that this copy does not "
        "know, and what is asked now may rest on others.",
    )


def other_count(as_of: str | None) -> LedgerError:
    """Refuse a table with another number of units, without naming the table's number or the ledger's."""
    return LedgerError(
        problem="The table has another number of units than this ledger's data set has"
        + (f" as of {as_of}" if as_of else ""),
        hint="check the table. If the data were updated, declare the new version: ledger.add_version, or dpcausal "
        "ledger add-version. All versions share the budget.",
    )


def in_use(store: Store) -> LedgerError:
    """Refuse to restore a ledger that is in use."""
    return LedgerError(
        problem=f"The ledger {store.address} grew while it was being restored",
        hint="stop whatever answers from it, and restore again.",
    )


def declared_before(as_of: str, running: RunningTotal) -> LedgerError:
    """Refuse to declare a version twice."""
    return LedgerError(
        problem=f"The version {as_of} of the data was declared already",
        hint=f"declared are {_listed(running)}; give a new one another date or name.",
    )


def _listed(running: RunningTotal) -> str:
    return ", ".join(as_of or "one without a name" for as_of in running.versions)


def absent(store: Store, got: str) -> LedgerError:
    """Refuse to open a ledger that is not there."""
    if store.forgets:
        return LedgerError(
            problem="A ledger in memory is new each time, and cannot be opened again",
            hint='write Ledger.create("sqlite://", Budget(epsilon=3)), or give a Vault its budget.',
        )
    if store.name:
        return LedgerError(
            problem=f"There is no ledger of that name at {store.address}",
            hint="check the address and the name; dpcausal population show lists the experiments of a population, and "
            "dpcausal population allocate adds one.",
        )
    inside = (
        ""
        if got == "no file"
        else (
            "if this is the database of a population, add which ledger: …?ledger=POPULATION/EXPERIMENT, as dpcausal "
            "population show says. Otherwise "
        )
    )
    return LedgerError(
        problem=f"There is no ledger at {store.address}: {got}",
        hint=f"{inside}check the address and the working folder; restore a lost ledger with: dpcausal ledger restore. "
        "Only if nothing was ever asked of these data, create a new one, with a budget that cannot be raised: dpcausal "
        f"ledger create {quote(store.address)} --epsilon 3 --as-of 2026-06-30, or Ledger.create in Python.",
    )


def other_witness(named: str | None) -> LedgerError:
    """Refuse a ledger without its witness, or with one that it does not have."""
    if named:
        return LedgerError(
            problem=f"This ledger has a witness, {named}, and was opened without it",
            hint="name it: witness=… or --witness.",
        )
    return LedgerError(
        problem="This ledger was created without a witness, and was opened with one", hint="leave it out."
    )


def undeclared(as_of: str | None, store: Store, running: RunningTotal) -> LedgerError:
    """Refuse a version of the data that nobody declared."""
    if as_of is None:
        hint = "say which version of the data this is: as_of=… or --as-of."
    else:
        hint = (
            "if the data were updated, declare the version: dpcausal ledger add-version "
            f'{quote(store.address)} --as-of "{as_of}", or ledger.add_version. All versions share the budget.'
        )
    return LedgerError(
        problem=f"This ledger does not know the version {as_of} of the data"
        if as_of is not None
        else f"The version of the data is not named; this ledger knows {_listed(running)}",
        hint=hint,
    )


def out_of_order() -> LedgerError:
    """Return the error for a look before the ones that come before it."""
    return LedgerError(
        problem="The look before this one has no answer",
        hint="ask for the looks before it first; a look that was missed can be asked for later.",
    )


def check_covers(budget: Budget, spent: Total, events: Sequence[Event], whose: str = "") -> None:
    """Refuse prices that do not fit together into what is left of a budget."""
    if budget.covers(reduce(Total.plus, events, spent)):
        return
    alone = next((event for event in events if not budget.covers(spent.plus(event))), None)
    expected, got, hint = (
        budget.refusal(spent, alone)
        if alone
        else (
            str(budget.remaining(spent)),
            f"{budget.spent(reduce(Total.plus, events, Total()))} for {len(events)} queries",
            f"ask for less; the budget is {budget}.",
        )
    )
    if (budget.spent(spent)).epsilon > 0:
        hint += (
            " What was answered before costs nothing only where nothing in it changed: bounds, weights, arms, price."
        )
    what = "this query" if len(events) == 1 else "these"
    raise BudgetExceededError(
        problem=f"Budget exceeded: this costs {got}, and {expected} is left{whose}",
        hint=f"{hint} Nothing was spent on {what}.",
    )


def check_granted(grant: Entry, events: Sequence[Event], question: dict[str, Any]) -> None:
    """Raise unless a request asks and costs what was reserved: another version of dpcausal may price it differently."""
    if digest_of(grant.content["question"]) != digest_of(question):
        raise LedgerError(
            expected="the question that was reserved for this request",
            got="another one",
            hint="a session of secure sums asks one question; a new study begins another session.",
        )
    if (reserved := grant.events) != list(events):
        raise LedgerError(
            expected=f"the price that was reserved for this request, {', '.join(map(str, reserved))}",
            got=", ".join(map(str, events)),
            hint="finish the request with the version of dpcausal that began it, or ask for another epsilon.",
        )
