"""Gaussian noise of one release against its true delta: normal in decimals, discrete by adding up integers."""

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Self

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.guarantee import Rule, exact
from dpcausal.queries import ArmMoments, Coordinate, Norm, Query, Sensitivity, calibration, privacy_curve
from dpcausal.queries.calibration import calibrate, calibrations, gaussian_sd, share_of
from dpcausal.queries.privacy_curve import curve_sd, delta_above, grid_variance
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import TableColumn
from dpcausal.sums.roots import root_above
from dpcausal.testing import standard_schema, synthetic_table

SCHEMA = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1))
ALL = Fraction(1)


def upper_tail(at: Decimal) -> Decimal:
    """The normal distribution beyond a number: one half less the alternating series around 0, in 400 digits."""
    term, total, n = at, at, 0
    while abs(term) > Decimal("1e-390"):
        n += 1
        term *= -at * at / (2 * n)
        total += term / (2 * n + 1)
    return Decimal("0.5") - total / two_pi().sqrt()


def two_pi() -> Decimal:
    """Machin: pi / 4 = 4 arctan(1/5) - arctan(1/239)."""

    def arctan(one_over: int) -> Decimal:
        terms = (Decimal((-1) ** n) / ((2 * n + 1) * one_over ** (2 * n + 1)) for n in range(320))
        return sum(terms, Decimal(0))

    return 8 * (4 * arctan(5) - arctan(239))


def true_delta(sd: Fraction, epsilon: Fraction) -> Fraction:
    """The delta of normal noise (Balle and Wang 2018, Theorem 8)."""
    with localcontext() as context:
        context.prec = 400
        mu, at = Decimal(sd.denominator) / sd.numerator, Decimal(epsilon.numerator) / epsilon.denominator
        return Fraction(upper_tail(at / mu - mu / 2) - at.exp() * upper_tail(at / mu + mu / 2))


def discrete_delta(epsilon: float, sds: Sequence[float], shift: Sequence[int]) -> float:
    """The delta of discrete Gaussian noise whose integers move like this, by adding up all integers."""
    chance, loss = np.ones(()), np.zeros(())
    for sd, moved in zip(sds, shift, strict=True):
        integers = np.arange(-int(10 * sd) - 6, int(10 * sd) + 7, dtype=float)  # beyond, below 10^-22
        one = np.exp(-(integers**2) / (2 * sd * sd))
        chance = np.multiply.outer(chance, one / math.fsum(one))
        loss = np.add.outer(loss, (moved * moved - 2 * integers * moved) / (2 * sd * sd))
    beyond = loss > epsilon
    return float(np.sum(chance[beyond] * -np.expm1(epsilon - loss[beyond])))


class Moved(Query):
    """Integers that neighbours move like this, in numbers of these weights."""

    name = "moved"
    noise = "either"

    def __init__(self, shift: Sequence[int], weights: Sequence[Fraction]) -> None:
        self.shift, self.weights = shift, weights

    @classmethod
    def examples(cls, schema: Schema) -> tuple[Self, ...]:  # noqa: ARG003 (as every query has it)
        return ()

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:  # noqa: ARG002 (as every query has it)
        return ()

    def sensitivity(self, schema: Schema, protects: Protects, norm: Norm) -> Sensitivity:  # noqa: ARG002 (as every query has it)
        moves = zip(self.shift, self.weights, strict=True)
        coordinates = tuple(Coordinate(str(place), 1.0, weight) for place, weight in enumerate(self.weights))
        return Sensitivity(
            norm, coordinates, root_above(sum(((move / weight) ** 2 for move, weight in moves), ALL * 0))
        )


def scales(query: Query, epsilon: float, delta: float) -> list[float]:
    noise = calibrate(query, SCHEMA, dpc.Guarantee(epsilon=epsilon, delta=delta))
    return [float(scale or 0) for scale in noise.scales]


ONE = Moved((1,), (ALL,))


def deltas_of_counts(largest: float = 4.0) -> Iterator[float]:
    """The true delta over delta of a count, at many epsilons: largest where a loss is just epsilon."""
    for delta in (1e-3, 1e-6, 1e-9):
        for epsilon in (float(f"{each:.3g}") for each in np.geomspace(0.3, largest, 40)):
            yield discrete_delta(epsilon, scales(ONE, epsilon, delta), (1,)) / delta


