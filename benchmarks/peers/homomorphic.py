"""Sums of sites with homomorphic encryption: Paillier by phe, and CKKS by TenSEAL. dpcausal depends on neither."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import phe
import tenseal


def paillier(count: int, sites: int, number: int) -> Iterator[dict[str, Any]]:
    """Yield time and bytes of a site that encrypts numbers under one key of 3,072 bits."""
    public, private = phe.generate_paillier_keypair(n_length=3_072)
    start = time.process_time()
    encrypted = [public.encrypt(number) for _ in range(count)]
    taken = time.process_time() - start
    size = sum((each.ciphertext().bit_length() + 7) // 8 for each in encrypted)
    total = private.decrypt(sum([encrypted[0]] * (sites - 1), encrypted[0]))
    yield _line("Paillier", count, taken, size, abs(total - sites * number))


def ckks(counts: Sequence[int], sites: int, number: int) -> Iterator[dict[str, Any]]:
    """Yield time and bytes of a site that encrypts numbers under one key of all sites."""
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, poly_modulus_degree=8_192, coeff_mod_bit_sizes=[60, 40, 60])
    context.global_scale = 2**40
    for count in counts:
        size, error, taken = 0, 0.0, 0.0
        for start_at in range(0, count, 4_096):
            part = [number + index for index in range(min(4_096, count - start_at))]
            start = time.process_time()
            encrypted = tenseal.ckks_vector(context, part)
            text = encrypted.serialize()
            taken += time.process_time() - start
            size += len(text)
            total = encrypted
            for _ in range(sites - 1):
                total = total + encrypted
            opened = zip(total.decrypt(), part, strict=True)
            error = max(error, *(abs(found - sites * each) for found, each in opened))
        yield _line("CKKS", count, taken, size, error)


def _line(method: str, count: int, taken: float, size: int, error: float) -> dict[str, Any]:
    return {
        "method": method,
        "count": count,
        "site_ms": round(1_000 * taken, 1),
        "sent_bytes": size,
        "largest_error": float(f"{error:.3g}"),
    }
