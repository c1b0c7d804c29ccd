"""Queries that add up units: their sums are those of the formulas, and parameters that do not fit are refused."""

import itertools
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import QueryError
from dpcausal.queries import (
    ArmMoments,
    ArmOutcomeCounts,
    AugmentedScores,
    CellMoments,
    Cells,
    ChangeMoments,
    ClusterMoments,
    Cut,
    CutoffMoments,
    EventCounts,
    MissingOutcomes,
    Norm,
    OutcomeCounts,
    Query,
    ReceivedMoments,
    ScoreCounts,
    StratumCounts,
    SubgroupMoments,
    WeightedArms,
    WeightedCounts,
    WeightedCovariates,
    question,
    seen_by,
)
from dpcausal.queries.features import Estimand
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.vault.table import open_table

ONE = dpc.Guarantee(epsilon=1)
ARMS = ("none", "low", "high")
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", arms=ARMS, reference="low", compare="high"),
    outcome=dpc.Real("y", 0, 10, missing=5),
    covariates=[
        dpc.Real("b", 0, 4, missing=1),
        dpc.Binary("d", missing=0),
        dpc.Category("k", ["p", "q", "r"], missing="p"),
    ],
)
UNITS = 2_000


@pytest.fixture(scope="module")
def units() -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {
        "t": random.choice([*ARMS, "elsewhere"], UNITS),
        "y": random.uniform(-1, 11, UNITS),
        "b": random.uniform(0, 4, UNITS),
        "d": random.integers(0, 2, UNITS),
        "k": random.choice(["p", "q", "r"], UNITS),
    }


def sums_of(query: Query, units: Mapping[str, Any], schema: dpc.Schema = SCHEMA) -> dict[str, float]:
    """Return the query's own answer, without noise, in the schema's units."""
    ticks = exact_answer(query, schema, open_table(pa.table(dict(units)), schema), ONE).ticks
    coordinates = query.sensitivity(seen_by(query, schema), "record", "l1").coordinates
    return {at.name: ticks[at.name] * at.tick for at in coordinates}


def moments(values: Any, half: float, chosen: Any, label: str) -> dict[str, float]:
    """Return the number of chosen units, their sum from the middle of the range, and what their squares lack."""
    own = values[chosen]
    parts = {"size": len(own), "total": own.sum(), "deficit": (half**2 - own**2).sum()}
    return {f"{part}{label}": value for part, value in parts.items()}


