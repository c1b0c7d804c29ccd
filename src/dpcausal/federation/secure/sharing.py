"""Shamir's secret sharing of 32-byte secrets: any `threshold` shares give the secret, fewer say nothing about it."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import shamirs

from dpcausal.errors import SessionError, redact_errors

SECRET_BYTES = 32
_PRIME = 2**256 + 297  # the smallest prime above all secrets: each is one element of the field
_INDEX_BYTES, _VALUE_BYTES = 4, 33
SHARE_BYTES = _INDEX_BYTES + _VALUE_BYTES


def split(secret: bytes, threshold: int, names: Sequence[str]) -> dict[str, bytes]:
    """Return one share of a secret for each name.

    Args:
        secret: The secret, 32 bytes.
        threshold: How many shares give the secret.
        names: Who is to hold a share, each name once.

    Example:
        >>> shares = split(bytes(range(32)), 2, ["east", "north", "west"])
        >>> join({name: shares[name] for name in ("east", "west")}, 2) == bytes(range(32))
        True
    """
    if len(secret) != SECRET_BYTES or not 2 <= threshold <= len(names) or len(set(names)) < len(names):
        raise SessionError(
            expected=f"a secret of {SECRET_BYTES} bytes, different names, and a threshold from 2 to their number",
            got=f"{len(secret)} bytes, {len(names)} names, threshold {threshold}",
            hint="this is an error of the program; please report it.",
        )
    points = shamirs.shares(int.from_bytes(secret, "big"), len(names), modulus=_PRIME, threshold=threshold)
    return {
        name: point.index.to_bytes(_INDEX_BYTES, "big") + point.value.to_bytes(_VALUE_BYTES, "big")
        for name, point in zip(names, points, strict=True)
    }


def join(shares: Mapping[str, bytes], threshold: int) -> bytes:
    """Return the secret from at least `threshold` shares of it, of which the first are used.

    A wrong share gives a wrong secret, which the caller compares with what was announced.

    Raises:
        SessionError: If there are too few shares, or they cannot belong together.
    """
    points = {
        int.from_bytes(each[:_INDEX_BYTES], "big"): int.from_bytes(each[_INDEX_BYTES:], "big")
        for each in list(shares.values())[:threshold]
        if len(each) == SHARE_BYTES
    }
    if len(points) < threshold or 0 in points:
        raise _no_secret(len(shares), threshold)
    secret = sum(weight * value for weight, value in zip(_weights(tuple(points)), points.values(), strict=True))
    with redact_errors(OverflowError, instead=lambda _: _no_secret(len(shares), threshold)):
        return (secret % _PRIME).to_bytes(SECRET_BYTES, "big")


@lru_cache(maxsize=16)
def _weights(indices: tuple[int, ...]) -> tuple[int, ...]:
    """Return the weight of each share in the secret: Lagrange's formula at 0.

    All secrets that the same sites hold have the same weights. The library's own takes a hundred times as long.
    """
    found = []
    for index in indices:
        others = [each for each in indices if each != index]
        weight = math.prod(others) * pow(math.prod(each - index for each in others), -1, _PRIME)
        found.append(weight % _PRIME)
    return tuple(found)


def _no_secret(count: int, threshold: int) -> SessionError:
    return SessionError(
        expected=f"{threshold} different shares of one secret",
        got=f"{count} shares that give none",
        hint="collect answers of more sites.",
    )
