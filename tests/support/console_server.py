"""A real console of a site on this machine: gunicorn on loopback, with a short deadline for reading a form."""

import contextlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import urllib3

from tests.support.ports import reserved_port

DEADLINE = 2.0
"""Seconds within which a form must arrive."""

_SERVE = """
import sys
from pathlib import Path
from dpcausal.federation.operation import deadline_worker
from dpcausal.federation.console import accounts
from dpcausal.federation.console.server import serve
accounts._NOBODY = "scrypt:256:8:1$n0b0dyn0b0dyn0bo$" + "0" * 128  # quick
deadline_worker.SECONDS = float(sys.argv[3])
serve("site", Path(sys.argv[1]), sys.argv[2], behind_proxy=sys.argv[4] == "True")
"""


class ConsoleServer:
    """The console of a site's folder. Leaves no process behind.

    Args:
        folder: The site's folder.
        behind_proxy: Whether requests come from a proxy, which these then play.
    """

    def __init__(self, folder: Path, *, behind_proxy: bool = False) -> None:
        self.port = reserved_port()
        self._words = [sys.executable, "-c", _SERVE, str(folder), f"127.0.0.1:{self.port}", str(DEADLINE)]
        self._words.append(str(behind_proxy))
        self._pool = urllib3.PoolManager(retries=False, timeout=300.0)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603
            self._words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 200
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
                return self
            time.sleep(0.1)
        self._process.kill()
        raise TimeoutError("the console does not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def get(self, path: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """Return a page."""
        return self._pool.request("GET", f"http://127.0.0.1:{self.port}{path}", headers=headers, redirect=False)

    def login(
        self, login: str, password: str, headers: Mapping[str, str], cookies: dict[str, str] | None = None
    ) -> int:
        """Log in with a browser that has these cookies, and return the status; new cookies are added to them."""
        cookies = {} if cookies is None else cookies
        page = self.get("/login", {**headers, "Cookie": joined(cookies)})
        cookies |= set_by(page)
        token = re.search(r'name="csrf" value="([^"]+)"', page.data.decode())
        assert token
        answer = self._pool.request(
            "POST",
            f"http://127.0.0.1:{self.port}/login",
            fields={"csrf": token[1], "login": login, "password": password, "next": "/"},
            encode_multipart=False,
            headers={**headers, "Cookie": joined(cookies)},
            redirect=False,
        )
        cookies |= set_by(answer)
        return answer.status


def joined(cookies: Mapping[str, str]) -> str:
    """Return cookies as a header."""
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def set_by(answer: urllib3.BaseHTTPResponse) -> dict[str, str]:
    """Return the cookies that an answer sets."""
    pairs = (line.split(";", 1)[0].split("=", 1) for line in answer.headers.getlist("Set-Cookie"))
    return dict(pairs)
