"""Ed25519 signatures on the texts that travel between coordinator and sites."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from dpcausal.errors import TransportError, redact_errors
from dpcausal.utils.durable_files import create_file

_DOMAIN = b"dpcausal federation 1\n"  # a signature made for another purpose is not valid here
_ENCRYPTED = "-----BEGIN ENCRYPTED PRIVATE KEY-----"
PASSPHRASE_FILE = "DPCAUSAL_PASSPHRASE_FILE"  # noqa: S105 (a name)
"""The environment variable with the name of a file whose first line is the passphrase of key files."""
_LEAST_PASSPHRASE = 12
LONGEST = 20_000_000
"""The largest number of characters of a text that is read."""


@dataclass(frozen=True)
class Key:
    """The key pair of a coordinator or a site. The private key stays in the file where it was created.

    Attributes:
        owner: The name of its owner.
        private: The private key; never printed.
    """

    owner: str
    private: Ed25519PrivateKey

    @classmethod
    def make(cls, owner: str, file: Path) -> Self:
        """Create a key in a new file that only its owner can read, encrypted if there is a passphrase."""
        key = cls(owner, Ed25519PrivateKey.generate())
        key.write(file, passphrase())
        return key

    @classmethod
    def read(cls, owner: str, file: Path) -> Self:
        """Read a key that `make` or `write` wrote.

        Raises:
            TransportError: If it is not a key file, or is encrypted and there is no passphrase or a wrong one.
        """
        with redact_errors(OSError, ValueError, instead=lambda _: _no_key(file)):
            text = file.read_text("ascii").strip()
            if not text.startswith(_ENCRYPTED):
                return cls(owner, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(text)))
        secret = passphrase()
        if secret is None:
            raise _locked(file, "no passphrase")
        with redact_errors(ValueError, TypeError, instead=lambda _: _locked(file, "a wrong passphrase")):
            private = load_pem_private_key(text.encode(), secret)
        if not isinstance(private, Ed25519PrivateKey):
            raise _no_key(file)
        return cls(owner, private)

    def write(self, file: Path, secret: bytes | None) -> None:
        """Write the key to a new file that only its owner can read, encrypted with a passphrase if one is given."""
        if secret is None:
            text = f"{self.private.private_bytes_raw().hex()}\n"
        else:
            encryption = BestAvailableEncryption(secret)
            text = self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
        create_file(file, text)

    @property
    def public(self) -> str:
        """The public key, in hexadecimal digits."""
        return self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()

    def seal(self, body: str) -> str:
        """Return a text together with the owner's name and signature."""
        signature = self.private.sign(_signed(self.owner, body)).hex()
        return json.dumps({"body": body, "signer": self.owner, "signature": signature}, sort_keys=True)

    def __repr__(self) -> str:
        return f"Key({self.owner!r}, public {self.public[:12]}…)"


def passphrase() -> bytes | None:
    """Return the passphrase of key files, or None if the environment names no file with one.

    Raises:
        TransportError: If the file cannot be read, or the passphrase is too short.
    """
    name = os.environ.get(PASSPHRASE_FILE)
    if not name:
        return None
    with redact_errors(OSError, ValueError, instead=lambda error: _no_passphrase(name, type(error).__name__)):
        secret = Path(name).read_text("utf-8").partition("\n")[0]
    check_passphrase(secret)
    return secret.encode()


def check_passphrase(secret: str) -> None:
    """Raise if a passphrase is too short."""
    if len(secret) < _LEAST_PASSPHRASE:
        raise TransportError(
            expected=f"a passphrase of at least {_LEAST_PASSPHRASE} characters",
            got="a shorter one",
            hint="choose a longer one, for instance five random words.",
        )


def opened(sealed: str, keys: Mapping[str, str]) -> tuple[str, str]:
    """Return the signer of a text, and the text, after verifying the signature.

    Raises:
        TransportError: If it is not a signed text, or the signer has none of these public keys.
    """
    signer, body, signature = _parts(sealed)
    if signer not in keys:
        raise TransportError(
            expected="a text with a known signer",
            got="another signer",
            hint="exchange public keys first, over a channel that you trust.",
        )
    with redact_errors(InvalidSignature, ValueError, instead=lambda _: _not_signed()):
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(keys[signer]))
        public.verify(bytes.fromhex(signature), _signed(signer, body))
    return signer, body


def claimed_body(sealed: str) -> str:
    """Return the body of a signed text without verifying the signature; empty where there is none."""
    try:
        return _parts(sealed)[1]
    except TransportError:
        return ""


def claimed_signer(sealed: str) -> str:
    """Return the name of the signer of a text without verifying the signature; empty where there is none."""
    try:
        return _parts(sealed)[0]
    except TransportError:
        return ""


def _signed(owner: str, body: str) -> bytes:
    return _DOMAIN + json.dumps([owner, body]).encode()


def _parts(sealed: str) -> tuple[str, str, str]:
    with redact_errors(ValueError, RecursionError, instead=lambda _: _not_signed()):
        document = json.loads(sealed) if len(sealed) <= LONGEST else None
        if isinstance(document, dict) and sorted(document) == ["body", "signature", "signer"]:
            signer, body, signature = (document[name] for name in ("signer", "body", "signature"))
            if isinstance(signer, str) and isinstance(body, str) and isinstance(signature, str):
                body.encode()  # a lone surrogate has no bytes, and so no digest
                return signer, body, signature
        raise _not_signed()


def _not_signed() -> TransportError:
    return TransportError(
        problem="This is not a signed text as dpcausal writes it, or its signature is invalid",
        hint="send the file again, unchanged.",
    )


def _locked(file: Path, got: str) -> TransportError:
    return TransportError(
        expected=f"the passphrase of {file}, which is encrypted",
        got=got,
        hint=f"write it into a file that only you can read, and set {PASSPHRASE_FILE} to the name of this file.",
    )


def _no_passphrase(name: str, got: str) -> TransportError:
    return TransportError(
        expected=f"a file with a passphrase: {name}",
        got=got,
        hint=f"correct the environment variable {PASSPHRASE_FILE}, or unset it.",
    )


def _no_key(file: Path) -> TransportError:
    return TransportError(
        problem=f"{file} is not a key file that dpcausal created",
        hint="name the file of a private key: a person creates one with dpcausal site create-person-key FILE, and "
        "that of a site is site.key in its folder.",
    )
