"""Noise that is not what it is claimed to be."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit.densities import Law, check_density
from dpcausal.queries import (
    GRID,
    ArmMoments,
    ArmTotals,
    BoundedInfluenceLogistic,
    ObjectivePerturbedLogistic,
    ObservedLogistic,
    StratumMatches,
    calibration,
    privacy_curve,
)
from dpcausal.queries.calibration import Noise
from dpcausal.release import Noisy
from dpcausal.vault import adding
from dpcausal.vault.answers import logistic
from dpcausal.vault.context import Answer, AnswerContext
from dpcausal.vault.noise import Sampler
from dpcausal.vault.numerics.features import Features
from tests.audit.mutants.mutant import answer_by, attack_on, draws_of, mutant, noise_of, sensitivity_of

add_noise = Sampler.add_noise


@mutant("half the noise", noise_of(ArmMoments))
def half_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(sampler: Sampler, ticks: tuple[int, ...], noise: Noise) -> Noisy:
        return add_noise(sampler, ticks, replace(noise, scales=tuple(scale / 2 for scale in noise.scales if scale)))

    patch.setattr(Sampler, "add_noise", drawn)


@mutant("noise a tenth too small", noise_of(ArmMoments))
def less_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(sampler: Sampler, ticks: tuple[int, ...], noise: Noise) -> Noisy:
        return add_noise(sampler, ticks, replace(noise, scales=tuple(scale * 0.9 for scale in noise.scales if scale)))

    patch.setattr(Sampler, "add_noise", drawn)


@mutant("no noise where its size is private", noise_of(StratumMatches, bound="smooth"))
def no_smooth_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(sampler: Sampler, ticks: tuple[int, ...], noise: Noise) -> Noisy:
        return Noisy(tuple(ticks)) if noise.event.family == "smooth" else add_noise(sampler, ticks, noise)

    patch.setattr(Sampler, "add_noise", drawn)


@mutant("no noise in one of twenty releases", noise_of(ArmTotals, runs=500))
def forgets(patch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng()

    def drawn(sampler: Sampler, ticks: tuple[int, ...], noise: Noise) -> Noisy:
        return Noisy(tuple(ticks)) if random.random() < 0.05 else add_noise(sampler, ticks, noise)

    patch.setattr(Sampler, "add_noise", drawn)


@mutant("half the Laplace noise, told as it is", attack_on("plain Laplace", 10_000))
def half_scale(patch: pytest.MonkeyPatch) -> None:
    above = calibration.float_above
    patch.setattr(calibration, "float_above", lambda number: above(number) / 2)


@mutant("half the Gaussian noise, told as it is", attack_on("plain Gaussian", 30_000))
def half_gaussian(patch: pytest.MonkeyPatch) -> None:
    sd = privacy_curve.curve_sd
    patch.setattr(calibration, "curve_sd", lambda *asked: sd(*asked) / 2)


@mutant("a hundredth too little Gaussian noise, told as it is", sensitivity_of(ArmTotals))
def less_gaussian(patch: pytest.MonkeyPatch) -> None:
    sd = privacy_curve.curve_sd
    patch.setattr(calibration, "curve_sd", lambda *asked: sd(*asked) * Fraction(99, 100))


@mutant("both arms share their noise", noise_of(ArmTotals))
def shared_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(sampler: Sampler, ticks: tuple[int, ...], noise: Noise) -> Noisy:
        once = {
            scale: add_noise(sampler, (0,), replace(noise, scales=(scale,))).ticks[0] for scale in set(noise.scales)
        }
        return Noisy(tuple(tick + once[scale] for tick, scale in zip(ticks, noise.scales, strict=True)))

    patch.setattr(Sampler, "add_noise", drawn)


@mutant("noise from a seed", noise_of(ArmTotals))
def seeded_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(sampler: Sampler, ticks: tuple[int, ...], noise: Noise) -> Noisy:
        random = np.random.default_rng(0)
        pairs = zip(ticks, noise.scales, strict=True)
        return Noisy(tuple(tick + round(random.laplace(0, scale)) for tick, scale in pairs if scale))

    patch.setattr(Sampler, "add_noise", drawn)


@mutant("noise whose low bits show", noise_of(ArmTotals))
def low_bits(patch: pytest.MonkeyPatch) -> None:
    of = dpc.Release.of.__func__  # type: ignore[attr-defined]

    def with_bits(cls: type[dpc.Release], *parts: Any, **named: Any) -> dpc.Release:
        release: dpc.Release = of(cls, *parts, **named)
        return replace(release, values=tuple(value * (1 + 2.0**-40) for value in release.values))

    patch.setattr(dpc.Release, "of", classmethod(with_bits))


@mutant("a regression without its tilt", attack_on("InverseWeighting", 200))
def no_tilt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sampler, "ball", lambda _, dimensions, __: np.zeros(dimensions))


@mutant("half the tilt of a ball, drawn", lambda: check_density(Law.ball, 1.0, 200, (1, 2)))
def half_drawn_in_a_ball(patch: pytest.MonkeyPatch) -> None:
    drawn = Sampler.ball
    patch.setattr(Sampler, "ball", lambda sampler, dimensions, scale: drawn(sampler, dimensions, scale / 2))


@mutant("half the tilt of a ball, told", lambda: check_density(Law.ball, 1.0, 200, (1, 2)))
def half_tilt_in_a_ball(patch: pytest.MonkeyPatch) -> None:
    whole = BoundedInfluenceLogistic.tilt_scale
    patch.setattr(BoundedInfluenceLogistic, "tilt_scale", staticmethod(lambda epsilon: whole(epsilon) / 2))


@mutant("losses without their weights", lambda: check_density(Law.ball, 1.0, 200, (1, 2)))
def unweighted_losses(patch: pytest.MonkeyPatch) -> None:
    """As if every unit's features were as short as the constant alone."""
    patch.setattr(logistic, "lengths", lambda lines: np.full(lines.shape[1], GRID))


