"""What a coordinator does with the answers of secure-sum sessions: it opens the sum."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpcausal.errors import SessionError
from dpcausal.federation.secure import masks, sharing

Body = Mapping[str, Any]


def open_sum(
    masked: Mapping[str, Sequence[int]], keys: Mapping[str, Body], unmasked: Mapping[str, Body], threshold: int
) -> list[int]:
    """Return the sums, as signed integers, of the numbers that sites masked.

    Args:
        masked: The masked numbers of each site in the sum, integers modulo 2^64.
        keys: The `keys` bodies of all members.
        unmasked: The `unmask` bodies of at least `threshold` sites.
        threshold: The number of shares that give a secret.

    Raises:
        SessionError: If the answers do not belong together or are too few, or if too many shares are wrong.
    """
    lengths = {len(numbers) for numbers in masked.values()}
    silent = {name for body in unmasked.values() for name in _shares(body, "mask_keys")}
    fitting = all(
        _shares(body, "seeds").keys() == masked.keys() and _shares(body, "mask_keys").keys() == silent
        for body in unmasked.values()
    )
    if len(lengths) != 1 or not fitting or silent & masked.keys() or not {*masked, *silent} <= keys.keys():
        raise SessionError(
            expected="masked numbers of one length, and unmasked shares of the same sites",
            got="answers that do not belong together",
            hint="use the answers of one study, and of the sites that confirmed the same sum.",
        )
    count = lengths.pop()
    total = np.zeros(count, dtype=np.uint64)
    for name, numbers in masked.items():
        seeds = _candidates(unmasked, "seeds", name, threshold)
        seed = _announced(name, (each for each in seeds if masks.seed_digest(each) == keys[name]["seed_digest"]))
        total += _modular(numbers) - masks.self_mask(seed, count)
    for name in sorted(silent):
        privates = _candidates(unmasked, "mask_keys", name, threshold)
        private = _announced(name, (each for each in privates if masks.public_key(each) == keys[name]["mask"]))
        for other in masked:
            pair = masks.pairwise_seed(private, keys[other]["mask"], keys[name]["study"], (name, other))
            total -= masks.pairwise_mask(pair, other, name, count)
    return [int(each) for each in total.view(np.int64).tolist()]


def _candidates(unmasked: Mapping[str, Body], kind: str, name: str, threshold: int) -> Iterator[bytes]:
    """Yield a secret of a site as different sites' shares give it: all the same unless a share is wrong.

    Neighbours are taken together, and the last with the first: so there is always a set without one given site.
    """
    shares = {site: _bytes(_shares(body, kind)[name]) for site, body in sorted(unmasked.items())}
    sites = list(shares)
    for start in range(len(sites) if len(sites) > threshold else 1):
        taken = (sites[start:] + sites[:start])[:threshold]
        with suppress(SessionError):  # other shares may give it
            yield sharing.join({site: shares[site] for site in taken}, threshold)


def _announced(name: str, found: Iterator[bytes]) -> bytes:
    """Return the first secret that is the one which its site announced."""
    secret = next(found, None)
    if secret is None:
        raise SessionError(
            expected=f"shares that give the announced secret of {name}",
            got="shares that give another",
            hint="collect answers of more sites; a site answered with a wrong share.",
        )
    return secret


def _modular(numbers: Collection[int]) -> masks.UInt64s:
    if not all(type(each) is int and 0 <= each < 2**64 for each in numbers):
        raise SessionError(
            expected="integers from 0 to 2^64 - 1",
            got="something else among the masked numbers",
            hint="leave this site out, and ask its people to update dpcausal.",
        )
    return np.array(numbers, dtype=np.uint64)


def _shares(body: Body, kind: str) -> Mapping[str, str]:
    shares = body.get(kind)
    return shares if isinstance(shares, Mapping) else {}


def _bytes(text: object) -> bytes:
    try:
        return bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        return b""
