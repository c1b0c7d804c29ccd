"""`dpcausal population`: one budget for every experiment on the same people."""

import itertools
import json
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.options import AsJson, AsOf, WitnessAddress, count_of, ledger_address, print_table, witness_address
from dpcausal.errors import LedgerError

if TYPE_CHECKING:
    from dpcausal.ledger import Population

population = typer.Typer(
    name="population", no_args_is_help=True, help="Share one budget between all experiments on the same people."
)

Place = Annotated[str, typer.Argument(help="The database: a file such as population.db, or postgresql+psycopg://…")]
Name = Annotated[str, typer.Argument(help="The population.")]
Experiment = Annotated[str, typer.Argument(help="The experiment.")]
PopulationWitness = Annotated[str, typer.Option("--witness", help="The population's witness, if it has one.")]
LedgerWitness = Annotated[str, typer.Option("--ledger-witness", help="The witness of the experiment's ledger.")]


@population.command()
def create(  # noqa: PLR0913, PLR0917
    place: Place,
    name: Name,
    epsilon: Annotated[float, typer.Option(help="The budget of all experiments together. It cannot be raised later.")],
    delta: Annotated[float, typer.Option(help="Its delta. It cannot be raised later.")] = 0.0,
    rule: Annotated[str, typer.Option(help="How spending adds up: additive or zcdp.")] = "additive",
    period: Annotated[str, typer.Option(help="Renew the budget each month, quarter or year; never if left out.")] = "",
    protects: Annotated[str, typer.Option(help="The least that each experiment must protect.")] = "record",
    unit: Annotated[
        str, typer.Option(help="The column that identifies a person; left out, each record of a table is a person.")
    ] = "",
    public: Annotated[
        list[str] | None, typer.Option(help="A column with public values, if --protects is not record. Repeatable.")
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            help="A layer of exclusive experiments, as name=column:buckets, such as page=bucket:100. Repeatable."
        ),
    ] = None,
    witness: WitnessAddress = "",
) -> None:
    """Create a population. Its budget is final."""
    from dpcausal.ledger import Budget, Population  # noqa: PLC0415 (slow to load)
    from dpcausal.schema.layer import read_layers  # noqa: PLC0415 (slow to load)

    budget = Budget(epsilon=epsilon, delta=delta, rule=rule)  # type: ignore[arg-type]
    made = Population.create(
        ledger_address(place),
        name,
        budget,
        period=period or None,  # type: ignore[arg-type]
        protects=protects,  # type: ignore[arg-type]
        unit=unit,
        public=public or (),
        layers=read_layers(layer or ()),
        witness=witness_address(witness),
    )
    typer.echo(f"Created the population {name} at {made.address}, with a budget of {budget}.")
    typer.echo(f"{made.guarantee[0].upper()}{made.guarantee[1:]}.")


@population.command()
def allocate(  # noqa: PLR0913, PLR0917
    place: Place,
    name: Name,
    experiment: Experiment,
    epsilon: Annotated[float, typer.Option(help="The experiment's budget. It cannot be raised later.")],
    as_of: AsOf,
    delta: Annotated[float, typer.Option(help="Its delta.")] = 0.0,
    layer: Annotated[str, typer.Option(help="The layer in which it has buckets; on everybody if left out.")] = "",
    buckets: Annotated[str, typer.Option(help="Its buckets in the layer, such as 0-19,40.")] = "",
    witness: PopulationWitness = "",
    ledger_witness: LedgerWitness = "",
) -> None:
    """Take an experiment's budget out of the population's, and create the experiment's ledger. Safe to repeat."""
    from dpcausal.ledger import Budget  # noqa: PLC0415 (slow to load)
    from dpcausal.schema.layer import read_buckets  # noqa: PLC0415 (slow to load)

    opened = _opened(place, name, witness)
    budget = Budget(epsilon=epsilon, delta=delta, rule=opened.budget.rule)
    ledger = opened.allocate(
        experiment,
        budget,
        as_of=as_of,
        layer=layer,
        buckets=read_buckets(buckets) if buckets else (),
        witness=witness_address(ledger_witness),
    )
    typer.echo(f"The experiment {experiment} has a budget of {budget}. Its ledger: {ledger.address}")
    if ledger.claim:
        typer.echo(f"Its units are those in {ledger.claim}.")
    typer.echo(f"The population has left: {opened.remaining}.")


