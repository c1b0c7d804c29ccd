"""What is recommended for a small observational study gives intervals, covers, and says what it does not adjust for."""

from statistics import median

import pytest

import dpcausal as dpc
from benchmarks.datasets import nhefs
from tests.support.engines import fresh_noise

RUNS = 24


@pytest.mark.slow
def test_what_is_recommended_covers_the_adjusted_answer() -> None:
    """At this n noise often refuses all that adjust for nine confounders: the first one names those it leaves out."""
    data = nhefs()
    schema = data.schema("record")
    rehearsal = dpc.Rehearsal(
        schema, data.n, treated_share=data.treated_share, outcome_mean=2.0, outcome_sd=data.outcome_sd
    )
    ranking = dpc.rank_estimators(rehearsal, dpc.Guarantee(epsilon=1.0, delta=1e-6))
    first = ranking.candidates[0]
    assert isinstance(first.estimator, dpc.Winsorised)
    assert isinstance(first.estimator.estimator, dpc.Stratification)
    assert first.left_out == ("age", "wt71", "smokeintensity", "smokeyrs")
    assert all(name in ranking.why for name in first.left_out)
    assert not any(each.interval for each in ranking.candidates if not each.left_out)
    effects = [ranking.estimate(fresh_noise(data.table, schema)) for _ in range(RUNS)]
    intervals = [effect.interval() for effect in effects if not effect.no_interval]
    assert len(intervals) >= 0.9 * RUNS
    assert 0.7 * first.half_width <= median((high - low) / 2 for low, high in intervals) <= 1.3 * first.half_width
    assert sum(low <= data.truth <= high for low, high in intervals) >= 0.9 * RUNS
    assert all("declared, but not adjusted for: age" in " ".join(effect.notes) for effect in effects)
