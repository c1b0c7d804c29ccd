"""Calls of the mailbox server: over TLS, signed, and with a fixed list of reasons for those that fail."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.util import make_headers, parse_url

from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.transports.mailbox.authority import client_context
from dpcausal.federation.transports.mailbox.calls import LONGEST_REPLY, CallFailedError, sign_call
from dpcausal.federation.transports.mailbox.invitations import Invitation

_SECONDS = 30.0
_HINTS = {
    "refused": "the server is not running, or its port is closed: it is called again later.",
    "unreachable": "check the network and the host name of the server.",
    "proxy": "check the proxy that HTTPS_PROXY names, its password, and that it opens the server's port.",
    "timeout": "the server or the network is slow: it is called again later.",
    "reset": "the server was stopped during the call: it is called again later.",
    "certificate": "the server's certificate is not valid: check the clock here, and whether it was renewed.",
    "unknown": "the server does not know this key, or refuses it: ask the coordinator for an invitation.",
    "clock": "set the clock: it may differ from the server's by at most 5 minutes.",
    "replayed": "two processes call with one key, or the clock was set back: it is called again later.",
    "busy": "too many calls: it is called again later.",
    "unavailable": "the server's database does not answer: it is called again later.",
    "forbidden": "the invitation has expired or was used: ask the coordinator for another one.",
    "taken": "another requester of this mailbox invited a site of this name: choose another name.",
    "not_found": "this requester invited no such site.",
    "too_large": "the text is too large for the mailbox: carry it as a file.",
}


class Client:
    """Calls one mailbox server.

    Args:
        authority: The certificate of its authority, in PEM.
        timeout: Seconds to wait for the server.
        place: Where the server is called instead, `https://127.0.0.1:8443` for instance; its certificate is still held
            against the address, for which calls are signed.
    """

    def __init__(self, address: str, authority: str, key: Key, timeout: float = _SECONDS, *, place: str = "") -> None:
        self.address = address
        self._place = place or address
        self._authority = authority
        self._key = key
        self._timeout = timeout

    def call(
        self, method: str, path: str, document: Mapping[str, Any] | None = None, **query: object
    ) -> dict[str, Any]:
        """Make a signed call, and return the document in its reply."""
        target = f"{path}?{urlencode(query)}" if query else path
        body = b"" if document is None else json.dumps(document).encode()
        header = sign_call(self._key, self.address, method, target, body)
        return _called(self._pool, method, self._place + target, body, {"Authorization": header})

    def close(self) -> None:
        """Close all connections; the next call opens one."""
        self._pool.clear()

    @cached_property
    def _pool(self) -> urllib3.PoolManager:
        host = urlsplit(self.address).hostname or ""
        names = {"server_hostname": host, "assert_hostname": host} if self._place != self.address else {}
        return _pool(self._place, self._timeout, ssl_context=client_context(self._authority), **names)


def join(invitation: Invitation, key: Key) -> None:
    """Accept an invitation: send the site's public key to the server.

    Raises:
        CallFailedError: If the server is another one than that of the invitation, or it refuses.
    """
    joining = {
        "site": key.owner,
        "key": key.public,
        "pass": invitation.door_pass,
        "binding": invitation.bind(key.public),
    }
    sealed = key.seal(json.dumps(joining, sort_keys=True)).encode()
    with _pool(invitation.address, _SECONDS, ssl_context=client_context(invitation.authority)) as pool:
        _called(pool, "POST", f"{invitation.address}/join", sealed, {})


def _pool(address: str, timeout: float, **settings: Any) -> urllib3.PoolManager:  # noqa: ANN401 (of urllib3)
    """Return a pool of connections, through the proxy that the environment names."""
    host = urlsplit(address).hostname or ""
    proxy = None if proxy_bypass(host) else getproxies().get("https")
    settings |= {"timeout": urllib3.Timeout(connect=timeout, read=timeout), "retries": False, "maxsize": 1}
    if not proxy:
        return urllib3.PoolManager(**settings)
    try:
        url = parse_url(proxy if "://" in proxy else f"http://{proxy}")
        headers = make_headers(proxy_basic_auth=unquote(url.auth)) if url.auth else None
        return urllib3.ProxyManager(url._replace(auth=None).url, proxy_headers=headers, **settings)
    except (HTTPError, ValueError):  # without its words: the address may hold a password
        raise CallFailedError("proxy", got="an unusable HTTPS_PROXY", hint=_HINTS["proxy"]) from None


def _called(
    pool: urllib3.PoolManager, method: str, url: str, body: bytes, headers: Mapping[str, str]
) -> dict[str, Any]:
    try:
        document = json.loads(_text(pool, method, url, body, headers))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise CallFailedError("malformed", got="an unreadable reply", hint="check the address of the server.")
    return document


def _text(pool: urllib3.PoolManager, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> str:
    try:
        reply = pool.request(
            method, url, body=body or None, headers=headers, redirect=False, preload_content=False, decode_content=False
        )
        content = reply.read(LONGEST_REPLY + 1)
        if len(content) > LONGEST_REPLY:
            reply.close()
        reply.release_conn()
    except (HTTPError, OSError) as error:
        reason = _reason(error)
    else:
        if reply.status == 200 and len(content) <= LONGEST_REPLY:
            return content.decode("utf-8", errors="replace")
        raise _refused(reply, content)
    raise CallFailedError(reason, got=f"no answer ({reason})", hint=_HINTS[reason])


def _refused(reply: urllib3.BaseHTTPResponse, content: bytes) -> CallFailedError:
    """Return the error of a reply that is a refusal."""
    try:
        code = str(json.loads(content)["code"])
    except (ValueError, TypeError, KeyError, RecursionError):
        code = ""
    code = code if code.isascii() and code.isidentifier() else f"status_{reply.status}"
    waits = reply.headers.get("Retry-After", "")
    offset = f"; clocks differ by {_clock_offset(reply):.0f} seconds" if code == "clock" else ""
    return CallFailedError(
        code,
        got=f"a refusal: {code}{offset}",
        hint=_HINTS.get(code, "run the same version of dpcausal at the server and here."),
        retry_after=float(waits) if waits.isdigit() and len(waits) < 6 else 0.0,
    )


def _clock_offset(reply: urllib3.BaseHTTPResponse) -> float:
    try:
        return (parsedate_to_datetime(reply.headers.get("Date", "")) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return float("nan")


def _reason(error: Exception) -> str:
    """Return the kind of an error of the connection."""
    if isinstance(error, ProxyError):
        return "proxy"
    if isinstance(error, SSLError):
        return "certificate" if "CERTIFICATE" in str(error).upper() else "reset"
    if isinstance(error, NameResolutionError):
        return "unreachable"
    if isinstance(error, NewConnectionError):  # before timeouts: urllib3 derives it from one
        return "refused" if isinstance(error.__cause__, ConnectionRefusedError) else "unreachable"
    if isinstance(error, ConnectTimeoutError | ReadTimeoutError):
        return "timeout"
    return "reset" if isinstance(error, ProtocolError | ConnectionError) else "unreachable"
