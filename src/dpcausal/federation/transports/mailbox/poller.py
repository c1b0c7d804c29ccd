"""A site's side of the mailbox: fetch requests, answer them, and send the messages, until stopped.

A message is on disk before it is sent, and stays there until the server has stored it. A failed call is repeated, at
growing and random intervals.
"""

import contextlib
import json
import secrets
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import tomli_w

from dpcausal.errors import DpcausalError, StudyError, redact_errors
from dpcausal.federation.operation.contents import CONNECTION
from dpcausal.federation.operation.heartbeat import Heartbeat
from dpcausal.federation.protocol.messages import Message
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.transports.mailbox.authority import AUTHORITY
from dpcausal.federation.transports.mailbox.calls import CallFailedError
from dpcausal.federation.transports.mailbox.client import Client, join
from dpcausal.federation.transports.mailbox.invitations import Invitation
from dpcausal.utils.durable_files import replace_file

EVERY = 30.0
"""Seconds between two polls."""

_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
_RANDOM = secrets.SystemRandom()


def join_mailbox(folder: Path, token: str, key: Key) -> str:
    """Join a mailbox with a token, remember it in a folder, and return the address of its server."""
    invitation = Invitation.from_token(token)
    invitation.check_valid(key.owner)
    join(invitation, key)
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / AUTHORITY).write_text(invitation.authority, encoding="ascii")
    (folder / CONNECTION).write_text(tomli_w.dumps({"address": invitation.address}), encoding="utf-8")
    return invitation.address


def client_in(folder: Path, key: Key) -> Client:
    """Return a client of the mailbox that was joined in a folder."""
    with redact_errors(OSError, ValueError, instead=lambda _: _not_joined(folder)):
        return Client(connected_address(folder), (folder / AUTHORITY).read_text(encoding="ascii"), key)


def connected_address(folder: Path) -> str:
    """Return the address of the server that was joined in a folder."""
    with redact_errors(OSError, ValueError, KeyError, instead=lambda _: _not_joined(folder)):
        return str(tomllib.loads((folder / CONNECTION).read_text(encoding="utf-8"))["address"])


def announce_rotation(folder: Path, record: str, *keys: Key) -> None:
    """Send the record of a rotation to the mailbox that was joined in a folder, with the old key or, again, the new.

    Raises:
        CallFailedError: If the server has neither key, or cannot be reached.
    """
    old, new = keys
    try:
        client_in(folder, old).call("POST", "/rotations", {"text": record})
    except CallFailedError as error:
        if error.reason != "unknown":
            raise
        client_in(folder, new).call("POST", "/rotations", {"text": record})


class Outbox:
    """Messages on disk that the server has not stored yet, by the place of their delivery."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def store(self, place: int, message: str) -> None:
        """Store a message, durably."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._file(place), json.dumps({"place": place, "text": message}))

    def messages(self) -> Iterator[tuple[int, str]]:
        """Yield each message with its place, in the order of places."""
        for file in sorted(self._folder.glob("*.json")):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                document = json.loads(file.read_text(encoding="utf-8"))
                yield document["place"], document["text"]

    def remove(self, place: int) -> None:
        """Remove the message that the server has stored, or that it does not want."""
        self._file(place).unlink(missing_ok=True)

    def _file(self, place: int) -> Path:
        return self._folder / f"{place:019}.json"


class Poller:
    """Polls a mailbox for a site.

    Args:
        answer: Answers a signed request with a signed message.
        log: Called with a line for each study that was answered or refused, and when the connection changes.
        every: Seconds between two polls, on average.
        beats: The folder for a heartbeat, which the site's status reads; None for no heartbeat.
    """

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        client: Client,
        outbox: Outbox,
        answer: Callable[[str], str],
        log: Callable[[str], None],
        every: float = EVERY,
        beats: Path | None = None,
    ) -> None:
        self._client, self._outbox, self._answer, self._log, self._every = client, outbox, answer, log, every
        self._beats, self._beat = beats, Heartbeat(started=time.time(), every=every)
        self._failures = 0
        self._state = ""

    def run(self, stop: threading.Event) -> None:
        """Poll until stopped."""
        self._note(self._beat)
        while not stop.wait(self.turn()):
            pass

    def turn(self) -> float:
        """Poll once, and return the seconds to wait before the next poll.

        The pause after a success is always the ordinary one, and it doubles with each failure in succession. Both are
        random, so that many sites that lost their server do not come back at the same moment.
        """
        try:
            self.poll()
        except CallFailedError as error:
            self._failures += 1
            self._report(error.reason, f"event=disconnected reason={error.reason} hint={error.hint!r}")
            longest = max(_LONGEST_PAUSE, self._every)
            pause = min(longest, _FIRST_PAUSE * 2.0 ** min(self._failures - 1, 30))
            return max(pause * _RANDOM.uniform(0.5, 1.5), error.retry_after)
        except (DpcausalError, OSError) as error:
            self._failures += 1
            self._report("failed", f"event=failed error={type(error).__name__} detail={str(error)!r}")
            return max(_LONGEST_PAUSE, self._every) * _RANDOM.uniform(0.5, 1.5)
        finally:
            self._client.close()  # a pause is longer than a server keeps a connection
        self._failures = 0
        return self._every * _RANDOM.uniform(0.75, 1.25)

    def poll(self) -> int:
        """Send the messages that wait, fetch requests, and answer them; return the number of messages that were sent.

        Raises:
            CallFailedError: If a call failed. Messages that were not sent stay on disk.
        """
        sent = sum(self._send(place, text) for place, text in list(self._outbox.messages()))
        after = 0
        while found := self._requests(after):
            self._report("connected", "event=connected")
            for place, request in found:
                message = self._answer(request)
                self._outbox.store(place, message)
                self._log(_outcome(message))
                sent += self._send(place, message)
                after = place
        self._report("connected", "event=connected")
        self._note(replace(self._beat, contact=time.time()))
        return sent

    def _note(self, beat: Heartbeat) -> None:
        """Write a heartbeat, if there is a folder for it."""
        self._beat = beat
        if self._beats is not None:
            beat.write(self._beats)

    def _requests(self, after: int) -> list[tuple[int, str]]:
        reply = self._client.call("GET", "/requests", after=after)
        try:
            return [(int(each["place"]), str(each["text"])) for each in reply["requests"]]
        except (KeyError, TypeError, ValueError):
            raise CallFailedError("malformed", got="an unreadable reply", hint="check the server's version.") from None

    def _send(self, place: int, text: str) -> bool:
        """Send a message, and return whether the server has it; one that the server does not want is dropped."""
        try:
            self._client.call("POST", "/messages", {"place": place, "text": text})
        except CallFailedError as error:
            if error.reason not in {"no_delivery", "malformed", "too_large"}:
                raise
            # The site's own store has the answer, for when it is asked again.
            self._log(f"event=dropped reason={error.reason} request={Message.from_json(claimed_body(text)).request}")
            self._outbox.remove(place)
            return False
        self._outbox.remove(place)
        return True

    def _report(self, state: str, line: str) -> None:
        """Log a line if the state of the connection has changed."""
        if state != self._state:
            self._log(line)
        self._state = state


def _outcome(message: str) -> str:
    """Return the line of the log about an answer."""
    found = Message.from_json(claimed_body(message))
    return f"event=study study={found.study} request={found.request} outcome={found.code}"


def _not_joined(folder: Path) -> StudyError:
    return StudyError(
        expected=f"a site that has joined a mailbox, in {folder}",
        got="none",
        hint="ask the coordinator for an invitation, then: dpcausal site join-mailbox FOLDER TOKEN.",
    )
