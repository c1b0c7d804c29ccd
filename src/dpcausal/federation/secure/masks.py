"""Keys, keystreams and masks. A mask is a vector of integers modulo 2^64; those of a pair of sites cancel in a sum."""

import json
from collections.abc import Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from dpcausal.errors import SessionError, redact_errors

_DOMAIN = "dpcausal secure sum 1"

UInt64s = NDArray[np.uint64]
"""Integers modulo 2^64: additions of arrays wrap around."""


def new_private_key() -> bytes:
    """Return a new X25519 private key."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(private: bytes) -> str:
    """Return the public key of a private one, in hexadecimal digits."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw().hex()


def derived_key(secret: bytes, purpose: str, *context: str) -> bytes:
    """Return a key of 32 bytes for one purpose in one context (HKDF with SHA-256)."""
    info = json.dumps([_DOMAIN, purpose, *context]).encode()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret)


def agreed_key(private: bytes, public: str, purpose: str, *context: str) -> bytes:
    """Return the key that two sites agree on, each with its own private and the other's public key (X25519).

    Raises:
        SessionError: If the public key is none, or one that gives everybody the same key.
    """
    with redact_errors(ValueError, instead=lambda _: _no_public_key()):
        other = X25519PublicKey.from_public_bytes(bytes.fromhex(public))
        return derived_key(X25519PrivateKey.from_private_bytes(private).exchange(other), purpose, *context)


def is_usable(public: str) -> bool:
    """Return whether sites can agree on keys with a public key; with some, everybody would agree on the same."""
    try:
        agreed_key(new_private_key(), public, "check")
    except SessionError:
        return False
    return True


def pairwise_seed(private: bytes, public: str, study: str, names: tuple[str, str]) -> bytes:
    """Return the seed of the mask that two sites share in one study; both sites derive the same."""
    return agreed_key(private, public, "pairwise mask", study, *sorted(names))


def seed_digest(seed: bytes) -> str:
    """Return what a site announces of its self-mask seed: it binds the site and does not show the seed."""
    return derived_key(seed, "announcement").hex()


def keystream(seed: bytes, count: int) -> UInt64s:
    """Return pseudorandom integers modulo 2^64: ChaCha20's keystream. Each seed serves for one vector only.

    Example:
        >>> keystream(bytes(32), 2).tolist()
        [10393729187455219830, 2935650227004792128]
    """
    stream = Cipher(ChaCha20(seed, bytes(16)), mode=None).encryptor().update(bytes(8 * count))
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def self_mask(seed: bytes, count: int) -> UInt64s:
    """Return the mask that a site adds of its own, which the sites open only for a site in the sum."""
    return keystream(derived_key(seed, "self mask"), count)


def pairwise_mask(seed: bytes, own: str, other: str, count: int) -> UInt64s:
    """Return what the site `own` adds for its pair with `other`; `other` adds its negative."""
    stream = keystream(seed, count)
    return stream if own < other else np.negative(stream)


def total_mask(own: str, seed: bytes, pairs: Mapping[str, bytes], count: int) -> UInt64s:
    """Return all that a site adds: its own mask, and one for its pair with each other member."""
    total = self_mask(seed, count)
    for other, pair in pairs.items():
        total = total + pairwise_mask(pair, own, other, count)
    return total


def _no_public_key() -> SessionError:
    return SessionError(
        expected="an X25519 public key, in 64 hexadecimal digits",
        got="something else",
        hint="leave this site out, and ask its people to update dpcausal.",
    )
