"""Operation of a real coordinator and three real sites: `python -m benchmarks.operation [--week]`.

Without an option: studies with kills -9 and restarts. With `--week`: seven days with studies, kills, backups, a renewal
of all certificates, the loss of a site and its restoration. Days follow each other without
a pause, and clocks stay as they are. Nobody touches anything meanwhile. Results are stored in benchmarks/results.
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import dpcausal as dpc
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.transports.nvflare.provision import fingerprint_of
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.ports import reserved_port
from tests.support.site_folders import approve_study, make_site_folder

RESULTS = Path(__file__).parent / "results"
SITES = ("north", "south", "west")
SERVER = "server"
UNITS = 400
VALID_DAYS = 5
"""How long certificates are valid before the renewal."""

_RUN = "from dpcausal.cli import app; app()"
_TIMEOUT = 30


@dataclass
class Operation:
    """A coordinator and sites as real processes, operated by commands.

    Attributes:
        folder: Where everything is.
        day: The day of the week, from 1.
        lines: The lines that processes logged.
        errors: Those of them at the level ERROR.
        prices: What each site was asked for, study by study.
        events: What happened, in order.
    """

    folder: Path
    day: int = 1
    lines: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    prices: dict[str, float] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: int = 0
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """The coordinator's workspace."""
        return self.folder / "workspace"

    def site(self, name: str) -> Path:
        """Return a site's folder."""
        return self.folder / name

    def command(self, *words: object, code: int = 0) -> str:
        """Run a command, and return what it printed."""
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _RUN, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        if done.returncode != code:
            raise RuntimeError(f"{words} ended with {done.returncode}: {done.stdout} {done.stderr}")
        return done.stdout

    def create(self, days: int) -> None:
        """Create the network, the sites and their kits."""
        options = ("--host", "localhost", "--port", reserved_port(), "--name", "hips", "--days", days)
        self.command("federation", "init", self.workspace, "anna", *options)
        schema, key = standard_schema(), Workspace(self.workspace).key("anna").public
        for place, name in enumerate(SITES):
            table = synthetic_table(schema, UNITS + place, seed=place)
            self.keys[name] = make_site_folder(self.site(name), name, table, schema, {"anna": key}, seconds=20)
            self.command("site", "request-kit", self.site(name), "hips")
            self.admit(name, days)

    def renew(self, days: int) -> None:
        """Renew the certificates of server, requester and all sites."""
        self.command("federation", "renew", self.workspace, "--days", days)
        for name in SITES:
            self.command("site", "renew", self.site(name))
            self.admit(name, days)

    def admit(self, name: str, days: int) -> None:
        """Have the coordinator sign the pending request of a site, and install the kit."""
        (request,) = self.site(name).glob("nvflare/**/*.request.zip")
        options = ("--units-unknown", "--request", request, "--days", days)
        self.command("federation", "admit", self.workspace, name, self.keys[name], *options)
        (signed,) = self.site(name).glob("nvflare/**/*.signed.zip")
        self.command("site", "install-kit", self.site(name), signed, fingerprint_of(self.workspace / "nvflare"))

    def start(self, *names: str) -> None:
        """Start the server or sites as services."""
        for name in names:
            words = ("federation", "serve", self.workspace) if name == SERVER else ("site", "serve", self.site(name))
            self.started += 1
            with (self.folder / f"{name}.{self.started}.log").open("wb") as log:
                command = [sys.executable, "-m", "dpcausal", *map(str, words)]
                self.running[name] = subprocess.Popen(  # noqa: S603
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )

    def wait(self) -> None:
        """Wait until the coordinator says that all sites are connected."""
        _until(lambda: all(self.status("federation", self.workspace)["sites"]["value"].values()), 300)

    def kill(self, *names: str) -> None:
        """Kill processes with all that they started, as a power cut would."""
        for name in names:
            started = self.running.pop(name)
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(started.pid)
                for each in (process, *process.children(recursive=True)):
                    each.kill()
            started.wait()

    def status(self, kind: str, folder: Path) -> dict[str, dict[str, Any]]:
        """Return the checks of a status command."""
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "dpcausal", kind, "status", str(folder), "--json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        checks: dict[str, dict[str, Any]] = json.loads(done.stdout)["checks"]
        return checks

    def approved(self, epsilon: float) -> Path:
        """Return the file of a new study that all sites have approved."""
        name = f"study {len(self.prices) + 1}"
        study = dpc.Study(
            name=name,
            question="Does treatment raise the score?",
            requester="anna",
            schema=standard_schema(),
            estimator=dpc.DifferenceInMeans(),
            epsilon=epsilon,
            pooling="minimum_variance",
        )
        for site in SITES:
            approve_study(self.site(site), study)
        self.prices[name] = epsilon
        file = self.folder / f"{name.replace(' ', '_')}.toml"
        file.write_text(study.to_toml(), encoding="utf-8")
        return file

    def ask(self, study: Path, what: str, during: Callable[[], None] | None = None) -> float:
        """Ask all sites, note what they did, and return the effect; something may happen meanwhile."""
        words = ("federation", "run", self.workspace, study, "--json", "--timeout", _TIMEOUT, "--attempts", 8)
        command = [sys.executable, "-c", _RUN, *map(str, words), "--min-sites", str(len(SITES))]
        begin = time.monotonic()
        with subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as asking:
            if during:
                during()
            out, said = asking.communicate(timeout=600)
        seconds = round(time.monotonic() - begin, 1)
        if asking.returncode:
            raise RuntimeError(f"{what}: {said}")
        effect = json.loads(out)
        codes = {share["site"]: share["status"] for share in effect["sites"]}
        self.events.append({"day": self.day, "what": what, "seconds": seconds, "sites": codes})
        print(self.events[-1], flush=True)
        return float(effect["estimate"])

    def note(self, what: str, **more: object) -> None:
        """Note something that happened."""
        self.events.append({"day": self.day, "what": what, **more})
        print(self.events[-1], flush=True)

    def restart_all(self) -> None:
        """Stop and start everything, as a machine's nightly update does."""
        self.kill(*list(self.running))
        self.start(SERVER, *SITES)
        self.wait()

    def close(self) -> None:
        """End all processes, and count what they logged."""
        self.kill(*list(self.running))
        for log in self.folder.glob("*.*.log"):
            name = log.name.split(".")[0]
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            self.lines[name] = self.lines.get(name, 0) + len(lines)
            self.errors += [f"{name}: {line}"[:300] for line in lines if '"level": "ERROR"' in line or "Error" in line]

    def ledgers(self) -> dict[str, dict[str, Any]]:
        """Return what each site's ledger says in the end; it is verified by reading it."""
        found = {}
        for name in SITES:
            ledger = dpc.Ledger(f"sqlite:///{self.site(name) / 'ledger.db'}")
            ledger.verify()
            kinds = [entry.kind for entry in ledger.entries()]
            found[name] = {
                "whole": True,
                "debits": kinds.count("debit"),
                "releases": kinds.count("release"),
                "restores": kinds.count("restore"),
                "spent": ledger.spent.epsilon,
            }
        return found


