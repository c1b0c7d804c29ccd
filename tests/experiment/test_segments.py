"""Segments of an experiment: the same metrics in each value of some columns, from one query and one payment."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import DpcausalError, QueryError
from dpcausal.queries import MetricMoments, Norm, SegmentMetrics
from dpcausal.schema.schema import Protects
from dpcausal.sums.cases import domain_of
from tests.sums.neighbours import Case, furthest
from tests.support.metrics import metric_columns

SPENT, BEFORE = dpc.Real("revenue", 0, 60, missing=0), dpc.Real("before", 0, 60)
CENTRED = dpc.Earlier(slope=0.9, low=-40, high=40, centre=10.0)
COUNTRIES = ("DE", "FR", "other")
RANDOM = np.random.default_rng(6)
COLUMNS = metric_columns() | {
    "country": RANDOM.choice(np.array(["DE", "FR", "IT"]), 9_000, p=[0.5, 0.3, 0.2]),
    "mobile": RANDOM.binomial(1, 0.4, 9_000),
}
EXPERIMENT = dpc.Experiment(
    name="checkout",
    treatment=dpc.Treatment("arm", arms=("old", "blue", "green"), compare="blue", labels=("old", "blue", "green")),
    metrics=[
        dpc.Metric(dpc.Real("revenue", 0, 60, missing=0), covariate=dpc.Real("before", 0, 60), weight=2),
        dpc.Metric(dpc.Binary("bought", missing=0)),
        dpc.Metric(dpc.Real("clicks", 0, 30, missing=0), denominator=dpc.Real("views", 0, 40, missing=0)),
    ],
    epsilon=100.0,
    delta=1e-6,
    segments=[dpc.Category("country", COUNTRIES, missing="other"), dpc.Binary("mobile", missing=0)],
)


def run(experiment: dpc.Experiment) -> tuple[dpc.Scorecard, dpc.Ledger]:
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=100, delta=1e-5), as_of="once")
    return experiment.run(dpc.Vault(pa.table(COLUMNS), experiment.schema, ledger=ledger, as_of="once")), ledger


def test_each_segment_has_the_effects_of_its_own_units_for_one_debit() -> None:
    card, ledger = run(EXPERIMENT)
    assert [entry.kind for entry in ledger.entries()].count("debit") == 1
    inside = {"country=DE": COLUMNS["country"] == "DE", "country=other": COLUMNS["country"] == "IT"}
    inside |= {f"mobile={value}": COLUMNS["mobile"] == value for value in (0, 1)}
    for segment, units in inside.items():
        one, other = (units & (COLUMNS["arm"] == arm) for arm in ("old", "green"))
        found = {line.metric: line for line in card.segment_lines if (line.segment, line.treated) == (segment, "green")}
        bought = COLUMNS["bought"]
        expected = bought[other].mean() - bought[one].mean()
        assert found["bought"].difference == pytest.approx(expected, abs=4 * found["bought"].privacy_sd + 1e-4)
        error = math.hypot(*(bought[at].std() / at.sum() ** 0.5 for at in (one, other)))
        assert found["bought"].sampling_sd == pytest.approx(error, rel=0.1)
        rates = [COLUMNS["clicks"][at].sum() / COLUMNS["views"][at].sum() for at in (one, other)]
        ratio = found["clicks per views"]
        assert ratio.difference == pytest.approx(rates[1] - rates[0], abs=4 * ratio.privacy_sd + 1e-4)
    effect = card.segments["country=DE"][0]
    assert effect.estimand.endswith("among units with country=DE")
    assert [len(each) for each in (card.lines, card.segment_lines)] == [6, 30]


def test_segments_are_judged_together_and_change_no_line_of_all_units() -> None:
    card, _ = run(EXPERIMENT)
    assert replace(card, segments={}).lines == card.lines
    alone = replace(card, segments={"mobile=1": card.segments["mobile=1"]})
    wide = [line for line in card.segment_lines if line.segment == "mobile=1"]
    for line, narrow in zip(wide, alone.segment_lines, strict=True):
        assert line.low is not None
        assert narrow.low is not None
        assert line.low < narrow.low


def test_segments_that_noise_hides_count_as_comparisons() -> None:
    """Noise decides which segments have an interval, so that those that have one are judged among all."""
    card, _ = run(EXPERIMENT)
    hidden = replace(card.segments["mobile=0"][0], no_interval="hidden")
    few = replace(card, segments={**card.segments, "mobile=0": (hidden, *card.segments["mobile=0"][1:])})
    one, other = (next(each for each in found.segment_lines if each.segment == "mobile=1") for found in (card, few))
    assert (one.low, one.high) == (other.low, other.high)
    assert one.adjusted_p_value is not None
    assert other.adjusted_p_value is not None
    assert other.adjusted_p_value >= one.adjusted_p_value


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_plan_shows_what_segments_cost_all_units(delta: float) -> None:
    """With a fifth for segments noise is 1 / .8 as large for Laplace noise, and the root of it for Gaussian."""
    asked = replace(EXPERIMENT, epsilon=1.0, delta=delta)
    with_segments, without = (each.rehearsed(50_000) for each in (asked, replace(asked, segments=())))
    if delta == without.effects[0].guarantee.delta:
        grown = with_segments.lines[2].privacy_sd / without.lines[2].privacy_sd
        assert grown == pytest.approx(0.8 ** (-0.5 if delta else -1), rel=0.01)
    assert with_segments.segment_lines[2].privacy_sd > 2 * with_segments.lines[2].privacy_sd


def test_file_json_frame_and_page_hold_segments() -> None:
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415 (of other development tools)

    assert dpc.Experiment.from_toml(EXPERIMENT.to_toml()) == EXPERIMENT
    card, _ = run(EXPERIMENT)
    document = json.loads(card.to_json())
    schema = Path(__file__).parents[2] / "docs" / "scorecard.schema.json"
    jsonschema.validate(document, json.loads(schema.read_text(encoding="utf-8")))
    assert {line["segment"] for line in document["segments"]} == set(card.segments)
    assert {line["segment"] for line in document["comparisons"]} == {""}
    assert dpc.tidy(card, backend="pyarrow").num_rows == len(card.lines) + len(card.segment_lines)
    assert "<h2>Segments</h2>" in card.to_html()
    assert "country=other" in str(card)
    assert "<h2>Segments</h2>" not in replace(card, segments={}).to_html()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"segments": ["country"]}, "listed values"),
        ({"segments": [dpc.Category("country", COUNTRIES)]}, "missing value counts as"),
        ({"segments": [dpc.Binary("bought", missing=0)]}, "part of a metric"),
        ({"segment_share": 1.0}, "between 0 and 1"),
        ({"segments": (), "segment_share": 0.3}, "there are no segments"),
        ({"metrics": [dpc.Metric(SPENT, covariate=BEFORE, earlier=CENTRED)]}, "earlier mean of all units"),
        ({"cohorts": dpc.Category("week", [1, 2]), "planned_n": 10}, "several looks"),
    ],
)
def test_segments_that_are_none_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DpcausalError, match=words):
        _ = replace(EXPERIMENT, **change).schema


@pytest.mark.parametrize(("segments", "share"), [([], 0.2), (["b", "b"], 0.2), (["b"], 0.0), ("b", 0.2)])
def test_query_refuses_segments_and_shares_that_are_none(segments: Any, share: float) -> None:
    with pytest.raises(QueryError, match="segments"):
        SegmentMetrics([["y"]], [1], segments=segments, segment_share=share)


@pytest.mark.parametrize("protects", ["record", "record_within_arm"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_no_unit_moves_all_segments_together_beyond_their_bound(norm: Norm, protects: Protects) -> None:
    """The bound is of all units and of each column's segments at once; where arms are private it costs nothing more."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("t"),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Category("g", ["a", "b", "c"], missing="c"), dpc.Binary("b", missing=0)],
        protects=protects,
    )
    query = SegmentMetrics([["y"]], [1], segments=["g", "b"], segment_share=0.3)
    power = 1 if norm == "l1" else 2
    bound = query.sensitivity(schema, protects, norm).bound ** power
    domain = domain_of(schema, protects)
    most = [
        furthest(Case(part, domain, norm), seed=1, units=40, steps=4) for part in query.sums(schema, protects, norm)
    ]
    assert all(each > 0 for each in most)
    assert max(most) < bound
    assert float(bound) * 0.97 <= float(sum(most)) <= float(bound) * (1 + 1e-9)
    if protects == "record":
        alone = MetricMoments([["y"]], [1]).sensitivity(schema, protects, norm).bound ** power
        assert float(bound) == pytest.approx(float(alone), rel=1e-6)
