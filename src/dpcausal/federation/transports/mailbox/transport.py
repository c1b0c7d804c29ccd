"""The mailbox as a transport of a coordinator, and the coordinator's own calls: invite, admit and revoke sites."""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpcausal.errors import StudyError, TransportError
from dpcausal.federation.coordinator.roster import Member
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.messages import BEFORE, Message, request_id
from dpcausal.federation.protocol.rotation import claimed_rotation
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.protocol.transport import NOTHING
from dpcausal.federation.transports.mailbox.calls import LONGEST_REQUEST, CallFailedError
from dpcausal.federation.transports.mailbox.client import Client
from dpcausal.federation.transports.mailbox.invitations import Invitation
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.utils.durable_files import replace_file
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.validation import is_name

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_PERMANENT = {"unknown", "certificate", "clock", "malformed", "too_large", "forbidden", "not_found"}
_RANDOM = secrets.SystemRandom()


class MailboxTransport:
    """Sends requests through a mailbox server, which sites poll."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.failures: dict[str, int] = {}
        """The number of failed calls so far, by reason."""

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        """Send a request, and call `on_response` for each message that arrives within `timeout` seconds.

        A request stays in the mailbox after the timeout, and a site may answer it later; the next call of `ask` for the
        same request then finds this answer. A message leaves the mailbox after `on_response` has returned.

        Raises:
            TransportError: If no server could be reached in this time, or it refuses this requester.
        """
        end = time.monotonic() + timeout
        asked = request_id(claimed_body(request))
        missing, reached, pause = set(sites), False, _FIRST_PAUSE
        posted = False
        while True:
            try:
                if not posted:
                    # Messages from before count if they are answers; a site that refused then may answer now. One that
                    # speaks only the version before can be asked in it.
                    self._collect(asked, missing, _still_counts, on_response)
                    if missing:
                        for call in calls_of(request, sorted(missing), enclosed):
                            self._client.call("POST", "/requests", call)
                    posted = reached = True
                found = self._collect(asked, missing, lambda _: True, on_response)
                pause = _FIRST_PAUSE if found else min(1.5 * pause, 3.0)
            except CallFailedError as error:
                self.failures[error.reason] = self.failures.get(error.reason, 0) + 1
                if error.reason in _PERMANENT:
                    raise
                pause = max(min(2.0 * pause, _LONGEST_PAUSE), error.retry_after)
            left = end - time.monotonic()
            if not missing or left <= 0:
                break
            time.sleep(min(pause * _RANDOM.uniform(0.5, 1.0), left))
        self._client.close()
        if not reached:
            raise TransportError(
                problem=f"No mailbox server answered at {self._client.address} in {timeout:g} seconds",
                hint="start it with: dpcausal federation mailbox serve FOLDER; check that its port is open.",
            )

    def withdraw(self, requests: Sequence[str]) -> None:
        """Close the deliveries of requests that sites have not answered."""
        self._client.call("POST", "/withdrawals", {"requests": list(requests)})
        self._client.close()

    def _collect(
        self, asked: str, missing: set[str], counts: Callable[[str], bool], on_response: Callable[[str, str], None]
    ) -> bool:
        """Fetch the messages that wait, pass on those that count, and return whether there were any."""
        found = False
        while messages := _listed(self._client.call("GET", "/messages", request=asked), "messages"):
            found = True
            for each in messages:
                if counts(each["text"]):
                    on_response(each["site"], each["text"])
                    missing.discard(each["site"])
            self._client.call("POST", "/collected", {"places": [each["place"] for each in messages]})
        return found


def calls_of(request: str, sites: Sequence[str], enclosed: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the bodies of the calls that send a request: one, or as many as what is enclosed for single sites needs."""
    if not enclosed:
        yield {"text": request, "sites": list(sites)}
        return
    empty = len(json.dumps({"text": request, "sites": {}}))
    found, size = dict[str, str](), empty
    for site in sites:
        more = len(json.dumps({site: enclosed.get(site, "")}))
        if found and size + more > LONGEST_REQUEST:
            yield {"text": request, "sites": found}
            found, size = {}, empty
        found[site] = enclosed.get(site, "")
        size += more
    yield {"text": request, "sites": found}


