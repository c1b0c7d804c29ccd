"""`dpcausal plan`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpcausal.cli.options import AsJson, StudyFile, WitnessAddress, open_ledger, read_study
from dpcausal.cli.requirements import check_figure, check_file_name

if TYPE_CHECKING:
    from dpcausal.ledger.budget import Spending
    from dpcausal.queries import Cut


def plan(  # noqa: PLR0913, PLR0917
    study: StudyFile,
    n: Annotated[int, typer.Option("--n", help="The number of people in the table.")],
    outcome_sd: Annotated[
        float | None,
        typer.Option(
            help="The expected standard deviation of the outcome, from the literature or a pilot; not from this table."
        ),
    ] = None,
    outcome_mean: Annotated[
        float | None, typer.Option(help="The expected mean of the outcome; of a binary outcome, the risk.")
    ] = None,
    treated_share: Annotated[
        float | None, typer.Option(help="The expected share of treated people among those compared; 0.5 by default.")
    ] = None,
    compared_share: Annotated[
        float | None,
        typer.Option(
            help="The expected share of people in one of the two compared arms, and with an outcome; by default all "
            "arms have one size, and nobody lacks an outcome."
        ),
    ] = None,
    confounding: Annotated[
        float | None,
        typer.Option(
            help="The expected difference between arms without any effect, in standard deviations of the outcome; 0.3 "
            "by default, and 0 in a trial."
        ),
    ] = None,
    covariate_sd: Annotated[
        float | None,
        typer.Option(help="The expected standard deviation of numeric covariates, as a share of half their range."),
    ] = None,
    overlap: Annotated[
        float | None,
        typer.Option(
            help="The expected share that the propensity scores of the two arms have in common: 1 in a trial, 0.5 is "
            "poor. By default it follows from the confounding."
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(help="The expected correlation of the outcome before and after; 0.7 by default."),
    ] = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(help="A covariate of strata to rank as well: sex, or age:40,65 with edges. Repeatable."),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            help="A target precision, as in estimate ± WIDTH: shows the epsilon or the number of people it needs."
        ),
    ] = None,
    as_json: AsJson = False,
    figure: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Plot the precision against epsilon in this .png file.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Write a page with sliders for epsilon and the number of people."),
    ] = None,
    ledger: Annotated[str, typer.Option(help="The ledger, to show on the page what would be left of its budget.")] = "",
    witness: WitnessAddress = "",
) -> None:
    """Show the queries, the cost and the expected precision of a study. Reads no data and spends nothing.

    Expectations about the table come from the study's table "expected"; options given here override them.
    """
    check_figure(figure)
    if html:
        check_file_name(html, ".html", "--html")
    if ledger and not html:
        raise typer.BadParameter("is for the page: add --html plan.html", param_hint="--ledger")
    remaining = _remaining(ledger, witness) if ledger else None
    if width is not None and not 0 < width < float("inf"):
        raise typer.BadParameter("must be a number greater than 0", param_hint="--width")
    from dpcausal.planning.left_in import confounders_of  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.planning.plan import plan as planned  # noqa: PLC0415
    from dpcausal.report.figures.budget import precision_plot  # noqa: PLC0415

    read = read_study(study)
    made = planned(
        read.estimator,
        read.rehearsal(
            n,
            outcome_mean=outcome_mean,
            outcome_sd=outcome_sd,
            treated_share=treated_share,
            compared_share=compared_share,
            confounding=confounding,
            covariate_sd=covariate_sd,
            overlap=overlap,
            correlation=correlation,
        ),
        read.guarantee(),
        covariates=[] if read.design == "trial" else confounders_of(read.estimator, read.schema) or None,
        by=list(map(_cut, strata)) if strata else None,
        width=width,
        price=read.price(),
    )
    typer.echo(made.to_json() if as_json else str(made))
    if html:
        made.save(html, remaining=remaining)
    if figure:
        precision_plot(made.widths(), chosen=read.epsilon, target_width=width).savefig(figure)


def _remaining(place: str, witness: str) -> "Spending":
    """Return what a ledger has left, if its budget adds up epsilons."""
    ledger = open_ledger(place, witness)
    if ledger.budget.rule != "additive":
        raise typer.BadParameter(
            "must have the rule additive; for zcdp, dpcausal ledger show prints what is left", param_hint="--ledger"
        )
    return ledger.remaining


def _cut(text: str) -> "Cut":
    """Return a covariate of strata, with its edges if it has any."""
    from dpcausal.queries import Cut  # noqa: PLC0415 (slow to load)

    name, _, edges = text.partition(":")
    try:
        return Cut(name, [float(edge) for edge in edges.split(",")] if edges else ())
    except ValueError:
        raise typer.BadParameter("must be a name, or a name and edges: age:40,65", param_hint="--strata") from None
