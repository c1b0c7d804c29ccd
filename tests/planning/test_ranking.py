import math
from statistics import NormalDist
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.errors import GuaranteeError
from dpcausal.planning.candidate import Candidate
from dpcausal.queries import Query
from dpcausal.release import Release


def schema_of(count: int) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1),
        covariates=[dpc.Real(f"x{place}", 0, 1) for place in range(count)],
    )


def chosen(n: int, *, epsilon: float = 1.0, count: int = 4, shape: str = "unknown", **expected: Any) -> dpc.Ranking:
    guarantee = dpc.Guarantee(epsilon=epsilon, delta=1e-6)
    rehearsal = dpc.Rehearsal(schema_of(count), n, outcome_sd=0.2, **expected)
    return dpc.rank_estimators(rehearsal, guarantee, shape=shape)  # type: ignore[arg-type]


def found(ranking: dpc.Ranking, kind: type) -> Candidate:
    return next(each for each in (*ranking.candidates, *ranking.not_ranked) if isinstance(each.estimator, kind))


@pytest.mark.parametrize("n", [60, 300, 5_000, 500_000])
@pytest.mark.parametrize("confounding", [0.0, 0.3])
def test_with_declared_confounders_an_unadjusted_difference_is_never_recommended(n: int, confounding: float) -> None:
    ranking = chosen(n, confounding=confounding)
    plain = found(ranking, dpc.DifferenceInMeans)
    assert plain not in ranking.candidates
    assert plain.not_ranked == "not adjusted"
    assert plain.bias == pytest.approx(confounding * 0.2)
    assert "(not adjusted)" in str(ranking)


def test_a_trial_needs_no_adjustment() -> None:
    ranking = dpc.rank_estimators(dpc.Rehearsal(schema_of(4), 50_000), dpc.Guarantee(epsilon=1.0), covariates=[])
    assert isinstance(ranking.best, dpc.DifferenceInMeans)
    assert not ranking.not_ranked
    assert "nothing to adjust for" in ranking.why


def test_a_trial_is_winsorised_only_where_bounds_are_far_too_wide() -> None:
    first: list[tuple[object, bool]] = []
    for high in (50_000, 1_000_000):
        schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("cost", 0, high))
        rehearsal = dpc.Rehearsal(schema, 5_000, outcome_mean=20_000, outcome_sd=10_000)
        ranking = dpc.rank_estimators(rehearsal, dpc.Guarantee(epsilon=1.0), covariates=[])
        first.append((type(ranking.best), "winsorising gives ±" in ranking.why))
    assert first == [(dpc.DifferenceInMeans, False), (dpc.Winsorised, True)]


def test_an_effect_in_another_population_is_listed_apart() -> None:
    ranking = chosen(20_000)
    apart = {each.label: each.not_ranked for each in ranking.not_ranked}
    assert apart["overlap weighting of x0, x1, x2, x3"].startswith("another effect")
    assert apart["doubly robust overlap weighting of x0, x1, x2, x3"].startswith("another effect")


def test_what_is_listed_for_an_effect_estimates_it() -> None:
    """Nobody gets the effect in the overlap population in place of that in all units, or the reverse."""
    ranking = chosen(20_000)
    for each in (*ranking.candidates, *ranking.not_ranked):
        effect = each.estimator.estimate(ranking.rehearsal, epsilon=1.0, delta=each.delta)
        assert ("overlap" in effect.estimand) == each.not_ranked.startswith("another effect"), each.label


def test_strata_of_all_confounders_are_proposed_and_preferred_where_shapes_are_unknown() -> None:
    unknown, linear = chosen(20_000), chosen(20_000, shape="linear")
    assert isinstance(unknown.best, dpc.Stratification)
    errors = [each.half_width for each in linear.candidates if not isinstance(each.estimator, dpc.Winsorised)]
    assert errors == sorted(errors)
    strata, narrowest = found(unknown, dpc.Stratification), min(unknown.candidates, key=lambda each: each.half_width)
    assert strata.half_width <= 2 * narrowest.half_width


def test_a_model_that_is_more_than_twice_as_precise_comes_first_all_the_same() -> None:
    ranking = chosen(200_000, count=10)
    assert isinstance(ranking.best, dpc.DoublyRobust | dpc.RegressionAdjustment)
    assert not any(isinstance(each.estimator, dpc.Stratification) for each in ranking.candidates)


def test_given_strata_take_the_place_of_proposed_ones() -> None:
    by = [dpc.Cut("x0", [0.5]), dpc.Cut("x1", [0.5])]
    ranking = dpc.rank_estimators(dpc.Rehearsal(schema_of(2), 5_000), dpc.Guarantee(epsilon=1.0), by=by)
    strata = found(ranking, dpc.Stratification)
    assert strata.estimator == dpc.Stratification(by=by)
    # Two halves of a normal covariate leave 1 - 2 / pi of its variance within them.
    assert strata.bias == pytest.approx(0.3 / 12**0.5 * (1 - 2 / math.pi), rel=1e-6)
    assert strata.half_width > strata.bias + NormalDist().inv_cdf(0.95) * strata.sampling_sd


@pytest.mark.parametrize(("n", "confounding"), [(300, 0.0), (50_000, 0.3)])
def test_strata_of_some_confounders_say_so_and_come_last(n: int, confounding: float) -> None:
    """Also where noise is so large, and confounding so small, that their interval would be the narrowest."""
    rehearsal = dpc.Rehearsal(schema_of(2), n, confounding=confounding)
    ranking = dpc.rank_estimators(rehearsal, dpc.Guarantee(epsilon=1.0), by=[dpc.Cut("x0", [0.5])])
    strata = found(ranking, dpc.Stratification)
    assert not strata.whole
    assert strata.left_out == ("x1",)
    assert strata.assumes == "none within cells, but not adjusted for x1"
    assert strata.bias == pytest.approx(confounding / 12**0.5, rel=1e-6)  # all of it may be due to x1
    out = [bool(each.left_out) for each in ranking.candidates if each.interval]
    assert out == sorted(out)


