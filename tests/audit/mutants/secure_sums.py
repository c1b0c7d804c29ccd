"""Secure sums with too little noise, or with masks that hide nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.audit.finding import Finding
from dpcausal.audit.secure_sums import check_bundle, check_session, check_shares
from dpcausal.queries.calibration import Asked, Noise, NoiseShare, calibrate, share_of
from dpcausal.vault import door, noise, preconditions
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
        ANSWERS[type(asked[0][0])](vault._context(*asked[0][:2]))
        return contribute(vault, asked, **named)

    patch.setattr(dpc.Vault, "contribute", read_first)


def several_queries() -> Finding:
    return check_bundle(20)


@mutant("the numbers of two queries of a secure sum in each other's places", several_queries)
def offsets_swapped(patch: pytest.MonkeyPatch) -> None:
    contribute = dpc.Vault.contribute

    def swapped(vault: dpc.Vault, asked: Sequence[Asked], **named: Any) -> Any:
        return contribute(vault, [asked[1], asked[0], *asked[2:]], **named)

    patch.setattr(dpc.Vault, "contribute", swapped)


@mutant("noise left out of one of several queries of a secure sum", several_queries)
def one_without_noise(patch: pytest.MonkeyPatch) -> None:
    add, calls = noise.Sampler.add_noise_share, [0]

    def sometimes(sampler: noise.Sampler, ticks: Sequence[int], share: NoiseShare) -> list[int]:
        calls[0] += 1
        return list(ticks) if calls[0] % 3 == 2 else add(sampler, ticks, share)

    patch.setattr(noise.Sampler, "add_noise_share", sometimes)


@mutant("the scale of one query's noise used for the next query of a secure sum", several_queries)
def scale_of_another(patch: pytest.MonkeyPatch) -> None:
    checked = preconditions.check_contribution

    def one_for_all(*given: Any) -> list[NoiseShare]:
        shares = checked(*given)
        first = max(shares[0].scales)
        return [shares[0], *(replace(each, scales=(first / 4,) * len(each.scales)) for each in shares[1:])]

    patch.setattr(door, "check_contribution", one_for_all)


@mutant("the mask of one query of a secure sum used for the next one", several_queries)
def mask_of_another(patch: pytest.MonkeyPatch) -> None:
    contribute = dpc.Vault.contribute

    def repeated(vault: dpc.Vault, asked: Sequence[Asked], *, mask: Sequence[int], **named: Any) -> Any:
        first = len(calibrate(asked[0][0], vault.schema, asked[0][1]).scales)
        again = [mask[place % first] for place in range(len(mask))]
        return contribute(vault, asked, mask=again, **named)

    patch.setattr(dpc.Vault, "contribute", repeated)


@mutant("only the first of several queries of a secure sum is paid for", several_queries)
def first_paid(patch: pytest.MonkeyPatch) -> None:
    paid = dpc.Vault._paid

    def cheaper(
        vault: dpc.Vault, request: str, asked: Sequence[Asked], noises: Sequence[Noise], question: dict[str, Any]
    ) -> Any:
        return paid(vault, request, asked, noises[:1], question)

    patch.setattr(dpc.Vault, "_paid", cheaper)