@contextmanager
def operation(days: int) -> Iterator[Operation]:
    """Give a running federation; leave no process and no file behind."""
    with tempfile.TemporaryDirectory() as folder:
        made = Operation(Path(folder))
        try:
            made.create(days)
            made.start(SERVER, *SITES)
            made.wait()
            yield made
        finally:
            made.kill(*list(made.running))


def faults() -> dict[str, Any]:
    """Ask studies while processes are killed and restarted."""
    with operation(365) as made:
        made.ask(made.approved(0.11), "healthy")
        made.ask(made.approved(0.12), "site killed while asked, and restarted", lambda: _cut(made, "north"))
        made.ask(made.approved(0.13), "server killed while asked, and restarted", lambda: _cut(made, SERVER))
        made.restart_all()
        made.note("all restarted")
        study = made.approved(0.14)
        first = made.ask(study, "healthy after a restart")
        made.note("asked again", same=made.ask(study, "the same study again") == first)
        made.close()
        return _result(made)


def week() -> dict[str, Any]:
    """Operate for seven days."""
    with operation(VALID_DAYS) as made:
        made.ask(made.approved(0.11), "healthy")

        _next_day(made)
        made.restart_all()
        made.note("all restarted")
        made.ask(made.approved(0.12), "site killed while asked, and restarted", lambda: _cut(made, "north"))

        _next_day(made)
        for name in SITES:
            made.command("site", "backup", made.site(name), "--out", made.folder / f"{name}.backup", "--with-keys")
        made.command("federation", "backup", made.workspace, "--out", made.folder / "w.backup", "--with-keys")
        made.note("backups taken while serving")
        made.ask(made.approved(0.13), "server killed while asked, and restarted", lambda: _cut(made, SERVER))

        _next_day(made)
        before = made.status("site", made.site("west"))["certificate"]["value"]
        made.renew(60)
        made.restart_all()
        after = made.status("site", made.site("west"))["certificate"]["value"]
        made.note("all certificates renewed", days_before=before, days_after=after)
        made.ask(made.approved(0.14), "healthy after the renewal")

        _next_day(made)
        study = made.approved(0.15)
        first = made.ask(study, "healthy")
        made.note("asked again", same=made.ask(study, "the same study again") == first)

        _next_day(made)
        _lose(made, "south")
        made.ask(made.approved(0.16), "healthy after the restoration")

        _next_day(made)
        made.ask(made.approved(0.17), "healthy")
        for name in SITES:
            made.command("site", "backup", made.site(name), "--out", made.folder / f"{name}.7.backup")
        levels = {name: _level(made.status("site", made.site(name))) for name in SITES}
        made.note("status in the end", levels=levels)
        made.close()
        return _result(made)


