"""A unit's functions are never longer than they are said to be, and a profile gets the numbers that a unit gets."""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpcausal as dpc
from dpcausal.audit.tables import table_of
from dpcausal.errors import QueryError
from dpcausal.queries import GRID, Basis, Cells, Cut, EffectMoments, Fourier, Polynomial, Spline, from_dict
from dpcausal.queries import basis as bases
from dpcausal.queries.basis import LENGTH, basis_of, basis_values
from dpcausal.queries.basis.functions import MOST_FUNCTIONS, PLACES, lookup, rounded
from dpcausal.queries.profiles import codes_of, spread_out, ticks_of, values_of
from dpcausal.vault.answers.stratum_contrasts import strata
from dpcausal.vault.engines.duckdb import connect
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.table import open_table

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0.5),
    covariates=[
        dpc.Real("a", -3, 7),
        dpc.Category("k", ["p", "q", "r"]),
        dpc.Real("c", 0, 1e-3, missing=1e-4),
        dpc.Binary("b", values=("no", "yes")),
        dpc.Category("w", [1, 2.5, 4]),
    ],
)
ALL = ("a", "k", "c", "b", "w")
BASES: list[Basis] = [
    Polynomial(["a"]),
    Polynomial(["k", "a"]),
    Polynomial(ALL, 2),
    Polynomial(ALL, 3),
    Polynomial(["c", "a"], 6),
    Polynomial(["b"], 6),
    Spline(["a"]),
    Spline(["a"], 1),
    Spline(["a", "c"], 60),
    Spline(ALL, 3),
    Spline(["k", "b"]),
    Fourier(["a"], n_features=1),
    Fourier(["a", "c"], width=0.01, n_features=3),
    Fourier(ALL, width=0.5, n_features=25),
    Fourier(ALL, width=1000, n_features=99, seed=10**6),
    Cells([Cut("k")]),
    Cells([Cut("a", [-1, 0, 2.5]), Cut("w"), Cut("c", [5e-4])]),
]
IDS = [f"{type(each).__name__}-{place}" for place, each in enumerate(BASES)]

