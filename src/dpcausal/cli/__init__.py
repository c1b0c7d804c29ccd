"""The command line: `dpcausal`."""

from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from dpcausal.cli.audit import audit
from dpcausal.cli.check import check
from dpcausal.cli.experiment import experiment
from dpcausal.cli.init import init
from dpcausal.cli.ledger import ledger
from dpcausal.cli.plan import plan
from dpcausal.cli.population import population
from dpcausal.cli.report import report
from dpcausal.cli.run import run
from dpcausal.errors import CertificateError, DpcausalError, StudyError
from dpcausal.utils.plain_text import check_plain_text


class _ManySites(TyperCommand):
    """A group of commands that needs an extra: it is loaded when it is used, and its help is known before."""

    @cached_property
    def group(self) -> Any:  # noqa: ANN401 (a group of typer)
        """The group itself."""
        group = get_group(getattr(import_module("dpcausal.cli.many_sites"), str(self.name)))
        group.help = self.help
        return group

    @property
    def commands(self) -> Any:  # noqa: ANN401 (as of a group)
        """The commands of the group."""
        return self.group.commands

    def make_context(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 (as the parent has it)
        """Return a context in which the group runs."""
        return self.group.make_context(*given, **named)


class _FriendlyErrors(TyperGroup):
    """Commands that print errors without a traceback."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 (as the parent has it)
        super().__init__(**settings)
        for name, words in _MANY_SITES.items():
            self.add_command(_ManySites(name, help=words))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 (as the parent has it)
        """Parse the command line. It is printed later, so it must not contain control characters."""
        try:
            check_plain_text("arguments on the command line", args, StudyError)
        except StudyError as error:
            raise typer.BadParameter(str(error)) from None
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (as the parent has it)
        """Run a command. An error of dpcausal ends it with exit status 2; a certificate that is not valid with 3."""
        try:
            return super().invoke(ctx)
        except DpcausalError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(3 if isinstance(error, CertificateError) else 2) from None
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":  # of Click, which typer may hold within itself
                _suggest(error)
            raise


_ELSEWHERE = {
    "budget": "The budget is --epsilon and --delta.",
    "epsilon": "Epsilon is in the study file.",
    "delta": "Delta is in the study file.",
    "n": "Write --n, with two hyphens.",
    "seed": "Noise has no seed.",
}
"""What to do about options that people expect."""


def _suggest(error: Any) -> None:  # noqa: ANN401 (see above)
    """Suggest options whose names are alike without their hyphens, or say where it stands."""
    name = error.option_name.lstrip("-")
    parts = error.ctx.command.params if error.ctx else ()
    known = {option.lstrip("-"): option for part in parts for option in part.opts if option.startswith("-")}
    error.possibilities = [known[each] for each in get_close_matches(name, known)]
    if name in _ELSEWHERE:
        error.possibilities, error.message = [], f"{error.message.rstrip('.')}. {_ELSEWHERE[name]}"


_MANY_SITES = {
    "site": "Run a site: review studies, approve them, answer requests.",
    "federation": "Coordinate a federation: send a study to many sites, and pool their answers.",
}

app = typer.Typer(cls=_FriendlyErrors, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in (init, check, plan, run, report, audit):
    app.command()(command)
for group in (ledger, population, experiment):
    app.add_typer(group)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpcausal {version_of('dpcausal')}")
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Estimate treatment effects from personal records and publish them under differential privacy.

    A study uses these commands in order: init, plan, ledger create, run, report. Start with: dpcausal init TABLE.

    Exit status: 0 success, 1 refused or failed check, 2 usage error, 3 certificate not valid.
    """
