"""Bounds that the engine computes hold for random descriptions, are certified, and a broken engine is caught."""

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpcausal.errors import QueryError
from dpcausal.sums import maximum
from dpcausal.sums.cases import Domain, model_of
from dpcausal.sums.certificates import Certificate, Norm, bound_from, check
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import GRID, Code, Number, Shift, Ticks, columns, deficit, level, sign
from dpcausal.sums.pairs import Kind
from dpcausal.sums.sensitivity import computed_bound, sensitivity_bound, together
from tests.sums.engine_mutants import MUTANTS, TOTAL, told
from tests.sums.neighbours import Case, exceeds
from tests.sums.random_descriptions import CODES, drawn
from tests.support.slow import marked

QUICK, EACH = 40, 1_000
BLOCKS = [range(QUICK), *(marked(range(start, start + EACH)) for start in range(QUICK, QUICK + 10 * EACH, EACH))]
MOST_REFUSED = 0.03


FEW = 250
"""So few states that choices must be made alike, and variables of one column free of each other."""


def bounds(case: Case) -> list[Fraction]:
    """Return the bound with the cuts that the search proposes, without any, and with few states: all must hold."""
    model = model_of(case.description, case.domain)
    found = [computed_bound(case.description, case.domain, case.norm).bound, bound_from(model, case.norm, {})]
    with suppress(QueryError):
        found.append(bound_from(model, case.norm, {}, most=FEW))
    return found


@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds.start} to {seeds.stop}")
def test_no_neighbour_moves_the_sums_of_a_random_description_beyond_its_bound(seeds: range) -> None:
    refused = 0
    for seed in seeds:
        case = drawn(seed)
        try:
            bound = min(bounds(case))
        except QueryError:
            refused += 1
            continue
        assert not exceeds(case, bound, seed), seed
    assert refused <= MOST_REFUSED * len(seeds)