Codes = dict[str, NDArray[np.int64]]
ENDS = [-GRID, -GRID + 1, -GRID // 2, -1, 0, 1, 255, 256, 257, GRID // 3, GRID - 256, GRID - 1, GRID]


def codes_from(draw: Sequence[Sequence[int]]) -> Codes:
    """Codes of some profiles, each a list of whole numbers of any size."""
    codes: Codes = {}
    for column, line in zip(SCHEMA.covariates, zip(*draw, strict=True), strict=True):
        span = 2 * GRID + 1 if isinstance(column, dpc.Real) else len(column.values)
        low = -GRID if isinstance(column, dpc.Real) else 0
        codes[column.name] = np.array([low + each % span for each in line], dtype=np.int64)
    return codes


@cache
def extremes() -> Mapping[str, NDArray[np.int64]]:
    """Profiles at ends, next to ends and where tables change their place, and many spread evenly."""
    numbers, listed = (ENDS, range(3), ENDS, range(2), range(3)), SCHEMA.covariates
    met = np.array(list(itertools.product(*numbers))).T
    spread = spread_out(listed, 2_000)
    return {column.name: np.r_[line, spread[column.name]] for column, line in zip(listed, met, strict=True)}


def check_lengths(basis: Basis, codes: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    ticks = basis.ticks(codes, SCHEMA)
    assert ticks.dtype == np.int64
    assert len(ticks) == len(basis.names(SCHEMA)) == len(set(basis.names(SCHEMA)))
    assert (ticks * ticks).sum(axis=0).max() <= LENGTH * LENGTH
    assert np.abs(ticks).sum(axis=0).max() <= basis.reach(SCHEMA) * (1 + 1e-9) * LENGTH
    if basis.level:
        assert len(ticks) * (ticks * ticks).max() <= LENGTH * LENGTH
    if basis.disjoint:
        assert ((ticks != 0).sum(axis=0) == 1).all()
        assert (ticks.sum(axis=0) == LENGTH).all()
    return ticks


@pytest.mark.parametrize("basis", BASES, ids=IDS)
def test_functions_are_at_most_1_long(basis: Basis) -> None:
    ticks = check_lengths(basis, extremes())
    longest = math.sqrt(float((ticks * ticks).sum(axis=0).max())) / LENGTH
    assert longest > 0.97  # and no length is wasted: what rounding towards 0 takes off
    most = np.abs(ticks).sum(axis=0).max() / LENGTH / basis.reach(SCHEMA)
    assert most > (0.7 if isinstance(basis, Fourier) else 0.9)


@settings(max_examples=60)
@given(st.sampled_from(BASES), st.lists(st.tuples(*[st.integers(0, 2**22)] * 5), min_size=1, max_size=20))
def test_search_finds_no_profile_with_longer_functions(basis: Basis, draw: list[tuple[int, ...]]) -> None:
    codes = codes_from(draw)
    together = check_lengths(basis, codes)
    last = {name: line[-1:] for name, line in codes.items()}
    assert (basis.ticks(last, SCHEMA)[:, 0] == together[:, -1]).all()  # whatever else is looked at with it


@pytest.mark.parametrize("basis", [each for each in BASES if not each.disjoint], ids=lambda each: type(each).__name__)
def test_tabulated_functions_are_at_most_1_long_everywhere(basis: Basis) -> None:
    """Every number of the grid that is looked up elsewhere than the one before it, and both of these."""
    width = 2 * GRID // PLACES
    middles = np.arange(-GRID, GRID + 1, width)
    line = np.clip(np.r_[middles, middles + width // 2, middles + width // 2 - 1], -GRID, GRID)
    zero = np.zeros(len(line), dtype=np.int64)
    check_lengths(basis, {name: line if name in ("a", "c") else zero for name in ALL})


def test_shares_of_the_length_add_up_to_at_most_1_in_floating_point() -> None:
    """Polynomials share the length among all functions, splines among covariates, waves among themselves and 1."""
    angles = np.arange(PLACES) * (math.tau / PLACES)
    for count in range(1, MOST_FUNCTIONS + 1):
        assert count * (math.floor(LENGTH * GRID / math.sqrt(count)) // GRID) ** 2 <= LENGTH**2
        assert count * int(LENGTH / math.sqrt(count)) ** 2 <= LENGTH**2
        cosine, sine = (rounded(part(angles), LENGTH / math.sqrt(count + 1)) for part in (np.cos, np.sin))
        assert count * (cosine**2 + sine**2).max() + int(LENGTH / math.sqrt(count + 1)) ** 2 <= LENGTH**2


def test_rounding_to_the_nearest_tick_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: rounded as one is used to, functions are longer than they are said to be."""

    def nearest(values: NDArray[np.float64], share: float) -> NDArray[np.int64]:
        return np.rint(values * share).astype(np.int64)

    monkeypatch.setattr(bases.fourier, "rounded", nearest)
    with pytest.raises(AssertionError):
        check_lengths(Fourier(ALL, width=0.5, n_features=25), extremes())


def test_functions_that_do_not_share_the_length_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: each of several covariates' splines is short enough, but all of them together are not."""

    def whole(values: NDArray[np.float64], share: float) -> NDArray[np.int64]:
        return np.trunc(values * LENGTH).astype(np.int64)

    check_lengths(Spline(["a", "c"]), extremes())
    monkeypatch.setattr(bases.spline, "rounded", whole)
    with pytest.raises(AssertionError):
        check_lengths(Spline(["a", "c"]), extremes())


def test_functions_beyond_their_covariates_ranges_are_caught() -> None:
    """The mutant: a covariate that was not moved to its bounds. The door never gives one."""
    codes = dict(extremes()) | {"a": extremes()["a"] * 3 // 2}
    with pytest.raises((AssertionError, IndexError)):
        check_lengths(Polynomial(["a"], 3), codes)


def test_functions_are_those_of_the_formulas() -> None:
    codes = extremes()
    a, c = codes["a"] / GRID, codes["c"] / GRID
    b, q, r = (np.where(codes[name] == place, 1.0, -1.0) for name, place in (("b", 1), ("k", 1), ("k", 2)))
    found = basis_values(Polynomial(["a", "c", "b"], 2), codes, SCHEMA).T
    second = [(3 * each**2 - 1) / 2 for each in (a, c)]
    wanted = [np.ones_like(a), a, second[0], c, second[1], b, a * c, a * b, c * b]
    assert Polynomial(["a", "c", "b"], 2).names(SCHEMA)[:3] == ("constant", "a", "a^2")
    assert found * 3 == pytest.approx(np.array(wanted), abs=3e-3)
    found = basis_values(Polynomial(["k"]), codes, SCHEMA).T * math.sqrt(3)
    assert found == pytest.approx(np.array([np.ones_like(q), q, r]), abs=2e-3)
    splines = basis_values(Spline(["a"], 4), codes, SCHEMA)
    assert splines.sum(axis=1) == pytest.approx(np.ones(len(a)), abs=4e-3)  # at most four are rounded down
    assert splines.min() >= 0
    waves = basis_values(Fourier(["a", "c"], n_features=4), codes, SCHEMA) * math.sqrt(5)
    assert waves[:, 1:5] ** 2 + waves[:, 5:] ** 2 == pytest.approx(np.ones((len(a), 4)), abs=4e-3)


def test_many_fourier_features_approximate_the_kernel() -> None:
    """Products of two profiles' functions are nearly those of a Gaussian kernel of the declared width."""
    codes = spread_out(SCHEMA.covariates, 200)
    values = basis_values(Fourier(["a", "c"], width=0.8, n_features=99), codes, SCHEMA)[:, 1:] * math.sqrt(100 / 99)
    points = np.array([codes["a"], codes["c"]]).T / GRID
    apart = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    assert np.abs(values @ values.T - np.exp(-apart / (2 * 0.8**2))).max() < 0.12


VALUES = {
    "a": st.floats() | st.none() | st.sampled_from([-3.0, 7.0, 2.0, -3 + 10 / 2**22, 7 - 1e-9, 1e308, -1e308]),
    "k": st.sampled_from(["p", "q", "r", None]),
    "c": st.floats(0, 1e-3) | st.floats() | st.none(),
    "b": st.sampled_from(["no", "yes", None]),
    "w": st.sampled_from([1.0, 2.5, 4.0, float("nan"), None]),
}
DATABASE = connect(threads=1)


@settings(max_examples=40)
@given(st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=30))
def test_profiles_become_the_codes_that_the_engine_makes_of_the_same_values(units: list[dict[str, Any]]) -> None:
    table = table_of([{"t": 0.0, "y": 0.5} | each for each in units], SCHEMA)
    features = Features(ALL, SCHEMA)
    batch = open_table(DATABASE.from_arrow(table), SCHEMA).collect(("treatment", *features.columns), 30)
    read = {name: line.tolist() for name, line in features.codes(batch).items()}
    given_ = {name: np.array([each[name] for each in units], dtype=object) for name in ALL}
    coded = codes_of(given_, SCHEMA.covariates)
    assert {name: line.tolist() for name, line in coded.items()} == read
    # and as profiles written down with a query
    listed = codes_of({name: [each[name] for each in units] for name in ALL}, SCHEMA.covariates)
    assert all((listed[name] == coded[name]).all() for name in ALL)


def test_codes_are_recovered_from_values() -> None:
    codes = spread_out(SCHEMA.covariates, 500)
    values = values_of(codes, SCHEMA.covariates)
    again = codes_of({name: [each[place] for each in values] for place, name in enumerate(ALL)}, SCHEMA.covariates)
    assert all((again[name] == codes[name]).all() for name in ALL)


def test_profile_is_in_the_group_in_which_the_engine_counts_it() -> None:
    """Values at, next to and far from edges: a table of one unit each, and the public function of the same value."""
    cells = Cells([Cut("a", [-1, 0, 2.5]), Cut("k")])
    step = 10 / (2 * GRID)
    numbers = [-3.0, 7.0, *(edge + side * step for edge in (-1, 0, 2.5) for side in (-1, -0.51, -0.49, 0, 0.49, 0.51))]
    units = [{"t": 1.0, "y": 0.5, "a": a, "k": k, "c": 0.0, "b": "no", "w": 1.0} for a in numbers for k in "pr"]
    places = cells.places(
        codes_of({name: [each[name] for each in units] for name in "ak"}, cells.reads(SCHEMA)), SCHEMA
    )
    for each, place in zip(units, places.tolist(), strict=True):
        groups = strata(cells.by, SCHEMA, open_table(DATABASE.from_arrow(table_of([each], SCHEMA)), SCHEMA))
        assert [treated[0] for _, treated in groups].index(1) == place


def test_two_edges_on_one_tick_leave_a_group_empty() -> None:
    cells = Cells([Cut("a", [0.0, 1e-9])])
    assert ticks_of(SCHEMA.covariates[0], 0.0) == ticks_of(SCHEMA.covariates[0], 1e-9)  # type: ignore[arg-type]
    whole = pa.table({"t": [1] * 3, "y": [0.5] * 3, "a": [-1.0, 0.0, 1.0], "k": ["p"] * 3, "c": [0.0] * 3})
    whole = whole.append_column("b", pa.array(["no"] * 3)).append_column("w", pa.array([1.0] * 3))
    groups = strata(cells.by, SCHEMA, open_table(DATABASE.from_arrow(whole), SCHEMA))
    assert [treated[0] for _, treated in groups] == [1, 0, 2]
    places = cells.places(codes_of({"a": [-1.0, 0.0, 1.0]}, cells.reads(SCHEMA)), SCHEMA)
    assert places.tolist() == [0, 2, 2]


def test_tables_are_looked_up_at_the_nearest_place() -> None:
    every = np.arange(-GRID, GRID + 1)
    found = lookup(every)
    assert (found.min(), found.max()) == (0, PLACES)
    assert np.abs(found * (2 * GRID // PLACES) - GRID - every).max() <= GRID // PLACES


@pytest.mark.parametrize("basis", BASES, ids=IDS)
def test_basis_is_the_same_after_a_round_trip(basis: Basis) -> None:
    covariates, zeros = ["a"], [0.0, 0.0]
    query = EffectMoments(covariates, zeros, zeros, zeros, basis, "residual", 0.1, 1.0)
    again = from_dict(dpc.queries.to_dict(query))
    assert again == query
    assert basis_of(dpc.queries.to_dict(query)["basis"]) == basis


def test_too_many_functions_are_refused() -> None:
    for basis in (Polynomial(ALL, 6), Spline(["a", "c"], 100), Cells([Cut("a", [place / 50 for place in range(300)])])):
        with pytest.raises(QueryError, match="at most 200 functions"):
            basis.names(SCHEMA)
    with pytest.raises(QueryError, match="n_features"):
        Fourier(["a"], n_features=100)
