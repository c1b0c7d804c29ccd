"""Transports: how requests reach sites and messages come back. None is trusted: everything they carry is signed."""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpcausal.errors import TransportError, redact_errors
from dpcausal.federation.protocol.messages import Message, request_id
from dpcausal.federation.protocol.signatures import LONGEST, claimed_body

_POLL_SECONDS = 0.5

NOTHING: Mapping[str, str] = {}
"""No site gets anything with a request for itself alone."""


def with_enclosed(request: str, enclosed: str) -> str:
    """Return the text that a site gets: the signed request, and on a second line what is enclosed for it alone."""
    return f"{request}\n{enclosed}" if enclosed else request


def parted(text: str) -> tuple[str, str]:
    """Return the request and what is enclosed, which `with_enclosed` joined. Neither is verified."""
    request, _, enclosed = text.partition("\n")
    return request, enclosed


def read_bounded(file: Path) -> str:
    """Return the text of a file that somebody else put there, if it is a regular file of a size that may be a message.

    The file is opened without waiting for a writer, and judged once it is open: it cannot be exchanged in between.

    Raises:
        TransportError: If it is a pipe, a device or a folder, or too large.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > LONGEST:
            raise TransportError(
                expected=f"a regular file of at most {LONGEST:,} bytes",
                got="a larger one, or a pipe, device or folder",
                hint="use the unchanged file that dpcausal wrote.",
            )
        return opened.read(LONGEST).decode(errors="replace")


class Transport(Protocol):
    """A way to reach sites. It may drop, delay, duplicate or reorder messages; it cannot forge them."""

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        """Send a request to sites, and call `on_response` with the site's name and the message for each that arrives.

        Returns when all of them have answered or after `timeout` seconds. `on_response` is called in the same thread.

        Args:
            enclosed: What a site gets with the request for itself alone. `with_enclosed` is the text that it answers.

        Raises:
            TransportError: If the transport is unavailable.
        """
        ...

    def withdraw(self, requests: Sequence[str]) -> None:
        """Take back requests, by their ids, from where sites that have not answered would find them.

        Raises:
            TransportError: If the transport is unavailable.
        """
        ...


@dataclass(frozen=True)
class LocalTransport:
    """Sites in this process, asked in turn without a time limit: for tests, tutorials and simulations.

    Attributes:
        sites: A function for each site, by name, that answers a request with a message.
    """

    sites: Mapping[str, Callable[[str], str]]

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,  # noqa: ARG002
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        """Ask one site after another. A site that raises counts as not answering."""
        for site in sites:
            messages: list[str] = []
            with contextlib.suppress(Exception):
                messages.append(self.sites[site](with_enclosed(request, enclosed.get(site, ""))))
            for message in messages:
                on_response(site, message)

    def withdraw(self, requests: Sequence[str]) -> None:
        """Do nothing: no request waits here."""


@dataclass(frozen=True)
class FileTransport:
    """Files that people carry, where there is no network.

    The request is written to `out`, in one file for every site, or in a file for each site that gets something for
    itself alone. The messages of sites go into `in`, as files whose names end in `.message.json`.

    Attributes:
        folder: The folder of `out` and `in`; both are created.
    """

    folder: Path

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        """Write the request, then poll for messages until every site has one or time is over; poll at least once.

        Files without a message that answers this request are ignored.

        Raises:
            TransportError: If the folder cannot be used.
        """
        if enclosed:
            for site in sites:
                self.write(with_enclosed(request, enclosed.get(site, "")), site)
        else:
            self.write(request)
        asked = request_id(claimed_body(request))
        missing, reported, end = set(sites), set[str](), time.monotonic() + timeout
        while True:
            for site, text in self._messages(asked):
                if site in sites and text not in reported:
                    reported.add(text)
                    missing.discard(site)
                    on_response(site, text)
            left = end - time.monotonic()
            if not missing or left <= 0:
                return
            time.sleep(min(_POLL_SECONDS, left))

    def write(self, text: str, site: str = "") -> Path:
        """Write a request to `out`, for one site or for all, completely or not at all, and return its file."""
        asked = request_id(claimed_body(parted(text)[0]))
        file = self.folder / "out" / f"{asked}{f'.{site}' if site else ''}.request.json"
        with redact_errors(OSError, instead=self._unavailable):
            for side in ("in", "out"):
                (self.folder / side).mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(".partial")
            partial.write_text(text, encoding="utf-8")
            partial.replace(file)
        return file

    def withdraw(self, requests: Sequence[str]) -> None:
        """Remove requests from `out`. Whoever has a copy of a file can still bring it to a site, up to its deadline."""
        with redact_errors(OSError, instead=self._unavailable):
            for request in requests:
                for file in (self.folder / "out").glob(f"{request}.*"):
                    file.unlink(missing_ok=True)

    def _messages(self, request: str) -> Iterator[tuple[str, str]]:
        """Yield the messages that claim to answer a request, with their sites. An incomplete file is not a message."""
        with redact_errors(OSError, instead=self._unavailable):
            files = sorted((self.folder / "in").glob("*.message.json"))
        for file in files:
            with contextlib.suppress(OSError, ValueError, RecursionError, TransportError):
                text = read_bounded(file).strip()
                message = Message.from_json(claimed_body(text))
                if message.request == request:
                    yield message.site, text

    def _unavailable(self, error: Exception) -> TransportError:
        return TransportError(
            problem=f"The folder for requests and messages cannot be read or written: {self.folder} "
            f"({type(error).__name__})",
            hint="check that it exists and that you own it.",
        )
