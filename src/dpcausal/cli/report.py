"""`dpcausal report`."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcausal.cli.options import AsJson, WitnessAddress, open_ledger, read_study
from dpcausal.errors import StudyError


def report(  # noqa: PLR0913, PLR0917
    effect: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="An effect as `dpcausal run` wrote it: effect.json.")
    ],
    study: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="The study's file.")] = None,
    ledger: Annotated[str, typer.Option(help="The ledger, for what was spent in all.")] = "",
    witness: WitnessAddress = "",
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
    smallest_worthwhile_effect: Annotated[
        float, typer.Option(min=0, help="The smallest effect that would be worth having.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Write one page that says what was found, how sure that is, and what it cost. Costs nothing itself."""
    from dpcausal.diagnostics import BalanceTable, OverlapTable  # noqa: PLC0415 (slow to load, as are those below)
    from dpcausal.effect import Effect  # noqa: PLC0415
    from dpcausal.report import Report  # noqa: PLC0415

    made = Report.of(
        _read(effect, Effect),
        read_study(study) if study else None,
        open_ledger(ledger, witness) if ledger else None,
        date=date.today(),  # noqa: DTZ011 (the day where the reader is)
        diagnoses=[_read(file, kind) for file, kind in ((overlap, OverlapTable), (balance, BalanceTable)) if file],
        smallest_worthwhile_effect=smallest_worthwhile_effect,
    )
    out.write_text(made.to_html(), encoding="utf-8")
    if registry:
        registry.write_text(made.to_registry(), encoding="utf-8")
    typer.echo(made.to_json() if as_json else f"{made.verdict.text}\n\nWrote {out}. Open it in any browser.")


def _read(file: Path, kind: Any) -> Any:  # noqa: ANN401 (one of that kind)
    try:
        return kind.from_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise StudyError(
            expected="a result as dpcausal writes it",
            got=f"{file} ({type(error).__name__})",
            hint="make one with: dpcausal run STUDY, or save what to_json() gives in Python.",
        ) from None
