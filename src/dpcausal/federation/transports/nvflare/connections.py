"""The connections to a server: how many each certificate may hold open, and which are denied.

NVFlare's server has one thread for each open stream. Without a limit, one site can take all of them and shut out the
others. NVFlare cannot revoke certificates either: a site that is revoked in the roster would stay connected.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from nvflare.fuel.f3.drivers import grpc_driver

from dpcausal.errors import StudyError
from dpcausal.federation.coordinator.roster import Roster

STREAMS_OF_ONE = 16
"""The largest number of open streams with one certificate."""

_POLL_SECONDS = 2.0


class Connections:
    """The open streams of a server, by the name in their certificate.

    Args:
        roster: The roster, whose revoked sites are denied. Without a roster, nobody is.
        log: Called with a line for the server's log.
    """

    def __init__(self, roster: Path | None, log: Callable[[str], None]) -> None:
        self._roster = roster
        self._log = log
        self._lock = threading.Lock()
        self._open: dict[str, list[grpc.ServicerContext]] = {}
        self._denied: frozenset[str] = frozenset()
        self._read_at: tuple[int, int] | None = None
        self._readable = True

    @contextmanager
    def admitted(self, name: str, stream: grpc.ServicerContext) -> Iterator[None]:
        """Count a stream while it is open. A stream that is denied, or one too many, ends with a status."""
        with self._lock:
            held = self._open.setdefault(name, [])
            denied, full = name in self._denied, len(held) >= STREAMS_OF_ONE
            if not denied and not full:
                held.append(stream)
        if denied:
            stream.abort(grpc.StatusCode.PERMISSION_DENIED, "revoked")
        if full:
            stream.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many connections with this certificate")
        try:
            yield
        finally:
            with self._lock:
                held.remove(stream)
                if not held:
                    del self._open[name]

    def refresh(self) -> None:
        """Read the roster if it was changed, and close the streams of sites that are revoked in it.

        While the roster cannot be read, for instance because somebody is writing it, the last list counts.
        """
        if self._roster is None:
            return
        try:
            status = self._roster.stat()
            if (read_at := (status.st_mtime_ns, status.st_ino)) == self._read_at:
                return
            sites = Roster.from_toml(self._roster).sites
        except (OSError, StudyError) as error:
            if self._readable:
                self._log(f"The roster cannot be read ({type(error).__name__}): the last list of revoked sites counts.")
            self._readable = False
            return
        self._readable = True
        denied = frozenset(site for site, member in sites.items() if member.revoked)
        with self._lock:
            self._read_at, self._denied = read_at, denied
            closing = [(name, stream) for name in denied for stream in self._open.get(name, ())]
        for name, stream in closing:
            self._log(f"Closed a connection of {name}, which is revoked in the roster.")
            stream.cancel()

    def watch(self) -> None:
        """Refresh now, and then every few seconds in the background."""
        self.refresh()

        def run() -> None:
            while True:
                time.sleep(_POLL_SECONDS)
                self.refresh()

        threading.Thread(target=run, name="connections", daemon=True).start()

    def guard(self) -> None:
        """Make NVFlare's server count its streams here."""
        connections = self

        class Servicer(grpc_driver.Servicer):  # type: ignore[misc]
            """NVFlare's servicer, for the streams that are admitted."""

            def Stream(self, request_iterator: Any, context: Any) -> Iterator[Any]:  # noqa: ANN401, N802 (NVFlare's)
                names = context.auth_context().get("x509_common_name", [b""])
                with connections.admitted(names[0].decode(errors="replace"), context):
                    yield from super().Stream(request_iterator, context)

        grpc_driver.Servicer = Servicer
