"""Sums over sites are those of all units in one table."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

import dpcausal as dpc
from dpcausal.errors import TransportError
from dpcausal.federation.coordinator.aggregate import (
    largest_noise,
    noise_of,
    sum_releases,
    summed_release,
    ticks_of,
)
from dpcausal.queries import ArmMoments, Cut
from dpcausal.queries.calibration import Asked, Noise, calibrate, calibrations, share_of
from dpcausal.release import Noisy, Receipt, Release
from dpcausal.schema.columns import Category
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.vault import Vault
from dpcausal.vault.noise import Sampler
from tests.federation.conftest import Federation
from tests.support.slow import sampled


class NoNoise(Sampler):
    """A sampler that adds no noise, to see the sums themselves."""

    def add_noise(self, ticks: Sequence[int], noise: Noise) -> Noisy:
        del noise
        return Noisy(tuple(ticks))


class Silent(Vault):
    """A vault without noise."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._sampler = NoNoise()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.federation.site.site.Vault", Silent)


ONE_TABLE: dict[str, Any] = {
    "several arms": dpc.ArmContrasts(contrasts="pairs"),
    "adjusted arms": dpc.ArmContrasts(covariates=["age", "ward"]),
    "factorial": dpc.FactorialEffects(factor="smoker"),
    "means": dpc.DifferenceInMeans(),
    "totals": dpc.DifferenceInMeans(with_interval=False),
    "regression": dpc.RegressionAdjustment(covariates=["age", "ward"]),
    "one regression": dpc.RegressionAdjustment(covariates=["age"], interaction=False),
}


def town_of(folder: Path, protects: Protects) -> Federation:
    schema = standard_schema(protects)
    return Federation(
        folder, {"north": synthetic_table(schema, 150, 1), "south": synthetic_table(schema, 90, 2)}, schema
    )


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(("name", "protects", "delta"), sampled(itertools.product(ONE_TABLE, PROTECTS, [0.0, 1e-6]), 5))
def test_sums_without_noise_equal_those_of_one_table(
    name: str, protects: Protects, delta: float, tmp_path: Path
) -> None:
    estimator = ONE_TABLE[name]
    federation = town_of(tmp_path, protects)
    study = federation.study(estimator=estimator, delta=delta)
    coordinator = federation.coordinator(study)
    vault = Silent(
        pa.concat_tables(federation.tables.values()),
        federation.schema,
        ledger="sqlite://",
        budget=dpc.Budget(epsilon=10, delta=1e-3),
    )
    question = study.questions()[0][:2]
    summed, whole = coordinator.release(*question), vault.release(*question)
    assert (summed.names, summed.values, summed.family) == (whole.names, whole.values, whole.family)
    assert (coordinator.n, coordinator.arm_sizes) == (vault.n, vault.arm_sizes)
    assert summed.scales == pytest.approx([math.sqrt(2) * (scale or 0) for scale in whole.scales])
    assert (summed.parts, whole.parts) == (2, 1)
    effect = coordinator.run()
    if isinstance(estimator, dpc.DifferenceInMeans):
        alone = estimator.estimate(vault, epsilon=1.0, delta=delta)
        assert (effect.estimate, effect.n) == (alone.estimate, alone.n)
        assert effect.privacy_sd == pytest.approx(math.sqrt(2) * alone.privacy_sd)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("protects", PROTECTS)
def test_sums_of_strata_equal_those_of_one_table_with_separate_sites(protects: Protects, tmp_path: Path) -> None:
    federation = town_of(tmp_path, protects)
    by: list[str | Cut] = ["ward", Cut("age", [40, 60])]
    effect = federation.coordinator(federation.study(estimator=dpc.Stratification(by=by, cap=3))).run()
    marked = [
        table.append_column("site", pa.array([name] * table.num_rows)) for name, table in federation.tables.items()
    ]
    schema = dpc.Schema(
        treatment=federation.schema.treatment,
        outcome=federation.schema.outcome,
        covariates=[*federation.schema.covariates, Category("site", list(federation.tables))],
        protects=protects,
    )
    vault = Silent(pa.concat_tables(marked), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=10))
    alone = dpc.Stratification(by=[*by, "site"], cap=3).estimate(vault, epsilon=1.0)
    assert (effect.estimate, effect.sampling_sd, effect.n) == (alone.estimate, alone.sampling_sd, alone.n)
    assert "18 strata" in effect.method
    assert "18 strata" in alone.method
    assert "within sites only" in str(effect.notes)


SCHEMA = standard_schema()
GUARANTEE = dpc.Guarantee(epsilon=1.0)
NOISE = calibrate(ArmMoments(), SCHEMA, GUARANTEE)
TICKS = some.tuples(*(some.integers(-(2**50), 2**50) for _ in NOISE.scales))


def release(ticks: tuple[int, ...], entry: int) -> Release:
    receipt = Receipt("arm_moments", 1.0, 0.0, entry, "ab" * 32)
    return Release.of(ArmMoments(), GUARANTEE, NOISE, noisy=Noisy(ticks), public_values=(), receipt=receipt)


