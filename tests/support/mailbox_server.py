"""A real mailbox server on this machine: gunicorn over TLS on loopback, which can be killed and started again."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import urllib3

from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.transports.mailbox.authority import client_context
from dpcausal.federation.transports.mailbox.client import Client
from dpcausal.federation.transports.mailbox.poller import join_mailbox
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.federation.transports.mailbox.transport import invite
from tests.support.ports import reserved_port

# The kernel ends the server when the thread that started it ends, however that comes about; 1 is PR_SET_PDEATHSIG.
_BOUND = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"


class MailboxServer:
    """A workspace of anna with a mailbox, and its server. Leaves no process behind.

    Args:
        folder: A new folder for the workspace.
        database: The address of the database.
        workers: The number of processes.
        threads: The number of threads of each.
        days: For how many days its certificate is valid.
    """

    def __init__(
        self, folder: Path, database: str = "sqlite:///mailbox.db", workers: int = 2, threads: int = 8, days: int = 10
    ) -> None:
        self.port = reserved_port()
        self.folder = folder
        self.workspace = Workspace.new(folder, "anna")
        self.anna = self.workspace.key("anna")
        address = f"https://localhost:{self.port}"
        self.mailbox = Mailbox.create(folder / "mailbox", address, database, {"anna": self.anna.public}, days)
        self.client = Client(address, self.mailbox.authority, self.anna)
        self.log = folder / "server.log"
        self._options = ["--workers", str(workers), "--threads", str(threads)]
        self._running: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.kill()

    def start(self, seconds: float = 200.0) -> None:
        """Start the server, and wait until it answers."""
        command = [sys.executable, "-m", "dpcausal", "federation", "mailbox", "serve", str(self.folder)]
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _BOUND, *command, "--listen", f"127.0.0.1:{self.port}", *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + seconds
        with urllib3.PoolManager(ssl_context=client_context(self.mailbox.authority), retries=False) as pool:
            while True:
                with contextlib.suppress(urllib3.exceptions.HTTPError):
                    if pool.request("GET", f"{self.mailbox.address}/health", timeout=5.0).status == 200:
                        return
                if time.monotonic() > end or self._running.poll() is not None:
                    raise TimeoutError(self.log.read_text(encoding="utf-8"))
                time.sleep(0.1)

    def kill(self) -> None:
        """End all processes of the server at once, as a power cut would."""
        if self._running is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()
            self._running = None

    def move(self, folder: Path) -> None:
        """Go on with the workspace in another folder, as one that was restored."""
        self.folder, self.workspace, self.log = folder, Workspace(folder), folder / "server.log"
        self.mailbox = Mailbox.read(folder / "mailbox")

    def megabytes(self) -> list[float]:
        """Return the memory of each process, shared pages included."""
        if self._running is None:
            return []
        try:
            parent = psutil.Process(self._running.pid)
            return [each.memory_info().rss / 2**20 for each in (parent, *parent.children(recursive=True))]
        except psutil.Error:  # it has just ended
            return []

    def join(self, key: Key, folder: Path) -> None:
        """Invite a site and let it join."""
        invitation = invite(
            self.client, self.folder / "mailbox" / "invitations", key.owner, self.mailbox.authority, 3600
        )
        join_mailbox(folder, invitation.token, key)
