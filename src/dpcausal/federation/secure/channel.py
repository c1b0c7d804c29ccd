"""Encrypted, authenticated messages from one site to another, carried by a coordinator that cannot read them."""

import secrets
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from dpcausal.errors import SessionError, redact_errors
from dpcausal.federation.secure.masks import agreed_key

_NONCE_BYTES = 12


@dataclass(frozen=True)
class Link:
    """What a message is for, which its key depends on.

    Attributes:
        study: The digest of the study.
        sharing: The name of the sharing to which the message belongs; empty in version 4 of the protocol.
    """

    study: str
    sender: str
    receiver: str
    sharing: str = ""

    def key(self, private: bytes, public: str) -> bytes:
        """Return the key of this direction, from one's own private and the other's public channel key."""
        ends = self.study, self.sender, self.receiver
        return agreed_key(private, public, "channel", *ends, *((self.sharing,) if self.sharing else ()))


def new_sharing() -> str:
    """Return the name of a new sharing of secrets, which no other has."""
    return secrets.token_hex(32)


def encrypt(text: bytes, link: Link, private: bytes, public: str) -> str:
    """Return a text that only the receiver can read and only the sender can have written, in hexadecimal digits."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return (nonce + ChaCha20Poly1305(link.key(private, public)).encrypt(nonce, text, None)).hex()


def decrypt(sealed: str, link: Link, private: bytes, public: str) -> bytes:
    """Return what `encrypt` encrypted, with the receiver's private and the sender's public channel key.

    Raises:
        SessionError: If it was altered, or was made for another study, sender, receiver or sharing.
    """
    with redact_errors(InvalidTag, ValueError, instead=lambda _: _altered(link.sender)):
        text = bytes.fromhex(sealed)
        return ChaCha20Poly1305(link.key(private, public)).decrypt(text[:_NONCE_BYTES], text[_NONCE_BYTES:], None)


def _altered(sender: str) -> SessionError:
    return SessionError(
        expected=f"shares that {sender} encrypted for this site and study",
        got="something else, or altered ones",
        hint=f"leave {sender} out of the sum.",
    )
