"""A lying coordinator with colluding sites opens at most one sum, and only one with enough honest sites."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import SessionError
from dpcausal.federation.secure.session import Body, SiteSession
from dpcausal.study.secure_settings import SecureSettings
from tests.support.lying_coordinator import Choice, LyingCoordinator, Setting
from tests.support.secure_sums import site_names


class ConfirmsAgain(SiteSession):
    """A mutant: it confirms a second sum."""

    def confirm(self, headers: Mapping[str, Body]) -> dict[str, Any]:
        """Confirm whatever comes."""
        first, self.summed = self.summed, ()
        try:
            return super().confirm(headers)
        except SessionError:
            self.summed = first
            raise


class MasksAgain(SiteSession):
    """A mutant: it masks with a second set of members."""

    def mask(self, sharings: Mapping[str, Body], count: int, received: Body | None = None) -> list[int]:
        """Mask with whatever comes."""
        self.members = {}
        return super().mask(sharings, count, received)


class NeedsNoConfirmation(SiteSession):
    """A mutant: it reveals shares for the sum that it confirmed alone."""

    def unmask(self, confirmations: Mapping[str, Body]) -> dict[str, Any]:  # noqa: ARG002 (the mutation)
        """Reveal shares, whoever confirmed."""
        return super().unmask(dict.fromkeys(self.summed, self._confirmation())) if self.summed else {}


class RevealsBoth(SiteSession):
    """A mutant: it reveals shares of both secrets."""

    def unmask(self, confirmations: Mapping[str, Body]) -> dict[str, Any]:
        """Reveal all shares."""
        answer = super().unmask(confirmations)
        return answer | {"mask_keys": {name: pair[1] for name, pair in self.held.items()}}


class SumsFew(SiteSession):
    """A mutant: it confirms a sum of any size."""

    def _check_names(self, given: Mapping[str, Body], among: Iterable[str], what: str, *, own: bool = True) -> None:
        """Accept any number of sites."""


def breaches(setting: Setting, schedules: Iterable[Mapping[str, Choice]], *, retry: bool = True) -> list[str]:
    """Return what a lying coordinator breaks, over some schedules."""
    coordinator = LyingCoordinator(setting)
    return [breach for schedule in schedules for breach in coordinator.attack(schedule, retry=retry).breaches(setting)]


@pytest.mark.parametrize(
    ("sites", "honest", "colluding", "retry"),
    [(3, 2, 0, True), (3, 2, 1, True), (4, 2, 1, True), (4, 3, 0, False), (5, 2, 2, True), (5, 3, 1, False)],
)
def test_no_schedule_opens_two_sums_or_one_of_few(sites: int, honest: int, colluding: int, retry: bool) -> None:
    """All schedules: every pair of members and sum for each honest site, and then every other one again."""
    setting = Setting(sites, honest, colluding)
    coordinator = LyingCoordinator(setting)
    sizes = set()
    for schedule in setting.schedules():
        known = coordinator.attack(schedule, retry=retry)
        assert not known.breaches(setting)
        sizes |= {len(names) for names in known.opened(setting)}
    assert sizes == set(range(honest, sites - colluding + 1))  # and honest schedules open theirs


FIVE = Setting(5, 3, 0)


def splits(setting: Setting, count: int, seed: int) -> Iterable[dict[str, Choice]]:
    """Yield schedules at random: two thirds of them with the same members at all sites."""
    random = np.random.default_rng(seed)
    for index in range(count):
        choices = {name: setting.choices(name) for name in setting.victims}
        if index % 3:
            whole = tuple(setting.names)
            choices = {name: [each for each in own if each[0] == whole] for name, own in choices.items()}
        yield {name: own[random.integers(len(own))] for name, own in choices.items()}


def test_no_schedule_at_random_of_five_honest_sites_opens_two_sums_or_one_of_few() -> None:
    """There are 39 million schedules; 1,000 of them."""
    assert not breaches(FIVE, splits(FIVE, 1_000, 1), retry=False)


ALL = ("site00", "site01", "site02", "site03", "site04")


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (Setting(4, 2, 1, ConfirmsAgain), "both secrets"),
        (Setting(4, 2, 1, MasksAgain), "masked"),
        (Setting(4, 2, 1, RevealsBoth), "both secrets"),
    ],
)
def test_the_search_breaks_mutants(setting: Setting, expected: str) -> None:
    assert expected in " ".join(breaches(setting, list(setting.schedules())[::5]))


def test_without_confirmations_two_of_three_honest_sites_are_opened() -> None:
    """Each site confirms another sum; what a majority includes is open: two sites, where three must be."""
    summed = [("site00", "site01", "site02"), ("site00", "site01", "site03"), ("site00", "site01", "site04")]
    schedule = {name: (ALL, summed[index]) for name, index in zip(ALL, (0, 1, 0, 1, 2), strict=True)}
    assert not breaches(FIVE, [schedule])
    mutant = Setting(5, 3, 0, NeedsNoConfirmation)
    assert breaches(mutant, [schedule], retry=False) == ["a sum of 2 honest sites is open"]


def test_too_low_a_threshold_opens_two_sums() -> None:
    """With 2h + c = J two halves of the honest sites open two sums, each with the colluding site."""
    halves = [("site00", "site01", "site04"), ("site02", "site03", "site04")]
    schedule = {name: (half, half) for half in halves for name in half[:2]}
    assert breaches(Setting(5, 2, 1), [schedule], retry=False) == ["2 sums are open"]


@pytest.mark.parametrize(("sites", "threshold"), [(3, 2), (4, 3), (5, 3), (5, 4)])
def test_more_colluding_sites_than_declared_open_every_single_site(sites: int, threshold: int) -> None:
    """Two halves of the others confirm two sums of the same members; each half reveals what the other half does not."""
    declared = SecureSettings({name: f"{place:064x}" for place, name in enumerate(site_names(sites))}, threshold, 0)
    setting = Setting(sites, threshold - declared.exposing, declared.exposing)
    half, accomplices = setting.honest, tuple(setting.names[len(setting.victims) :])
    halves = [tuple(setting.victims[:half]), tuple(setting.victims[half:])]
    schedule = {name: (tuple(setting.names), (*each, *accomplices)) for each in halves for name in each}
    known = LyingCoordinator(setting).attack(schedule, retry=False)
    assert sorted(map(len, known.opened(setting))) == [1] * len(setting.victims)


@pytest.mark.parametrize(("sites", "threshold"), [(4, 4), (5, 4)])
def test_one_colluding_site_fewer_than_that_opens_one_sum(sites: int, threshold: int) -> None:
    """The noise is then that of fewer honest sites than the guarantee needs, but no second sum is opened."""
    declared = SecureSettings({name: f"{place:064x}" for place, name in enumerate(site_names(sites))}, threshold, 0)
    colluding = declared.exposing - 1
    setting = Setting(sites, threshold - colluding, colluding)
    coordinator = LyingCoordinator(setting)
    for schedule in setting.schedules():
        assert not coordinator.attack(schedule, retry=False).breaches(setting)


def test_a_sum_of_few_is_opened_if_sizes_are_not_checked() -> None:
    setting = Setting(4, 3, 0, SumsFew)
    schedule = {name: (tuple(setting.names), ("site00", "site01")) for name in setting.victims}
    assert not breaches(Setting(4, 3, 0), [schedule], retry=False)
    assert breaches(setting, [schedule], retry=False) == ["a sum of 2 honest sites is open"]
