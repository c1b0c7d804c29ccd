"""`dpcausal init`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dpcausal.cli.options import AsJson, count_of
from dpcausal.errors import TableError


def init(
    table: Annotated[
        str,
        typer.Argument(
            help="The table: a .parquet or .csv file, a folder of .parquet files, warehouse.duckdb#visits, or "
            "postgresql://user@host/database#schema.table."
        ),
    ],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The file to write. It must not be there yet.")] = Path(
        "study.toml"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a study file to fill in, from a table's column names and types. No value is read.

    What only a person can know is left blank: treatment, outcome, bounds, the price. Begin here. The names of a .csv
    file are its first line: one that looks like values is refused, and not shown.
    """
    from dpcausal.study_template import study_to_fill_in, write_new  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.vault.table import column_families  # noqa: PLC0415

    columns = {name: family for name, family in column_families(table).items() if name}
    if not columns:
        raise TableError(
            expected="a table with columns that have names",
            got="none",
            hint="check that this is the table you meant; the first line of a .csv file holds the names.",
        )
    write_new(out, study_to_fill_in(columns))
    if as_json:
        typer.echo(json.dumps({"written": str(out), "columns": columns}))
        return
    untyped = None in columns.values()
    made_of = "names" if untyped else "names and types"
    typer.echo(f"Wrote {out} from the {made_of} of {count_of(len(columns), 'column')}; no value was read.")
    if untyped:
        typer.echo(
            "Not checked: that the first line of the file holds names. A record of words alone looks the same: check "
            f"{out} before you share it."
        )
    typer.echo('Next: open it and replace every "<fill in>". Then see what it would cost and tell:')
    typer.echo(f"  dpcausal plan {out} --n NUMBER_OF_PEOPLE")
