"""`dpcausal run`."""

import math
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.options import AsJson, AsOf, StudyFile, TableAddress, WitnessAddress, open_ledger, read_study
from dpcausal.cli.requirements import ask_to_confirm
from dpcausal.errors import BudgetExceededError
from dpcausal.utils.documents import write_text

if TYPE_CHECKING:
    from dpcausal.ledger import Ledger
    from dpcausal.study.prepared import Prepared
    from dpcausal.study.study import Study
    from dpcausal.vault import Vault


_CELLS = """\
Cells of a .csv file are text. One that is not written as declared, such as 12 mmHg or an undeclared
spelling, counts as missing, and no warning can say so. Before the first study, whoever may see the table runs:
  dpcausal check {study} --table {table}
"""
"""Printed for every .csv file, whatever its cells are: a message that depends on them would give them away."""


def run(  # noqa: PLR0913, PLR0917
    study: StudyFile,
    table: TableAddress,
    ledger: Annotated[
        str,
        typer.Option(
            help="The ledger of this table, created with `dpcausal ledger create`: a file such as ledger.db, or "
            "postgresql+psycopg://…"
        ),
    ],
    as_of: AsOf,
    witness: WitnessAddress = "",
    as_json: AsJson = False,
    out: Annotated[Path, typer.Option(dir_okay=False, help="The file for the effect, as JSON.")] = Path("effect.json"),
    yes: Annotated[bool, typer.Option("--yes", help="Spend without confirmation.")] = False,
) -> None:
    """Run a study on a table: show the price, ask for confirmation, spend it, and print the effect.

    Spending is final. The same study on the same table gives the same answer again and costs nothing. Exit status 1 if
    you decline or the budget has too little left, and nothing was spent; also if a required diagnostic fails, and the
    effect was not asked for.
    """
    if not out.absolute().parent.is_dir():
        raise typer.BadParameter("must be a file in a folder that exists", param_hint="--out")
    read = read_study(study)
    vault = _vault(read, table, open_ledger(ledger, witness), as_of)
    prepared = read.prepare(vault)
    typer.echo(_price(read, vault, prepared), err=True)
    if prepared.due and table.lower().endswith(".csv"):
        typer.echo(_CELLS.format(study=quote(str(study)), table=quote(table)), err=True)
    try:
        prepared.check_affords()
        if prepared.due:
            ask_to_confirm(f"Spend {prepared.price}? This is final.", "Nothing was spent", yes=yes)
        else:
            typer.echo("Everything was answered before: it costs nothing.", err=True)
        result = prepared.run()
    except BudgetExceededError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    for name, diagnosis in result.diagnoses.items():
        write_text(out.with_name(f"{name}.json"), diagnosis.to_json())
    for found in (*result.diagnoses.values(), *result.secondary.values()):
        typer.echo(f"{found}\n", err=True)
    if result.effect is None:
        hints = "\n".join(f"Hint: {result.diagnoses[name].remedy}" for name in result.failed)
        failed = f"Failed: {', '.join(result.failed)}. The effect was not asked for, and its price was not spent."
        typer.echo(f"{failed}\n\n{hints}", err=True)
        raise typer.Exit(1)
    write_text(out, result.effect.to_json())
    typer.echo(result.effect.to_json() if as_json else str(result.effect))
    others = [str(out.with_name(f"{name}.json")) for name in result.diagnoses]
    typer.echo(f"\nWrote {' and '.join([*others, str(out)])}. Remaining budget: {vault.ledger.remaining}.", err=True)


def _vault(study: "Study", table: str, ledger: "Ledger", as_of: str) -> "Vault":
    from dpcausal.vault import Vault  # noqa: PLC0415 (slow to load, as is the one below)
    from dpcausal.vault.engines.resources import Resources  # noqa: PLC0415

    return Vault(table, study.schema, ledger=ledger, as_of=as_of, resources=Resources(progress=True))


def _price(study: "Study", vault: "Vault", prepared: "Prepared") -> str:
    """Return what a person should know before confirming."""
    from dpcausal.planning.interval_refusals import count_refusals, odds  # noqa: PLC0415
    from dpcausal.planning.precision import half_width  # noqa: PLC0415
    from dpcausal.release import format_receipt  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.utils.text import format_number, table_rows, text_table  # noqa: PLC0415 (slow to load, as are those below)

    rehearsal = replace(study.rehearsal(vault.n), rule=vault.rule)
    effect = study.with_left_in(
        study.estimator.estimate(study.seen(rehearsal), epsilon=study.epsilon, delta=study.delta)
    )
    refused = count_refusals(study.estimator, rehearsal, study.guarantee())
    left = vault.ledger.remaining_after(prepared.due.values())
    half = half_width(effect)
    expected = f"expect about ± {format_number(half)}" if math.isfinite(half) else f"none: {effect.no_interval}"
    table = [
        *table_rows("WARNING", effect.guarantee.warnings),
        ("question", study.question),
        ("units", f"{vault.n:,}"),
        ("data as of", str(vault.as_of)),
        ("method", effect.method),
        ("requires", ", ".join(f"{name} not to fail" for name in study.requires)),
        *table_rows("will ask", tuple(map(format_receipt, effect.receipts))),
        *table_rows("price", prepared.price.lines),
        ("95 % interval", f"{expected} (see `dpcausal plan`)"),
        ("no interval", odds(refused)),
        ("spent so far", f"{vault.ledger.spent}, of {vault.ledger.budget}"),
        ("left after it", str(left) if left else "the budget has too little left for this study"),
        ("ledger", vault.ledger.address),
    ]
    nothing = "nothing more is spent yet" if vault.ledger.spent.epsilon else "nothing is spent yet"
    title = f"{study.name}: {nothing if prepared.due else 'answered before'}"
    return text_table(title, [line for line in table if line[1]]) + "\n"
