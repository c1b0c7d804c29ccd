"""How notices leave: e-mail by SMTP, and signed webhooks. Secrets are in files or in the environment, not in settings.

Webhooks are signed as Standard Webhooks (standardwebhooks.com) says: HMAC-SHA256 of id, time and body.
"""

import base64
import hmac
import json
import os
import smtplib
import ssl
import threading
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from dpcausal.errors import DpcausalError, StudyError
from dpcausal.federation.operation.notices import KINDS, Channel
from dpcausal.utils.validation import build, check_keys, is_loopback

_FILE = "console.toml"
_TIMEOUT, _LONGEST = 20.0, 60.0
"""The seconds that a receiver may be silent, and that a message may take in all."""
_SHORTEST_SECRET = 24


@dataclass(frozen=True, kw_only=True)
class Mail:
    """Notices by e-mail.

    Attributes:
        host: The name of the mail server.
        sender: The address that they come from.
        to: The addresses that they go to.
        tls: `starttls`, `implicit`, or `none`, for a server on this machine only.
        user: The name to log in with; empty for no login.
        password_from: Where the password is: `env:NAME` or `file:PATH`.
        events: The kinds of events that are told.
    """

    host: str
    sender: str
    to: Sequence[str]
    port: int = 587
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    user: str = ""
    password_from: str = ""
    events: Sequence[str] = KINDS

    def __post_init__(self) -> None:
        _check_events(self.events)
        listed = isinstance(self.to, list | tuple) and len(self.to) > 0
        texts = all(isinstance(each, str) for each in (self.host, self.user, self.password_from))
        _require(isinstance(self.host, str) and self.host != "" and texts, "host of [[notify.mail]]", "a name")
        _require(listed and all(map(_is_mailbox, (self.sender, *self.to))), "sender and to", "plain e-mail addresses")
        _require(type(self.port) is int and 0 < self.port < 65536, "port", "a number below 65536")
        _require(self.tls in {"starttls", "implicit", "none"}, "tls", "starttls, implicit or none")
        _require(self.tls != "none" or (is_loopback(self.host) and not self.user), "tls", "none on this machine only")
        _require(bool(self.user) == bool(self.password_from), "user and password_from", "both or neither")

    @property
    def name(self) -> str:
        """What it is called, and to whom it goes."""
        return f"mail to {', '.join(self.to)}"

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message by e-mail."""
        _within(lambda: self._send(message))

    def _send(self, message: Mapping[str, Any]) -> None:
        mail = EmailMessage()
        mail["Subject"] = f"[dpcausal {message['about']}] {message['title']}"
        mail["From"], mail["To"] = self.sender, ", ".join(self.to)
        mail["Date"], mail["Auto-Submitted"] = formatdate(), "auto-generated"
        mail["Message-ID"] = f"<{message['id']}@{self.sender.partition('@')[2]}>"
        link = f"{message['link']}\n\n" if message["link"] else ""
        mail.set_content(f"{message['text']}\n\n{link}-- \n{message['about']}, {message['kind']}, {message['id']}\n")
        context = ssl.create_default_context()
        if self.tls == "implicit":
            server: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=_TIMEOUT, context=context)
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=_TIMEOUT)
        with server:
            if self.tls == "starttls":
                server.starttls(context=context)
            if self.user:
                server.login(self.user, _secret(self.password_from).decode())
            if refused := server.send_message(mail):
                raise smtplib.SMTPRecipientsRefused(refused)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a message goes to the address in the settings, or nowhere."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """Notices to a program, by HTTPS.

    Attributes:
        address: Where they are sent.
        secret_from: Where the secret is that signs them: `env:NAME` or `file:PATH`.
        events: The kinds of events that are told.
    """

    address: str
    secret_from: str
    events: Sequence[str] = KINDS

    def __post_init__(self) -> None:
        _check_events(self.events)
        parts = urlsplit(self.address) if isinstance(self.address, str) else urlsplit("")
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        plain = bool(parts.hostname) and "@" not in parts.netloc and not parts.query
        _require(safe and plain, "address of [[notify.webhook]]", "https, without a password or a query")

    @property
    def name(self) -> str:
        """What it is called, and to whom it goes."""
        return f"webhook to {self.address}"

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message, signed."""
        _within(lambda: self._send(message))

    def _send(self, message: Mapping[str, Any]) -> None:
        data = {name: message[name] for name in ("about", "title", "text", "link", "study")}
        document = {"type": f"dpcausal.{message['kind']}", "timestamp": message["at"], "data": data}
        body, at = json.dumps(document), str(int(time.time()))
        headers = {
            "content-type": "application/json",
            "webhook-id": message["id"],
            "webhook-timestamp": at,
            "webhook-signature": signature(_key(_secret(self.secret_from)), message["id"], at, body),
        }
        request = urllib.request.Request(self.address, body.encode(), headers, method="POST")  # noqa: S310 (checked)
        try:
            urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT).close()
        except urllib.error.HTTPError as error:  # any status but 2xx
            error.close()
            raise


