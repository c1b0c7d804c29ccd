"""`dpcausal report`."""

import importlib.util
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.reading import AsJson, open_ledger, read_study
from dpcausal.errors import StudyError

if TYPE_CHECKING:
    from dpcausal.diagnostics import BalanceTable, OverlapTable
    from dpcausal.report import Picture


def report(  # noqa: PLR0913, PLR0917
    effect: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="An effect as `dpcausal run` wrote it: effect.json.")
    ],
    study: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="The study's file.")] = None,
    ledger: Annotated[str, typer.Option(help="The ledger, for what was spent in all.")] = "",
    overlap: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="An overlap as `dpcausal run` wrote it.")
    ] = None,
    balance: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="A balance as `dpcausal run` wrote it.")
    ] = None,
    out: Annotated[Path, typer.Option(dir_okay=False, help="Where to write the page.")] = Path("report.html"),
    registry: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Where to write a record for a registry of deployments, as YAML."),
    ] = None,
    smallest: Annotated[float, typer.Option(min=0, help="The smallest effect that would be worth having.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Write one page that says what was found, how sure that is, and what it cost. Costs nothing itself."""
    from dpcausal.effect import Effect  # noqa: PLC0415 (slow to load, as is the one below)
    from dpcausal.report import Diagnostic, Report  # noqa: PLC0415

    diagnoses = _diagnoses(overlap, balance)
    made = Report.of(
        _read(effect, Effect),
        read_study(study) if study else None,
        open_ledger(ledger) if ledger else None,
        on=date.today(),  # noqa: DTZ011 (the day where the reader is)
        diagnostics=[
            Diagnostic(name, each.found, each.passes, each.guarantee.epsilon, each.guarantee.delta)
            for name, each in diagnoses.items()
        ],
        figures=_pictures(diagnoses),
        smallest=smallest,
    )
    out.write_text(made.to_html(), encoding="utf-8")
    if registry:
        registry.write_text(made.to_registry(), encoding="utf-8")
    typer.echo(made.to_json() if as_json else f"{made.verdict.says}\n\nWrote {out}. Open it in any browser.")


def _diagnoses(overlap: Path | None, balance: Path | None) -> "dict[str, BalanceTable | OverlapTable]":
    from dpcausal.diagnostics import BalanceTable, OverlapTable  # noqa: PLC0415 (slow to load)

    given = (("overlap", overlap, OverlapTable), ("balance", balance, BalanceTable))
    return {name: _read(file, kind) for name, file, kind in given if file}


def _pictures(diagnoses: "dict[str, BalanceTable | OverlapTable]") -> "list[Picture]":
    """The diagnoses drawn, where matplotlib is there to draw them."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    from dpcausal.diagnostics import BalanceTable  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.report import drawn  # noqa: PLC0415
    from dpcausal.report.diagnostics import alt_text, love_plot, overlap_plot  # noqa: PLC0415

    return [
        drawn(name, love_plot(each) if isinstance(each, BalanceTable) else overlap_plot(each), alt_text(each))
        for name, each in diagnoses.items()
    ]


def _read(file: Path, kind: Any) -> Any:  # noqa: ANN401 (one of that kind)
    try:
        return kind.from_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise StudyError(
            expected="a result as dpcausal writes it",
            got=f"{file} ({type(error).__name__})",
            hint="make one with: dpcausal run STUDY, or save what to_json() gives in Python.",
        ) from None