def requester_client(folder: Path, requester: str) -> Client:
    """Return a client of the mailbox in a workspace that signs with the key of a requester."""
    mailbox = Mailbox.read(folder / "mailbox")
    return Client(mailbox.address, mailbox.authority, Workspace(folder).key(requester))


def invite(client: Client, folder: Path, site: str, authority: str, seconds: int) -> Invitation:
    """Invite a site: announce the invitation to the server, store its secret in a folder, and return it.

    Raises:
        CallFailedError: If the server refuses, for instance because the site is another requester's.
    """
    invitation = Invitation.new(client.address, authority, site, int(time.time()) + seconds)
    announced = {
        "site": site,
        "pass_digest": digest_of_text(invitation.door_pass),
        "expires": invitation.expires,
    }
    client.call("POST", "/invitations", announced)
    folder.mkdir(mode=0o700, exist_ok=True)
    replace_file(folder / f"{site}.json", json.dumps(asdict(invitation)))
    return invitation


def admit_joined(client: Client, folder: Path, workspace: Workspace) -> dict[str, str]:
    """Add the sites that accepted an invitation to the roster, and return their keys.

    The key must be bound to the secret of the invitation: the server could not have chosen it. Of a site that rotated
    its key since it joined, that is the key so far; `accept_rotations` then verifies what it signed.
    """
    keys: dict[str, str] = {}
    before = _keys_before(client)
    for joined in _listed(client.call("GET", "/sites"), "sites"):
        file = folder / f"{joined['site']}.json"
        with suppress(OSError):
            invitation = Invitation(**json.loads(file.read_text(encoding="ascii")))
            known = (joined["key"], *before.get(invitation.site, ()))
            if bound := [key for key in known if invitation.binds(key, joined["binding"])]:
                keys[invitation.site] = bound[0]  # otherwise it was invited again since it joined
    roster = workspace.roster.sites
    workspace.admit_all(
        {site: Member(key) for site, key in keys.items() if site not in roster or roster[site].key != key}
    )
    for site in keys:
        (folder / f"{site}.json").unlink()
    return keys


def accept_rotations(client: Client, workspace: Workspace) -> dict[str, str]:
    """Record the new keys of sites in the roster, and return what came of each record that was not recorded before."""
    found: dict[str, str] = {}
    for each in _rotations(client):
        try:
            if rotation := workspace.accept_key(each["text"]):
                found[rotation.site] = "has a new key, signed with its old one"
        except (TransportError, StudyError) as error:  # the server could have made it up
            found[each["site"] if is_name(each["site"]) else "a site"] = (
                f"sent a new key that does not count: {error.problem}"
            )
    return found


def _rotations(client: Client) -> list[dict[str, Any]]:
    """Return the records of rotations that the server passes on, the oldest first."""
    return _listed(client.call("GET", "/rotations"), "rotations")


def _keys_before(client: Client) -> dict[str, list[str]]:
    """Return the keys that sites had before their rotations, as far as the server says."""
    found: dict[str, list[str]] = {}
    for each in _rotations(client):
        with suppress(TransportError):
            claimed = claimed_rotation(each["text"])
            found.setdefault(claimed.site, []).append(claimed.old)
    return found


def _listed(reply: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the list in a reply, checked."""
    kinds = {"place": int, "site": str, "text": str, "key": str, "binding": str}
    found = reply.get(name)
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        held = all(isinstance(value, kinds.get(key, object)) for each in found for key, value in each.items())
        parts = {"messages": {"place", "site", "text"}, "sites": {"site", "key", "binding"}}
        needed = parts.get(name, {"site", "text"})
        if held and all(needed <= each.keys() for each in found):
            return found
    raise CallFailedError("malformed", got="an unreadable reply", hint="check the server's version.")


def _still_counts(text: str) -> bool:
    """Return whether a message that arrived before a request was sent again says what it would say now."""
    try:
        message = Message.from_json(claimed_body(text))
    except TransportError:
        return False
    return message.code == "answered" or (message.code == "unreadable" and message.version == BEFORE)
