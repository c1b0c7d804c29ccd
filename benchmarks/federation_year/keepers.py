"""Those who keep a site: a process of this version or of an older one, or a thread of the benchmark."""

import contextlib
import io
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import psutil

from benchmarks.federation_year.plan import LIGHT, OLDER, SECURE
from dpcausal.federation.operation.heartbeat import hold_lock
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.mailbox.poller import Outbox, Poller, client_in
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.site_folders import allow_secure_sums, make_site_folder, person_key

COMMIT = "fbcd98b1"
"""The last commit before the present version of the protocol."""
EVERY = 1.0
UNITS = 600

# The kernel ends the process when the one that started it ends; 1 is PR_SET_PDEATHSIG.
_BOUND = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"


class Keeper:
    """A site, and what answers for it: nothing, a process or a thread.

    Args:
        folder: The folder of the site.
        older: The source of an older version, for a site that is a process of it.
    """

    def __init__(self, folder: Path, older: Path | None) -> None:
        self.folder, self.name, self.older = folder, folder.name, older
        self.approver, self.rotated, self.lost = "a person", "", 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_on(self) -> bool:
        """Whether something answers for the site."""
        return self._process is not None or self._thread is not None

    @property
    def key(self) -> Key:
        """The site's key now."""
        return Key.read(self.name, self.folder / "site.key")

    def start(self) -> None:
        """Let the site poll."""
        if self.is_on:
            return
        if self.name in LIGHT:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._poll, args=(self._stop,), daemon=True)
            self._thread.start()
            return
        command = [sys.executable, "-m", "dpcausal"]
        with self.folder.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _BOUND, *command, "site", "poll", str(self.folder), "--every", str(EVERY)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | ({"PYTHONPATH": str(self.older / "src")} if self.older else {}),
                start_new_session=True,
            )

    def stop(self) -> None:
        """End what answers for the site, a process by SIGKILL with all that it started."""
        if self._process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(self._process.pid)
                for each in (process, *process.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        each.kill()
            self._process.wait()
            self._process = None
        if self._thread is not None and self._stop is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def upgrade(self) -> None:
        """Stop the site, and start it with the present version."""
        self.stop()
        self.older = None
        self.start()

    def _poll(self, stop: threading.Event) -> None:
        """Poll as `dpcausal site poll` does, but for the process that answers, and the longest pauses."""
        place = self.folder / "mailbox"
        held = hold_lock(place)
        key = self.key

        def answer(request: str) -> str:
            return Site(self.folder).answer(request)

        poller = Poller(client_in(place, key), Outbox(place / "outbox"), answer, lambda _: None, EVERY, place)
        while not stop.wait(min(poller.turn(), 2.0) / 2):
            pass
        os.close(held)


def older_source(folder: Path) -> Path:
    """Return the source of the older version, from the history of this checkout."""
    root = Path(__file__).parents[2]
    folder.mkdir()
    command = ["git", "-C", str(root), "archive", "--format=tar", COMMIT, "src"]
    archive = subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def new_keepers(folder: Path, names: tuple[str, ...], anna: str, older: Path) -> dict[str, Keeper]:
    """Create the sites. Those with a witness may take part in secure sums with each other."""
    found, schema = {}, standard_schema()
    for place, name in enumerate(names):
        table = synthetic_table(schema, UNITS + place, seed=place)
        witness = {"witness": f"../{name}.witness.log"} if name in SECURE else {}
        expiring = {} if name in OLDER else {"approval_days": 60}
        own_sums = {"columns": ["score", "age"], "coordinates": 20, "epsilon": 2.0}
        changes = {"seconds": 300, "epsilon_per_study": 5.0, "custom_sums": own_sums} | expiring | witness
        make_site_folder(folder / name, name, table, schema, {"anna": anna}, **changes)
        found[name] = Keeper(folder / name, older if name in OLDER else None)
        person_key(folder / name, found[name].approver)
    allow_secure_sums({name: folder / name for name in SECURE}, honest=3)
    return found
