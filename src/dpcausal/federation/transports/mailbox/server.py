"""The mailbox's server: a WSGI application without a state. It verifies and stores signed texts.

Every call but `/health` and `/join` is signed. A refusal is one code of a fixed list.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NoReturn

from flask import Flask, Response, abort, request
from werkzeug.exceptions import HTTPException

from dpcausal.errors import TransportError
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.rotation import claimed_rotation, verified_rotation
from dpcausal.federation.protocol.signatures import claimed_body, opened
from dpcausal.federation.transports.mailbox.calls import (
    LONGEST_MESSAGE,
    LONGEST_REQUEST,
    Role,
    is_signed,
    read_credentials,
)
from dpcausal.federation.transports.mailbox.store import MailboxStore
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.validation import is_name, is_public_key

_LONGEST_OTHER = 100_000
_MOST_SITES = 10_000
_NO_KEY = "00" * 32

_STATUSES = {
    "malformed": 400,
    "unknown": 401,
    "clock": 401,
    "forbidden": 403,
    "no_delivery": 404,
    "not_found": 404,
    "taken": 409,
    "replayed": 409,
    "no_length": 411,
    "too_large": 413,
    "busy": 429,
    "unavailable": 503,
}
"""The codes of refusals, with their HTTP status."""


def create_app(store: MailboxStore, address: str, log: Callable[[str], None] | None = None) -> Flask:
    """Return the application.

    Args:
        address: The address under which sites and coordinators call the server; calls are signed for it.
        log: Called with a line for each event; by default it is printed.
    """
    app = Flask("dpcausal.mailbox", static_folder=None)
    app.url_map.merge_slashes = False
    server = _Server(store, address, log or print_line)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(TransportError, lambda _: _refusal("unavailable"))
    for method, path, function in (
        ("GET", "/health", server.health),
        ("POST", "/join", server.join),
        ("GET", "/requests", server.requests),
        ("POST", "/messages", server.post_message),
        ("POST", "/requests", server.post_request),
        ("POST", "/withdrawals", server.withdraw),
        ("GET", "/messages", server.messages),
        ("POST", "/collected", server.collect),
        ("POST", "/invitations", server.invite),
        ("POST", "/revocations", server.revoke),
        ("POST", "/rotations", server.rotate),
        ("GET", "/rotations", server.rotations),
        ("GET", "/sites", server.sites),
    ):
        app.add_url_rule(
            path, f"{method} {path}", _replying(function), methods=[method], provide_automatic_options=False
        )
    return app


def print_line(line: str) -> None:
    """Print a line of the log, with the time."""
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}", file=sys.stderr, flush=True)  # noqa: T201


class _Server:
    """The functions behind the addresses."""

    def __init__(self, store: MailboxStore, address: str, log: Callable[[str], None]) -> None:
        self._store, self._address, self._log = store, address, log

    def health(self) -> dict[str, Any]:
        """Return that the database answers."""
        self._store.key_of("site", "")
        return {"status": "ok"}

    def join(self) -> dict[str, Any]:
        """Store the key of an invited site."""
        sealed = _body(_LONGEST_OTHER).decode("ascii", errors="replace")
        try:
            joining = json.loads(claimed_body(sealed))
            site, key = joining["site"], joining["key"]
            signer, _ = opened(sealed, {site: key})
        except (ValueError, TypeError, KeyError, RecursionError, TransportError):
            _refuse("malformed")
        texts = joining.get("pass"), joining.get("binding")
        if not (is_name(site) and is_public_key(key) and all(map(is_public_key, texts)) and signer == site):
            _refuse("malformed")
        if not self._store.join(site, digest_of_text(joining["pass"]), key, joining["binding"]):
            self._log(f"event=join site={site} outcome=refused")
            _refuse("forbidden")
        self._log(f"event=join site={site} outcome=joined")
        return {}

    def requests(self) -> dict[str, Any]:
        """Return the requests that wait for a site."""
        site, _ = self._caller("site")
        found = self._store.requests_for(site, _whole(request.args.get("after", "0")))
        return {"requests": [{"place": place, "text": text} for place, text in found]}

    def post_message(self) -> dict[str, Any]:
        """Store a site's message."""
        site, key = self._caller("site", LONGEST_MESSAGE)
        document = _document(LONGEST_MESSAGE, {"place": int, "text": str})
        try:
            _, body = opened(document["text"], {site: key})
            message = Message.from_json(body)
        except TransportError:
            _refuse("malformed")
        # A site that cannot read a request does not know its id.
        about = "" if message.code == "unreadable" else message.request
        if not self._store.post_message(site, _whole(document["place"]), about, document["text"]):
            _refuse("no_delivery")
        self._log(f"event=message site={site} request={message.request} code={message.code}")
        return {}

    def post_request(self) -> dict[str, Any]:
        """Store a requester's request for some sites: a list, or an object with what is enclosed for each of them."""
        requester, key = self._caller("requester", LONGEST_REQUEST)
        document = _document(LONGEST_REQUEST, {"text": str, "sites": (list, dict)})
        sites = document["sites"]
        enclosed = sites if isinstance(sites, dict) else {}
        try:
            _, body = opened(document["text"], {requester: key})
            asked = Request.from_json(body).id
        except TransportError:
            _refuse("malformed")
        if len(sites) > _MOST_SITES or not all(map(is_name, sites)):
            _refuse("malformed")
        if not all(isinstance(each, str) for each in enclosed.values()):
            _refuse("malformed")
        self._store.post_request(asked, requester, document["text"], list(sites), enclosed)
        self._log(f"event=request requester={requester} request={asked} sites={len(sites)}")
        return {}

    def withdraw(self) -> dict[str, Any]:
        """Close the open deliveries of a requester's requests."""
        requester, _ = self._caller("requester", _LONGEST_OTHER)
        requests = _document(_LONGEST_OTHER, {"requests": list})["requests"]
        if not all(map(is_public_key, requests)):  # 64 hexadecimal digits as well
            _refuse("malformed")
        closed = self._store.withdraw(requester, requests)
        self._log(f"event=withdrawal requester={requester} requests={len(requests)} deliveries={closed}")
        return {"closed": closed}

    def messages(self) -> dict[str, Any]:
        """Return messages to a requester's request."""
        requester, _ = self._caller("requester")
        asked = request.args.get("request", "")
        if not is_public_key(asked):  # 64 hexadecimal digits as well
            _refuse("malformed")
        found = self._store.messages(requester, asked)
        return {"messages": [{"place": place, "site": site, "text": text} for place, site, text in found]}

    def collect(self) -> dict[str, Any]:
        """Forget messages that their requester has stored."""
        requester, _ = self._caller("requester", _LONGEST_OTHER)
        places = _document(_LONGEST_OTHER, {"places": list})["places"]
        self._store.collect(requester, [_whole(place) for place in places])
        return {}

    def invite(self) -> dict[str, Any]:
        """Store an invitation."""
        requester, _ = self._caller("requester", _LONGEST_OTHER)
        document = _document(_LONGEST_OTHER, {"site": str, "pass_digest": str, "expires": int})
        if not (is_name(document["site"]) and is_public_key(document["pass_digest"])):
            _refuse("malformed")
        expires = _whole(document["expires"])
        if not self._store.invite(requester, document["site"], document["pass_digest"], expires):
            _refuse("taken")
        self._log(f"event=invitation requester={requester} site={document['site']}")
        return {}

    def revoke(self) -> dict[str, Any]:
        """Refuse a site from now on."""
        requester, _ = self._caller("requester", _LONGEST_OTHER)
        site = _document(_LONGEST_OTHER, {"site": str})["site"]
        if not is_name(site) or not self._store.revoke(requester, site):
            _refuse("not_found")
        self._log(f"event=revocation requester={requester} site={site}")
        return {}

    def rotate(self) -> dict[str, Any]:
        """Replace the key of a site by the one that its old key vouches for. The same record may come again."""
        site, key = self._caller("site", _LONGEST_OTHER)
        text = _document(_LONGEST_OTHER, {"text": str})["text"]
        try:
            if claimed_rotation(text).new == key:  # it called with its new key, since a reply was lost
                return {}
            rotation = verified_rotation(text, site, key)
        except TransportError:
            _refuse("malformed")
        if not self._store.rotate(site, key, rotation.new, text):
            _refuse("unknown")
        self._log(f"event=rotation site={site}")
        return {}

    def rotations(self) -> dict[str, Any]:
        """Return the records of rotated keys, for the requester that invited the sites."""
        requester, _ = self._caller("requester")
        return {"rotations": [{"site": site, "text": text} for site, text in self._store.rotations(requester)]}

    def sites(self) -> dict[str, Any]:
        """Return what is known about each site of a requester."""
        requester, _ = self._caller("requester")
        return {"sites": [asdict(each) for each in self._store.sites(requester)]}

    def _caller(self, role: Role, longest: int = 0) -> tuple[str, str]:
        """Return the name and public key of whoever signed this call; refuse all others before the body is read."""
        _check_length(longest)
        query = request.query_string.decode("ascii", errors="replace")
        target = f"{request.path}?{query}" if query else request.path
        credentials = read_credentials(request.headers.get("Authorization", ""))
        if credentials is None:
            _refuse("unknown")
        key = self._store.key_of(role, credentials.name)
        if not is_signed(credentials, key or _NO_KEY, self._address, request.method, target) or key is None:
            _refuse("unknown")
        admission, wait = self._store.admit(role, credentials.name, credentials.stamp)
        if admission != "admitted":
            _refuse(admission, wait)
        if hashlib.sha256(_body(longest)).hexdigest() != credentials.digest:
            _refuse("unknown")
        return credentials.name, key


