"""A curve answers any number of questions for nothing, in the ways that people ask them."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpcausal as dpc
from dpcausal.errors import MissingExtraError, QueryError, RefusedError
from dpcausal.release import Receipt
from dpcausal.report import effect_plot, forest_plot
from dpcausal.results.curve import matrix
from dpcausal.uncertainty.interval import Family, critical_values

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", labels=("old", "new"), undeclared=0),
    outcome=dpc.Real("y", 0, 10),
    covariates=[dpc.Real("age", 20, 80, missing=20), dpc.Category("ward", ["a", "b", "c"])],
)


def curve_of(basis: object, family: Family = "gaussian", parts: int = 1, **given: object) -> dpc.EffectCurve:
    count = len(basis.names(SCHEMA))  # type: ignore[attr-defined]
    parameters: dict[str, object] = {
        "estimand": "effect",
        "arms": ("old", "new"),
        "outcome": "y",
        "schema": SCHEMA,
        "basis": basis,
        "weights": tuple(float(place + 1) for place in range(count)),
        "sampling": matrix(np.diag(np.linspace(0.5, 1.0, count))),
        "privacy": matrix(np.diag(np.linspace(1.0, 0.25, count))),
        "family": family,
        "n": 100,
        "method": "made up",
        "guarantee": dpc.Guarantee(epsilon=1.0),
        "assumptions": ("none",),
        "receipts": (Receipt("made_up", 1.0, 0.0, 1, "0" * 64),),
        "parts": parts,
    }
    return dpc.EffectCurve(**(parameters | given))  # type: ignore[arg-type]


GROUPS = dpc.Cells(["ward"])  # type: ignore[list-item]
LINE = dpc.Polynomial(["age"])


def test_linear_curve_is_evaluated_exactly() -> None:
    """A constant and Legendre's first polynomial, both divided by the root of 2."""
    curve = curve_of(LINE)
    expected = (1 + 2 * np.array([-1.0, 0.0, 0.5, 1.0])) / np.sqrt(2)
    assert curve.effect({"age": [20, 50, 65, 80]}) == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize(
    "profiles",
    [
        {"age": [20, 80], "ward": ["b", "c"]},
        pd.DataFrame({"ward": ["b", "c"], "age": [20, 80], "more": [1, 2]}),
        pl.DataFrame({"age": [20, 80], "ward": ["b", "c"]}),
        np.array([[20, "b"], [80, "c"]], dtype=object),
        [[20, "b"], [80, "c"]],
    ],
    ids=["mapping", "pandas", "polars", "array", "lists"],
)
def test_profiles_in_any_form(profiles: object) -> None:
    curve = curve_of(dpc.Spline(["age", "ward"], 1))
    known = curve.effect({"age": np.array([20.0, 80.0]), "ward": np.array(["b", "c"])})
    assert list(curve.effect(profiles)) == list(known)


def test_values_outside_and_absent_count_as_in_a_table() -> None:
    curve = curve_of(dpc.Spline(["age", "ward"], 1))
    odd = {"age": [200, -5, float("nan"), 50], "ward": ["c", "a", "a", None]}
    even = {"age": [80, 20, 20, 50], "ward": ["c", "a", "a", "c"]}
    assert list(curve.effect(odd)) == list(curve.effect(even))
    frame = pd.DataFrame(
        {"age": pd.array([80, 20, None, 50], "Int64"), "ward": pd.array(["c", "a", "a", None], "string")}
    )
    assert list(curve.effect(frame)) == list(curve.effect(even))


def test_a_value_that_is_not_listed_is_refused() -> None:
    """A table's unit with such a value counts as missing; a person who asks with one has made a mistake."""
    with pytest.raises(QueryError, match="out of a, b, c"):
        curve_of(GROUPS).effect({"ward": ["a", "A"]})
    with pytest.raises(QueryError, match="check the names"):
        effect_plot(curve_of(dpc.Spline(["age", "ward"])), "age", at={"wrad": "b"})


def test_no_interval_goes_beyond_what_is_possible() -> None:
    wide = matrix(np.diag([1e6] * 3))
    low, high = curve_of(GROUPS, privacy=wide).effect_interval({"ward": ["a", "b", "c"]})
    assert list(low) == [-10.0] * 3
    assert list(high) == [10.0] * 3


@pytest.mark.parametrize(
    "wrong", [{"ward": ["a"]}, 5, {"age": []}, {"age": [[1, 2]]}, {"age": ["old"]}, np.zeros((3, 0)), np.zeros((3, 4))]
)
def test_what_is_no_profile_is_refused(wrong: object) -> None:
    with pytest.raises(QueryError):
        curve_of(LINE).effect(wrong)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(QueryError, match="as many values"):
        curve_of(dpc.Spline(["age", "ward"])).effect({"age": [1, 2], "ward": ["a"]})