@settings(max_examples=40)
@given(at=st.floats(-3, 12), mu=st.floats(0.005, 6).map(Fraction))
def test_bound_on_delta_is_above_and_near(at: float, mu: Fraction) -> None:
    """At any place `at` of the normal distribution where the loss is epsilon, and with any mu."""
    allowed, size = max(mu * Fraction(at) + mu**2 / 2, Fraction(1, 10**6)), 1 / mu
    true, bound = true_delta(size, allowed), delta_above(size, allowed)
    assert true <= bound <= true * (1 + Fraction(1, 10**20)) + Fraction(1, 10**90)


CORNERS = [(0.01, 1e-9), (0.1, 1e-6), (0.5, 1e-30), (1.0, 1e-6), (1.0, 0.4), (4.0, 1e-9), (20.0, 1e-3), (100.0, 1e-6)]


@pytest.mark.parametrize(("epsilon", "delta"), CORNERS)
def test_sd_is_enough_and_no_larger_than_it_must_be(epsilon: float, delta: float) -> None:
    sd = curve_sd(epsilon, delta, ALL)
    assert true_delta(sd, exact(epsilon)) <= exact(delta) < true_delta(sd * (1 - Fraction(1, 10**9)), exact(epsilon))
    kept = 1 - Fraction(1, 2**10)
    assert true_delta(curve_sd(epsilon, delta, kept), exact(epsilon) * kept) <= exact(delta) * kept


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (0.5, 1e-6), (1.0, 1e-6), (4.0, 1e-5), (20.0, 1e-3)])
def test_sd_is_that_of_another_library_and_below_that_of_zcdp(epsilon: float, delta: float) -> None:
    sd = float(curve_sd(epsilon, delta, ALL))
    assert sd == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-8)
    assert 0.85 < sd / gaussian_sd(epsilon, delta) < 0.97


@given(st.floats(1e-3, 20), st.floats(1e-12, 0.1))
def test_sd_falls_with_epsilon_and_with_delta(epsilon: float, delta: float) -> None:
    sd = curve_sd(epsilon, delta, ALL)
    assert curve_sd(epsilon * 1.01, delta, ALL) < sd
    assert curve_sd(epsilon, delta * 1.01, ALL) < sd
    assert curve_sd(epsilon, delta, 1 - Fraction(1, 2**10)) > sd


typed_epsilons = st.integers(50, 400).map(lambda hundredths: hundredths / 100)
weights = st.fractions(1, 2, max_denominator=8)


@settings(max_examples=60, deadline=None)
@given(epsilon=typed_epsilons, power=st.integers(2, 9), shift=st.integers(1, 3), weight=weights)
def test_delta_of_one_number_holds(epsilon: float, power: int, shift: int, weight: Fraction) -> None:
    found = scales(Moved((shift,), (weight,)), epsilon, 10.0**-power)
    assert discrete_delta(epsilon, found, (shift,)) <= 10.0**-power


@settings(max_examples=40, deadline=None)
@given(epsilon=typed_epsilons, power=st.integers(2, 6), shift=st.tuples(*[st.integers(-2, 2)] * 2), weight=weights)
def test_delta_of_two_numbers_holds(epsilon: float, power: int, shift: tuple[int, int], weight: Fraction) -> None:
    if any(shift):
        found = scales(Moved(shift, (ALL, weight)), epsilon, 10.0**-power)
        assert discrete_delta(epsilon, found, shift) <= 10.0**-power


def test_delta_of_three_numbers_holds() -> None:
    for epsilon in (1.7, 2.4):
        found = scales(Moved((1, -1, 1), (ALL, ALL, ALL)), epsilon, 1e-3)
        assert discrete_delta(epsilon, found, (1, -1, 1)) <= 1e-3


def test_delta_of_a_count_holds_wherever_ticks_are() -> None:
    assert 0.9 < max(deltas_of_counts(1.0)) <= 1
    assert max(deltas_of_counts()) <= 1


