"""Scales of covariates: what may be declared, and that every reader of a value finds the same score."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.errors import QueryError, SchemaError, TableError
from dpcausal.queries import GRID, ChangeMoments, Cut, CutoffMoments, MetricMoments
from dpcausal.queries.profiles import Segment, codes_of, segments, ticks_of, value_of
from dpcausal.rehearsal.rehearsal import Rehearsal
from dpcausal.schema.data_handling import covariate_handling
from dpcausal.schema.scale import LEAST_GAP, MOST_KNOTS, Scale
from dpcausal.source import RecordingSource, scaled
from dpcausal.vault import ticks
from dpcausal.vault.table import open_table
from tests.support.conformance.coercion import coerced_units

CREATININE = dpc.Real("creatinine", 0, 15)
SKEWED = Scale([(0.2, -1), (1, 0), (4, 0.75)])


def schema_of(*covariates: Any, **more: Any) -> dpc.Schema:
    return dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 1, missing=0), covariates, **more)


@st.composite
def columns(draw: st.DrawFn) -> dpc.Real:
    """Columns on scales whose knots may be neighbours in floating point, and whose scores may be one tick."""
    bounds = [(0, 15), (-1e70, 1e70), (0, 1e-60), (1e9, 1e9 + 1), (0.1, 1e60), (-5, 5), (-7e-90, 1e-90)]
    low, high = draw(st.sampled_from(bounds))
    within = st.floats(low, high)
    values = set(draw(st.lists(within, min_size=1, max_size=8)))
    values |= {min(math.nextafter(value, math.inf), high) for value in values} | {low + (high - low) / 3, float(high)}
    rising: list[float] = []
    for value in sorted(values):
        rising += [value] if not rising or value - rising[-1] >= LEAST_GAP else []
    scores = sorted(draw(st.lists(st.floats(-1, 1), min_size=len(rising), max_size=len(rising), unique=True)))
    missing = draw(st.one_of(st.none(), within))
    return dpc.Real("x", low, high, missing, scale=Scale(list(zip(rising, scores, strict=True))))


def hostile(column: dpc.Real) -> list[float | None]:
    assert column.scale is not None
    ends = (column.low, column.high, *(value for value, _ in column.scale.knots))
    around = [near for end in ends for near in (end, math.nextafter(end, math.inf), math.nextafter(end, -math.inf))]
    between = [low + (high - low) * share for low, high in itertools.pairwise(sorted(ends)) for share in (0.3, 0.5)]
    return [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, *around, *between]


def read(column: dpc.Real, cells: Sequence[float | None], *, text: bool = False) -> list[int]:
    """Return cells in ticks as DuckDB finds them."""
    shown = [None if cell is None else repr(cell) for cell in cells] if text else cells
    table = pa.table({"t": [0] * len(cells), "y": [0.0] * len(cells), "x": pa.array(shown)})
    engine = open_table(
        table.append_column("n", pa.array(range(len(cells)))), schema_of(column, dpc.Real("n", 0, 2**21))
    )
    found = engine.collect(("covariate_0", "covariate_1"), len(cells), whole=True)
    order = np.argsort(found["covariate_1"])
    return [int(each) for each in found["covariate_0"][order]]


def check_ticks(column: dpc.Real, found: Sequence[int], cells: Sequence[float | None]) -> None:
    """Raise unless ticks are within the grid, and rise with values."""
    assert all(-GRID <= tick <= GRID for tick in found), "within the grid"
    numbers = [math.nan if cell is None else cell for cell in cells]
    pairs = sorted((number, tick) for number, tick in zip(numbers, found, strict=True) if not math.isnan(number))
    assert all(one[1] <= other[1] for one, other in itertools.pairwise(pairs)), "rising"
    missing = {tick for number, tick in zip(numbers, found, strict=True) if math.isnan(number)}
    assert missing == {0 if column.missing is None else ticks_of(column, column.missing)}, "missing"


@given(columns(), st.booleans())
def test_engine_numpy_and_python_find_the_same_score(column: dpc.Real, text: bool) -> None:
    cells = hostile(column)
    found = read(column, cells, text=text)
    check_ticks(column, found, cells)
    table = pa.table({"t": [0] * len(cells), "y": [0.0] * len(cells), "x": pa.array(cells, pa.float64())})
    assert found == [unit["covariate_0"] for unit in coerced_units(table, schema_of(column))]
    numbers = np.array([math.nan if cell is None else cell for cell in cells])
    assert found == codes_of({"x": numbers}, [column])["x"].tolist()


SCALED = dpc.Real("x", 0, 15, scale=SKEWED)


def times(factor: int) -> Callable[[Scale], list[Segment]]:
    """Return the segments of a scale with other ticks."""
    return lambda scale: [replace(each, first=factor * each.first, last=factor * each.last) for each in segments(scale)]


MUTANTS: dict[str, tuple[str, Any, str]] = {
    "ticks beyond the grid": ("segments", times(2), "within the grid"),
    "ticks that fall": ("segments", times(-1), "rising"),
    "a missing value as another score": ("missing_ticks", lambda _: 7, "missing"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_ticks_off_their_scale_would_be_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part, instead, words = MUTANTS[name]
    cells = hostile(SCALED)
    check_ticks(SCALED, read(SCALED, cells), cells)
    monkeypatch.setattr(ticks, part, instead)
    with pytest.raises(AssertionError, match=words):
        check_ticks(SCALED, read(SCALED, cells), cells)


def test_value_and_score_are_each_others_inverse() -> None:
    for value in (0.2, 0.5, 1, 2, 4):
        assert SKEWED.value_at(SKEWED.score_at(value)) == pytest.approx(value)
        assert value_of(SCALED, ticks_of(SCALED, value)) == pytest.approx(value, abs=1e-5)
    assert [SKEWED.value_at(score) for score in (-2, -1, 0, 0.75, 2)] == [0.2, 0.2, 1, 4, 4]
    assert [SKEWED.score_at(value) for value in (0, 0.2, 1, 4, 15)] == [-1, -1, 0, 0.75, 0.75]


@pytest.mark.parametrize(
    "knots",
    [
        [],
        [(0, 0)],
        [(0, -1), (0, 1)],
        [(1, -1), (0, 1)],
        [(0, 1), (1, -1)],
        [(0, 0), (1, 0)],
        [(0, -1.01), (1, 1)],
        [(0, -1), (math.inf, 1)],
        [(0, -1), (1, math.nan)],
        [(0, -1), (5e-324, 1)],
        [("0", -1), (1, 1)],
        [(0, -1, 2), (1, 1, 2)],
        None,
        [(place, place / 100) for place in range(MOST_KNOTS + 1)],
    ],
)
def test_knots_that_are_no_scale_are_refused(knots: Any) -> None:
    with pytest.raises(SchemaError, match="both rising"):
        Scale(knots)


def test_scale_of_typical_values_has_the_central_share_within() -> None:
    linear = dpc.Real("age", 0, 120, typical=(40, 80)).typical_scale
    assert linear is not None
    assert linear.score_at(80) == pytest.approx(1.645 / 2.6)
    assert linear.score_at(60) == pytest.approx(0)
    assert linear.reach == pytest.approx((60 - 20 * 2.6 / 1.645, 60 + 20 * 2.6 / 1.645))
    clipped = dpc.Real("age", 35, 85, typical=(40, 80), transform="linear").typical_scale
    assert clipped is not None
    assert clipped.reach == (35, 85)
    assert clipped.score_at(80) == pytest.approx(1.645 / 2.6)
    log = dpc.Real("creatinine", 0.1, 15, typical=(0.5, 4.5), transform="log").typical_scale
    assert log is not None
    assert len(log.knots) <= 16
    for value in np.geomspace(0.35, 6.4, 30):
        exact = math.log(value / 1.5) / math.log(3) * 1.645 / 2.6
        assert log.score_at(float(value)) == pytest.approx(exact, abs=0.006)
    assert log.reach[0] >= 0.1
    tight = dpc.Real("x", 1, 10, typical=(1, 10), transform="log").typical_scale
    assert tight is not None
    assert tight.reach == (1, 10)
    assert CREATININE.typical_scale is None


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"typical": (5, 4)}, "rising"),
        ({"typical": (-1, 4)}, "within 0 and 15"),
        ({"typical": (1, 16)}, "within 0 and 15"),
        ({"typical": (1, 2, 3)}, "two rising"),
        ({"typical": "12"}, "two rising"),
        ({"typical": 3}, "two rising"),
        ({"typical": (1, math.nan)}, "two rising"),
        ({"transform": "log"}, "low > 0"),
        ({"transform": "sqrt"}, "linear, log"),
        ({"scale": Scale([(-1, -1), (1, 1)])}, "within 0 and 15"),
        ({"scale": [(0, 1)]}, "both rising"),
    ],
)
def test_impossible_declarations_for_models_are_refused(declared: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        replace(CREATININE, **declared)


@pytest.mark.parametrize("declared", [{"typical": (1, 2)}, {"transform": "linear"}, {"scale": SKEWED}])
def test_outcomes_metrics_and_tables_have_nothing_for_models(declared: dict[str, Any]) -> None:
    column = replace(CREATININE, missing=0, **declared)
    with pytest.raises(SchemaError, match="are for covariates"):
        dpc.Schema(dpc.Treatment("t"), column)
    with pytest.raises(SchemaError, match="without indicator, typical and transform"):
        dpc.Metric(column)
    if "scale" in declared:
        with pytest.raises(SchemaError, match="without scales"):
            dpc.Vault(pa.table({"t": [0]}), schema_of(column), ledger="sqlite://", budget=dpc.Budget(epsilon=1))


def test_declarations_are_written_and_read_again() -> None:
    schema = schema_of(dpc.Real("x", 0.1, 15, typical=(0.5, 1.5), transform="log"), CREATININE)
    assert dpc.Schema.from_toml(schema.to_toml()) == schema
    assert "typical = [\n    0.5,\n    1.5,\n]" in schema.to_toml()
    view = schema.scaled({"creatinine": SKEWED}, indicators=["x"])
    assert dpc.Schema.from_dict(view.to_dict()) == view


def test_view_has_scales_indicators_and_the_score_0_of_a_missing_value() -> None:
    schema = schema_of(CREATININE, dpc.Real("age", 18, 90, missing=50), dpc.Binary("sex"))
    view = schema.scaled({"creatinine": SKEWED, "age": Scale([(18, -1), (90, 1)])}, indicators=["creatinine"])
    names = ["creatinine", "creatinine is missing", "age", "sex"]
    assert [column.name for column in view.covariates] == names
    handling = "a covariate that is missing or not declared counted as: creatinine 1 with an indicator, age 50, sex 0"
    assert covariate_handling(view.covariates) == (handling,)
    assert schema.scaled({}) == schema
    other = view.scaled({"creatinine": Scale([(0, -1), (15, 1)])})
    assert other.covariates[1].meaning == view.covariates[1].meaning  # whether it is missing has no scale
    assert other.covariates[0].meaning != view.covariates[0].meaning
    for wrong in ("sex", "y", "nothing"):
        with pytest.raises(SchemaError, match="covariates that are numbers"):
            schema.scaled({wrong: SKEWED})
    for wrong in ("y", "nothing"):
        with pytest.raises(SchemaError, match="indicators of covariates"):
            schema.scaled({}, [wrong])
    assert [column.name for column in schema.scaled({}, ["sex"]).covariates][-2:] == ["sex", "sex is missing"]


@pytest.mark.parametrize(
    "query",
    [
        ChangeMoments("creatinine", "", -15, 1),
        CutoffMoments("creatinine", 2, 1),
        MetricMoments([["creatinine"]], [1.0]),
    ],
)
def test_queries_in_a_columns_own_unit_refuse_a_scale(query: Any) -> None:
    view = schema_of(CREATININE).scaled({"creatinine": SKEWED})
    query.sensitivity(schema_of(CREATININE), "record", "l1")
    with pytest.raises(QueryError, match="without a scale"):
        query.sensitivity(view, "record", "l1")


def test_cuts_are_within_the_reach_of_a_scale() -> None:
    schema = schema_of(CREATININE)
    assert Cut("creatinine", [0.1, 5]).bins(schema) == 3
    view = schema.scaled({"creatinine": SKEWED})
    assert Cut("creatinine", [0.3, 3.9]).bins(view) == 3
    for edge in (0.1, 0.2, 4, 5):
        with pytest.raises(QueryError, match="must rise between"):
            Cut("creatinine", [edge]).bins(view)


def test_views_of_wrappers_and_rehearsals_share_what_they_record() -> None:
    rehearsal = Rehearsal(schema_of(CREATININE), n=1_000)
    recording = RecordingSource(rehearsal)
    view = scaled(recording, {"creatinine": SKEWED}, ["creatinine"])
    assert isinstance(view, RecordingSource)
    assert view.schema == rehearsal.schema.scaled({"creatinine": SKEWED}, ["creatinine"])
    assert view.releases is recording.releases
    assert "those on a scale" in " ".join(view.caveats)

    class Fixed:
        def __getattr__(self, name: str) -> Any:
            return getattr(rehearsal, name) if name != "scaled" else self.__getattribute__(name)

    with pytest.raises(TableError, match="a Vault or a Rehearsal"):
        scaled(Fixed(), {"creatinine": SKEWED})


def test_diagnostics_of_a_view_are_by_score() -> None:
    schema = schema_of(CREATININE, dpc.Real("age", 18, 90))
    view = Rehearsal(schema, n=100_000).scaled({"creatinine": SKEWED, "age": Scale([(18, -1), (90, 1)])})
    table = dpc.Balance(["creatinine", "age"]).estimate(view, epsilon=5.0).table_one
    assert [line.name for line in table.characteristics] == ["creatinine (score)", "age (score)"]
    spread = table.characteristics[0].sds[0]
    assert spread is not None
    assert spread.value == pytest.approx(1 / 2.6, abs=0.01)
    score = dpc.PropensityModel(["creatinine", "age"]).estimate(view, epsilon=5.0)
    slopes = score.coefficients
    at: dict[str, list[float]] = {"creatinine": [0.1, 0.6, 2.5, math.nan], "age": [30, 50, 54, 90]}
    logits = [
        slopes["intercept"] + slopes["creatinine"] * by_score + slopes["age"] * (age - 54) / 36
        for by_score, age in zip((-1, -0.5, 0.375, 0), at["age"], strict=True)
    ]
    assert score.predict(at) == pytest.approx(1 / (1 + np.exp(-np.array(logits))), abs=1e-5)


def test_scaled_view_reads_nothing_asks_other_questions_and_pays_into_the_same_ledger() -> None:
    table = pa.table({"t": [0, 1] * 50, "y": [0.2, 0.7] * 50, "creatinine": [0.9, 1.4, None, 30.0] * 25})
    vault = dpc.Vault(table, schema_of(CREATININE), ledger="sqlite://", budget=dpc.Budget(epsilon=10))
    query, one = dpc.queries.CovariateSums(["creatinine"]), dpc.Guarantee(epsilon=1.0)
    view = vault.scaled({"creatinine": SKEWED}, ["creatinine"])
    assert view.question(query, one) != vault.question(query, one)
    assert view.ledger is vault.ledger
    assert vault.ledger.spent.epsilon == 0
    view.release(query, one)
    view.release(dpc.queries.CovariateSums(["creatinine is missing"]), one)
    vault.release(query, one)
    assert vault.ledger.spent.epsilon == 3
    assert view.release(query, one).receipt.stored
