"""The road of NVFlare: a request reaches the sites through a server that all of them dial."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import IO

from dpcausal.errors import RoadError

_MARGIN = 5.0


@dataclass(frozen=True)
class FlareRoad:
    """Asks through an NVFlare server.

    Attributes:
        kit: The asker's kit, as `provision.found` made it.
    """

    kit: Path

    def ask(self, request: str, sites: Sequence[str], patience: float, heard: Callable[[str, str], None]) -> None:
        """Send a request and tell each message as it comes; return when all have come, or when patience is over.

        While patience lasts, a site that was away is asked when it is back, and everyone still missing is asked again
        after the server was lost. That is safe: a site answers the same request only once.

        Raises:
            RoadError: If no server was there in all that time.
        """
        asked = {"kit": str(self.kit.absolute()), "request": request, "sites": list(sites), "seconds": patience}
        with tempfile.TemporaryFile("w+") as told:
            json.dump(asked, told)
            told.seek(0)
            reached = self._follow(told, patience, heard)
        if not reached:
            raise RoadError(
                expected="an NVFlare server that can be reached with this kit",
                got=f"none with {self.kit} in {patience:g} seconds",
                hint='is the server running, its port open, and dpcausal installed with "dpcausal[federation]"?',
            )

    @staticmethod
    def _follow(told: IO[str], patience: float, heard: Callable[[str, str], None]) -> bool:
        """Have the asker's process ask what it is told; whether it reached a server."""
        command = [sys.executable, "-P", "-m", "dpcausal.federation.flare.asking"]
        quiet, out = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(command, stdin=told, stdout=out, stderr=quiet, text=True) as asker:  # noqa: S603
            late = Timer(patience + _MARGIN, asker.kill)
            late.start()
            try:
                for line in asker.stdout or ():
                    heard(*json.loads(line))
                return asker.wait() <= 0  # below zero: it was killed, because it was late
            finally:
                late.cancel()
                asker.kill()
