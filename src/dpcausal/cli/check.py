"""`dpcausal check`."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.experiment import read_experiment
from dpcausal.cli.options import TableAddress, read_study
from dpcausal.errors import StudyError

if TYPE_CHECKING:
    from dpcausal.schema.schema import Schema

MARK = "[not private, not for sharing]"
_POLICY = "policy.toml"


def check(
    study: Annotated[
        Path,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="The study file, an experiment's file with its metrics.toml beside it, or a schema written by "
            "Schema.to_toml.",
        ),
    ],
    table: TableAddress,
    policy: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="The site's policy.toml, which may forbid this. By default the one beside the table or in the "
            "working folder.",
        ),
    ] = None,
) -> None:
    """Inspect a table before it is queried. For the data owner only: the output is NOT private.

    Prints exact counts and some cells: values that cannot be read as declared, that are out of bounds or undeclared,
    the arms, units with several records, and a first line that is not a header. Do not share the output, and do not
    choose bounds or values by it. The ledger is not used. Refused if a policy says allow_check = false.
    """
    for line in inspected(table, _schema(study), policy):
        typer.echo(line)


def inspected(table: str, schema: "Schema", policy: Path | None = None) -> Iterator[str]:
    """Yield what is to be known of a table, each line marked, unless a policy forbids it."""
    from dpcausal.vault.readers.inspection import inspect  # noqa: PLC0415 (slow to load)

    for file in _policies(policy, table):
        _check_allowed(file)
    for line in inspect(table, schema):
        yield f"{MARK} {line}"


def _schema(file: Path) -> "Schema":
    """Return the schema of a study, of an experiment, or of a file that holds nothing else."""
    from dpcausal.schema.schema import Schema  # noqa: PLC0415 (slow to load)

    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError:  # none of them; the error of a study says what is wrong
        document = {}
    if isinstance(document.get("metrics"), list):
        return read_experiment(file, None).schema
    alone = {"treatment", "outcome"} <= document.keys()
    return Schema.from_toml(file) if alone else read_study(file).schema


def _policies(given: Path | None, table: str) -> list[Path]:
    """Return every policy that applies."""
    place = Path(table.partition(".duckdb#")[0]).absolute()
    beside = [] if "://" in table else [place / _POLICY, place.parent / _POLICY]
    found = [file for file in (*beside, Path(_POLICY).absolute()) if file.is_file()]
    return list(dict.fromkeys([*([given.absolute()] if given else []), *found]))


def _check_allowed(file: Path) -> None:
    from dpcausal.federation.site.policy import Policy  # noqa: PLC0415 (slow to load)

    if file.name != _POLICY:
        raise StudyError(expected=f"a file named {_POLICY}", got=file.name, hint="pass the site's own policy.")
    if not Policy.read(file.parent).allow_check:
        raise StudyError(
            problem=f"This inspection is not allowed: {file} says allow_check = false",
            hint="nothing was read. Ask the data owner, or use `dpcausal plan`, which reads no data.",
        )
