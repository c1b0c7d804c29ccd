"""What the people of a coordinator are told: what sites did about studies, failures, and certificates that end."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from dpcausal.errors import DpcausalError
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.status import federation_status
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.notices import Kind, Notice, Observed, conditions_of
from dpcausal.federation.protocol.messages import MEANINGS, Code, Message, Request
from dpcausal.federation.protocol.signatures import claimed_body

_DECISIONS = ("answered", "rejected", "not_allowed", "withdrawn", "expired")


def coordinator_notices(folder: Path, observed: Observed) -> Iterator[Notice]:
    """Yield the notices of what is new at a coordinator. No site is asked."""
    status = f"dpcausal federation status {quote(str(folder))}"
    yield from observed.begun(dict(conditions_of(federation_status(folder).checks, status)))
    workspace, is_first = Workspace(folder), "asked" not in observed.states
    observed.states["asked"] = ""
    if not workspace.store.exists():
        return
    try:
        store = Requests(workspace.store)
        sites = workspace.roster.sites
        for request, digest, text, _ in store.asked():
            asked = _request(text)
            if asked is None or asked.ask not in {"releases", "masked"}:
                continue
            codes = {site: Message.from_json(claimed_body(sealed)).code for site, sealed, _ in store.messages(request)}
            for site, code in codes.items():
                if observed.changed(f"{digest}:{site}", code) and site in sites and not is_first:
                    yield _notice(site, code, tomllib.loads(asked.study)["name"], digest)
    except DpcausalError:  # the check of requests names it
        return


def _request(text: str) -> Request | None:
    try:
        return Request.from_json(claimed_body(text))
    except DpcausalError:  # of another version of dpcausal
        return None


def _notice(site: str, code: Code, name: str, digest: str) -> Notice:
    kind: Kind = "waiting" if code == "undecided" else "decision" if code in _DECISIONS else "failure"
    words = "did not answer; the console says why" if kind == "failure" else MEANINGS[code]
    return Notice(kind, f"{site} {words}: {name}", f"The site {site} {words}. The study is {name!r}.", study=digest)