def test_too_few_units_for_strata_of_all_confounders_leave_models_only() -> None:
    """Strata of some of them would leave confounding in that others adjust for."""
    for n, count in ((1_600, 9), (300, 4)):
        ranking = chosen(n, count=count)
        assert not any(isinstance(each.estimator, dpc.Stratification) for each in ranking.candidates)
        assert not any(each.left_out for each in ranking.candidates)


def test_a_guarantee_of_another_level_is_refused() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), protects="outcome")
    with pytest.raises(GuaranteeError, match="protects outcome"):
        dpc.rank_estimators(dpc.Rehearsal(schema, 1_000), dpc.Guarantee(epsilon=1.0))


def test_an_estimator_keeps_laplace_noise_where_it_is_smaller() -> None:
    """A guarantee with delta 0 is one with any delta, and two sums need less noise so."""
    assert found(chosen(5_000), dpc.DifferenceInMeans).delta == 0
    assert found(chosen(200_000, count=10), dpc.RegressionAdjustment).delta == 1e-6


@pytest.mark.parametrize("n", [300, 20_000])
def test_each_line_of_the_table_is_what_its_estimator_rehearses(n: int) -> None:
    ranking = chosen(n)
    rehearsal = dpc.Rehearsal(schema_of(4), n, outcome_sd=0.2)
    for each in (*ranking.candidates, *ranking.not_ranked):
        effect = each.estimator.estimate(rehearsal, epsilon=1.0, delta=each.delta).with_left_in(each.bias)
        assert any(receipt.delta for receipt in effect.receipts) is (each.delta > 0)
        assert bool(effect.no_interval) is not each.interval
        if each.interval:
            low, high = effect.interval()
            assert (high - low) / 2 == pytest.approx(each.half_width)


def test_estimators_without_an_interval_come_last() -> None:
    given = [each.interval for each in chosen(1_000, epsilon=0.1).candidates]
    assert given == sorted(given, reverse=True)


def test_it_prints_a_table_with_reasons_and_the_delta_of_each() -> None:
    text = str(chosen(20_000))
    for words in ("interval ±", "left in", "delta", "(linear outcomes or logistic treatment)", "why  "):
        assert words in text, words
    assert "privacy           at most epsilon 1, delta 1e-06" in text


def test_the_best_can_be_had_from_the_choice() -> None:
    ranking = chosen(20_000)
    plan = ranking.estimate(dpc.Rehearsal(schema_of(4), n=20_000))
    assert plan.rehearsed
    assert plan.guarantee.epsilon == 1.0


def test_a_ranking_of_twelve_covariates_rehearses_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """It used to take seconds."""
    asked, release = [], dpc.Rehearsal.release

    def counted(self: dpc.Rehearsal, query: Query, guarantee: dpc.Guarantee) -> Release:
        asked.append(query.name)
        return release(self, query, guarantee)

    monkeypatch.setattr(dpc.Rehearsal, "release", counted)
    chosen(20_000, count=12)
    asked = [name for name in asked if name != "missing_outcomes"]  # which costs hardly any time
    assert len(asked) <= 30 + 6 * 4  # the first is rehearsed with noise until six of eight give an interval


def doses(*columns: Any) -> dpc.Rehearsal:
    treatment = dpc.Treatment("dose", arms=("none", "low", "high"), compare="high")
    schema = dpc.Schema(treatment=treatment, outcome=dpc.Real("y", 0, 1), covariates=columns)
    return dpc.Rehearsal(schema, 6_000, outcome_sd=0.2)


def test_contrasts_of_all_arms_are_offered_where_there_are_several() -> None:
    rehearsal, guarantee = doses(dpc.Real("x", 0, 1)), dpc.Guarantee(epsilon=1.0)
    adjusted = found(dpc.rank_estimators(rehearsal, guarantee), dpc.ArmContrasts)
    assert adjusted.estimator == dpc.ArmContrasts(covariates=("x",))
    trial = dpc.rank_estimators(rehearsal, guarantee, covariates=[])
    assert found(trial, dpc.ArmContrasts).estimator == dpc.ArmContrasts()
    assert "nothing to adjust for" in trial.why
    two = chosen(6_000)
    assert not any(isinstance(each.estimator, dpc.ArmContrasts) for each in two.candidates)


@pytest.mark.parametrize(
    "estimator",
    [
        dpc.ClusterTrial("ward", treated=["a"]),
        dpc.FactorialEffects(factor="ward"),
        dpc.QuantileEffects(bins=16),
        dpc.Winsorised(dpc.FactorialEffects(factor="ward")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_plan_of_a_design_of_its_own_suggests_no_other_estimator(estimator: Any) -> None:
    """A cluster is no confounder, and strata of clusters would compare nobody with anybody."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Category("ward", list("abcd"))]
    )
    made = dpc.plan(estimator, dpc.Rehearsal(schema, 4_000), dpc.Guarantee(epsilon=1.0))
    assert [each.estimator for each in (*made.ranking.candidates, *made.ranking.not_ranked)] == [estimator]
    assert "no other estimator is for its design" in str(made)


def test_contrasts_of_several_arms_can_be_planned() -> None:
    for estimator in (dpc.ArmContrasts(), dpc.ArmContrasts(covariates=["x"])):
        made = dpc.plan(estimator, doses(dpc.Real("x", 0, 1)), dpc.Guarantee(epsilon=1.0))
        assert made.ranking.confounders == 1