def signature(key: bytes, message: str, at: str, body: str) -> str:
    """Return the signature of a webhook."""
    signed = hmac.digest(key, f"{message}.{at}.{body}".encode(), sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


@dataclass(frozen=True)
class NotifySettings:
    """Who is told, as `[notify]` in `console.toml` says, and the address of the console there."""

    channels: tuple[Channel, ...]
    address: str = ""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the settings in a folder, and check that the secrets are there."""
        file = folder / _FILE
        try:
            document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StudyError(problem=f"{file} cannot be read ({type(error).__name__})", hint=_HINT) from None
        wanted, channels = document.get("notify", {}), list[Channel]()
        try:
            check_keys("[notify]", wanted, (), ("mail", "webhook"))
            channels += [build("[[notify.mail]]", Mail, each) for each in wanted.get("mail", ())]
            channels += [build("[[notify.webhook]]", Webhook, each) for each in wanted.get("webhook", ())]
        except DpcausalError as error:
            raise StudyError(problem=error.problem, hint=_HINT) from None
        if not channels or len({each.name for each in channels}) < len(channels):
            raise StudyError(problem=f"{file} names nobody to notify, or somebody twice", hint=_HINT)
        for each in channels:
            if isinstance(each, Webhook):
                _key(_secret(each.secret_from))
            elif isinstance(each, Mail) and each.user:
                _secret(each.password_from)
        return cls(tuple(channels), str(document.get("address", "")))


_HINT = f"correct [notify] in {_FILE}; the page on operation has an example."


def _within(send: Callable[[], None]) -> None:
    """Send within a minute; raise OSError otherwise. A receiver that answers byte by byte gets no more time."""
    failed = [OSError("not sent")]

    def run() -> None:
        try:
            send()
        except OSError as error:
            failed[:] = [error]
        except (HTTPException, ValueError, DpcausalError) as error:  # an answer that is none, a secret that is gone
            failed[:] = [OSError(type(error).__name__)]
        else:
            failed.clear()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_LONGEST)
    if thread.is_alive():
        raise TimeoutError
    if failed:
        raise failed[0]


def _secret(place: str) -> bytes:
    """Return a secret from the environment or from a file. An error never contains it."""
    kind, _, name = place.partition(":") if isinstance(place, str) else ("", "", "")
    try:
        if kind == "file" and Path(name).stat().st_mode & 0o077:
            raise StudyError(problem=f"Others than its owner can read {name}", hint=f"run: chmod 600 {name}.")
        found = Path(name).read_bytes() if kind == "file" else os.environb[name.encode()] if kind == "env" else b""
    except (OSError, KeyError):
        found = b""
    if not found.strip():
        where = name if kind in {"file", "env"} else "the settings"
        raise StudyError(
            problem=f"There is no secret in {where}",
            hint='write "file:PATH" or "env:NAME" into the settings, and the secret into that file or variable.',
        )
    return found.strip()


def _key(secret: bytes) -> bytes:
    """Return the key in the secret of a webhook."""
    try:
        key = base64.b64decode(secret.removeprefix(b"whsec_"), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(b"whsec_") or len(key) < _SHORTEST_SECRET:
        raise StudyError(
            problem=f"The secret of a webhook must be whsec_ and at least {_SHORTEST_SECRET} bytes in base64",
            hint='make one with: echo "whsec_$(openssl rand -base64 32)".',
        )
    return key


def _check_events(events: object) -> None:
    known = isinstance(events, list | tuple) and len(events) > 0 and all(each in KINDS for each in events)
    _require(known, "events", f"a list of {', '.join(KINDS)}")


def _require(holds: object, what: str, expected: str) -> None:
    if not holds:
        raise StudyError(problem=f"{what} must be: {expected}", hint=_HINT)


def _is_mailbox(text: object) -> bool:
    name, at, domain = text.partition("@") if isinstance(text, str) else ("", "", "")
    plain = set(f"{name}{domain}").isdisjoint(' ,;:<>()[]"\\@') and f"{name}{domain}".isprintable()
    return bool(name and at and domain) and plain and f"{name}{domain}".isascii()
