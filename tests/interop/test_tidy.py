"""Results as frames: the same numbers, in columns that know what is absent."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import MissingExtraError, QueryError, RefusedError
from dpcausal.results.site_share import SiteShare

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("drug", labels=("usual care", "drug"), undeclared=0),
    outcome=dpc.Real("score", 0, 100),
    covariates=[dpc.Real("age", 18, 90), dpc.Category("ward", ["a", "b"])],
)
SITES = (SiteShare("north", "answered", 300, 4.5, 1.5, 0.25), SiteShare("south", "refused: no budget left"))


@pytest.fixture(scope="module")
def vault() -> dpc.Vault:
    random = np.random.default_rng(0)
    n = 2_000
    drug = random.integers(0, 2, n)
    table = {"age": random.uniform(18, 90, n), "ward": random.choice(["a", "b"], n), "drug": drug}
    score = np.clip(40 + 5 * drug + random.normal(0, 8, n), 0, 100)
    return dpc.Vault(pa.table(table | {"score": score}), SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=9))


@pytest.fixture(scope="module")
def effect(vault: dpc.Vault) -> dpc.Effect:
    return dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)


@pytest.fixture(scope="module")
def groups(vault: dpc.Vault) -> dpc.EffectCurve:
    return dpc.SubgroupEffects(by=["ward"]).estimate(vault, epsilon=1.0)


def lines(results: Any, **given: Any) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = dpc.tidy(results, full=True, backend="pyarrow", **given).to_pylist()
    return told


def test_warnings_are_in_the_frame(schema: dpc.Schema) -> None:
    effect = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=500), epsilon=1.0)
    frame = dpc.tidy([effect, replace(effect, warnings=("beware.", "of this."))], full=True)
    assert list(frame.warnings.fillna("")) == ["", "beware. of this."]


def test_an_effect_is_one_line(effect: dpc.Effect) -> None:
    (line,) = lines(effect, level=0.8)
    assert (line["conf_low"], line["conf_high"]) == effect.interval(0.8)
    assert line == line | {
        "control": "usual care",
        "treated": "drug",
        "outcome": "score",
        "group": None,
        "site": None,
        "estimate": effect.estimate,
        "std_error": effect.standard_error,
        "sampling_sd": effect.sampling_sd,
        "between_sd": 0.0,
        "privacy_sd": effect.privacy_sd,
        "level": 0.8,
        "n": 2_000,
        "weight": None,
        "epsilon": 1.0,
        "delta": 0.0,
        "protects": "record",
        "status": "estimated",
        "no_interval": None,
        "method": effect.method,
        "estimand": effect.estimand,
    }


def test_ten_columns_are_usual_and_p_values_only_where_they_hold(effect: dpc.Effect, groups: dpc.EffectCurve) -> None:
    frame = dpc.tidy([effect, groups, replace(effect, no_interval="for a reason")], backend="pyarrow")
    usual = "term estimate std_error conf_low conf_high p_value n estimator estimand epsilon"
    assert frame.column_names == usual.split()
    assert dpc.tidy(effect, full=True, backend="pyarrow").column_names[:10] == usual.split()
    whole = "drug vs usual care on score"
    assert frame["term"].to_pylist() == [whole, "ward=a", "ward=b", whole]
    assert frame["p_value"].to_pylist() == [effect.p_value(), None, None, None]
    assert frame["estimator"].to_pylist() == ["difference_in_means", *["subgroup_effects"] * 2, "difference_in_means"]


def test_a_curve_has_a_line_for_each_profile(groups: dpc.EffectCurve) -> None:
    names, profiles = groups.examples()
    low, high = groups.effect_interval(profiles, simultaneous=True)
    told = lines(groups)
    assert [line["group"] for line in told] == names == ["ward=a", "ward=b"]
    assert [line["estimate"] for line in told] == groups.effect(profiles).tolist()
    assert [line["conf_low"] for line in told] == pytest.approx(low)
    assert [line["conf_high"] for line in told] == pytest.approx(high)
    assert {line["n"] for line in told} == {2_000}


def test_a_curve_at_profiles_of_ones_own(vault: dpc.Vault) -> None:
    curve = dpc.RLearner(covariates=["age", "ward"], basis=dpc.Polynomial(["age", "ward"]), propensity=0.5).estimate(
        vault, epsilon=2.0
    )
    at = {"age": [30.0, 99.5], "ward": ["b", "a"]}
    for profiles in (at, pd.DataFrame(at), pl.DataFrame(at)):
        told = lines(curve, at=profiles)
        assert [line["group"] for line in told] == ["age = 30, ward = b", "age = 90, ward = a"]
        assert [line["estimate"] for line in told] == curve.effect(at).tolist()


def test_sites_stand_below_their_effect(effect: dpc.Effect) -> None:
    pooled = replace(effect, sites=SITES)
    whole, north, south = lines([pooled, *pooled.sites])
    assert (whole["site"], north["site"], south["site"]) == (None, "north", "south")
    assert (north["estimate"], north["std_error"], north["weight"], north["n"]) == (4.5, 1.5, 0.25, 300)
    assert (south["status"], south["estimate"], south["n"]) == ("refused: no budget left", None, None)


def test_what_was_refused_is_absent_and_says_why(effect: dpc.Effect, groups: dpc.EffectCurve) -> None:
    refused = [replace(effect, no_interval="for a reason"), replace(groups, no_interval="for a reason")]
    for line in lines([*refused, replace(effect, sampling_sd=None)]):
        assert (line["conf_low"], line["conf_high"], line["level"]) == (None, None, None)
        assert line["no_interval"] in {"for a reason", "the sampling error was not asked for"}
        assert line["estimate"] is not None
    silent = replace(groups, no_interval="private", privacy=((0.0,) * 2,) * 2)
    assert {line["privacy_sd"] for line in lines(silent)} == {None}


def test_a_rehearsal_has_errors_and_no_estimate() -> None:
    rehearsal = dpc.Rehearsal(SCHEMA, n=2_000)
    average = dpc.DifferenceInMeans().estimate(rehearsal, epsilon=1.0)
    told = lines([average, dpc.SubgroupEffects(by=["ward"]).estimate(rehearsal, epsilon=1.0)])
    assert len(told) == 3
    for line in told:
        assert line["status"] == "rehearsed"
        assert line["estimate"] is line["conf_low"] is line["conf_high"] is None
        assert line["std_error"] > 0


def test_frames_keep_types_and_absence(effect: dpc.Effect, groups: dpc.EffectCurve) -> None:
    """Through pandas and polars and back, nothing becomes NaN and no number a text."""
    results: Any = [effect, groups, replace(effect, no_interval="for a reason"), *SITES]
    table = dpc.tidy(results, full=True, backend="pyarrow")
    polars = dpc.tidy(results, full=True, backend="polars")
    assert isinstance(polars, pl.DataFrame)
    assert polars.to_dicts() == table.to_pylist()
    assert polars.schema["n"] == pl.Int64
    pandas = dpc.tidy(results, full=True)
    assert isinstance(pandas, pd.DataFrame)
    assert {name: str(kind) for name, kind in pandas.dtypes.items()} == {
        field.name: {"string": "string", "double": "Float64", "int64": "Int64"}[str(field.type)]
        for field in table.schema
    }
    assert pandas["conf_low"][3] is pd.NA
    assert pa.Table.from_pandas(pandas, schema=table.schema, preserve_index=False).equals(table)


def test_no_results_are_an_empty_frame() -> None:
    assert dpc.tidy([]).shape == (0, len(dpc.tidy([], backend="pyarrow").schema))


def test_what_is_no_result_no_library_or_no_level(effect: dpc.Effect) -> None:
    with pytest.raises(QueryError, match="not str"):
        dpc.tidy(["effect"])  # type: ignore[list-item]
    with pytest.raises(QueryError, match="not 'duckdb'"):
        dpc.tidy(effect, backend="duckdb")  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="level"):
        dpc.tidy(effect, level=95)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_absent_is_told_in_words(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match='write backend="pyarrow"'):
        dpc.tidy([], backend=library)
