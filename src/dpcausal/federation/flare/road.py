"""The road of NVFlare: a request reaches the sites through a server that all of them dial."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

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
        with subprocess.Popen(
            [sys.executable, "-m", "dpcausal.federation.flare.asking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as asker:
            late = Timer(patience + _MARGIN, asker.kill)
            late.start()
            try:
                asker.stdin.write(json.dumps(asked))  # type: ignore[union-attr]
                asker.stdin.close()  # type: ignore[union-attr]
                for line in asker.stdout:  # type: ignore[union-attr]
                    heard(*json.loads(line))
                reached = asker.wait() <= 0  # below zero: killed, because it was late
            finally:
                late.cancel()
                asker.kill()
        if not reached:
            raise RoadError(
                expected="an NVFlare server that can be reached with this kit",
                got=f"none with {self.kit} in {patience:g} seconds",
                hint='is the server running, its port open, and dpcausal installed with "dpcausal[federation]"?',
            )
