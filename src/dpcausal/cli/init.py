"""`dpcausal init`."""

import json
from pathlib import Path
from shlex import quote
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
    out: Annotated[Path, typer.Option(dir_okay=False, help="The file to write. It must not exist.")] = Path(
        "study.toml"
    ),
    codebook: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="A codebook for types, values and bounds: a REDCap or OMOP data dictionary, or a csv file with the "
            "header name,label,type,low,high,values.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a study file for you to complete, from a table's column names and types. No value is read.

    Start here. Treatment, outcome and epsilon are left blank, and bounds and values unless a codebook has them. The
    first line of a .csv file must hold the column names: a line that looks like values is refused, and not shown.
    """
    from dpcausal.schema.codebook import read_codebook  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.study.template import study_to_fill_in  # noqa: PLC0415
    from dpcausal.utils.blanks import write_new  # noqa: PLC0415
    from dpcausal.vault.readers.files import separator_between  # noqa: PLC0415
    from dpcausal.vault.table import column_families  # noqa: PLC0415

    columns = {name: family for name, family in column_families(table).items() if name}
    if not columns:
        raise TableError(
            problem="The table has no columns with names",
            hint="check that this is the right table. The first line of a .csv file must hold the names.",
        )
    known = read_codebook(codebook) if codebook else {}
    described = [name for name in columns if name in known]
    write_new(out, study_to_fill_in(columns, known))
    if as_json:
        typer.echo(json.dumps({"written": str(out), "columns": columns, "in_codebook": described}))
        return
    untyped = None in columns.values()
    source = "names" if untyped else "names and types"
    typer.echo(f"Wrote {out} from the {source} of {count_of(len(columns), 'column')}. No value was read.")
    if (separator := separator_between(table)) != "commas":
        typer.echo(f"The columns of {table} are separated by {separator}, as its first line shows.")
    if codebook:
        typer.echo(f"The codebook describes {len(described)} of them.")
    if untyped:
        typer.echo(
            "Check that the first line of the file holds column names before you share "
            f"{out}: a record that consists of words looks the same."
        )
    typer.echo('Next: open it and replace every "<fill in>". Then see cost and precision:')
    typer.echo(f"  dpcausal plan {quote(str(out))} --n NUMBER_OF_PEOPLE")
