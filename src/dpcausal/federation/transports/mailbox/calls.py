"""Signed calls: each call of the mailbox carries its caller's name, a time stamp and a signature.

The signature covers the address of the server, the method, the path with its query, and the digest of the body. It is
in a header, so that the server can verify it before it reads the body. A time stamp counts once: see `store.admit`.
"""

import hashlib
import re
import time
from dataclasses import dataclass
from typing import Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpcausal.errors import TransportError
from dpcausal.federation.protocol.signatures import Key

Role = Literal["site", "requester"]

SCHEME = "Dpcausal-Ed25519"
WINDOW = 300.0
"""The largest difference between the clocks of caller and server, in seconds."""

LONGEST_REQUEST = 4_000_000
LONGEST_MESSAGE = 4_000_000
"""The largest sizes of a request's and of a message's body, in bytes."""

LONGEST_REPLY = 18_000_000
"""The largest size of a reply, in bytes."""

_DOMAIN = "dpcausal mailbox 1"  # a signature made for another purpose is not valid here
_HEADER = re.compile(rf"{SCHEME} ([A-Za-z0-9][A-Za-z0-9_-]{{0,62}}):(\d{{1,18}}):([0-9a-f]{{64}}):([0-9a-f]{{128}})")


class CallFailedError(TransportError):
    """A call of the mailbox failed.

    Attributes:
        reason: Why, as one word of a fixed list.
        retry_after: Seconds to wait before another call, where the server demands it.
    """

    def __init__(self, reason: str, *, got: str, hint: str, retry_after: float = 0.0) -> None:
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(problem=f"A call of the mailbox failed with {got}", hint=hint)


@dataclass(frozen=True)
class Credentials:
    """The content of the header of a signed call."""

    name: str
    stamp: int
    digest: str
    signature: str


def sign_call(key: Key, audience: str, method: str, target: str, body: bytes) -> str:
    """Return the header that authenticates a call."""
    stamp, digest = time.time_ns() // 1000, hashlib.sha256(body).hexdigest()
    signature = key.private.sign(_signed(audience, method, target, key.owner, stamp, digest))
    return f"{SCHEME} {key.owner}:{stamp}:{digest}:{signature.hex()}"


def read_credentials(header: str) -> Credentials | None:
    """Return the credentials in a header; None if it holds none."""
    found = _HEADER.fullmatch(header)
    return Credentials(found[1], int(found[2]), found[3], found[4]) if found else None


def is_signed(credentials: Credentials, public: str, audience: str, method: str, target: str) -> bool:
    """Return whether a call was signed with the private half of a public key."""
    signed = _signed(audience, method, target, credentials.name, credentials.stamp, credentials.digest)
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(credentials.signature), signed)
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed(*parts: object) -> bytes:
    return "\n".join(map(str, (_DOMAIN, *parts))).encode()
