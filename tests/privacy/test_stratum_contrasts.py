"""No record moves a stratum contrast further than claimed: all small tables, then a search among larger ones."""

import itertools
import random
from fractions import Fraction

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.queries import GRID, Cut, StratumContrasts
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.vault.answers.stratum_contrasts import Arm, contrast
from dpcausal.vault.table import open_table

Record = tuple[int, int, int]
"""Stratum, arm, outcome in ticks."""

NAMES = tuple(StratumContrasts.shares)


def claimed(cap: int, protects: Protects = "record") -> dict[str, Fraction]:
    """How far each number may move, in ticks, as the query's own weights say."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Binary("x")],
        protects=protects,
    )
    coordinates = StratumContrasts([Cut("x")], cap).sensitivity(schema, protects, "l1").coordinates
    return {at.name: (at.weight or 0) * StratumContrasts.shares[at.name] for at in coordinates}


def statistics(records: tuple[Record, ...], cap: int) -> tuple[int, ...]:
    """The five sums of a table, by the answer's own arithmetic."""
    arms: dict[tuple[int, int], list[int]] = {}
    for stratum, arm, outcome in records:
        sums = arms.setdefault((stratum, arm), [0, 0, 0])
        for place, value in enumerate((1, outcome, outcome * outcome)):
            sums[place] += value
    strata = {stratum for stratum, _ in arms}
    empty: Arm = (0, 0, 0)
    terms = [contrast(tuple(arms.get((x, 0), empty)), tuple(arms.get((x, 1), empty)), cap) for x in strata]  # type: ignore[arg-type]
    return tuple(map(sum, zip(*terms, strict=True)))


def worst(strata: int, n: int, cap: int, protects: Protects = "record") -> dict[str, int]:
    """The largest move of each number over all tables of n units with extreme outcomes, and all their neighbours."""
    kinds = list(itertools.product(range(strata), (0, 1), (-GRID, GRID)))
    tables = {table: statistics(table, cap) for table in itertools.combinations_with_replacement(kinds, n)}
    most = dict.fromkeys(NAMES, 0)
    for rest in itertools.combinations_with_replacement(kinds, n - 1):
        near = {kind: tables[tuple(sorted((*rest, kind)))] for kind in kinds}
        for one, other in itertools.combinations(kinds, 2):
            if protects == "outcome" and one[:2] != other[:2]:
                continue
            for name, a, b in zip(NAMES, near[one], near[other], strict=True):
                most[name] = max(most[name], abs(a - b))
    return most


@pytest.mark.parametrize(("strata", "n"), [(1, n) for n in range(2, 8)] + [(2, n) for n in range(2, 7)])
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_bound_holds_for_all_small_tables(strata: int, n: int, cap: int) -> None:
    most, limits = worst(strata, n, cap), claimed(cap)
    assert all(most[name] <= limits[name] for name in NAMES)


def test_bounds_on_effect_size_and_means_are_attained() -> None:
    most, limits = worst(2, 6, 2), claimed(2)
    assert most["effect"] >= 0.999 * limits["effect"]
    assert most["size"] == limits["size"]
    assert most["means"] == limits["means"]
    assert most["squares"] >= 0.8 * limits["squares"]  # all of it only in ever larger arms


def test_outcome_alone_moves_half_as_much() -> None:
    most, limits = worst(2, 6, 2, "outcome"), claimed(2, "outcome")
    assert all(most[name] <= limits[name] for name in NAMES)
    assert most["effect"] >= 0.999 * limits["effect"]
    assert limits["effect"] < 0.51 * claimed(2)["effect"]


def found_by_search(cap: int, tries: int) -> dict[str, int]:
    """The largest moves among random larger tables, lopsided and with outcomes of any size."""
    chance = random.Random(cap)  # noqa: S311 (a search)
    most = dict.fromkeys(NAMES, 0)
    for _ in range(tries):
        sizes = [chance.choice([0, 1, 2, 3, 5, chance.randint(1, 40)]) for _ in range(4)]
        extreme = chance.random() < 0.5
        records = [
            (stratum, arm, chance.choice((-GRID, GRID)) if extreme else chance.randint(-GRID, GRID))
            for (stratum, arm), size in zip(itertools.product((0, 1), (0, 1)), sizes, strict=True)
            for _ in range(size)
        ]
        new, old = ((chance.randint(0, 1), chance.randint(0, 1), chance.choice((-GRID, 0, GRID))) for _ in (0, 1))
        near = (statistics((*records, record), cap) for record in (old, new))
        for name, a, b in zip(NAMES, *near, strict=True):
            most[name] = max(most[name], abs(a - b))
    return most


@pytest.mark.parametrize("cap", [1, 2, 3, 5, 10])
def test_search_finds_no_larger_table_beyond_the_bound(cap: int) -> None:
    most, limits = found_by_search(cap, 2_000), claimed(cap)
    assert all(most[name] <= limits[name] for name in NAMES)


def test_weights_without_a_cap_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: every unit of a stratum with both arms counts, as in plain exact matching."""

    honest = contrast
    monkeypatch.setitem(globals(), "contrast", lambda control, treated, _: honest(control, treated, 1000))
    most, limits = found_by_search(2, 500), claimed(2)
    assert most["effect"] > 2 * limits["effect"]
    assert most["size"] > 2 * limits["size"]


def test_bound_for_one_stratum_in_place_of_two_is_caught() -> None:
    """The mutant: forgetting that a replaced record leaves one stratum and joins another."""
    assert worst(2, 6, 2)["effect"] > 1.9 * claimed(2, "outcome")["effect"]


def test_bound_holds_for_a_record_that_opens_a_stratum() -> None:
    """Every stratum of the public list is a cell of the answer, rows or no rows."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Binary("x")],
    )
    query = StratumContrasts([Cut("x")], 3)
    balanced = {"t": [0, 1] * 5, "y": [0.0, 1.0] * 5, "x": [0] * 10}
    opened = {"t": [0, 1] * 5, "y": [0.0, 1.0] * 5, "x": [0] * 9 + [1]}
    one = dpc.Guarantee(epsilon=1)
    near = (exact_answer(query, schema, open_table(pa.table(each), schema), one) for each in (balanced, opened))
    one_table, other = (answer.ticks for answer in near)
    for name in NAMES:
        assert abs(one_table[name] - other[name]) <= claimed(3)[name]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("protects", PROTECTS)
def test_shares_add_up_to_the_bound(norm: str, protects: Protects) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Binary("x")],
        protects=protects,
    )
    sensitivity = StratumContrasts([Cut("x")], 3).sensitivity(schema, protects, norm)  # type: ignore[arg-type]
    moves = claimed(3, protects)
    parts = [moves[at.name] / (at.weight or 0) for at in sensitivity.coordinates]
    together = sum(parts) if norm == "l1" else sum(part**2 for part in parts)
    assert together <= sensitivity.bound if norm == "l1" else together <= sensitivity.bound**2
