"""What a console shows of a coordinator's workspace. It asks no site, and changes nothing."""

import json
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from dpcausal.errors import DpcausalError, StudyError, redact_errors
from dpcausal.federation.coordinator.coordinator import Coordinator
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.messages import BEFORE, MEANINGS, VERSION, Message, Request, withdrawal
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.protocol.transport import NOTHING
from dpcausal.results.effect import Effect
from dpcausal.study.study import Study

SILENT, NOT_ASKED = "silent", "not asked"


@dataclass(frozen=True)
class StudyAtSite:
    """What one site did about one study.

    Attributes:
        state: `answered`, `undecided`, `refused`, `silent` or `not asked`.
        at: When its message arrived; empty without one.
    """

    state: str
    words: str
    at: str = ""


@dataclass(frozen=True)
class AskedStudy:
    """A study that was sent to sites."""

    request: str
    digest: str
    study: Study
    at: str
    attempts: int
    cells: dict[str, StudyAtSite]

    @property
    def answered(self) -> int:
        """The number of sites that answered."""
        return sum(cell.state == "answered" for cell in self.cells.values())


@dataclass(frozen=True)
class NetworkCertificate:
    """A certificate that the network's authority signed."""

    name: str
    until: str
    days: int

    @property
    def state(self) -> str:
        """Whether it needs attention: 30 days before its end."""
        return "broken" if self.days < 0 else "attention" if self.days <= 30 else "ok"


@dataclass(frozen=True)
class _NoTransport:
    """A transport that reaches nobody."""

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        """Return at once."""

    def withdraw(self, requests: Sequence[str]) -> None:
        """Return at once."""


class CoordinatorFolder:
    """The workspace of a coordinator, as it is now. One is made for each page."""

    def __init__(self, folder: Path) -> None:
        self._workspace = Workspace(folder)
        self.roster = self._workspace.roster

    @cached_property
    def studies(self) -> list[AskedStudy]:
        """The studies that were sent to sites, the latest first."""
        if not self._workspace.store.exists():
            return []
        store = Requests(self._workspace.store)
        found = dict[str, AskedStudy]()
        for request, digest, text, at in store.asked():
            try:
                asked = Request.from_json(claimed_body(text))
                study = Study.from_toml(asked.study)
            except DpcausalError:  # of another version of dpcausal
                continue
            if asked.ask in ("releases", "masked") and digest not in found:
                both = [replace(asked, version=version).id for version in (VERSION, BEFORE)]
                attempts = max(map(store.attempts, both))
                messages = [message for each in (*both, withdrawal(asked.study)) for message in store.messages(each)]
                cells = self._cells(messages, asked=attempts > 0)
                found[digest] = AskedStudy(request, digest, study, at, attempts, cells)
        return [*found.values()][::-1]

    def _cells(self, messages: Sequence[tuple[str, ...]], *, asked: bool) -> dict[str, StudyAtSite]:
        """Return what each site of the roster did: an answer counts before any later message."""
        absent = StudyAtSite(SILENT, "did not answer") if asked else StudyAtSite(NOT_ASKED, "was not asked yet")
        cells = dict.fromkeys(sorted(self.roster.sites), absent)
        for site, text, _ in messages:
            if site in cells and cells[site].state != "answered":
                code = Message.from_json(claimed_body(text)).code
                state = code if code in {"answered", "undecided"} else "refused"
                cells[site] = StudyAtSite(state, MEANINGS[code])
        revoked = {site for site, member in self.roster.sites.items() if member.revoked}
        return {
            site: StudyAtSite("revoked", "is revoked in the roster") if site in revoked else cell
            for site, cell in cells.items()
        }

    def study(self, request: str) -> AskedStudy | None:
        """Return a study that was sent to sites; None if there is none with this request."""
        return next((each for each in self.studies if each.request == request), None)

    def effect(self, asked: AskedStudy) -> Effect:
        """Compute the effect from the answers that are stored, in a copy of the store."""
        workspace = self._workspace
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "requests.db"
            with (
                redact_errors(sqlite3.Error, instead=_unusable),
                closing(sqlite3.connect(f"file:{workspace.store}?mode=ro", uri=True)) as source,
                closing(sqlite3.connect(copy)) as target,
            ):
                source.backup(target)
            key = workspace.key(asked.study.requester)
            coordinator = Coordinator(
                asked.study.text, self.roster, key, _NoTransport(), store=copy, timeout=0.0, attempts=1
            )
            return coordinator.run()

    def certificates(self) -> dict[str, NetworkCertificate]:
        """Return the latest certificate of each member of the network, by name, from the authority's records."""
        found = dict[str, NetworkCertificate]()
        now = datetime.now(UTC)
        for file in sorted(self._workspace.network.glob(".nvflare/cert_approves/*.json")):
            with redact_errors(OSError, ValueError, KeyError, TypeError, instead=lambda _: _unreadable()):
                approval = json.loads(file.read_text(encoding="utf-8"))["approval"]
                end = datetime.fromisoformat(approval["certificate"]["valid_until"])
                end = end if end.tzinfo else end.replace(tzinfo=UTC)
                name = str(approval["name"])
            if name not in found or found[name].until < end.date().isoformat():
                found[name] = NetworkCertificate(name, end.date().isoformat(), (end - now).days)
        return found


def _unusable(error: Exception) -> StudyError:
    return StudyError(
        problem=f"The store of requests cannot be read ({type(error).__name__})", hint="check the file requests.db."
    )


def _unreadable() -> StudyError:
    return StudyError(
        problem="The records of the network's authority are not as NVFlare writes them",
        hint="check the folder nvflare/.nvflare/cert_approves.",
    )