def expected(query: Query, units: Mapping[str, Any]) -> dict[str, float]:  # noqa: C901, PLR0912 (one case for each)
    """Return what a query's sums are by their formulas, with NumPy."""
    y, b, k = np.clip(units["y"], 0, 10), units["b"], units["k"]
    z, arms = y - 5, {arm: units["t"] == name for arm, name in enumerate(("low", "high"))}
    received = np.where(units["d"] == 1, 0.5, -0.5)
    found: dict[str, float] = {}
    match query:
        case ArmMoments() | ChangeMoments() | ReceivedMoments():
            line, half = z, 5.0
            if isinstance(query, ChangeMoments):
                half = (query.high - query.low) / 2
                line = np.clip(y - b, query.low, query.high) - (query.low + query.high) / 2
            for arm, own in arms.items():
                found |= moments(line, half, own, f"_{arm}")
                if isinstance(query, ReceivedMoments):
                    found |= {f"received_{arm}": received[own].sum(), f"product_{arm}": (z * received)[own].sum()}
            found["compared"] = found.pop("size_0") + found["size_1"]
        case CellMoments():
            for arm, name in enumerate(ARMS):
                for value in "pqr" if query.by else [""]:
                    own = (units["t"] == name) & ((k == value) | (not value))
                    found |= moments(z, 5.0, own, f"_{arm} of k={value}" if value else f"_{arm}")
        case SubgroupMoments():
            for (arm, own), value in itertools.product(arms.items(), "pqr"):
                found |= moments(z, 5.0, own & (k == value), f"_{arm} of k={value}")
        case ClusterMoments():
            for value in "pqr":
                found |= moments(z, 5.0, arms[value in query.treated] & (k == value), f" of k={value}")
        case CutoffMoments():
            for below, inside in ((True, (b < 2) & (b >= 1)), (False, (b >= 2) & (b <= 3))):
                arm, own = int(below == query.treated_below), inside & (arms[0] | arms[1])
                u, own_z = 2 * np.abs(b[own] - 2) - 1, z[own]
                found |= moments(z, 5.0, own, f"_{arm}")
                found |= {f"distance_{arm}": u.sum(), f"spread_{arm}": (1 - u**2).sum()}
                found[f"product_{arm}"] = (u * own_z).sum()
        case OutcomeCounts() | ArmOutcomeCounts():
            by_arm = [np.histogram(y[own], [-1, *query.edges, 11])[0] for own in arms.values()]
            counts = np.concatenate(by_arm) if isinstance(query, ArmOutcomeCounts) else np.sum(by_arm, axis=0)
            found |= zip(query.bins, counts, strict=True)
        case StratumCounts():
            for (arm, own), value in itertools.product(arms.items(), "pqr"):
                found[f"size_{arm} of k={value}"] = (own & (k == value)).sum()
        case ScoreCounts():
            score = 1 / (1 + np.exp(-(0.3 - 4.5 * (b / 2 - 1)) / np.sqrt(2)))
            for arm, own in arms.items():
                counts = np.histogram(score[own], [0, *query.edges, 1])[0]
                found |= {f"size_{arm} of {name}": count for name, count in zip(query.bins(), counts, strict=True)}
        case EventCounts():
            ended = np.searchsorted(query.times, y, side="right")
            for (arm, own), value in itertools.product(arms.items(), "pqr"):
                for place, kind in itertools.product(range(len(query.times)), (0, 1)):
                    chosen = own & (k == value) & (ended == place) & (units["d"] == kind)
                    found[f"count_{arm}_{place}_{kind} of k={value}"] = chosen.sum()
                found[f"beyond_{arm} of k={value}"] = (own & (k == value) & (ended == len(query.times))).sum()
        case WeightedArms() | WeightedCounts():
            found |= weighted(query, units)
    return found


def weighted(query: WeightedArms | WeightedCounts, units: Mapping[str, Any]) -> dict[str, float]:
    """Return what weighted sums are by their formulas."""
    y, b, k, chosen = np.clip(units["y"], 0, 10), units["b"], units["k"], np.isin(units["t"], ("low", "high"))
    treated = units["t"] == "high"
    features = np.array([np.ones(UNITS), b / 2 - 1, *(k == value for value in "pqr")]) / np.sqrt(3)
    score = np.clip(1 / (1 + np.exp(-np.array(query.coefficients) @ features)), query.clip, 1 - query.clip)
    weights = {
        "ATE": np.where(treated, 1 / score, 1 / (1 - score)),
        "ATT": np.where(treated, 1, score / (1 - score)),
        "ATC": np.where(treated, (1 - score) / score, 1),
        "ATO": np.where(treated, 1 - score, score),
    }[query.estimand]
    found: dict[str, float] = {}
    if isinstance(query, WeightedArms):
        z, reach = y - 5 - 5 * query.centre, 5 * (1 + abs(query.centre))
        lines = {"weighted": weights * z, "weight": weights}
        for name, line in lines.items():
            found |= {
                f"{name}_difference": np.where(treated, line, -line)[chosen].sum(),
                f"{name}_sum": line[chosen].sum(),
            }
        found["deficit"] = (weights * (reach**2 - z**2))[chosen].sum()
        return found | {"weight_square_sum": (weights**2)[chosen].sum(), "compared": chosen.sum()}
    place = np.searchsorted(query.edges, y, side="right")
    for arm, own in enumerate((chosen & ~treated, chosen & treated)):
        found[f"squares_{arm}"] = (weights**2)[own].sum()
        for at, kind in itertools.product(range(len(query.edges)), (0, 1)):
            found[f"count_{arm}_{at}_{kind}"] = weights[own & (place == at) & (units["d"] == kind)].sum()
        found[f"beyond_{arm}"] = weights[own & (place == len(query.edges))].sum()
    return found


