"""NVFlare as a transport: a request reaches the sites through a server that all of them connect to."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from dpcausal.errors import TransportError
from dpcausal.federation.protocol.transport import NOTHING
from dpcausal.federation.transports.nvflare.certificates import check_certificate

UNREACHED = 3
"""The exit code of the client process if it could not reach a server before the timeout."""

_MARGIN = 5.0
_PAUSE = 1.0


@dataclass(frozen=True)
class FlareTransport:
    """Sends requests through an NVFlare server."""

    kit: Path

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        """Send a request, and call `on_response` for each message that arrives within `timeout` seconds.

        Before the timeout, a site that was disconnected is asked when it reconnects, and all missing sites are asked
        again after the server was lost. That is safe: a site answers the same request only once.

        A client process that was killed is started again.

        Raises:
            TransportError: If no server could be reached in this time.
            CertificateError: If the kit's certificate has expired or is not valid yet.
        """
        check_certificate(self.kit)
        end = time.monotonic() + timeout
        missing, reached = set(sites), False

        def receive(site: str, message: str) -> None:
            missing.discard(site)
            on_response(site, message)

        while True:  # again if it was killed
            left = max(0.0, end - time.monotonic())
            asked = {"kit": str(self.kit.absolute()), "request": request, "sites": sorted(missing), "seconds": left}
            asked["enclosed"] = {site: enclosed[site] for site in missing if site in enclosed}
            code = _run_client(asked, left, receive)
            reached |= code <= 0
            if not missing or code >= 0 or end - time.monotonic() < _PAUSE:
                break
            time.sleep(_PAUSE)
        if not reached:
            raise TransportError(
                problem=f"No NVFlare server answered {self.kit} in {timeout:g} seconds",
                hint="check that the server is running and its port is open, and that dpcausal was installed with "
                '"dpcausal[federation]".',
            )

    def withdraw(self, requests: Sequence[str]) -> None:
        """Do nothing: the server forgets a request as soon as nobody waits for its answers."""


def _run_client(asked: dict[str, object], seconds: float, on_response: Callable[[str, str], None]) -> int:
    """Run the client process, and return its exit code; below zero, it was killed, at the latest after its time."""
    command = [sys.executable, "-P", "-m", "dpcausal.federation.transports.nvflare.client"]
    quiet, out = subprocess.DEVNULL, subprocess.PIPE
    with tempfile.TemporaryFile("w+") as instructions:
        json.dump(asked, instructions)
        instructions.seek(0)
        with subprocess.Popen(command, stdin=instructions, stdout=out, stderr=quiet, text=True) as client:  # noqa: S603
            late = Timer(seconds + _MARGIN, client.kill)
            late.start()
            try:
                for line in client.stdout or ():
                    on_response(*json.loads(line))
                return client.wait()
            finally:
                late.cancel()
                client.kill()
