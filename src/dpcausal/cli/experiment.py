"""`dpcausal experiment`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.options import AsJson, AsOf, WitnessAddress, open_ledger
from dpcausal.cli.run import confirm
from dpcausal.errors import BudgetExceededError, StudyError

if TYPE_CHECKING:
    from dpcausal.experiment import Experiment

experiment = typer.Typer(name="experiment", no_args_is_help=True, help="Experiments with many metrics.")

ExperimentFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="The experiment's file, for example experiment.toml.")
]


@experiment.command()
def plan(
    file: ExperimentFile,
    n: Annotated[int, typer.Option("--n", min=2, help="The number of units.")],
    typical: Annotated[
        list[str] | None,
        typer.Option(help="Between which values about 90 % of units are, by column: views:2,40. Repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what an experiment can detect. No table is read, and nothing is spent."""
    rehearsed = _read(file).rehearsed(n, dict(map(_typical, typical or ())))
    typer.echo(rehearsed.to_json() if as_json else str(rehearsed))


@experiment.command()
def run(  # noqa: PLR0913, PLR0917
    file: ExperimentFile,
    table: Annotated[
        str, typer.Option(help="The table: a .parquet or .csv file, warehouse.duckdb#users, postgresql://…#users.")
    ],
    ledger: Annotated[
        str, typer.Option(help="The ledger of this table, created with `dpcausal ledger create`: a file or an address.")
    ],
    as_of: AsOf,
    look: Annotated[
        int | None, typer.Option(min=1, help="Of several looks: how many cohorts there are so far. Default: all.")
    ] = None,
    witness: WitnessAddress = "",
    as_json: AsJson = False,
    out: Annotated[
        Path, typer.Option(dir_okay=False, help="The page; the same as JSON goes to a file beside it.")
    ] = Path("scorecard.html"),
    yes: Annotated[bool, typer.Option("--yes", help="Spend without confirmation.")] = False,
) -> None:
    """Run an experiment on a table: show the price, ask for confirmation, spend it, and print the scorecard.

    All metrics are one query: one pass over the table and one debit. Of several looks the first pays for all. Spending
    is final. The same experiment on the same table gives the same scorecard again and costs nothing. Exit status 1 if
    you decline or the budget has too little left, and nothing was spent.
    """
    from dpcausal.rehearsal.pricing import outstanding_cost  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.vault import Vault  # noqa: PLC0415
    from dpcausal.vault.engines.resources import Resources  # noqa: PLC0415

    if out.suffix != ".html" or not out.absolute().parent.is_dir():
        raise typer.BadParameter("expected a file .html in a folder that exists", param_hint="--out")
    read = _read(file)
    vault = Vault(
        table, read.schema, ledger=open_ledger(ledger, witness), as_of=as_of, resources=Resources(progress=True)
    )
    due = outstanding_cost(vault, lambda source: read.release(source, look))
    price = f"epsilon {read.epsilon:g}, delta {read.delta:g}"
    spent = f"spent so far {vault.ledger.spent}, of {vault.ledger.budget}"
    typer.echo(f"{read.name}: {len(read.metrics)} metrics of {vault.n:,} units for {price}; {spent}.", err=True)
    try:
        vault.ledger.check_affords(due)
        if due:
            confirm(price, yes)
        else:
            typer.echo("Everything was answered before: it costs nothing.", err=True)
        scorecard = read.run(vault, look)
    except BudgetExceededError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    out.write_text(scorecard.to_html(), encoding="utf-8")
    scorecard.save(out.with_suffix(".json"))
    typer.echo(scorecard.to_json() if as_json else str(scorecard))
    written = f"Wrote {out} and {out.with_suffix('.json').name}."
    typer.echo(f"\n{written} Remaining budget: {vault.ledger.remaining}.", err=True)


def _read(file: Path) -> "Experiment":
    from dpcausal.experiment import Experiment  # noqa: PLC0415 (slow to load)

    try:
        return Experiment.from_toml(file.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(
            expected="an experiment's file in UTF-8",
            got=f"{file} ({type(error).__name__})",
            hint="write one with Experiment.to_toml, or see docs/experiments.md.",
        ) from None


def _typical(text: str) -> tuple[str, tuple[float, ...]]:
    """Return a column with the two values between which most units are."""
    name, _, values = text.partition(":")
    try:
        return name, tuple(float(value) for value in values.split(","))
    except ValueError:
        raise typer.BadParameter("expected a name and two values: views:2,40", param_hint="--typical") from None