SCORE = (["b", "k"], [0.3, -2.5, 1.0, 0.2, -0.4])
QUERIES: list[Query] = [
    ArmMoments(),
    ChangeMoments("b", "", -4.0, 10.0),
    ChangeMoments("b", "", -1.0, 3.0),
    ReceivedMoments("d"),
    CellMoments(),
    CellMoments([Cut("k")]),
    SubgroupMoments(Cells([Cut("k")])),
    ClusterMoments("k", ["q"]),
    CutoffMoments("b", 2.0, 1.0),
    CutoffMoments("b", 2.0, 1.0, treated_below=True),
    OutcomeCounts([2.5, 5.0, 7.5]),
    ArmOutcomeCounts([2.5, 5.0, 7.5]),
    StratumCounts(Cells([Cut("k")])),
    ScoreCounts(["b"], [0.3, -4.5], [0.1, 0.5, 0.9]),
    EventCounts([2.0, 5.0, 10.0], "d", [Cut("k")]),
    *(WeightedArms(*SCORE, estimand, 0.1) for estimand in get_args(Estimand)),
    WeightedArms(*SCORE, "ATE", 0.1, centre=-0.6),
    *(WeightedCounts(*SCORE, estimand, 0.1, [2.0, 5.0, 9.0], "d") for estimand in get_args(Estimand)),
]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_sums_are_those_of_the_formulas(query: Query, units: dict[str, Any]) -> None:
    found, wanted = sums_of(query, units), expected(query, units)
    assert found == pytest.approx(wanted, rel=2e-3, abs=2.0)  # on a grid, some numbers rounded to a thousandth
    counts = () if isinstance(query, WeightedCounts) else ("size", "count", "beyond", "units", "compared")
    exact = {name for name in wanted if name.startswith(counts)}
    assert {name: found[name] for name in exact} == pytest.approx({name: wanted[name] for name in exact}, abs=1e-9)


def test_every_declared_arm_is_a_cell_whichever_two_are_compared(units: dict[str, Any]) -> None:
    other = dpc.Schema(dpc.Treatment("t", arms=ARMS, compare="high"), SCHEMA.outcome, SCHEMA.covariates)
    assert sums_of(CellMoments(), units, other) == sums_of(CellMoments(), units)
    asked = [question(CellMoments(), ONE, schema, None) for schema in (SCHEMA, other)]
    assert asked[0] == asked[1]
    renamed = dpc.Schema(dpc.Treatment("t", arms=("none", "high", "low"), compare="high"), SCHEMA.outcome)
    assert question(CellMoments(), ONE, renamed, None) != asked[0]


def test_an_edge_belongs_to_the_bin_above_it_and_a_cell_without_a_number_counts_as_declared() -> None:
    outcomes = [0.0, 2.4, 2.5, 4.9, 5.0, 10.0, -1e308, 1e308, np.inf, -np.inf, nan, None]
    for outcome, place in zip(outcomes, [0, 0, 1, 1, 2, 3, 0, 3, 3, 0, 2, 2], strict=True):
        unit = {"t": ["low"], "y": pa.array([outcome], pa.float64()), "b": [1.0], "d": [0], "k": ["p"]}
        assert list(sums_of(OutcomeCounts([2.5, 5.0, 7.5]), unit).values()) == [float(at == place) for at in range(4)]
        ended = sums_of(EventCounts([2.5, 5.0, 7.5]), unit)
        assert [name for name, count in ended.items() if count] == [f"count_0_{place}_0" if place < 3 else "beyond_0"]


def test_missing_outcomes_are_counted_in_the_compared_arms() -> None:
    number = dpc.Real("y", 0, 10, missing_codes=[-9])
    schema = dpc.Schema(dpc.Treatment("t", arms=(0, 1, 2), compare=1), number)
    units = {"t": [0, 0, 1, 1, 1, 2, None], "y": [1.0, None, -9.0, nan, 9.0, None, None]}
    assert list(sums_of(MissingOutcomes(), units, schema).values()) == [1, 1, 1, 2]
    answers = dpc.Schema(schema.treatment, dpc.Binary("y", values=("no", "yes")))
    units = {"t": [0, 0, 1, 1], "y": ["yes", "maybe", None, " No "]}
    assert list(sums_of(MissingOutcomes(), units, answers).values()) == [1, 1, 1, 1]