@pytest.mark.parametrize("what", MUTANTS)
def test_a_broken_engine_is_caught(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breaks, case = MUTANTS[what]
    assert not exceeds(case, min(bounds(case)), seed=0)
    with monkeypatch.context() as patch:
        breaks(patch)
        broken = min(bounds(case))
    assert exceeds(case, broken, seed=0)


FINE = 4
FEATURES = 12


NUMBERS = [Shift(Ticks(f"covariate_{at}") + GRID // 8, 18) for at in range(FEATURES)]
LISTS = {"covariate_20": 2, "covariate_21": 3, "covariate_22": 4, "covariate_23": 5}
LEVELS = [FINE * level(Code(name, count), value) for name, count in LISTS.items() for value in range(1, count)]


def many(norm: Norm, lines: Sequence[Number] = NUMBERS) -> tuple[Sums, Domain, Fraction]:
    """Return products of many features, and how far a unit can move them at corners: it can turn any of them."""
    parts: dict[str, tuple[Number, int, tuple[int, ...]]] = {
        f"{at}": (4 * line, 5, (at,)) for at, line in enumerate(lines)
    }
    for one, other in itertools.combinations(range(FEATURES), 2):
        parts[f"{one} * {other}"] = lines[one] * lines[other], 3, (one, other)
        parts[f"arm * {one} * {other}"] = sign(Code("treatment", 2)) * lines[one] * lines[other], 7, (one, other, -1)
    power, most = {"l1": 1, "l2": 2}[norm], Fraction(0)
    for arm, turned in itertools.product((False, True), range(FEATURES + 1)):
        moved = {*range(turned), *([-1] if arm else [])}
        odd = [weight for _, weight, factors in parts.values() if len(moved.intersection(factors)) % 2]
        most = max(most, sum((Fraction(2, weight) ** power for weight in odd), Fraction(0)))
    names = {name: number for name, (number, _, _) in parts.items()}
    weights = {name: Fraction(FINE**2 * weight) for name, (_, weight, _) in parts.items()}
    domain = Domain({"treatment": 3} | LISTS, frozenset({"treatment", *columns(*lines)}), leaves=False)
    return Sums({}, {}, names, weights), domain, most


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_features_that_play_the_same_part_are_counted(norm: Norm) -> None:
    sums, domain, most = many(norm)
    bound = computed_bound(sums, domain, norm).bound ** (1 if norm == "l1" else 2)
    assert most <= bound <= most * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_features_of_all_sorts_are_made_alike(norm: Norm) -> None:
    sums, domain, most = many(norm, [*NUMBERS[: FEATURES - len(LEVELS)], *LEVELS])
    bound = bound_from(model_of(sums, domain), norm, {}, most=20_000) ** (1 if norm == "l1" else 2)
    assert most <= bound <= most * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("count", [1, 12])
def test_squares_that_play_the_same_part_are_cut_alike(count: int) -> None:
    lines = {f"{at}": Ticks(f"covariate_{at}") for at in range(count)}
    numbers = lines | {f"deficit {name}": deficit(line) for name, line in lines.items()}
    weights = {name: Fraction(GRID * (2 if name.startswith("deficit") else 1)) for name in numbers}
    domain = Domain({"treatment": 3}, frozenset(each.column for each in lines.values()), leaves=False)
    bound = computed_bound(Sums({}, {}, numbers, weights), domain, "l1").bound
    assert 2 * count <= bound <= 2 * count * Fraction(1001, 1000)


@pytest.mark.parametrize("broken", ["a feature is not counted", "pairs are not counted", "others are not compared"])
def test_broken_counts_are_caught(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sums, domain, most = many("l1")
    if broken == "a feature is not counted":
        compositions = maximum._compositions
        monkeypatch.setattr(maximum, "_compositions", lambda total, parts: compositions(total - (parts == 4), parts))
    elif broken == "pairs are not counted":
        total = maximum._total
        monkeypatch.setattr(
            maximum, "_total", lambda values, counts, members: total(values, counts, members) * (members == 1)
        )
    else:
        monkeypatch.setattr(
            maximum._Counting,
            "_exchangeable",
            lambda self, one, other: self._tables.sizes[one] == self._tables.sizes[other],
        )
        lighter = {name: weight * (100 if name == "0 * 1" else 1) for name, weight in sums.weights.items()}
        sums = replace(sums, weights=lighter)
    assert computed_bound(sums, domain, "l1").bound < most * Fraction(9, 10)


def test_a_certificate_is_checked() -> None:
    case = drawn(3)
    found = sensitivity_bound(case.description, case.domain, case.norm)
    assert found is sensitivity_bound(case.description, case.domain, case.norm)
    assert check(found, case.description, case.domain)
    smaller = Certificate(found.norm, found.bound * Fraction(999, 1000), found.cuts)
    assert not check(smaller, case.description, case.domain)


def test_certificates_of_third_powers_and_of_parts_of_ticks_prove_nothing() -> None:
    """At whole numbers a third power is what it is, but neither unit of the furthest pair need be at an end."""
    domain, small = Domain(CODES, frozenset({"outcome"}), leaves=False), Shift(Ticks("outcome"), 19)
    curve = Sums({}, {"curve": small * small * small - 4 * small}, {}, {"curve": Fraction(1)})
    cuts = {Kind("same"): {(1, 0): (-1, 0, 1)}}
    assert not check(Certificate("l1", Fraction(3), cuts), curve, domain)
    assert check(Certificate("l1", Fraction(6), cuts), curve, domain)
    halves: Any = {Kind("same"): {(1, 0): (-0.5, 0.5)}}
    assert not check(Certificate("l1", Fraction(6), halves), curve, domain)


def test_what_cannot_be_bounded_is_refused() -> None:
    outcome, domain = Ticks("outcome"), Domain(CODES, frozenset({"outcome"}), leaves=False)
    small = Shift(outcome, 10)
    cube = Sums({}, {"cube": small * small * small}, {}, {"cube": Fraction(1)})
    with pytest.raises(QueryError, match="square"):
        computed_bound(cube, domain, "l1")
    with pytest.raises(QueryError, match="weight"):
        computed_bound(Sums({}, {"total": outcome}), domain, "l1")
    with pytest.raises(QueryError, match="as the schema declares"):
        computed_bound(told({"level": (Code("covariate_2", 4), 1)}).description, domain, "l1")
    with pytest.raises(QueryError, match="as the schema declares"):
        computed_bound(told({"total": (Ticks("covariate_1"), 1)}).description, domain, "l1")


def test_several_descriptions_together() -> None:
    assert together([Fraction(3), Fraction(4)], "l1") == 7
    assert together([Fraction(3), Fraction(4)], "l2") == 5
    assert computed_bound(*_plain("l1")).bound == 2


def _plain(norm: Norm) -> tuple[Sums, Domain, Norm]:
    case = told(TOTAL, norm=norm)
    return case.description, case.domain, case.norm
