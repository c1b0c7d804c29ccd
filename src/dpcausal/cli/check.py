"""`dpcausal check`."""

from pathlib import Path
from typing import Annotated

import typer

from dpcausal.cli.options import StudyFile, read_study
from dpcausal.cli.requirements import require_extra
from dpcausal.errors import StudyError

MARK = "[not private, not for sharing]"
_POLICY = "policy.toml"


def check(
    study: StudyFile,
    table: Annotated[
        str, typer.Option(help="The table: a .parquet or .csv file, warehouse.duckdb#visits, postgresql://…#visits.")
    ],
    policy: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="The site's policy.toml, which may forbid this. One beside the table, or in the working folder, is "
            "found without.",
        ),
    ] = None,
) -> None:
    """Look at a table before anybody asks it. For whoever keeps it only: what is printed is NOT private.

    Tells exact counts and some cells: what does not read as the study declares, lies outside of bounds or is none of
    the declared values, the arms found, units with several records, and a first line that is no header. Nothing of
    this may be shared, nor may bounds or values be chosen by it. It touches no ledger, and refuses where a policy says
    allow_check = false.
    """
    from dpcausal.vault.readers.inspection import inspect  # noqa: PLC0415 (slow to load)

    read = read_study(study)
    for file in _policies(policy, table):
        _check_allowed(file)
    for line in inspect(table, read.schema):
        typer.echo(f"{MARK} {line}")


def _policies(given: Path | None, table: str) -> list[Path]:
    """Return every policy that has a say."""
    place = Path(table.partition(".duckdb#")[0]).absolute()
    beside = [] if "://" in table else [place / _POLICY, place.parent / _POLICY]
    found = [file for file in (*beside, Path(_POLICY).absolute()) if file.is_file()]
    return list(dict.fromkeys([*([given.absolute()] if given else []), *found]))


def _check_allowed(file: Path) -> None:
    require_extra("cryptography", "federation")
    from dpcausal.site.policy import Policy  # noqa: PLC0415 (slow to load)

    if file.name != _POLICY:
        raise StudyError(expected=f"a file named {_POLICY}", got=file.name, hint="give the site's own policy.")
    if not Policy.read(file.parent).allow_check:
        raise StudyError(
            expected="a policy that allows a look at the table",
            got=f"allow_check = false in {file}",
            hint="nothing was read; ask whoever answers for the table, or `dpcausal plan`, which reads nothing.",
        )
