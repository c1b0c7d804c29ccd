"""What a console shows of a coordinator's workspace. It asks no site, and changes nothing."""

import contextlib
import json
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache
from pathlib import Path

from dpcausal.errors import DpcausalError, StudyError, redact_errors
from dpcausal.federation.coordinator.coordinator import Coordinator
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.contents import MAILBOX
from dpcausal.federation.operation.heartbeat import Heartbeat
from dpcausal.federation.protocol.messages import BEFORE, MEANINGS, VERSION, Code, Request, withdrawal
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.protocol.transport import NOTHING
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.federation.transports.mailbox.store import MailboxStore
from dpcausal.report import Report
from dpcausal.study.study import Study

STATES = ("answered", "undecided", "refused", "silent", "not asked", "revoked")
"""What a site may have done about a study, in the order in which pages show it."""

_AGES = {"within an hour": 3_600, "within a day": 86_400, "within a week": 604_800}
_MOST_FILES = 50
HEARD = (*_AGES, "longer ago", "never", "revoked")
"""When a site was last heard from, in the order in which pages show it."""


@dataclass(frozen=True)
class StudyAtSite:
    """What one site did about one study.

    Attributes:
        state: One of `STATES`.
    """

    state: str
    words: str


_ABSENT = {
    "silent": StudyAtSite("silent", "did not answer"),
    "not asked": StudyAtSite("not asked", "was not asked yet"),
    "revoked": StudyAtSite("revoked", "is revoked in the roster"),
}