def test_curve_separates_sampling_error_and_privacy_noise() -> None:
    sampling, privacy = curve_of(GROUPS).standard_errors({"ward": ["a", "b", "c"]})
    assert sampling == pytest.approx(np.sqrt([0.5, 0.75, 1.0]))
    assert privacy == pytest.approx(np.sqrt([1.0, 0.625, 0.25]))


@pytest.mark.parametrize(("family", "parts"), [("gaussian", 1), ("laplace", 1), ("laplace", 2)])
def test_curve_intervals_cover(family: Family, parts: int) -> None:
    """Errors drawn here, by other means, stay within the intervals in 95 % of cases: each, or all together."""
    curve = curve_of(GROUPS, family, parts)
    at = {"ward": ["a", "b", "c"]}
    generator = np.random.default_rng(7)
    draws = 200_000
    shape = (draws, parts, 3)
    noise = generator.laplace(0, (2 * parts) ** -0.5, shape) if family == "laplace" else generator.normal(0, 1, shape)
    errors = generator.normal(0, 1, (draws, 3)) * np.sqrt([0.5, 0.75, 1.0]) + noise.sum(axis=1) * [1.0, 0.625**0.5, 0.5]
    for together in (False, True):
        low, high = curve.effect_interval(at, simultaneous=together)
        held = np.abs(errors) <= (high - low) / 2
        shares = [held.all(axis=1).mean()] if together else held.mean(axis=0)
        assert shares == pytest.approx([0.95] * len(shares), abs=0.006)


def test_noise_of_several_parts_is_closer_to_normal() -> None:
    share = np.array([1.0])
    one, two, many = (float(critical_values("laplace", share, 0.99, parts)[0]) for parts in (1, 2, 30))
    assert one > two > many > 2.55


def test_a_wrong_alpha_and_a_refused_interval() -> None:
    for wrong in (1.0, 95, "0.05", None):
        with pytest.raises(RefusedError, match="alpha"):
            curve_of(LINE).effect_interval({"age": [30]}, alpha=wrong)  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="for a reason"):
        curve_of(LINE, no_interval="for a reason").effect_interval({"age": [30]})


def test_ranking_value_and_average_are_free() -> None:
    curve = curve_of(GROUPS)
    at = {"ward": ["b", "c", "a"]}
    assert list(curve.ranking(at)) == [1, 0, 2]
    assert curve.ate(at) == pytest.approx(2.0)
    assert curve.policy_value(at, cost=2.0) == pytest.approx(1 / 3)


@pytest.mark.parametrize("basis", [LINE, GROUPS, dpc.Fourier(["age", "ward"], n_features=3), dpc.Spline(["age"])])
def test_a_curve_survives_json_and_prints(basis: object) -> None:
    curve = curve_of(basis)
    assert dpc.EffectCurve.from_json(curve.to_json()) == curve
    assert "Effect of new against old on y, by" in str(curve)
    assert "simultaneous over these profiles" in curve._repr_html_()


def test_figures_show_each_group_and_the_whole_range() -> None:
    forest = forest_plot(curve_of(GROUPS)).axes[0]
    assert [tick.get_text() for tick in forest.get_yticklabels()] == ["ward=a", "ward=b", "ward=c"]
    band = effect_plot(curve_of(dpc.Spline(["age", "ward"])), "age", at={"ward": "b"}).axes[0]
    assert band.get_xlim() == (20, 80)
    with pytest.raises(QueryError, match="a numeric covariate"):
        effect_plot(curve_of(GROUPS), "ward")
    refused = forest_plot(curve_of(GROUPS, no_interval="for a reason")).axes[0]
    assert "no intervals" in refused.get_xlabel()


def test_one_call_from_a_table_to_a_curve() -> None:
    table = pd.DataFrame({"t": [0, 1] * 500, "y": [4.0, 6.0] * 500, "ward": ["a", "b", "c", "a"] * 250, "age": 30.0})
    curve = dpc.estimate(table, SCHEMA, dpc.SubgroupEffects(by=["ward"]), epsilon=5.0)
    assert curve.effect({"ward": ["a"]})[0] == pytest.approx(2.0, abs=1.5)
    assert "nothing records this spending" in curve.notes[-1]


def test_without_matplotlib_a_figure_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"dpcausal\[plots\]"):
        forest_plot(curve_of(GROUPS))
