"""The pages of a coordinator's console. They change nothing, and ask no site."""

from functools import partial
from pathlib import Path

from flask import Blueprint, Response, abort, render_template

from dpcausal.errors import DpcausalError
from dpcausal.federation.console.build_view import build_page
from dpcausal.federation.console.coordinator_folder import HEARD, STATES, CoordinatorFolder
from dpcausal.federation.console.login import Login, current_person
from dpcausal.federation.console.parts import filters, part_of, text_file
from dpcausal.federation.console.security import allow_style_attributes
from dpcausal.federation.site.people import People
from dpcausal.report.figures.inline import effect_figure, site_figure

MENU = (
    ("coordinator.studies", "Studies"),
    ("coordinator.roster", "Sites"),
    ("coordinator.build", "Plan a study"),
    ("coordinator.people", "People"),
)
_STUDIES = 25
"""The most studies of a page: each is counted over all its sites."""


def coordinator_pages(folder: Path, login: Login) -> Blueprint:
    """Return the pages of a coordinator."""
    pages = Blueprint("coordinator", __name__)

    @pages.get("/")
    def studies() -> str:
        workspace = CoordinatorFolder(folder)
        found, place, parts = part_of(workspace.studies, _STUDIES)
        return render_template(
            "studies.html",
            title="Studies",
            studies=[(each, workspace.progress(each)) for each in found],
            sites=len(workspace.roster.sites),
            place=place,
            parts=parts,
        )

    @pages.get("/effects/<name>")
    def effect(name: str) -> str:
        workspace = CoordinatorFolder(folder)
        asked = workspace.study(name) or abort(404)
        progress, chosen = workspace.progress(asked), filters("state", "site")
        report, problem = None, "No site has answered yet."
        if "answered" in progress.counts:
            try:
                report = workspace.report(asked)
            except DpcausalError as error:
                problem = f"{error.problem}."
        found, place, parts = part_of(
            [each for each in progress.cells.items() if _chosen(each[0], each[1].state, chosen)]
        )
        allow_style_attributes()
        return render_template(
            "effect.html",
            title=asked.study.name,
            asked=asked,
            report=report,
            figures=[*effect_figure(report), *site_figure(report)] if report else [],
            problem=problem,
            progress=progress,
            sites=found,
            states=STATES,
            chosen=chosen,
            place=place,
            parts=parts,
        )

    @pages.get("/effects/<name>/report.html")
    def report(name: str) -> Response:
        workspace = CoordinatorFolder(folder)
        found = workspace.report(workspace.study(name) or abort(404))
        return text_file(found.to_html(), f"report-{name[:12]}.html", "text/html")

    pages.add_url_rule("/build", "build", partial(build_page, folder), methods=["GET", "POST"])

    @pages.get("/sites")
    def roster() -> str:
        workspace = CoordinatorFolder(folder)
        contacts, problem = workspace.contacts()
        chosen = filters("state", "site")
        wanted = [site for site, each in contacts.items() if _chosen(site, each.state, chosen)]
        found, place, parts = part_of(wanted)
        counts = {state: sum(each.state == state for each in contacts.values()) for state in HEARD}
        certificates = workspace.certificates()
        return render_template(
            "roster.html",
            title="Sites",
            sites={site: workspace.roster.sites[site] for site in found},
            contacts=contacts,
            counts=counts,
            problem=problem,
            certificates=certificates,
            others=[each for each in certificates.values() if each.name not in contacts],
            states=HEARD,
            chosen=chosen,
            place=place,
            parts=parts,
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
            provider=login.settings.provider,
            logins=logins,
            people_command="dpcausal federation add-person",
            people_changes="added",
        )

    return pages


def _chosen(site: str, state: str, chosen: dict[str, str]) -> bool:
    """Return whether a filter of sites selects one."""
    return chosen["state"] in {"", state} and chosen["site"].casefold() in site.casefold()
