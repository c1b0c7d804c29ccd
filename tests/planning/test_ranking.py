import pytest

import dpcausal as dpc
from dpcausal.errors import GuaranteeError


def schema_of(count: int) -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1),
        covariates=[dpc.Real(f"x{place}", 0, 1) for place in range(count)],
    )


def chosen(n: int, *, epsilon: float = 1.0, count: int = 4, **expected: float) -> dpc.Ranking:
    guarantee = dpc.Guarantee(epsilon=epsilon, delta=1e-6)
    return dpc.rank_estimators(dpc.Rehearsal(schema_of(count), n, outcome_sd=0.2, **expected), guarantee)


def test_few_units_are_not_adjusted_and_many_are() -> None:
    assert isinstance(chosen(300).best, dpc.DifferenceInMeans)
    assert isinstance(chosen(50_000).best, dpc.DoublyRobust | dpc.RegressionAdjustment)


def test_a_trial_needs_no_adjustment() -> None:
    ranking = dpc.rank_estimators(dpc.Rehearsal(schema_of(4), 50_000), dpc.Guarantee(epsilon=1.0), covariates=[])
    assert isinstance(ranking.best, dpc.DifferenceInMeans)
    assert "nothing to adjust for" in ranking.why


def test_without_confounding_weighting_is_never_first() -> None:
    for n in (500, 5_000, 500_000):
        assert not isinstance(chosen(n, confounding=0.0).best, dpc.InverseWeighting)


def test_a_rare_arm_counts_against_estimators_that_clip() -> None:
    even, rare = (chosen(20_000, treated_share=share).candidates for share in (0.5, 0.03))
    bias = [next(x.bias for x in each if isinstance(x.estimator, dpc.DoublyRobust)) for each in (even, rare)]
    assert bias[0] == 0
    assert bias[1] > 0


def test_a_guarantee_of_another_level_is_refused() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), protects="outcome")
    with pytest.raises(GuaranteeError, match="protects outcome"):
        dpc.rank_estimators(dpc.Rehearsal(schema, 1_000), dpc.Guarantee(epsilon=1.0))


def test_more_epsilon_and_more_units_are_worth_more_confounders() -> None:
    few, some, many = (chosen(n, confounding=0.1).worthwhile for n in (100, 1_000, 10_000))
    assert few < some < many
    assert chosen(1_000, epsilon=0.1).worthwhile < chosen(1_000, epsilon=4.0).worthwhile


def test_an_estimator_keeps_laplace_noise_where_it_is_smaller() -> None:
    """A guarantee with delta 0 is one with any delta, and two sums need less noise so."""
    plain = next(each for each in chosen(5_000).candidates if isinstance(each.estimator, dpc.DifferenceInMeans))
    assert plain.delta == 0
    regression = next(
        each for each in chosen(5_000, count=10).candidates if isinstance(each.estimator, dpc.RegressionAdjustment)
    )
    assert regression.delta == 1e-6


def test_strata_are_considered_where_given() -> None:
    guarantee = dpc.Guarantee(epsilon=1.0)
    ranking = dpc.rank_estimators(
        dpc.Rehearsal(schema_of(2), 5_000), guarantee, by=[dpc.Cut("x0", [0.5]), dpc.Cut("x1", [0.5])]
    )
    strata = next(each for each in ranking.candidates if isinstance(each.estimator, dpc.Stratification))
    assert strata.bias == pytest.approx(0.3 / 12**0.5 / 4)  # two bins leave a quarter


def test_it_prints_a_table_with_reasons() -> None:
    text = str(chosen(20_000))
    assert "expected error" in text
    assert "why               its expected error is" in text
    assert "is worth its noise for about" in text
    assert "difference in means" in text


def test_the_best_can_be_had_from_the_choice() -> None:
    ranking = chosen(20_000)
    plan = ranking.estimate(dpc.Rehearsal(schema_of(4), n=20_000))
    assert plan.rehearsed
    assert plan.guarantee.epsilon == 1.0
