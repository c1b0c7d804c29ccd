"""Openings that tell of a record."""

import logging
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest
import typer

import dpcausal as dpc
from dpcausal.audit.opening import by_command, check_commands, check_opening, openings
from dpcausal.errors import LedgerError, TableError
from dpcausal.vault.table import open_table
from tests.audit.mutants.mutant import Check, mutant


def opened(**wanted: object) -> Check:
    """The check, of those openings that have these parts."""
    return lambda: check_opening(_chosen(openings(), wanted))


def commanded(**wanted: object) -> Check:
    return lambda: check_commands(_chosen(by_command(), wanted))


def _chosen(ways: Sequence[Any], wanted: dict[str, object]) -> list[Any]:
    return [each for each in ways if all(getattr(each, name) == value for name, value in wanted.items())]


_SPY = {"form": "parquet", "schema": "a diagnosis as unit", "ledger": "bound to the table"}


@mutant("units are counted before the ledger is compared, and told", opened(**_SPY))
def counts_first(patch: pytest.MonkeyPatch) -> None:
    compared = dpc.Vault.__init__

    def init(vault: dpc.Vault, table: object, schema: dpc.Schema, **options: Any) -> None:
        n = int(open_table(table, schema).aggregate({}, ["1"], whole=True)[0])
        try:
            compared(vault, table, schema, **options)
        except LedgerError as error:
            raise LedgerError(problem=f"{error.problem}, {n} units", hint=error.hint) from None

    patch.setattr(dpc.Vault, "__init__", init)


@mutant("the same, on the command line", commanded(**_SPY))
def counts_first_by_command(patch: pytest.MonkeyPatch) -> None:
    counts_first(patch)


def _named(needed: Sequence[str], present: Sequence[str]) -> None:
    for name in needed:
        if name not in present:
            raise TableError(expected=f"a column {name!r}", got=f"columns {', '.join(present)}", hint="")


@mutant(
    "an absent column is told with the names of others",
    opened(form="csv without a header", schema="as first declared", ledger="created"),
)
def names_columns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("dpcausal.vault.readers.files.check_columns", _named)


@mutant(
    "a new study is made of a first record",
    commanded(form="csv without a header", schema="as first declared", ledger="created"),
)
def takes_any_header(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("dpcausal.vault.readers.files.check_names", lambda _, __: None)


@mutant("arms are logged when a table is opened", opened(form="csv", schema="as first declared", ledger="created"))
def logs_arms(patch: pytest.MonkeyPatch) -> None:
    count = dpc.Vault._count

    def counted(vault: dpc.Vault) -> None:
        count(vault)
        logging.getLogger("vault").info("arms %s", vault._engine.aggregate({"treatment": 2}, ["1"]).tolist())

    patch.setattr(dpc.Vault, "_count", counted)


@mutant(
    "an exit code tells how many units are in the comparison",
    commanded(form="csv", schema="as first declared", ledger="bound to the table"),
)
def exits_otherwise(patch: pytest.MonkeyPatch) -> None:
    def price(_: object, vault: dpc.Vault, __: object) -> str:
        raise typer.Exit(int(vault._engine.aggregate({}, ["1"])[0]))

    patch.setattr(import_module("dpcausal.cli.run"), "_price", price)  # the package has a function of the same name
