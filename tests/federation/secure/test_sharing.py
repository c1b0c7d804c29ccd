"""Shamir's secret sharing."""

import secrets
from collections import Counter
from itertools import combinations, product

import pytest
import shamirs

from dpcausal.errors import SessionError
from dpcausal.federation.secure import sharing

NAMES = ["east", "north", "south", "west"]


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32, bytes(range(32))], ids=["zeros", "ones", "range"])
def test_any_threshold_of_shares_gives_the_secret(secret: bytes) -> None:
    for threshold in (2, 3, 4):
        shares = sharing.split(secret, threshold, NAMES)
        assert {len(share) for share in shares.values()} == {sharing.SHARE_BYTES}
        for names in combinations(NAMES, threshold):
            assert sharing.join({name: shares[name] for name in names}, threshold) == secret


def test_join_agrees_with_the_library() -> None:
    secret, names = secrets.token_bytes(32), [f"site{index}" for index in range(12)]
    shares = dict(list(sharing.split(secret, 8, names).items())[3:11])
    points = [
        shamirs.share(int.from_bytes(share[:4], "big"), int.from_bytes(share[4:], "big"), 2**256 + 297)
        for share in shares.values()
    ]
    assert sharing.join(shares, 8) == shamirs.interpolate(points, threshold=8).to_bytes(32, "big") == secret


def test_fewer_shares_do_not_give_the_secret() -> None:
    secret = secrets.token_bytes(32)
    shares = sharing.split(secret, 3, NAMES)
    few = {name: shares[name] for name in NAMES[:2]}
    with pytest.raises(SessionError, match="3 different shares"):
        sharing.join(few, 3)
    assert sharing.join(few, 2) != secret


def test_fewer_shares_are_independent_of_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all draws in a field of 7 elements, two of four shares have the same law for every secret: the uniform."""
    laws = []
    for secret in range(7):
        seen: Counter[tuple[int, int]] = Counter()
        for draws in product(range(7), repeat=2):
            coefficients = iter(draws)
            monkeypatch.setattr(shamirs.shamirs.secrets, "randbelow", lambda _, drawn=coefficients: next(drawn))
            points = shamirs.shares(secret, 4, modulus=7, threshold=3)
            seen[points[1].value, points[3].value] += 1
        laws.append(seen)
    assert all(law == Counter(product(range(7), repeat=2)) for law in laws)


def test_each_split_draws_all_coefficients_below_the_prime(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    draw = secrets.randbelow

    def recorded(bound: int) -> int:
        asked.append(bound)
        return draw(bound)

    monkeypatch.setattr(shamirs.shamirs.secrets, "randbelow", recorded)
    sharing.split(bytes(32), 3, NAMES)
    assert asked == [2**256 + 297] * 2


@pytest.mark.parametrize(
    ("secret", "threshold", "names"),
    [(bytes(31), 2, NAMES), (bytes(32), 1, NAMES), (bytes(32), 5, NAMES), (bytes(32), 2, ["east", "east"])],
)
def test_split_refuses_what_it_cannot_share(secret: bytes, threshold: int, names: list[str]) -> None:
    with pytest.raises(SessionError, match="needs a secret of 32 bytes"):
        sharing.split(secret, threshold, names)


@pytest.mark.parametrize(
    "altered", [b"", b"short", bytes(37), (1).to_bytes(4, "big") + bytes(32), (1).to_bytes(4, "big") + bytes(34)]
)
def test_join_refuses_malformed_shares(altered: bytes) -> None:
    shares = sharing.split(bytes(32), 2, NAMES)
    with pytest.raises(SessionError, match="2 different shares"):
        sharing.join({"east": altered, "north": shares["north"]}, 2)


def test_join_refuses_one_share_twice() -> None:
    shares = sharing.split(bytes(32), 2, NAMES)
    with pytest.raises(SessionError, match="2 different shares"):
        sharing.join({"east": shares["north"], "north": shares["north"]}, 2)