def test_zcdp_is_used_where_ticks_are_too_coarse() -> None:
    assert scales(ONE, 10.0, 1e-6) == [gaussian_sd(10.0, 1e-6)]
    fine = Moved((1_000,), (Fraction(1_000),))
    assert scales(fine, 10.0, 1e-6)[0] < 960 * gaussian_sd(10.0, 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_noise_is_four_to_eight_percent_less_than_by_zcdp(epsilon: float, delta: float) -> None:
    fine = Moved((1_000,), (Fraction(1_000),))
    one, other = calibrations(fine, SCHEMA, dpc.Guarantee(epsilon=epsilon, delta=delta))
    assert 0.919 < (one.scales[0] or 0) / (other.scales[0] or 1) < 0.957
    assert one.event.mu > other.event.mu  # so a ledger of rhos is never charged too little


def test_a_schedule_goes_on_as_it_began_and_shares_are_by_zcdp() -> None:
    class Look(Moved):
        prepaid = True

    guarantee = dpc.Guarantee(epsilon=0.5, delta=1e-6)
    by_rho = calibrate(ONE, SCHEMA, guarantee, "zcdp")
    assert calibrate(Look((1,), (ALL,)), SCHEMA, guarantee).scales == by_rho.scales == (gaussian_sd(0.5, 1e-6),)
    assert share_of(by_rho, 2).honest == 2
    with pytest.raises(dpc.DpcausalError, match="calibrated by zCDP"):
        share_of(calibrate(ONE, SCHEMA, guarantee), 2)


@pytest.mark.parametrize("rule", ["additive", "zcdp"])
def test_vault_and_rehearsal_have_the_noise_of_the_ledgers_rule(rule: Rule) -> None:
    schema, asked = standard_schema(), (ArmMoments(), dpc.Guarantee(epsilon=0.5, delta=1e-6))
    budget = dpc.Budget(epsilon=1, delta=1e-5, rule=rule)
    vault = dpc.Vault(synthetic_table(schema, 50), schema, ledger="sqlite://", budget=budget)
    released, expected = vault.release(*asked), dpc.Rehearsal(schema, 50, rule=rule).release(*asked)
    by_rho = calibrate(asked[0], schema, asked[1], "zcdp")
    assert released.scales == expected.scales
    charged = [event.mu for entry in vault.ledger.entries() if entry.kind == "grant" for event in entry.events]
    assert (charged == [by_rho.event.mu]) is (rule == "zcdp")
    shared = dpc.Rehearsal(schema, 50, rule=rule, parts=1.5, sites=3).release(*asked)
    at_first = (by_rho.scales[0] or 0) * by_rho.sensitivity.coordinates[0].tick
    assert shared.scales[0] == pytest.approx(1.5**0.5 * at_first, rel=1e-12)


def test_added_variance_pays_for_every_number() -> None:
    """The bound of the proof, with the exact sums instead of powers of two."""
    for variance in (Fraction(1), Fraction(20), Fraction(10**6)):
        for count in (1, 40, 10**5):
            for epsilon in (exact(0.001), exact(3.0)):
                added = float(grid_variance(variance, count, epsilon, Fraction(1, 2**20)))
                tail = math.exp(-2 * math.pi**2 * added * (1 + float(variance) / (float(variance) + added)))
                assert 9 * count * tail <= min(float(epsilon), 1) / 2**20


# Each of these is broken on purpose, and a test above must fail.


def test_formula_without_its_second_term_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    mills = privacy_curve._mills
    monkeypatch.setattr(
        privacy_curve, "_mills", lambda at, *, above: mills(at, above=above) if above else Decimal(0) * at
    )
    assert delta_above(Fraction(4), ALL) > true_delta(Fraction(4), ALL) * (1 + Fraction(1, 10**20))


def test_rounding_inward_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    mills = privacy_curve._mills
    monkeypatch.setattr(privacy_curve, "_mills", lambda at, *, above: mills(at, above=not above))
    assert delta_above(Fraction(1, 2), ALL) < true_delta(Fraction(1, 2), ALL)
    assert delta_above(Fraction(4), ALL) < true_delta(Fraction(4), ALL)


def test_a_percent_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "curve_sd", lambda *asked: curve_sd(*asked) * Fraction(99, 100))
    assert max(deltas_of_counts(1.0)) > 1


def test_the_curve_of_normal_noise_on_integers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the added variance discrete noise has up to half as much delta again."""
    monkeypatch.setattr(calibration, "grid_variance", lambda *_: Fraction(0))
    assert max(deltas_of_counts()) > 1.4