def test_missing_outcomes_where_none_can_be_missing_are_refused_before_anything_is_spent() -> None:
    vault = dpc.Vault(
        pa.table({"t": ["low", "high"], "y": [0.1, None], "b": [0.0, 1.0], "d": [0, 1], "k": ["p", "q"]}),
        SCHEMA,
        ledger="sqlite://",
        budget=dpc.Budget(epsilon=1),
    )
    with pytest.raises(QueryError, match="cannot be missing"):
        vault.release(MissingOutcomes(), ONE)
    assert vault.ledger.spent.epsilon == 0
    assert MissingOutcomes.examples(SCHEMA) == ()


@pytest.mark.parametrize(("protects", "norm"), list(itertools.product(PROTECTS, ("l1", "l2"))))
def test_noise_does_not_grow_with_the_number_of_cells(protects: Protects, norm: Norm) -> None:
    def noise(query: Query, schema: dpc.Schema = SCHEMA) -> dict[str, float]:
        found = query.sensitivity(schema, schema.bounded_as(protects), norm)
        return {at.name[:5]: float(found.bound * (at.weight or 0)) for at in found.coordinates}

    many = np.linspace(0.05, 9.95, 150).tolist()
    twenty = dpc.Schema(dpc.Treatment("t", arms=tuple(range(20)), compare=1), SCHEMA.outcome, SCHEMA.covariates)
    pairs: list[tuple[Query, Query]] = [
        (OutcomeCounts([5.0]), OutcomeCounts(many)),
        (EventCounts([5.0]), EventCounts(many[:60], "d", [Cut("k")])),
        (SubgroupMoments(Cells([Cut("k")])), SubgroupMoments(Cells([Cut("k"), Cut("b", many[1:50:2][:20])]))),
    ]
    for few, more in pairs:
        assert noise(few) == pytest.approx(noise(more), rel=2e-3)
    assert noise(CellMoments(), twenty) == pytest.approx(noise(CellMoments()), rel=2e-3)
    assert noise(CellMoments(), twenty)["total"] == pytest.approx(noise(ArmMoments())["total"], rel=2e-3)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (ChangeMoments("y", "", -1.0, 1.0), "holds the value before"),
        (ChangeMoments("", "", -1.0, 1.0), "holds the value before"),
        (ChangeMoments("b", "y", -1.0, 1.0), "holds the value before"),
        (ChangeMoments("b", "", -6.0, 1.0), "bounds of the change"),
        (ChangeMoments("b", "", 0.0, 0.001), "a thousandth"),
        *((ReceivedMoments(name), "Binary covariate") for name in ("t", "y", "nothing", "")),
        *((OutcomeCounts(edges), "between 0 and 10") for edges in ([0.0, 5.0], [5.0, 10.0], [-1.0], [11.0])),
        *((EventCounts(times), "above 0 and up to 10") for times in ([0.0, 5.0], [5.0, 10.1], [-1.0])),
        *((EventCounts([5.0], name), "covariate with listed values") for name in ("b", "nothing")),
        (EventCounts([1.0, 9.0], "d", [Cut("b", np.linspace(0.1, 3.9, 5_000).tolist())]), "at most"),
        (CutoffMoments("y", 0.5, 0.2), "as the running variable"),
        (CutoffMoments("b", 4.5, 0.2), "a cutoff between"),
        (CutoffMoments("b", 0.5, 1e-5), "a bandwidth from"),
        *((ClusterMoments(name, ["p"]), "listed values") for name in ("b", "ward")),
        *((ClusterMoments("k", treated), "some of the values") for treated in ([], ["p", "q", "r"], ["z"])),
        (ScoreCounts(["b"], [0.0], [0.5]), "coefficient"),
        (WeightedCounts(["b"], [0.0], "ATE", 0.1, [5.0]), "coefficient"),
        (WeightedCounts(["b"], [0.0, 1.0], "ATE", 0.1, [5.0, 11.0]), "above 0 and up to 10"),
        (WeightedCounts(["b"], [0.0, 1.0], "ATE", 0.1, [5.0], "nothing"), "covariate with listed values"),
        (SubgroupMoments(Cells([Cut("b", np.linspace(0.01, 3.99, 100).tolist()), Cut("k")])), "at most 200"),
    ],
    ids=lambda each: str(each)[:100],
)
def test_parameters_that_do_not_fit_the_schema_are_refused(query: Query, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        query.sensitivity(SCHEMA, "record", "l1")


@pytest.mark.parametrize("kind", [OutcomeCounts, EventCounts])
def test_outcome_of_two_values_is_refused_where_a_number_is_needed(kind: Any) -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Binary("y"))
    with pytest.raises(QueryError, match="an outcome that is a"):
        kind([0.5]).sensitivity(schema, "record", "l1")
    assert kind.examples(schema) == ()


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        *(
            (OutcomeCounts, [edges], "rising edges")
            for edges in ([], [1.0, 1.0], [2.0, 1.0], [nan], ["a"], [1.0] * 999)
        ),
        *(
            (EventCounts, [times], "rising times")
            for times in ([], [1.0, 1.0], [2.0, 1.0], [nan], ["a"], 5, [1.0] * 99)
        ),
        *((ScoreCounts, [["b"], [0.0, 0.0], edges], "rising edges") for edges in ([], [0.0, 0.5], [1.0], [0.5, 0.2])),
        *(
            (WeightedCounts, [["b"], [0, 0], "ATE", 0.1, edges], "rising edges")
            for edges in ([], [5.0, 2.0], [1.0] * 61)
        ),
        (WeightedCounts, [["b"], [0, 0], "ATE", 0.5, [5.0]], "a clip"),
        (WeightedCounts, [["b"], [0, 0], "ate", 0.1, [5.0]], "estimands"),
        (WeightedCounts, [["b"], [0, 0], "ATE", 0.1, [5.0], "b"], "other covariates for the score"),
        (WeightedArms, [["b"], [0, 0], "ATE", 0.1, 0.0, 1.5], "a centre"),
        (EventCounts, [[5.0], "d", [Cut("d")]], "other covariates for strata"),
        *(
            (ChangeMoments, ["b", "", *bounds], "lower and an upper")
            for bounds in ((1.0, -1.0), (nan, 1.0), (None, 1.0))
        ),
        *((CutoffMoments, ["b", 0.5, bandwidth], "a bandwidth above 0") for bandwidth in (0.0, -1.0, nan, "wide")),
        *((ClusterMoments, ["k", *more], "a list of treated") for more in (["p"], [["p"], 1.0], [["p"], None])),
    ],
    ids=lambda each: str(each)[:100],
)
def test_parameters_that_make_no_query_are_refused(kind: type[Query], parameters: Sequence[Any], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        kind(*parameters)


@pytest.mark.parametrize("coefficients", list(itertools.product((-(2.0**20), 0.0, 0.5, 2.0**20), repeat=2)), ids=str)
def test_any_score_that_noise_may_give_is_answered(coefficients: tuple[float, float], units: dict[str, Any]) -> None:
    """Noise may put all scores into one bin, or take a covariate out: what was paid for is answered all the same."""
    engine, model, clip = open_table(pa.table(units), SCHEMA), (["b"], coefficients), 0.05
    queries: list[Query] = [
        ScoreCounts(*model, [0.1, 0.5, 0.9]),
        WeightedCounts(*model, "ATO", clip, [2.5, 5.0]),
        WeightedArms(*model, "ATT", clip),
        WeightedCovariates(["b", "k"], *model, "ATE", clip),
        AugmentedScores(*model, coefficients, coefficients, "ATE", clip, 4.0),
    ]
    for query in queries:
        names = {at.name for at in query.sensitivity(SCHEMA, "record", "l1").coordinates}
        assert set(exact_answer(query, SCHEMA, engine, ONE).ticks) >= names
