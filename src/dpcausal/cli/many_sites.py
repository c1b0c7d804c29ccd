"""`dpcausal site` and `dpcausal federation`, with all of their commands."""

from dpcausal.cli import certificates, operation  # noqa: F401 (add commands to both)
from dpcausal.cli.console import add_coordinator_console, add_site_console
from dpcausal.cli.federation import federation
from dpcausal.cli.mailbox import mailbox
from dpcausal.cli.site import site
from dpcausal.cli.site_decisions import add_decision_commands

__all__ = ["federation", "site"]

add_decision_commands(site)
add_site_console(site)
add_coordinator_console(federation)
federation.add_typer(mailbox)
