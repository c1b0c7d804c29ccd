"""The pages of a site's console."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from flask import Blueprint, Response, abort, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from dpcausal.federation.console.login import Login, current_person, needs_role
from dpcausal.federation.console.messages import responses_over_time
from dpcausal.federation.console.parts import filters, part_of, text_file
from dpcausal.federation.console.security import allow_style_attributes
from dpcausal.federation.console.site_folder import SiteFolder
from dpcausal.federation.site.export import Format, exported
from dpcausal.federation.site.log_entry import LogEntry
from dpcausal.federation.site.people import identity
from dpcausal.utils.plain_text import is_plain_text

MENU = (
    ("site.waiting", "Waiting"),
    ("site.budget", "Budget"),
    ("site.sent", "What left"),
    ("site.log", "Audit log"),
    ("site.health", "Health"),
    ("site.people", "People"),
)
_EXPORTS: dict[str, tuple[Format, str]] = {
    "audit-log.jsonl": ("jsonl", "application/x-ndjson"),
    "audit-log.csv": ("csv", "text/csv"),
}
_LABELS = {"audit-log.jsonl": "JSON lines", "audit-log.csv": "CSV"}
_LONGEST_REASON = 1_000


@dataclass(frozen=True)
class SitePages:
    """The pages of a site."""

    folder: Path
    login: Login

    def blueprint(self) -> Blueprint:
        """Return the pages with their addresses."""
        pages = Blueprint("site", __name__)
        for path, name, page in (
            ("/", "waiting", self.waiting),
            ("/studies/<digest>", "study", self.study),
            ("/budget", "budget", self.budget),
            ("/sent", "sent", self.sent),
            ("/sent/<name>", "message", self.message),
            ("/sent/<name>/message.json", "download", self.download),
            ("/log", "log", self.log),
            ("/log/<name>", "export", self.export),
            ("/health", "health", self.health),
            ("/people", "people", self.people),
        ):
            pages.add_url_rule(path, name, page)
        pages.add_url_rule("/studies/<digest>/decision", "decide", self.decide, methods=["POST"])
        return pages

    def waiting(self) -> str:
        """Return the studies that wait for a decision, and those that were decided."""
        site = SiteFolder(self.folder)
        waiting = {each.digest: each for each in site.waiting}
        decided = [each for digest, each in site.studies.items() if digest not in waiting]
        return render_template(
            "waiting.html",
            title="Waiting",
            waiting=list(waiting.values()),
            decided=decided[::-1],
            changed=site.changed,
            needed=site.site.policy.approvals,
            remaining=site.summary.remaining if site.summary else None,
        )

    def study(self, digest: str) -> str:
        """Return all that a person reads before deciding about a study."""
        site = SiteFolder(self.folder)
        page = site.study(digest) or abort(404)
        person = current_person()
        own = identity(person.name) == identity(page.received.study.requester)
        return render_template(
            "study.html",
            title=page.received.study.name,
            page=page,
            confirmed=self.login.is_confirmed(digest),
            may_decide="approver" in person.roles,
            own=own,
            longest=_LONGEST_REASON,
        )

    @needs_role("approver")
    def decide(self, digest: str) -> AnyResponse:
        """Record a person's decision about the study that the form showed."""
        kind, why = request.form.get("kind", ""), request.form.get("why", "").strip()
        if kind not in {"approve", "reject"} or request.form.get("digest") != digest:
            abort(400, "The form is not the one that this page showed.")
        if len(why) > _LONGEST_REASON or not is_plain_text(why):
            abort(400, f"A reason is one line of at most {_LONGEST_REASON:,} characters.")
        if kind == "reject" and not why:
            abort(400, "A rejection needs a reason. Go back to the study, write one, and reject it again.")
        site = SiteFolder(self.folder)
        if digest not in site.studies:
            abort(404)
        mapping = request.form.get("mapping")
        if mapping != site.site.mapping_of(site.studies[digest].study.table):
            abort(
                400, "The mapping of the table's columns and codes is not the one that was shown. Read the study again."
            )
        self.login.take_confirmation(digest)
        decision: Literal["approve", "reject"] = "approve" if kind == "approve" else "reject"
        site.decide(digest, decision, current_person(), why, self.login.evidence(), mapping)
        self.login.state.log(kind, current_person().login, request.remote_addr or "", digest)
        return redirect(f"{url_for('site.study', digest=digest)}#decisions")

    def budget(self) -> str:
        """Return the budget over all studies."""
        site = SiteFolder(self.folder)
        if site.summary:
            self.login.state.note("verified", f"{site.summary.entries} entries")
        figures = []
        if site.summary:
            figures = [site.summary.over_time(datetime.now(UTC).date()), responses_over_time(site.responses())]
        allow_style_attributes()
        return render_template(
            "budget.html",
            title="Budget",
            site=site,
            summary=site.summary,
            figures=figures,
            studies={digest: each.study for digest, each in site.studies.items()},
            verified=self.login.state.noted("verified"),
        )

    def sent(self) -> str:
        """Return every response that left."""
        site = SiteFolder(self.folder)
        found, place, pages_ = part_of(site.responses())
        return render_template(
            "sent.html", title="What left", responses=found, place=place, pages=pages_, names=site.names
        )

    def message(self, name: str) -> str:
        """Return one message with its numbers and receipts."""
        site = SiteFolder(self.folder)
        found = site.messages.get(name) or abort(404)
        received = site.studies.get(found.study)
        return render_template("message.html", title="Message", message=found, received=received)

    def download(self, name: str) -> Response:
        """Return one message as a file."""
        found = SiteFolder(self.folder).messages.get(name) or abort(404)
        return text_file(found.text, f"message-{name}.json", "application/json")

    def log(self) -> str:
        """Return the audit log, filtered."""
        chosen = filters("kind", "who", "study", "since", "until")
        entries = SiteFolder(self.folder).entries
        kinds = sorted({entry.kind for entry in entries})
        found, place, pages_ = part_of(list(_chosen(entries, chosen))[::-1])
        return render_template(
            "log.html",
            title="Audit log",
            entries=found,
            place=place,
            pages=pages_,
            chosen=chosen,
            kinds=kinds,
            exports=_LABELS,
        )

    def export(self, name: str) -> Response:
        """Return the whole audit log with prices as a file."""
        form, kind = _EXPORTS.get(name) or abort(404)
        return text_file(exported(SiteFolder(self.folder).site, form), name, kind)

    def health(self) -> str:
        """Return what an operator asks first."""
        verified = self.login.state.noted("verified")
        return render_template(
            "health.html", title="Health", findings=SiteFolder(self.folder).health(), verified=verified
        )

    def people(self) -> str:
        """Return who has which role, and to operators the log of logins."""
        site = SiteFolder(self.folder)
        may = "operator" in current_person().roles
        return render_template(
            "people.html",
            title="People",
            people=site.site.people.people,
            needed=site.site.policy.approvals,
            provider=self.login.settings.provider,
            logins=self.login.state.logged(50) if may else None,
            people_command="dpcausal site people",
            people_changes="added and removed",
        )


def _chosen(entries: Iterable[LogEntry], chosen: dict[str, str]) -> Iterable[LogEntry]:
    """Yield the entries that a filter selects."""
    for entry in entries:
        if (
            chosen["kind"] in {"", entry.kind}
            and chosen["who"].casefold() in entry.who.casefold()
            and entry.study.startswith(chosen["study"])
            and chosen["since"] <= entry.at
            and (not chosen["until"] or entry.at[:10] <= chosen["until"])
        ):
            yield entry