@population.command()
def close(
    place: Place,
    name: Name,
    experiment: Experiment,
    witness: PopulationWitness = "",
    ledger_witness: LedgerWitness = "",
) -> None:
    """End an experiment for good. What it never granted goes back to the population."""
    opened = _opened(place, name, witness)
    returned = opened.close(experiment, witness=witness_address(ledger_witness))
    typer.echo(
        f"Closed the experiment {experiment}. Returned: {returned}. The population has left: {opened.remaining}."
    )


@population.command()
def show(place: Place, name: Name, as_json: AsJson = False, witness: PopulationWitness = "") -> None:
    """Show the experiments of a population, what each may spend, and what is left. All entries are verified."""
    opened = _opened(place, name, witness)
    experiments = opened.experiments()
    about = {
        "population": opened.name,
        "budget": str(opened.budget),
        "renewed": f"each {opened.period}" if opened.period else "never",
        "protects": opened.protects,
        "unit": opened.unit or "each record",
        "public": ", ".join(opened.public) or "no columns",
        "guarantee": opened.guarantee,
        "allocated": str(opened.allocated),
        "left": str(opened.remaining),
    }
    lines = [
        {
            "experiment": each.name,
            "period": each.period,
            **(
                {"buckets": f"{each.claim.name}: {each.claim.text}" if each.claim else "everybody"}
                if opened.layers
                else {}
            ),
            "budget": str(each.budget),
            "returned": str(each.returned) if each.returned else "",
            "ledger": each.ledger,
        }
        for each in experiments
    ]
    buckets = [line for name in opened.layers for line in _bucket_lines(opened, name)]
    if as_json:
        typer.echo(json.dumps(about | {"experiments": lines} | ({"layers": buckets} if opened.layers else {})))
        return
    for listed in filter(None, (lines, buckets)):
        shown = [heading for heading in listed[0] if heading != "ledger"]
        print_table(shown, ([line[heading] for heading in shown] for line in listed))
    for label, words in about.items():
        typer.echo(f"{label:<12}{words}")


@population.command()
def verify(place: Place, name: Name, witness: PopulationWitness = "") -> None:
    """Verify all entries and that each experiment's ledger is there. Exit status 1 if something was changed."""
    try:
        opened = _opened(place, name, witness)
        opened.verify()
    except LedgerError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None
    entries = opened.entries()
    typer.echo(f"Intact: {count_of(len(entries), 'entry', 'entries')}, the last of which is {entries[-1].digest}.")
    typer.echo(f"{opened.guarantee[0].upper()}{opened.guarantee[1:]}.")


def _bucket_lines(opened: "Population", name: str) -> list[dict[str, str]]:
    """Return the buckets of a layer, those that are equal side by side as one line."""
    lines, first = [], 0
    for bucket, run in itertools.groupby(opened.buckets(name)):
        last = first + len(list(run)) - 1
        lines.append(
            {
                "layer": f"{name}, by {opened.layers[name].column}",
                "buckets": f"{first}-{last}" if last > first else f"{first}",
                "experiment": bucket.holder or "free",
                "allocated": str(opened.budget.spent(bucket.total)),
                "left": str(opened.remaining_in(name, [first])),
            }
        )
        first = last + 1
    return lines


def _opened(place: str, name: str, witness: str) -> "Population":
    from dpcausal.ledger import Population  # noqa: PLC0415 (slow to load)

    return Population(ledger_address(place), name, witness=witness_address(witness))