@dataclass(frozen=True)
class AskedStudy:
    """A study that was sent to sites.

    Attributes:
        ids: The ids of its requests, in each version of the protocol.
    """

    request: str
    digest: str
    study: Study
    at: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Attributes:
        attempts: How often it was sent.
        cells: What each site of the roster did.
    """

    attempts: int
    cells: Mapping[str, StudyAtSite]

    @property
    def counts(self) -> dict[str, int]:
        """The number of sites in each state that occurs."""
        found = Counter(cell.state for cell in self.cells.values())
        return {state: found[state] for state in STATES if found[state]}


@dataclass(frozen=True)
class Contact:
    """When a site was last heard from.

    Attributes:
        state: One of `HEARD`.
        at: The time for people; empty where there is none.
    """

    state: str
    at: str


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
    def _store(self) -> Requests | None:
        return Requests(self._workspace.store) if self._workspace.store.exists() else None

    @cached_property
    def studies(self) -> list[AskedStudy]:
        """The studies that were sent to sites, the latest first."""
        found = dict[str, AskedStudy]()
        for request, digest, text, at in self._store.asked() if self._store else ():
            if digest not in found and (read := _asked(text)) is not None:
                found[digest] = AskedStudy(request, digest, read[0], at, read[1])
        return [*found.values()][::-1]

    @property
    def bases(self) -> dict[str, Study]:
        """The studies that a new one may begin with, by digest: study files in the workspace, and those sent before."""
        found = dict[str, Study]()
        for file in sorted(self._workspace.folder.glob("*.toml"))[:_MOST_FILES]:
            with contextlib.suppress(DpcausalError, OSError, ValueError):  # other files of the workspace
                study = Study.from_toml(file.read_text(encoding="utf-8"))
                found[study.digest] = study
        return found | {each.digest: each.study for each in self.studies[:_MOST_FILES] if each.digest not in found}

    def study(self, request: str) -> AskedStudy | None:
        """Return a study that was sent to sites; None if there is none with this request."""
        return next((each for each in self.studies if each.request == request), None)

    def progress(self, asked: AskedStudy) -> Progress:
        """Return what each site of the roster did about a study: an answer counts before any later message."""
        store = Requests(self._workspace.store)
        attempts = max(map(store.attempts, asked.ids))
        found = dict[str, StudyAtSite]()
        for each in (*asked.ids, withdrawal(asked.study.text)):
            for site, text, _ in store.messages(each):
                if site not in found or found[site].state != "answered":
                    found[site] = _message(text)
        absent = _ABSENT["silent" if attempts else "not asked"]
        return Progress(
            attempts,
            {
                site: _ABSENT["revoked"] if member.revoked else found.get(site, absent)
                for site, member in sorted(self.roster.sites.items())
            },
        )

    def report(self, asked: AskedStudy) -> Report:
        """Return the report on the effect from the answers that are stored, and compute it where these changed."""
        files = (self._workspace.store, self._workspace.roster_file)
        version = tuple((found.st_mtime_ns, found.st_size) for found in map(Path.stat, files))
        return _report(self._workspace, asked.study.text, datetime.now(UTC).date(), version)

    def contacts(self) -> tuple[dict[str, Contact], str]:
        """Return when each site of the roster was last heard from, and what could not be read; empty if all could.

        A site is heard by the network's server, by the mailbox, or by a message that was stored.
        """
        messages = self._store.last_messages() if self._store else {}
        last = {site: datetime.fromisoformat(at).timestamp() for site, at in messages.items()}
        beat = Heartbeat.read(self._workspace.network / "server")
        heard, problem = [beat.sites if beat else {}], ""
        try:
            heard += self._calls()
        except DpcausalError as error:
            problem = error.problem
        for each in heard:
            for site, at in each.items():
                last[site] = max(at, last.get(site, 0.0))
        now = time.time()
        found = {
            site: Contact("revoked", "") if member.revoked else _contact(last.get(site, 0.0), now)
            for site, member in sorted(self.roster.sites.items())
        }
        return found, problem

    def _calls(self) -> list[Mapping[str, float]]:
        """Return when sites last called the mailbox, for each of its requesters."""
        folder = self._workspace.folder / MAILBOX
        if not folder.is_dir():
            return []
        mailbox = Mailbox.read(folder)
        address = mailbox.database_address
        if address.startswith("sqlite:///") and not Path(address.removeprefix("sqlite:///")).exists():
            return []  # it was not served yet, and to open the database would create it
        store = MailboxStore(address, 1)
        return [{site.site: site.seen for site in store.sites(name)} for name in mailbox.requesters]

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


@lru_cache(maxsize=2_000)
def _asked(text: str) -> tuple[Study, tuple[str, ...]] | None:
    """Return the study in a signed request that asks for answers, and the ids of such requests; None in another."""
    try:
        asked = Request.from_json(claimed_body(text))
        if asked.ask not in ("releases", "masked"):
            return None
        return Study.from_toml(asked.study), tuple(replace(asked, version=each).id for each in (VERSION, BEFORE))
    except DpcausalError:  # of another version of dpcausal
        return None


@lru_cache(maxsize=50)
def _report(workspace: Workspace, text: str, today: date, _version: tuple[tuple[int, int], ...]) -> Report:
    """Return a report on the stored answers, from a copy of the store."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "requests.db"
        with (
            redact_errors(sqlite3.Error, instead=_unusable),
            closing(sqlite3.connect(f"file:{workspace.store}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
        study = Study.from_toml(text)
        key = workspace.key(study.requester)
        effect = Coordinator(text, workspace.roster, key, _NoTransport(), store=copy, timeout=0.0, attempts=1).run()
    return Report.of(effect, study, date=today)


def _message(text: str) -> StudyAtSite:
    """Return what a site did, by a message that was valid when it was stored."""
    code: Code = json.loads(claimed_body(text))["code"]
    return StudyAtSite(code if code in {"answered", "undecided"} else "refused", MEANINGS[code])


def _contact(at: float, now: float) -> Contact:
    if not at:
        return Contact("never", "")
    state = next((state for state, seconds in _AGES.items() if now - at <= seconds), "longer ago")
    return Contact(state, datetime.fromtimestamp(at, UTC).isoformat(" ", timespec="minutes")[:16])


def _unusable(error: Exception) -> StudyError:
    return StudyError(
        problem=f"The store of requests cannot be read ({type(error).__name__})", hint="check the file requests.db."
    )


def _unreadable() -> StudyError:
    return StudyError(
        problem="The records of the network's authority are not as NVFlare writes them",
        hint="check the folder nvflare/.nvflare/cert_approves.",
    )