@mutant("half the tilt, drawn", lambda: check_density(Law.cube, 1.0, 200, (1, 2)))
def half_drawn(patch: pytest.MonkeyPatch) -> None:
    drawn = Sampler.cube
    patch.setattr(Sampler, "cube", lambda sampler, dimensions, scale: drawn(sampler, dimensions, scale / 2))


@mutant("half the tilt, told", lambda: check_density(Law.cube, 1.0, 200, (1, 2)))
def half_tilt(patch: pytest.MonkeyPatch) -> None:
    whole = ObjectivePerturbedLogistic.tilt_scale
    half = staticmethod(lambda epsilon, covariates: whole(epsilon, covariates) / 2)
    patch.setattr(ObjectivePerturbedLogistic, "tilt_scale", half)


@mutant("half the tilt in each of two arms", lambda: check_density(Law.of_outcomes, 1.0, 200, (1,)))
def half_tilt_in_each_arm(patch: pytest.MonkeyPatch) -> None:
    whole = ObjectivePerturbedLogistic.tilt_scale
    patch.setattr(ObservedLogistic, "tilt_scale", staticmethod(lambda *of: whole(*of) / 2))


@mutant("a draw outside the sampler", draws_of("DifferenceInMeans"))
def drawn_elsewhere(patch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng()

    def answer(context: AnswerContext[ArmMoments]) -> Answer:
        exact = adding.answer(context)
        return replace(exact, ticks={name: tick + int(random.integers(1, 2**40)) for name, tick in exact.ticks.items()})

    answer_by(patch, ArmMoments, answer)


@mutant("a draw inside an answer that its query does not declare", draws_of("DifferenceInMeans"))
def undeclared_draw(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[ArmMoments]) -> Answer:
        context.sampler.laplace([0], 1.0)
        return adding.answer(context)

    answer_by(patch, ArmMoments, answer)


@mutant("an answer without the draw that its query declares", draws_of("InverseWeighting"))
def declared_and_not_drawn(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[BoundedInfluenceLogistic]) -> Answer:
        return logistic.rounded(Features(context.query.covariates, context.schema).names, np.zeros(3))

    answer_by(patch, BoundedInfluenceLogistic, answer)
