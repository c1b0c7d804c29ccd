"""Secure sums with too little noise, or with masks that hide nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.audit.finding import Finding
from dpcausal.audit.secure_sums import check_session, check_shares
from dpcausal.calibration import Noise, NoiseShare, share_of
from dpcausal.release import Asked
from dpcausal.vault import noise, preconditions
from dpcausal.vault.answers import ANSWERS
from tests.audit.mutants.mutant import mutant


def laplace_shares() -> Finding:
    return check_shares(dpc.Guarantee(epsilon=1.0), 4_000)


def gaussian_shares() -> Finding:
    return check_shares(dpc.Guarantee(epsilon=1.0, delta=1e-6), 4_000)


@mutant("a share of noise too small by one honest site", laplace_shares)
def one_more_honest(patch: pytest.MonkeyPatch) -> None:
    drawn = noise._negative_binomials
    patch.setattr(noise, "_negative_binomials", lambda places, scale, honest: drawn(places, scale, honest + 1))


@mutant("a share of Gaussian noise by the number of sites, not by its root", gaussian_shares)
def divided_by_sites(patch: pytest.MonkeyPatch) -> None:
    def smaller(whole: Noise, honest: int) -> NoiseShare:
        share = share_of(whole, honest)
        return replace(share, scales=tuple(scale / honest for scale in whole.scales if scale))

    patch.setattr(preconditions, "share_of", smaller)


@mutant("shares of noise for all sites, though a third may be silent", laplace_shares)
def unscaled_for_silent_sites(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(preconditions, "share_of", lambda whole, honest: share_of(whole, honest + honest // 2))


@mutant("a mask used for a second question", check_session)
def reused_mask(patch: pytest.MonkeyPatch) -> None:
    """Sessions are found by their questions, so that one session may be asked several."""
    contribute = dpc.Vault.contribute

    def by_question(vault: dpc.Vault, asked: Sequence[Asked], **named: Any) -> Any:
        return contribute(vault, asked, **named | {"session": f"{named['session']} {asked[0][0].name}"})

    patch.setattr(dpc.Vault, "contribute", by_question)


@mutant("contributes to a secure sum before it pays", check_session)
def contributes_first(patch: pytest.MonkeyPatch) -> None:
    contribute = dpc.Vault.contribute

    def read_first(vault: dpc.Vault, asked: Sequence[Asked], **named: Any) -> Any:
        ANSWERS[type(asked[0][0])](vault._context(*asked[0]))
        return contribute(vault, asked, **named)

    patch.setattr(dpc.Vault, "contribute", read_first)