@given(some.lists(TICKS, min_size=1, max_size=5), some.randoms())
def test_the_order_of_sites_does_not_matter(ticks: list[tuple[int, ...]], chance: Any) -> None:
    named = [(f"site-{place}", release(each, place)) for place, each in enumerate(ticks)]
    sums = sum_releases(ArmMoments(), GUARANTEE, NOISE, dict(named))
    chance.shuffle(named)
    assert sum_releases(ArmMoments(), GUARANTEE, NOISE, dict(named)) == sums
    exact = [sum(column) for column in zip(*ticks, strict=True)]
    assert list(sums.values) == [
        count * at.tick for count, at in zip(exact, NOISE.sensitivity.coordinates, strict=True)
    ]


@given(TICKS)
def test_ticks_are_recovered_from_values(ticks: tuple[int, ...]) -> None:
    assert ticks_of(release(ticks, 0).values, NOISE.sensitivity.coordinates) == ticks


def test_summed_receipt_depends_on_all_receipts() -> None:
    one = {"north": release((1, 2, 3, 4, 5, 6), 0), "south": release((1, 2, 3, 4, 5, 6), 1)}
    other = one | {"south": release((1, 2, 3, 4, 5, 6), 2)}
    receipts = [sum_releases(ArmMoments(), GUARANTEE, NOISE, each).receipt for each in (one, other)]
    assert receipts[0].digest != receipts[1].digest
    assert [(receipt.entry, receipt.epsilon) for receipt in receipts] == [(None, 1.0)] * 2


def test_answers_under_another_guarantee_are_not_added() -> None:
    other = replace(release((1, 2, 3, 4, 5, 6), 1), guarantee=replace(GUARANTEE, delta=1e-6))
    with pytest.raises(TransportError, match="an answer of south to arm_moments"):
        sum_releases(ArmMoments(), GUARANTEE, NOISE, {"north": release((1, 2, 3, 4, 5, 6), 0), "south": other})


def test_summed_noise_is_that_of_all_sites() -> None:
    """Its variance is as stated; a mutant, noise of one site's size, is detected."""
    runs, sites = 2_000, ("north", "south", "west")
    scale = NOISE.scales[0]
    drawn = {site: Sampler().add_noise([0] * runs, replace(NOISE, scales=(scale,) * runs)).ticks for site in sites}
    sums = [
        sum_releases(
            ArmMoments(), GUARANTEE, NOISE, {site: release((drawn[site][run], 0, 0, 0, 0, 0), 0) for site in sites}
        )
        for run in range(runs)
    ]
    spread = sum(each.value("total_0") ** 2 for each in sums) / runs
    assert spread == pytest.approx(sums[0].variance("total_0"), rel=0.3)
    assert spread != pytest.approx(release((0, 0, 0, 0, 0, 0), 0).variance("total_0"), rel=0.3)


def test_sum_of_sites_with_either_noise_has_the_larger_one() -> None:
    guarantee = dpc.Guarantee(epsilon=1.0, delta=1e-6)
    smaller, larger = calibrations(ArmMoments(), SCHEMA, guarantee)

    def answer(noise: Noise) -> dpc.Release:
        receipt = Receipt("arm_moments", 1.0, 1e-6)
        noisy = Noisy((0,) * len(noise.scales))
        return dpc.Release.of(ArmMoments(), guarantee, noise, noisy=noisy, public_values=(), receipt=receipt)

    one, other = answer(smaller), answer(larger)
    assert all((a or 0) < (b or 0) for a, b in zip(one.scales, other.scales, strict=True))
    assert largest_noise([one, one], (smaller, larger)) == smaller
    assert largest_noise([other, one], (smaller, larger)) == largest_noise([other], (smaller, larger)) == larger
    assert noise_of(replace(one, scales=(0.9, *one.scales[1:])), (smaller, larger)) is None


@pytest.mark.parametrize(("epsilon", "honest", "inflation"), [(2.5, 8, 1 + 2**-7), (1.0, 34, 1 + 2**-10)])
def test_reported_gaussian_scale_is_that_of_the_shares_in_a_secure_sum(
    epsilon: float, honest: int, inflation: float
) -> None:
    schema, guarantee, sites = standard_schema(), dpc.Guarantee(epsilon=epsilon, delta=1e-6), 50
    noise = calibrate(ArmMoments(), schema, guarantee, "zcdp")
    share = share_of(noise, honest)
    receipt = Receipt("arm_moments", epsilon, 1e-6)
    found = summed_release(Asked(ArmMoments(), guarantee), schema, [0] * 6, sites=sites, honest=honest, receipt=receipt)
    assert share.inflation == inflation
    for at, scale, part, whole in zip(
        noise.sensitivity.coordinates, found.scales, share.scales, noise.scales, strict=True
    ):
        assert scale == pytest.approx(math.sqrt(sites) * part * at.tick, rel=1e-12)
        assert scale is not None
        assert scale > math.sqrt(sites / honest) * (whole or 0) * at.tick * (1 + 2**-11)  # without it, it is too small
