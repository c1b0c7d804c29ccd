"""Keys, keystreams and masks."""

import numpy as np
import pytest

from dpcausal.errors import SessionError
from dpcausal.federation.secure import channel, masks

STUDY, OTHER = "5a" * 32, "5b" * 32


def test_keystream_is_chacha20() -> None:
    """The block of RFC 8439, appendix A.1, test vector 1."""
    words = masks.keystream(bytes(32), 8).astype("<u8").tobytes().hex()
    assert words.startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")


def test_pairwise_masks_cancel() -> None:
    one, other = masks.new_private_key(), masks.new_private_key()
    seeds = [
        masks.pairwise_seed(one, masks.public_key(other), STUDY, ("east", "west")),
        masks.pairwise_seed(other, masks.public_key(one), STUDY, ("west", "east")),
    ]
    assert seeds[0] == seeds[1]
    total = masks.pairwise_mask(seeds[0], "east", "west", 5) + masks.pairwise_mask(seeds[1], "west", "east", 5)
    assert not total.any()


def test_seeds_differ_between_studies_pairs_and_purposes() -> None:
    private, public = masks.new_private_key(), masks.public_key(masks.new_private_key())
    seeds = {
        masks.pairwise_seed(private, public, STUDY, ("east", "west")),
        masks.pairwise_seed(private, public, OTHER, ("east", "west")),
        masks.pairwise_seed(private, public, STUDY, ("east", "north")),
        masks.agreed_key(private, public, "channel", STUDY, "east", "west"),
        masks.agreed_key(private, public, "channel", STUDY, "west", "east"),
    }
    assert len(seeds) == 5


def test_total_mask_is_uniform_in_every_byte() -> None:
    """Chi-square over 256 values of each of the eight bytes; the bound has a probability of about 1e-9."""
    total = masks.total_mask("east", bytes(32), {"west": bytes(range(32))}, 50_000)
    for place in range(8):
        counts = np.bincount((total >> np.uint64(8 * place)).astype(np.uint8), minlength=256)
        statistic = ((counts - 50_000 / 256) ** 2 / (50_000 / 256)).sum()
        assert statistic < 255 + 7 * np.sqrt(2 * 255)


@pytest.mark.parametrize("public", ["", "zz", "00" * 31, "00" * 32, "01" + "00" * 31])
def test_keys_that_give_everybody_the_same_secret_are_refused(public: str) -> None:
    with pytest.raises(SessionError, match="X25519 public key"):
        masks.pairwise_seed(masks.new_private_key(), public, STUDY, ("east", "west"))


def test_channel_is_bound_to_study_sender_and_receiver() -> None:
    sender, receiver = masks.new_private_key(), masks.new_private_key()
    link = channel.Link(STUDY, "east", "west")
    sealed = channel.encrypt(b"shares", link, sender, masks.public_key(receiver))
    assert channel.decrypt(sealed, link, receiver, masks.public_key(sender)) == b"shares"
    assert sealed != channel.encrypt(b"shares", link, sender, masks.public_key(receiver))
    altered = f"{sealed[:-1]}{'0' if sealed[-1] != '0' else '1'}"
    for text, other in [
        (sealed, channel.Link(OTHER, "east", "west")),
        (sealed, channel.Link(STUDY, "north", "west")),
        (sealed, channel.Link(STUDY, "west", "east")),
        (altered, link),
        (sealed[:20], link),
        ("", link),
        ("no digits", link),
    ]:
        with pytest.raises(SessionError, match="encrypted for this site and study"):
            channel.decrypt(text, other, receiver, masks.public_key(sender))
