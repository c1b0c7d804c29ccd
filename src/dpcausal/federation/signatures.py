"""Who said what: Ed25519 signatures on the texts that travel between coordinator and sites."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dpcausal.errors import MissingExtraError, TransportError, redact_errors

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
except ImportError:
    raise MissingExtraError(
        expected="cryptography, which sites and coordinators sign with",
        got="an installation without it",
        hint='pip install "dpcausal[federation]".',
    ) from None

_DOMAIN = b"dpcausal federation 1\n"  # so that no signature made for another purpose counts here
LONGEST = 20_000_000
"""So many characters at most has a text that is read."""


@dataclass(frozen=True)
class Key:
    """What a coordinator or a site signs with. The private half stays in the file where it was made.

    Attributes:
        owner: Whose it is.
        private: The private half; printed nowhere.
    """

    owner: str
    private: Ed25519PrivateKey

    @classmethod
    def make(cls, owner: str, file: Path) -> Self:
        """A new key, kept in a new file that only its owner can read."""
        private = Ed25519PrivateKey.generate()
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as kept:
            kept.write(f"{private.private_bytes_raw().hex()}\n")
        return cls(owner, private)

    @classmethod
    def read(cls, owner: str, file: Path) -> Self:
        """The key that `make` wrote."""
        with redact_errors(OSError, ValueError, instead=lambda _: _no_key(file)):
            return cls(owner, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(file.read_text("ascii").strip())))

    @property
    def public(self) -> str:
        """The public half, as others write it down."""
        return self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    def seal(self, body: str) -> str:
        """A text with the owner's name and signature on it."""
        signature = self.private.sign(_signed(self.owner, body)).hex()
        return json.dumps({"body": body, "signer": self.owner, "signature": signature}, sort_keys=True)

    def __repr__(self) -> str:
        return f"Key({self.owner!r}, public {self.public[:12]}…)"


def opened(sealed: str, keys: Mapping[str, str]) -> tuple[str, str]:
    """Who signed a text, and the text; the public keys say who may.

    Raises:
        TransportError: If it is not a signed text, or not signed by one of them.
    """
    signer, body, signature = _parts(sealed)
    if signer not in keys:
        raise TransportError(
            expected="a text signed by one of those who are known here",
            got="one of somebody else",
            hint="exchange public keys first, by a way that you trust.",
        )
    with redact_errors(InvalidSignature, ValueError, instead=lambda _: _not_signed()):
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(keys[signer]))
        public.verify(bytes.fromhex(signature), _signed(signer, body))
    return signer, body


def claimed_body(sealed: str) -> str:
    """The text of a signed text, whoever signed it; empty where there is none."""
    try:
        return _parts(sealed)[1]
    except TransportError:
        return ""


def is_public_key(text: object) -> bool:
    """Whether this is a public key as `Key.public` writes it."""
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")


def is_name(text: object) -> bool:
    """Whether this can be a site's name: it becomes a name of files and of processes, of which NVFlare has its own."""
    named = isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", text) is not None
    return named and text != "server"


def _signed(owner: str, body: str) -> bytes:
    return _DOMAIN + json.dumps([owner, body]).encode()


def _parts(sealed: str) -> tuple[str, str, str]:
    with redact_errors(ValueError, RecursionError, instead=lambda _: _not_signed()):
        document = json.loads(sealed) if len(sealed) <= LONGEST else None
        if isinstance(document, dict) and sorted(document) == ["body", "signature", "signer"]:
            signer, body, signature = (document[name] for name in ("signer", "body", "signature"))
            if isinstance(signer, str) and isinstance(body, str) and isinstance(signature, str):
                body.encode()  # half a letter has no bytes, and so no digest
                return signer, body, signature
        raise _not_signed()


def _not_signed() -> TransportError:
    return TransportError(
        expected="a signed text as dpcausal writes them",
        got="something else, or a signature that does not fit",
        hint="send it again as it was written; nothing may be changed in it.",
    )


def _no_key(file: Path) -> TransportError:
    return TransportError(
        expected="a key file that dpcausal made", got=str(file), hint="make one with: dpcausal site init FOLDER NAME."
    )
