"""`dpcausal audit`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

if TYPE_CHECKING:
    from dpcausal.audit import Finding


def audit(
    quick: Annotated[bool, typer.Option("--quick", help="A few minutes instead of about forty.")] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="Every check once: two or three minutes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. By default the number of cores.")
    ] = None,
) -> None:
    """Attack every guarantee of this installation, on simulated tables. Exit status 1 if a check fails."""
    from dpcausal import audit as attacks  # noqa: PLC0415 (an extra, and slow to load)

    with Progress(console=Console(file=sys.stderr), transient=True) as progress:
        line = progress.add_task("starting", total=None)

        def watch(done: int, total: int, findings: "list[Finding]") -> None:
            for each in findings:  # also without a terminal: it takes long
                text = f"{done} of {total}: {each.check}, {each.target}: {'passed' if each.passed else 'FAILED'}"
                progress.console.print(text, highlight=False, markup=False, soft_wrap=True)
            progress.update(line, total=total, completed=done, description="checking")

        effort = "smoke" if smoke else "quick" if quick else "full"
        report = attacks.audit(effort=effort, workers=workers, watcher=watch)
    typer.echo(report.to_json() if as_json else str(report))
    raise typer.Exit(0 if report.passed else 1)
