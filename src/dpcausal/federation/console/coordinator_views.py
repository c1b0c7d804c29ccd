"""The pages of a coordinator's console. They change nothing, and ask no site."""

from pathlib import Path

from flask import Blueprint, abort, render_template

from dpcausal.errors import DpcausalError
from dpcausal.federation.console.coordinator_folder import CoordinatorFolder
from dpcausal.federation.console.login import Login, current_person
from dpcausal.federation.site.people import People

MENU = (
    ("coordinator.studies", "Studies"),
    ("coordinator.roster", "Sites"),
    ("coordinator.people", "People"),
)


def coordinator_pages(folder: Path, login: Login) -> Blueprint:
    """Return the pages of a coordinator."""
    pages = Blueprint("coordinator", __name__)

    @pages.get("/")
    def studies() -> str:
        workspace = CoordinatorFolder(folder)
        return render_template(
            "matrix.html", title="Studies", studies=workspace.studies, sites=sorted(workspace.roster.sites)
        )

    @pages.get("/effects/<name>")
    def effect(name: str) -> str:
        workspace = CoordinatorFolder(folder)
        asked = workspace.study(name) or abort(404)
        found, problem = None, ""
        try:
            found = workspace.effect(asked)
        except DpcausalError as error:
            problem = f"{error.problem}."
        return render_template("effect.html", title=asked.study.name, asked=asked, effect=found, problem=problem)

    @pages.get("/sites")
    def roster() -> str:
        workspace = CoordinatorFolder(folder)
        return render_template(
            "roster.html", title="Sites", sites=workspace.roster.sites, certificates=workspace.certificates()
        )

    @pages.get("/people")
    def people() -> str:
        may = "operator" in current_person().roles
        logins = login.state.logged(50) if may else None
        return render_template(
            "people.html",
            title="People",
            people=People.read(folder).people,
            needed=0,
            logins=logins,
            people_command="dpcausal federation add-person",
            people_changes="added",
        )

    return pages
