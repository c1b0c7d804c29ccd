"""NVFlare as a transport: a request reaches the sites through a server that all of them connect to."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import IO

from dpcausal.errors import TransportError

_MARGIN = 5.0


@dataclass(frozen=True)
class FlareTransport:
    """Sends requests through an NVFlare server.

    Attributes:
        kit: The requester's kit, which `provision.create_authority` created.
    """

    kit: Path

    def ask(self, request: str, sites: Sequence[str], timeout: float, on_response: Callable[[str, str], None]) -> None:
        """Send a request, and call `on_response` for each message that arrives within `timeout` seconds.

        Before the timeout, a site that was disconnected is asked when it reconnects, and all missing sites are asked
        again after the server was lost. That is safe: a site answers the same request only once.

        Raises:
            TransportError: If no server could be reached in this time.
        """
        asked = {"kit": str(self.kit.absolute()), "request": request, "sites": list(sites), "seconds": timeout}
        with tempfile.TemporaryFile("w+") as instructions:
            json.dump(asked, instructions)
            instructions.seek(0)
            reached = self._run_client(instructions, timeout, on_response)
        if not reached:
            raise TransportError(
                expected="an NVFlare server that this kit can reach",
                got=f"none with {self.kit} in {timeout:g} seconds",
                hint="check that the server is running and its port is open, and that dpcausal was installed with "
                '"dpcausal[federation]".',
            )

    @staticmethod
    def _run_client(instructions: IO[str], timeout: float, on_response: Callable[[str, str], None]) -> bool:
        """Run the client process, and return whether it reached a server."""
        command = [sys.executable, "-P", "-m", "dpcausal.plugins.nvflare.client"]
        quiet, out = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(command, stdin=instructions, stdout=out, stderr=quiet, text=True) as client:  # noqa: S603
            late = Timer(timeout + _MARGIN, client.kill)
            late.start()
            try:
                for line in client.stdout or ():
                    on_response(*json.loads(line))
                return client.wait() <= 0  # below zero: it was killed after the timeout
            finally:
                late.cancel()
                client.kill()
