"""Ways on which requests reach sites and messages come back. No transport is trusted: what it carries is signed."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpcausal.errors import TransportError, redact_errors
from dpcausal.federation.protocol import Message, digest_of_text
from dpcausal.federation.signatures import LONGEST, claimed_body

_SECONDS_BETWEEN_LOOKS = 0.5


class Transport(Protocol):
    """A way to sites. It may lose, delay, repeat and mix up everything, and make nothing worse than that."""

    def ask(self, request: str, sites: Sequence[str], timeout: float, on_response: Callable[[str, str], None]) -> None:
        """Send a request to some sites and tell each message as it comes, by the name of its site.

        Returns when all of them have answered or so many seconds are over; while it waits, `on_response` is called in the
        same thread.

        Raises:
            TransportError: If the transport is closed.
        """
        ...


@dataclass(frozen=True)
class LocalTransport:
    """Sites in this process: for tests, tutorials and simulations. One is asked after the other, without a limit.

    Attributes:
        sites: What answers a request with a message, by the name of the site.
    """

    sites: Mapping[str, Callable[[str], str]]

    def ask(self, request: str, sites: Sequence[str], timeout: float, on_response: Callable[[str, str], None]) -> None:  # noqa: ARG002
        """Ask one site after the other. One that raises has not answered."""
        for site in sites:
            messages: list[str] = []
            with contextlib.suppress(Exception):
                messages.append(self.sites[site](request))
            for message in messages:
                on_response(site, message)


@dataclass(frozen=True)
class FileTransport:
    """Files that people carry, where no network is or may be.

    The request appears in `out` and goes to every site; what sites answer goes into `in`, as a file of any name that
    ends in `.message.json`.

    Attributes:
        folder: Where `out` and `in` are; both are made.
    """

    folder: Path

    def ask(self, request: str, sites: Sequence[str], timeout: float, on_response: Callable[[str, str], None]) -> None:
        """Write the request, then look for messages until every site has one or timeout is over; look at least once.

        Files that hold no message to this request are passed over.

        Raises:
            TransportError: If the folder cannot be used.
        """
        self.write(request)
        asked = digest_of_text(claimed_body(request))
        missing, told, end = set(sites), set[str](), time.monotonic() + timeout
        while True:
            for site, text in self._found(asked):
                if site in sites and text not in told:
                    told.add(text)
                    missing.discard(site)
                    on_response(site, text)
            left = end - time.monotonic()
            if not missing or left <= 0:
                return
            time.sleep(min(_SECONDS_BETWEEN_LOOKS, left))

    def write(self, request: str) -> Path:
        """Write a request to where people fetch it, whole or not at all, and return its file."""
        file = self.folder / "out" / f"{digest_of_text(claimed_body(request))}.request.json"
        with redact_errors(OSError, instead=self._closed):
            for side in ("in", "out"):
                (self.folder / side).mkdir(parents=True, exist_ok=True)
            half = file.with_suffix(".half")
            half.write_text(request, encoding="utf-8")
            half.replace(file)
        return file

    def _found(self, request: str) -> Iterator[tuple[str, str]]:
        """The messages that claim to answer a request, and their sites; a file that is half there is no message yet."""
        with redact_errors(OSError, instead=self._closed):
            files = sorted((self.folder / "in").glob("*.message.json"))
        for file in files:
            with contextlib.suppress(OSError, ValueError, RecursionError, TransportError):
                if file.is_file() and file.stat().st_size <= LONGEST:
                    text = file.read_text(encoding="utf-8").strip()
                    message = Message.from_json(claimed_body(text))
                    if message.request == request:
                        yield message.site, text

    def _closed(self, error: Exception) -> TransportError:
        return TransportError(
            expected="a folder for requests and messages that can be read and written",
            got=f"{self.folder} ({type(error).__name__})",
            hint="see that it exists and is yours.",
        )