def _next_day(made: Operation) -> None:
    made.day += 1


def _cut(made: Operation, name: str) -> None:
    time.sleep(8)
    made.kill(name)
    time.sleep(1)
    made.start(name)


def _lose(made: Operation, name: str) -> None:
    """Lose a site's folder; restore the backup of day 3, with the kit that the renewal made since."""
    made.kill(name)
    lost = made.site(name).rename(made.folder / "lost")
    made.command("site", "restore", made.folder / f"{name}.backup", made.site(name), code=1)
    shutil.copy(lost / "table.parquet", made.site(name))
    stopped = made.status("site", made.site(name))["ledger"]["level"]
    later = round(sum(made.prices.values()) - 0.11 - 0.12, 6)  # what was answered after the backup
    words = ("--by", "Ann", "--reason", "disk lost", "--lost-epsilon", later)
    made.command("ledger", "restore", made.site(name) / "ledger.db", *words)
    made.command("site", "confirm", made.site(name), "--by", "Ann", "--why", "restored", "--yes")
    made.command("site", "renew", made.site(name))  # the kit of the backup is older than the renewal
    made.admit(name, 60)
    made.start(name)
    made.wait()
    level = made.status("site", made.site(name))["ledger"]["level"]
    made.note("a site lost and restored from the backup of day 3", stopped=stopped, lost_epsilon=later, ledger=level)


def _level(checks: dict[str, dict[str, Any]]) -> str:
    levels = {check["level"] for check in checks.values()}
    return next(level for level in ("broken", "attention", "healthy") if level in levels)


def _result(made: Operation) -> dict[str, Any]:
    return {
        "events": made.events,
        "studies": len(made.prices),
        "asked": round(sum(made.prices.values()), 6),
        "ledgers": made.ledgers(),
        "lines": made.lines,
        "errors": made.errors,
    }


def _until(found: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            raise TimeoutError("not all sites connected")
        time.sleep(0.5)


def main() -> None:
    """Run one of the two, and store the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--week", action="store_true", help="seven days instead of one hour")
    wanted = parser.parse_args()
    file = RESULTS / ("operation_week.json" if wanted.week else "operation.json")
    result = week() if wanted.week else faults()
    file.write_text(f"{json.dumps(result, indent=1)}\n", encoding="utf-8")
    print(f"{result['studies']} studies, {len(result['errors'])} errors in {sum(result['lines'].values())} lines")


if __name__ == "__main__":
    main()
