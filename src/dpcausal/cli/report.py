"""`dpcausal report`."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.options import AsJson, WitnessAddress, open_ledger, read_study
from dpcausal.errors import DpcausalError, StudyError
from dpcausal.utils.documents import write_text

if TYPE_CHECKING:
    from dpcausal.study.study import Study


def report(  # noqa: PLR0913, PLR0917
    effect: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="The effect that dpcausal run wrote: effect.json.")
    ],
    study: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="The study file.")] = None,
    ledger: Annotated[str, typer.Option(help="The ledger, for the total that was spent.")] = "",
    witness: WitnessAddress = "",
    overlap: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="The overlap that dpcausal run wrote; overlap.json beside the effect if the study requires it.",
        ),
    ] = None,
    balance: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="The balance that dpcausal run wrote; balance.json beside the effect if the study requires it.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(dir_okay=False, help="The page to write.")] = Path("report.html"),
    smallest_worthwhile_effect: Annotated[
        float, typer.Option(min=0, help="The minimal important difference, fixed in advance.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Write a report: the verdict, its reasons and an appendix on one page. It costs no budget."""
    from dpcausal.diagnostics import BalanceTable, OverlapTable  # noqa: PLC0415 (slow to load)
    from dpcausal.report import Report  # noqa: PLC0415
    from dpcausal.results.effect import Effect  # noqa: PLC0415

    shown, asked = _read(effect, Effect), read_study(study) if study else None
    diagnoses = {
        file: _read(file, kind)
        for name, given, kind in (("overlap", overlap, OverlapTable), ("balance", balance, BalanceTable))
        if (file := given or _beside(effect, name, asked))
    }
    page = Report.of(
        shown,
        asked,
        open_ledger(ledger, witness) if ledger else None,
        date=date.today(),  # noqa: DTZ011 (the local date)
        diagnoses=list(diagnoses.values()),
        smallest_worthwhile_effect=smallest_worthwhile_effect,
    )
    write_text(out, page.to_html())
    if as_json:
        typer.echo(page.to_json())
        return
    used = f", with {' and '.join(map(str, diagnoses))}" if diagnoses else ""
    typer.echo(f"{page.verdict.heading}. {page.verdict.text}\n\nWrote {out}{used}. Open it in any browser.")


def _beside(effect: Path, name: str, asked: "Study | None") -> Path | None:
    """Return a required diagnosis that the run of the study wrote beside the effect."""
    file = effect.with_name(f"{name}.json")
    return file if asked is not None and name in asked.requires and file.is_file() else None


def _read(file: Path, kind: Any) -> Any:  # noqa: ANN401 (one of that kind)
    try:
        return kind.from_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        why = error.problem if isinstance(error, DpcausalError) else type(error).__name__
        raise StudyError(
            problem=f"{file} is not a result that dpcausal wrote ({why})",
            hint="create one with: dpcausal run STUDY, or save the output of to_json() in Python.",
        ) from None
