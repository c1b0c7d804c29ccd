"""The errors of a ledger that refuses: what was expected, what was found, and what to do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
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
        expected="a place without a ledger",
        got=f"{store.address}, where there is one",
        hint="use that one: a second ledger for the same people would add to its budget.",
    )


def check_is_budget(budget: object) -> None:
    """Refuse a budget that is a number or anything else."""
    if not isinstance(budget, Budget):
        number = budget if isinstance(budget, int | float) else 3
        raise LedgerError(expected="a Budget", got=repr(budget), hint=f"write Budget(epsilon={number}).")


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
        expected="a ledger with a budget from its population",
        got=f"{store.address}, created without one",
        hint="allocate the budget: Population.allocate, or dpcausal population allocate. For a ledger of its own leave "
        "?ledger=… out.",
    )


def not_restored(allocation: Allocation) -> LedgerError:
    """Refuse to restore an experiment's ledger without its population."""
    return LedgerError(
        expected="a ledger with a budget of its own",
        got=f"that of the experiment {allocation.experiment}, whose budget is the population {allocation.population}'s",
        hint="an older copy could hold what the experiment gave back since; the ledgers of a population cannot be "
        "restored one by one.",
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
            expected=f"what was allocated to the experiment {experiment}: {held}",
            got=asked,
            hint="a budget cannot be changed; give another experiment another name, and declare another version of the "
            "data with Ledger.add_version.",
        )


def buckets_taken(claim: LayerClaim, holders: Iterable[str]) -> LedgerError:
    """Refuse buckets that an open experiment has."""
    return LedgerError(
        expected="buckets that no open experiment has",
        got=f"{claim}, of which {', '.join(sorted(holders))} has some",
        hint="take free ones, which dpcausal population show lists, or close the experiment that has them. Nothing was "
        "allocated.",
    )


def lost(experiment: str) -> LedgerError:
    """Refuse a population without the ledger of one of its experiments."""
    return LedgerError(
        expected=f"the ledger of the experiment {experiment}, which was created together with its allocation",
        got="none",
        hint="somebody removed it. What it spent is unknown, so it is not created again; restore the database from a "
        "copy that verifies.",
    )


def closed(store: Store) -> LedgerError:
    """Refuse to spend from a ledger that was closed."""
    return LedgerError(
        expected="an experiment that is still open",
        got=f"{store.address}, which was closed: what it had left went back to its population",
        hint="stored answers can still be read; for a new query, allocate a budget to an experiment of another name.",
    )


def other_budget(held: Budget, given: Budget) -> LedgerError:
    """Refuse a budget that is not the ledger's."""
    return LedgerError(
        expected=f"the budget that this ledger was created with, {held}",
        got=str(given),
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
    return LedgerError(expected=f"the data set that this ledger is for: {held}", got=str(given), hint=hint)


def restored_before_its_data_set() -> LedgerError:
    """Refuse to declare anew what lost answers rested on."""
    return LedgerError(
        expected="a ledger that holds the data set of the answers that were counted as lost",
        got="one that was restored from a copy of before its first vault",
        hint="restore a later copy. The lost answers rest on a unit and on public columns that this copy does not "
        "know, and what is asked now may rest on others.",
    )


def other_count(as_of: str | None) -> LedgerError:
    """Refuse a table with another number of units, without naming the table's number or the ledger's."""
    return LedgerError(
        expected=f"the table that this ledger is for{f', as of {as_of}' if as_of else ''}",
        got="another number of units than this ledger's data set has",
        hint="check the table. If the data were updated, declare the new version: ledger.add_version, or dpcausal "
        "ledger add-version. Budgets of versions add up.",
    )


def in_use(store: Store) -> LedgerError:
    """Refuse to restore a ledger that is in use."""
    return LedgerError(
        expected=f"a ledger that nobody uses while it is restored, {store.address}",
        got="one that grew meanwhile",
        hint="stop whatever answers from it, and restore again.",
    )


def declared_before(as_of: str, running: RunningTotal) -> LedgerError:
    """Refuse to declare a version twice."""
    return LedgerError(
        expected="a version that was not declared yet",
        got=as_of,
        hint=f"declared are {_listed(running)}; give a new one another date or name.",
    )


def _listed(running: RunningTotal) -> str:
    return ", ".join(as_of or "one without a name" for as_of in running.versions)


def absent(store: Store, got: str) -> LedgerError:
    """Refuse to open a ledger that is not there."""
    if store.forgets:
        return LedgerError(
            expected="a ledger that is there",
            got="one in memory, which is new each time",
            hint='write Ledger.create("sqlite://", Budget(epsilon=3)), or give a Vault its budget.',
        )
    if store.name:
        return LedgerError(
            expected=f"a ledger at {store.address}",
            got="none of that name",
            hint="check the address and the name; dpcausal population show lists the experiments of a population, and "
            "dpcausal population allocate adds one.",
        )
    return LedgerError(
        expected=f"a ledger at {store.address}",
        got=got,
        hint="check the address and the working folder; restore a lost ledger with: dpcausal ledger restore. Only if "
        "nothing was ever asked of these data, create a new one, with a budget that cannot be raised: dpcausal ledger "
        f"create {store.address} --epsilon 3 --as-of 2026-06-30, or Ledger.create in Python.",
    )


def other_witness(named: str | None) -> LedgerError:
    """Refuse a ledger without its witness, or with one that it does not have."""
    if named:
        return LedgerError(
            expected=f"this ledger together with its witness, {named}",
            got="no witness",
            hint="name it: witness=… or --witness.",
        )
    return LedgerError(
        expected="no witness: this ledger was created without one", got="a witness", hint="leave it out."
    )


def undeclared(as_of: str | None, store: Store, running: RunningTotal) -> LedgerError:
    """Refuse a version of the data that nobody declared."""
    if as_of is None:
        hint = "say which version of the data this is: as_of=… or --as-of."
    else:
        hint = (
            f"if the data were updated, declare the version: dpcausal ledger add-version {store.address} --as-of "
            f'"{as_of}", or ledger.add_version. Budgets of versions add up.'
        )
    return LedgerError(
        expected=f"a version of the data that this ledger knows: {_listed(running)}",
        got=as_of if as_of is not None else "none",
        hint=hint,
    )


def out_of_order() -> LedgerError:
    """Return the error for a look before the ones that come before it."""
    return LedgerError(
        expected="looks of a schedule in their order",
        got="one whose previous look has no answer",
        hint="ask for the looks before it first; a look that was missed can be asked for later.",
    )


def check_covers(budget: Budget, spent: Total, events: Sequence[Event]) -> None:
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
    what = "this query" if len(events) == 1 else "these"
    raise BudgetExceededError(expected=expected, got=got, hint=f"{hint} Nothing was spent on {what}.")


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
