"""Noise that is not what it is claimed to be."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal import calibration
from dpcausal.audit.densities import check_density
from dpcausal.calibration import Noise
from dpcausal.queries import ArmMoments, ArmTotals, ObjectivePerturbedLogistic, StratumMatches
from dpcausal.vault import door
from dpcausal.vault.noise import add_noise
from tests.audit.mutants.mutant import attack_on, logistic, mutant, noise_of


@mutant("half the noise", noise_of(ArmMoments))
def half_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(ticks: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return add_noise(ticks, replace(noise, scales=tuple(scale / 2 for scale in noise.scales if scale)))

    patch.setattr(door, "add_noise", drawn)


@mutant("noise a tenth too small", noise_of(ArmMoments))
def less_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(ticks: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return add_noise(ticks, replace(noise, scales=tuple(scale * 0.9 for scale in noise.scales if scale)))

    patch.setattr(door, "add_noise", drawn)


@mutant("no noise where its size is private", noise_of(StratumMatches, bound="smooth"))
def no_smooth_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(ticks: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return tuple(ticks) if noise.event.family == "smooth" else add_noise(ticks, noise)

    patch.setattr(door, "add_noise", drawn)


@mutant("no noise in one of twenty releases", noise_of(ArmTotals))
def forgets(patch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng()

    def drawn(ticks: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return tuple(ticks) if random.random() < 0.05 else add_noise(ticks, noise)

    patch.setattr(door, "add_noise", drawn)


@mutant("half the Laplace noise, told as it is", attack_on("plain Laplace", 20_000))
def half_scale(patch: pytest.MonkeyPatch) -> None:
    above = calibration.float_above
    patch.setattr(calibration, "float_above", lambda number: above(number) / 2)


@mutant("half the Gaussian noise, told as it is", attack_on("plain Gaussian", 60_000))
def half_gaussian(patch: pytest.MonkeyPatch) -> None:
    sd = calibration.gaussian_sd
    patch.setattr(calibration, "gaussian_sd", lambda epsilon, delta: sd(epsilon, delta) / 2)


@mutant("both arms share their noise", noise_of(ArmTotals))
def shared_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(ticks: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        once = {scale: add_noise((0,), replace(noise, scales=(scale,)))[0] for scale in set(noise.scales)}
        return tuple(tick + once[scale] for tick, scale in zip(ticks, noise.scales, strict=True))

    patch.setattr(door, "add_noise", drawn)


@mutant("noise from a seed", noise_of(ArmTotals))
def seeded_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(ticks: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        random = np.random.default_rng(0)
        return tuple(
            tick + round(random.laplace(0, scale)) for tick, scale in zip(ticks, noise.scales, strict=True) if scale
        )

    patch.setattr(door, "add_noise", drawn)


@mutant("noise whose low bits show", noise_of(ArmTotals))
def low_bits(patch: pytest.MonkeyPatch) -> None:
    of = dpc.Release.of.__func__  # type: ignore[attr-defined]

    def with_bits(cls: type[dpc.Release], *parts: Any) -> dpc.Release:
        release: dpc.Release = of(cls, *parts)
        return replace(release, values=tuple(value * (1 + 2.0**-40) for value in release.values))

    patch.setattr(dpc.Release, "of", classmethod(with_bits))


@mutant("a regression without its tilt", attack_on("InverseWeighting", 800))
def no_tilt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(logistic, "cube_noise", lambda dimensions, _: np.zeros(dimensions))


@mutant("half the tilt, drawn", lambda: check_density(1.0, 600))
def half_drawn(patch: pytest.MonkeyPatch) -> None:
    drawn = logistic.cube_noise
    patch.setattr(logistic, "cube_noise", lambda dimensions, scale: drawn(dimensions, scale / 2))


@mutant("half the tilt, told", lambda: check_density(1.0, 600))
def half_tilt(patch: pytest.MonkeyPatch) -> None:
    whole = ObjectivePerturbedLogistic.tilt_scale
    half = staticmethod(lambda epsilon, covariates: whole(epsilon, covariates) / 2)
    patch.setattr(ObjectivePerturbedLogistic, "tilt_scale", half)