def _check_length(longest: int) -> None:
    if request.headers.get("Transfer-Encoding"):
        _refuse("no_length")
    if (request.content_length or 0) > longest:
        _refuse("too_large")


def _body(longest: int) -> bytes:
    """Read the body, of the length that its header states."""
    _check_length(longest)
    return request.get_data(cache=True)


def _document(longest: int, kinds: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """Return the body as a JSON object with exactly these fields."""
    try:
        document = json.loads(_body(longest))
    except (ValueError, RecursionError):
        _refuse("malformed")
    if not isinstance(document, dict) or document.keys() != kinds.keys():
        _refuse("malformed")
    if not all(type(document[name]) in (kind if isinstance(kind, tuple) else (kind,)) for name, kind in kinds.items()):
        _refuse("malformed")
    return document


def _whole(value: object) -> int:
    """Return a whole number that a database takes."""
    text = str(value) if type(value) is int or isinstance(value, str) else ""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        _refuse("malformed")
    return int(text)


def _replying(function: Callable[[], dict[str, Any]]) -> Callable[[], Response]:
    return lambda: _reply(function(), 200)


def _reply(document: Mapping[str, Any], status: int) -> Response:
    return Response(json.dumps(document), status, mimetype="application/json", headers={"Cache-Control": "no-store"})


def _refuse(code: str, wait: float = 0.0) -> NoReturn:
    abort(_refusal(code, wait))


def _refusal(code: str, wait: float = 0.0) -> Response:
    reply = _reply({"code": code}, _STATUSES[code])
    if wait:
        reply.headers["Retry-After"] = str(int(wait) + 1)
    return reply


def _refused(error: HTTPException) -> Response:
    """Return the reply of a refusal; Flask's own errors become one of the codes."""
    if error.response is not None:
        return error.response  # type: ignore[return-value]
    return _refusal({404: "not_found", 405: "not_found", 413: "too_large"}.get(error.code or 0, "malformed"))
