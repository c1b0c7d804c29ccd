"""The year itself: studies are asked, and people and machines do what the plan says, day by day."""

import random
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import tomli_w

import dpcausal as dpc
from benchmarks.federation_year.books import Books
from benchmarks.federation_year.clock import Clock
from benchmarks.federation_year.keepers import new_keepers, older_source
from benchmarks.federation_year.plan import OLDER, SECURE, SITES, Asked, studies
from dpcausal.errors import RefusedError, TransportError
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.transport import NOTHING
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.mailbox.client import Client
from dpcausal.federation.transports.mailbox.transport import (
    MailboxTransport,
    accept_rotations,
    admit_joined,
    requester_client,
)
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.mailbox_server import MailboxServer
from tests.support.site_folders import AS_OF, confirm_settings, person_key, signed

CERTIFICATE_DAYS = 100
QUARTERS = (91, 182, 273, 364)
_WAIT = 20.0
_ROUNDS = 12


class _Waiting(MailboxTransport):
    """A mailbox in which nobody waits for sites that are off."""

    def __init__(self, client: Client, on: Collection[str]) -> None:
        super().__init__(client)
        self._on = on

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        """Send a request to all sites, and wait for those that are on."""
        if away := [site for site in sites if site not in self._on]:
            super().ask(request, away, 0.0, on_response, enclosed)
        super().ask(request, [site for site in sites if site in self._on], timeout, on_response, enclosed)


