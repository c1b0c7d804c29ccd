"""The transport of NVFlare: a request reaches the sites through a server that all of them dial."""

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
    """Asks through an NVFlare server.

    Attributes:
        kit: The requester's kit, as `provision.create_authority` made it.
    """

    kit: Path

    def ask(self, request: str, sites: Sequence[str], timeout: float, on_response: Callable[[str, str], None]) -> None:
        """Send a request and tell each message as it comes; return when all have come, or when timeout is over.

        While timeout lasts, a site that was away is asked when it is back, and everyone still missing is asked again
        after the server was lost. That is safe: a site answers the same request only once.

        Raises:
            TransportError: If no server was there in all that time.
        """
        asked = {"kit": str(self.kit.absolute()), "request": request, "sites": list(sites), "seconds": timeout}
        with tempfile.TemporaryFile("w+") as told:
            json.dump(asked, told)
            told.seek(0)
            reached = self._follow(told, timeout, on_response)
        if not reached:
            raise TransportError(
                expected="an NVFlare server that can be reached with this kit",
                got=f"none with {self.kit} in {timeout:g} seconds",
                hint='is the server running, its port open, and dpcausal installed with "dpcausal[federation]"?',
            )

    @staticmethod
    def _follow(told: IO[str], timeout: float, on_response: Callable[[str, str], None]) -> bool:
        """Have the requester's process ask what it is told; whether it reached a server."""
        command = [sys.executable, "-P", "-m", "dpcausal.plugins.nvflare.client"]
        quiet, out = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(command, stdin=told, stdout=out, stderr=quiet, text=True) as requester:  # noqa: S603
            late = Timer(timeout + _MARGIN, requester.kill)
            late.start()
            try:
                for line in requester.stdout or ():
                    on_response(*json.loads(line))
                return requester.wait() <= 0  # below zero: it was killed, because it was late
            finally:
                late.cancel()
                requester.kill()
