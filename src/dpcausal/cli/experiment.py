"""`dpcausal experiment`."""

import itertools
import json
import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.options import AsJson, AsOf, WitnessAddress, open_ledger
from dpcausal.cli.requirements import ask_to_confirm, check_file_name
from dpcausal.errors import BudgetExceededError, StudyError
from dpcausal.utils.documents import write_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpcausal.experiment import Experiment, MetricCatalogue

experiment = typer.Typer(name="experiment", no_args_is_help=True, help="Experiments with many metrics.")

ExperimentFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="The experiment's file, for example checkout.toml.")
]
CatalogueFile = Annotated[
    Path | None,
    typer.Option("--catalogue", help="The catalogue of metrics. Default: metrics.toml beside the experiment's file."),
]
_CATALOGUE = "metrics.toml"
_EXAMPLE = (
    'write one, or name it with --catalogue. It has version = 1 and name = "shop" and, for each metric, for instance '
    '[metrics.revenue] with description = "…", owner = "…" and '
    'column = { kind = "real", name = "revenue", low = 0, high = 100, missing = 0 }.'
)


@experiment.command()
def init(
    table: Annotated[
        str, typer.Argument(help="The table: a .parquet or .csv file, warehouse.duckdb#users, postgresql://…#users.")
    ],
    catalogue: Annotated[Path, typer.Option(help="The catalogue of metrics.")] = Path(_CATALOGUE),
    metric: Annotated[
        list[str] | None,
        typer.Option(help="A metric of the catalogue. Repeatable. Default: all whose columns the table has."),
    ] = None,
    out: Annotated[Path, typer.Option(dir_okay=False, help="The file to write. It must not exist.")] = Path(
        "experiment.toml"
    ),
    as_json: AsJson = False,
) -> None:
    """Write an experiment's file for you to complete, from a catalogue and a table's column names. No value is read."""
    from dpcausal.experiment.template import experiment_to_fill_in  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.utils.blanks import write_new  # noqa: PLC0415
    from dpcausal.vault.table import column_families  # noqa: PLC0415

    read = _catalogue(catalogue)
    columns = [name for name in column_families(table) if name]
    write_new(out, experiment_to_fill_in(read, columns, metric or (), str(out)))
    used = tuple(metric or read.usable(columns))
    left = [each.name for each in read.metrics if each.name not in used]
    if as_json:
        written = {"written": str(out), "catalogue": read.digest, "metrics": used, "not_used": left}
        typer.echo(json.dumps(written))
        return
    typer.echo(f"Wrote {out} with {len(used)} of {len(read.metrics)} metrics of {read.name}. No value was read.")
    typer.echo('Next: open it and replace every "<fill in>". Then see what it can detect:')
    typer.echo(f"  dpcausal experiment plan {quote(str(out))} --n NUMBER_OF_USERS")