class Year:
    """A federation and its year.

    Args:
        folder: An empty folder.
        clock: The clock of all processes.
        seed: What is drawn is drawn from it.
    """

    def __init__(self, folder: Path, clock: Clock, seed: int) -> None:
        self.folder, self.clock, self.random = folder, clock, random.Random(seed)  # noqa: S311 (no secret)
        self.server = MailboxServer(folder / "workspace", days=CERTIFICATE_DAYS)
        self.asked = studies(seed)
        older = older_source(folder / "older")
        self.sites = new_keepers(folder, SITES, self.server.anna.public, older)
        self.studies: dict[int, dpc.Study] = {}
        self.backups: dict[str, Path] = {}
        self.words: dict[str, str] = {}
        self.done: Counter[str] = Counter()
        self.books = Books(self)

    # What people and machines do.

    def run(self) -> dict[str, Any]:
        """Live through the year, and return what was found."""
        try:
            self.server.start()
            self._join()
            for day, _, event in sorted(self._calendar(), key=lambda each: each[:2]):
                self.clock.advance_to(day)
                event()
            self._collect_all()
            return self.books.result()
        finally:
            for keeper in self.sites.values():
                keeper.stop()
            self.server.kill()

    def _calendar(self) -> Iterator[tuple[int, int, Callable[[], None]]]:
        """Yield the day, the place within the day and the deed of all that happens."""
        for asked in self.asked:
            yield asked.day, 50, partial(self._ask, asked)
            if asked.fate == "lapsed":
                yield max(asked.day - 70, 1), 51, partial(self._approve, asked, (asked.site,))
            if asked.fate == "late":
                yield asked.day + 40, 52, partial(self._return, asked)
        for quarter in QUARTERS:
            yield quarter, 99, self.books.look
        before = [asked.day for asked in self.asked]
        deeds: list[tuple[int, int, Callable[[], None]]] = [
            (40, 1, partial(self._change_people, "lake")),
            (58, 1, partial(self._rotate, "south")),
            (80, 1, partial(self.books.expect_certificate, "attention")),
            (101, 1, self._expire),
            *((day, 1, partial(self._upgrade, name)) for name, day in OLDER.items()),
            (118, 1, partial(self._edit_policy, "moor")),
            (before[12], 40, partial(self._back_up, "south")),
            (before[13], 60, partial(self._lose_site, "south")),
            (150, 1, partial(self._rotate, "hill")),
            (165, 1, partial(self._change_people, "north")),
            (185, 1, partial(self._new_data, "moor")),
            (205, 1, self._renew_in_time),
            (before[22], 40, partial(self._back_up, "workspace")),
            (before[22], 60, self._lose_coordinator),
            (before[30], 40, partial(self._back_up, "workspace")),
            (before[30], 41, partial(self._rotate, "north")),
            (before[30], 60, self._lose_mailbox),
            (300, 1, partial(self._change_people, "east")),
        ]
        yield from deeds

    def _join(self) -> None:
        for keeper in self.sites.values():
            self.server.join(keeper.key, keeper.folder / "mailbox")
            keeper.start()
        admit_joined(self.server.client, self.server.folder / "mailbox" / "invitations", self.workspace)

    @property
    def workspace(self) -> Workspace:
        """The workspace, where it is now."""
        return Workspace(self.server.folder)

    @property
    def keys(self) -> dict[str, str]:
        """The public keys of the sites."""
        return {name: keeper.key.public for name, keeper in self.sites.items()}

    def command(self, *words: object, code: int = 0) -> str:
        """Run a command of dpcausal as a process, and return what it printed."""
        line = [sys.executable, "-m", "dpcausal", *map(str, words)]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
        if done.returncode != code:
            raise RuntimeError(f"{words} ended with {done.returncode}: {done.stdout} {done.stderr}")
        return done.stdout

    def _note(self, what: str) -> None:
        self.done[what] += 1
        print(f"day {self.clock.day}: {what}", flush=True)

    # Studies.

    def _study(self, asked: Asked) -> dpc.Study:
        """Return a study, which is written down with the keys of the day on which it is first needed."""
        return self.studies.setdefault(asked.place, asked.study(self.keys))

    def _approve(self, asked: Asked, sites: Iterable[str]) -> None:
        for name in sites:
            keeper, study = self.sites[name], self._study(asked)
            site = Site(keeper.folder)
            digest = site.receive(study.to_toml())
            if site.status(digest) in ("undecided", "expired"):
                site.decide(signed(keeper.folder, digest, "approve", keeper.approver))

    def _ask(self, asked: Asked) -> None:
        """Ask a study, and let happen to it what the plan says."""
        study = self._study(asked)
        away = asked.site if asked.fate in ("late", "withdrawn") else ""
        if asked.fate != "lapsed":
            self._approve(asked, asked.sites)
        else:
            self._approve(asked, (name for name in asked.sites if name != asked.site))
        if away:
            self.sites[away].stop()
        if asked.fate == "rejected":
            site = Site(self.sites[asked.site].folder)
            site.decide(signed(self.sites[asked.site].folder, study.digest, "reject", self.sites[asked.site].approver))
        self.books.begin(asked, study, absent="" if asked.fate == "plain" else asked.site)
        self._run(asked, asked.kill)
        if asked.fate == "withdrawn":
            with suppress(TransportError):
                self._coordinator(study, _WAIT).withdraw()
            self.books.withdrawn.add(study.digest)
            self.sites[away].start()
        if asked.fate == "lapsed":
            self.books.check_unpaid(study, asked.site)
            self._approve(asked, (asked.site,))
            self.books.waits_for(study, asked.site)
            self._run(asked)
        self._note(f"{asked.fate}, {asked.kind}{f', {asked.kill} killed' if asked.kill else ''}")

    def _return(self, asked: Asked) -> None:
        """Let a site come back after weeks, and ask it again."""
        study = self._study(asked)
        self.sites[asked.site].start()
        self.books.check_unpaid(study, asked.site)
        self.books.waits_for(study, asked.site)
        self._collect_all()
        self._note("a site that was off for weeks came back")

    def _collect_all(self) -> None:
        """Ask again what is not complete, after approving again what has to be."""
        for asked in self.asked:
            study = self.studies.get(asked.place)
            if study is not None and self.books.missing(study):
                self._approve(asked, self.books.missing(study))
                self._run(asked)

    def _run(self, asked: Asked, kill: str = "") -> None:
        """Ask until all sites have answered of which this is expected now."""
        study = self._study(asked)
        if kill == "coordinator":
            self._run_and_kill(study)
        for attempt in range(_ROUNDS):
            running = threading.Thread(target=self._post, args=(study,))
            running.start()
            if attempt == 0 and kill in ("server", *self.sites):
                time.sleep(self.random.uniform(0.2, 4.0))
                self._kill(kill)
            running.join()
            if not self.books.missing(study):
                break
        else:
            raise RuntimeError(f"{asked} {study.name}: no answer of {self.books.missing(study)}: {self.words}")
        self.books.effect(study, self._coordinator(study, 0.0))

    def _post(self, study: dpc.Study) -> None:
        self.words = {}
        with suppress(RefusedError, TransportError):
            self.words = self._coordinator(study, _WAIT).post()
            if study.secure_settings:  # the sum is open: who is not in it is not asked again
                self.books.opened(study, {site for site, words in self.words.items() if words == "answered"})

    def _coordinator(self, study: dpc.Study, timeout: float) -> dpc.Coordinator:
        workspace = self.workspace
        return dpc.Coordinator(
            study.to_toml(),
            workspace.roster,
            workspace.key("anna"),
            _Waiting(
                requester_client(workspace.folder, "anna"), {name for name, each in self.sites.items() if each.is_on}
            ),
            store=workspace.store,
            timeout=timeout,
            attempts=1,
        )

    def _run_and_kill(self, study: dpc.Study) -> None:
        """Start the command of the coordinator, and kill it."""
        file = self.folder / "asked.toml"
        file.write_text(study.to_toml(), encoding="utf-8")
        words = ("federation", "run", self.server.folder, file, "--mailbox", "--timeout", 20, "--attempts", 1)
        line = [sys.executable, "-m", "dpcausal", *map(str, words)]
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603
            time.sleep(self.random.uniform(1.5, 8.0))
            process.kill()

    def _kill(self, what: str) -> None:
        """Kill something, and start it again."""
        if what == "server":
            self.server.kill()
            time.sleep(1.0)
            self.server.start()
        elif self.sites[what].is_on:
            self.sites[what].stop()
            self.sites[what].start()

    # What happens to machines, people, keys and certificates.

    def _change_people(self, name: str) -> None:
        """Let an approver leave and another one come."""
        keeper = self.sites[name]
        person_key(keeper.folder, f"Dr. {name}")
        Changes(keeper.folder).remove_person(keeper.approver)
        keeper.approver = f"Dr. {name}"
        self._note("an approver came and another one left")

    def _rotate(self, name: str) -> None:
        """Replace the key of a site. Sites of secure sums learn it in person."""
        keeper, was_on = self.sites[name], self.sites[name].is_on
        keeper.stop()
        self.command("site", "rotate-key", keeper.folder, "--by", "Ann")
        keeper.rotated = self.clock.now.date().isoformat()
        if was_on:
            keeper.start()
        accept_rotations(self.server.client, self.workspace)
        if name in SECURE:
            for other in SECURE:
                _replace_key(self.sites[other].folder, name, keeper.key.public)
        self._note("a site rotated its key")

    def _upgrade(self, name: str) -> None:
        self.sites[name].upgrade()
        self._note("a site was upgraded")

    def _edit_policy(self, name: str) -> None:
        """Edit a policy, which stops the site until somebody has confirmed it."""
        folder = self.sites[name].folder
        file = folder / "policy.toml"
        file.write_text(file.read_text(encoding="utf-8").replace("minimum_units = 2", "minimum_units = 5"), "utf-8")
        self.books.expect(name, "confirmed", "broken")
        self.command("site", "confirm", folder, "--by", "Ann", "--why", "fewer units are too few", "--yes")
        self.books.expect(name, "confirmed", "healthy")
        self._note("a policy was edited and confirmed")

    def _new_data(self, name: str) -> None:
        """Give a site a new version of its data, with more units."""
        folder, as_of = self.sites[name].folder, self.clock.now.date().isoformat()
        pq.write_table(synthetic_table(standard_schema(), 700, seed=99), folder / "table.parquet")
        file = folder / "policy.toml"
        file.write_text(file.read_text(encoding="utf-8").replace(f'as_of = "{AS_OF}"', f'as_of = "{as_of}"'), "utf-8")
        self.books.expect(name, "ledger", "broken")
        witness = self.folder / f"{name}.witness.log"
        self.command("ledger", "add-version", folder / "ledger.db", "--as-of", as_of, "--witness", witness)
        confirm_settings(folder)
        self._note("a site has a new version of its data")

    def _expire(self) -> None:
        """Find that the server's certificate has expired, and renew it."""
        self.books.expect_certificate("broken")
        self.books.expect_unreachable()
        self.command("federation", "mailbox", "renew", self.server.folder, "--days", 130)
        self.server.kill()
        self.server.start()
        self._note("the server's certificate expired, and was renewed")

    def _renew_in_time(self) -> None:
        """Renew the certificate some days before its end. The server goes on."""
        self.books.expect_certificate("attention")
        self.command("federation", "mailbox", "renew", self.server.folder, "--days", 365)
        self.books.expect_certificate("healthy")
        self._note("the server's certificate was renewed in time, without a restart")

    def _back_up(self, what: str) -> None:
        out = self.folder / f"{what}.{self.clock.day}.backup"
        folder, kind = (self.server.folder, "federation") if what == "workspace" else (self.sites[what].folder, "site")
        self.command(kind, "backup", folder, "--out", out, "--with-keys")
        self.backups[what] = out
        self.books.backed_up(what)

    def _lose_site(self, name: str) -> None:
        """Lose a site's folder, and restore its last backup."""
        keeper = self.sites[name]
        keeper.stop()
        lost = keeper.folder.rename(self.folder / f"lost.{name}")
        self.command("site", "restore", self.backups[name], keeper.folder, code=1)
        shutil.copy(lost / "table.parquet", keeper.folder)
        self.books.expect(name, "ledger", "broken")
        keeper.lost = self.books.lost(name)
        by = ("--by", "Ann", "--reason", "disk lost", "--lost-epsilon", keeper.lost)
        self.command("ledger", "restore", keeper.folder / "ledger.db", *by)
        self.command("site", "confirm", keeper.folder, "--by", "Ann", "--why", "restored", "--yes")
        self.books.backed_up(name, never=True)
        keeper.start()
        self._note("a site was lost, and restored from a backup")

    def _lose_coordinator(self) -> None:
        """Lose the whole workspace, and restore its last backup elsewhere."""
        self.server.kill()
        self.server.folder.rename(self.folder / "lost.workspace")
        self.command("federation", "restore", self.backups["workspace"], self.folder / "restored")
        self.server.move(self.folder / "restored")
        self.books.backed_up("workspace", never=True)
        self.server.start()
        self._note("the coordinator was lost, and restored from a backup")

    def _lose_mailbox(self) -> None:
        """Lose the folder of the mailbox alone, and take it from the last backup of the workspace."""
        self.server.kill()
        (self.server.folder / "mailbox").rename(self.folder / "lost.mailbox")
        self.command("federation", "restore", self.backups["workspace"], self.folder / "older.workspace")
        shutil.copytree(self.folder / "older.workspace" / "mailbox", self.server.folder / "mailbox")
        self.server.start()
        # North rotated its key since the backup, so that the server knows an older one: it needs another token.
        self.books.expect_soon("north", "mailbox", "attention")
        self.sites["north"].stop()
        self.server.join(self.sites["north"].key, self.sites["north"].folder / "mailbox")
        self.sites["north"].start()
        admit_joined(self.server.client, self.server.folder / "mailbox" / "invitations", self.workspace)
        self._note("the mailbox was lost, and restored from a backup")


def _replace_key(folder: Path, name: str, key: str) -> None:
    """Write the new key of another site into a policy, and confirm it."""
    file = folder / "policy.toml"
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    document["secure_sums"]["sites"][name] = key
    file.write_text(tomli_w.dumps(document), encoding="utf-8")
    confirm_settings(folder)