@experiment.command()
def plan(
    file: ExperimentFile,
    n: Annotated[int, typer.Option("--n", min=2, help="The number of units.")],
    typical: Annotated[
        list[str] | None,
        typer.Option(
            help="Between which values about 90 % of units are, or the share of a proportion, by column: views:2,40 or "
            "bought:0.05. Repeatable."
        ),
    ] = None,
    catalogue: CatalogueFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what an experiment can detect. No table is read, and nothing is spent."""
    read, stated = read_experiment(file, catalogue), dict(map(_typical, typical or ()))
    rehearsed = read.rehearsed(n, stated)
    typer.echo(rehearsed.to_json() if as_json else str(rehearsed))
    if as_json:
        return
    if left := [name for each in read.metrics for name in each.columns if name not in stated]:
        named = ", ".join(dict.fromkeys(left))
        expected = "numbers around the middle of their bounds, and proportions of 50 %"
        typer.echo(f"\nExpected without --typical: {expected}. These are {named}.", err=True)
    delta = f" --delta {read.delta:g}" if read.delta else ""
    place = quote(str(file.with_suffix(".db")))
    typer.echo("Next: create the ledger, once for these users, with a budget that is final; at least", err=True)
    typer.echo(f"  dpcausal ledger create {place} --epsilon {read.epsilon:g}{delta} --as-of VERSION", err=True)


@experiment.command()
def run(  # noqa: PLR0913, PLR0917
    file: ExperimentFile,
    table: Annotated[
        str, typer.Option(help="The table: a .parquet or .csv file, warehouse.duckdb#users, postgresql://…#users.")
    ],
    as_of: AsOf,
    ledger: Annotated[
        str,
        typer.Option(
            help="The ledger of this table, created with `dpcausal ledger create`: a file or an address. Default: "
            "beside the experiment's file, with .db for .toml."
        ),
    ] = "",
    look: Annotated[
        int | None, typer.Option(min=1, help="How many cohorts there are so far. Needed where there are several looks.")
    ] = None,
    new_version: Annotated[
        bool,
        typer.Option("--new-version", help="Declare --as-of as a new version of the data first, if it is none yet."),
    ] = False,
    unchanged: Annotated[
        bool,
        typer.Option(
            "--unchanged", help="Read a look although the table has as many units as an earlier version of the data."
        ),
    ] = False,
    witness: WitnessAddress = "",
    catalogue: CatalogueFile = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="The page; the same as JSON goes to a file beside it. Default: beside the experiment's file, with "
            ".html for .toml.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Spend without confirmation.")] = False,
) -> None:
    """Run an experiment on a table: show the price, ask for confirmation, spend it, and print the scorecard.

    All metrics are one query: one pass over the table and one debit. Of several looks the first pays for all. Spending
    is final. The same experiment on the same table gives the same scorecard again and costs nothing. Exit status 0 with
    a scorecard, whatever it decides; 1 if you decline or the budget has too little left, and nothing was spent.
    """
    from dpcausal.rehearsal.pricing import outstanding_cost  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.vault import Vault  # noqa: PLC0415
    from dpcausal.vault.engines.resources import Resources  # noqa: PLC0415

    page = out or file.with_suffix(".html")
    check_file_name(page, ".html", "--out")
    read = read_experiment(file, catalogue)
    read.check_look(look)
    opened = open_ledger(ledger or str(file.with_suffix(".db")), witness)
    if new_version and as_of not in opened.versions:
        opened.add_version(as_of)
    vault = Vault(table, read.schema, ledger=opened, as_of=as_of, resources=Resources(progress=True))
    if read.cohorts is not None and not unchanged:
        _check_grown(vault.n, as_of, opened.versions)
    due = outstanding_cost(vault, lambda source: read.release(source, look))
    price = f"epsilon {read.epsilon:g}, delta {read.delta:g}"
    looks = f", look {look} of {len(read.cohorts.values)}" if read.cohorts else ""
    units = "units" if read.unit else "units, one record each"
    spent = f"spent so far {vault.ledger.spent}, of {vault.ledger.budget}"
    typer.echo(
        f"{read.name}: {len(read.metrics)} metrics of {vault.n:,} {units}{looks}, for {price}; {spent}.", err=True
    )
    try:
        vault.ledger.check_affords(due)
        if due:
            ask_to_confirm(f"Spend {price}? This is final.", "Nothing was spent", yes=yes)
        else:
            paid = "Every look was paid for with the first" if looks else "Everything was answered before"
            typer.echo(f"{paid}: it costs nothing.", err=True)
        scorecard = read.run(vault, look)
    except BudgetExceededError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    scorecard.save(page)
    scorecard.save(page.with_suffix(".json"))
    typer.echo(scorecard.to_json() if as_json else str(scorecard))
    written = f"Wrote {page} and {page.with_suffix('.json').name}."
    typer.echo(f"\n{written} Remaining budget: {vault.ledger.remaining}.", err=True)


@experiment.command()
def watch(
    folder: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="The folder with the experiments' files.")
    ],
    ledger: Annotated[
        list[str] | None,
        typer.Option(
            help="Where a population is, for all of its experiments: sqlite:////srv/readers.db. Or where one "
            "experiment's ledger is, by the name of its file: checkout=postgresql+psycopg://… Repeatable. Default: "
            "beside its file, with .db for .toml."
        ),
    ] = None,
    catalogue: CatalogueFile = None,
    html: Annotated[Path | None, typer.Option(dir_okay=False, help="Write one page for all of them.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the experiments of a folder: look, decision and budget of each. Ledgers and scorecards are read, no table.

    Exit status 1 if one of them cannot be shown; the others are.
    """
    from dpcausal.cli.watched import watched  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.experiment.watch import watch_document, watch_page, watch_text  # noqa: PLC0415

    places = [_place(each) for each in ledger or ()]
    ledgers, databases = {name: place for name, place in places if name}, [place for name, place in places if not name]
    if html is not None:
        check_file_name(html, ".html", "--html")
    beside = html.absolute().parent if html else folder
    found = watched(folder, ledgers, databases, lambda file: read_experiment(file, catalogue), beside)
    if html is not None:
        write_text(html, watch_page(found))
    typer.echo(json.dumps(watch_document(found)) if as_json else watch_text(found))
    if any(each.problem for each in found):
        raise typer.Exit(1)


def read_experiment(file: Path, catalogue: Path | None) -> "Experiment":
    """Read a completed experiment, with the catalogue of the metrics that it uses by name."""
    from dpcausal.experiment import Experiment  # noqa: PLC0415 (slow to load, as is that below)
    from dpcausal.utils.blanks import check_filled_in  # noqa: PLC0415

    text = _text(file, "an experiment's file", "write one with: dpcausal experiment init TABLE.")
    check_filled_in(text, "an experiment")
    if re.search(r"^\[(estimator|schema)\b", text, re.MULTILINE):
        raise StudyError(
            problem=f"{file} is a study, not an experiment",
            hint="plan and run it with dpcausal plan and dpcausal run, or write an experiment with: dpcausal "
            "experiment init TABLE.",
        )
    place = catalogue or file.with_name(_CATALOGUE)
    return Experiment.from_toml(text, _catalogue(place) if catalogue or place.exists() else None)


def _catalogue(file: Path) -> "MetricCatalogue":
    from dpcausal.experiment import MetricCatalogue  # noqa: PLC0415 (slow to load)

    return MetricCatalogue.from_toml(_text(file, "a catalogue of metrics", _EXAMPLE))


def _text(file: Path, what: str, hint: str) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(
            problem=f"{file} cannot be read as {what} in UTF-8 ({type(error).__name__})", hint=hint
        ) from None


def _check_grown(n: int, as_of: str, versions: "Mapping[str | None, int | None]") -> None:
    """Raise if the version of a look has as many units as one before it: then nobody entered.

    A job that is tried again is refused again.
    """
    before = itertools.takewhile(lambda each: each[0] != as_of, versions.items())
    same = [str(version) for version, units in before if units == n]
    if same:
        raise StudyError(
            problem=f"The table as of {as_of} has {n:,} units, as many as that as of {same[-1]}, so nobody has entered",
            hint="nothing was asked. A look is drawn once: take the table with the new cohort, under another --as-of. "
            "If it is the right one, add --unchanged.",
        )


def _typical(text: str) -> tuple[str, tuple[float, ...]]:
    """Return a column with the two values between which most units are, or with a share."""
    name, _, values = text.partition(":")
    try:
        return name, tuple(float(value) for value in values.split(","))
    except ValueError:
        raise typer.BadParameter(
            "must be a name and two values, or a share: views:2,40 or bought:0.05", param_hint="--typical"
        ) from None


def _place(text: str) -> tuple[str, str]:
    """Return the name of an experiment's file with the address of its ledger; of a population, no name."""
    name, equals, address = text.partition("=")
    if (equals and not (name and address)) or not text:
        raise typer.BadParameter("must be a name and an address: checkout=ledger.db", param_hint="--ledger")
    if not equals or "://" in name:
        return "", text
    return name.removesuffix(".toml"), address
