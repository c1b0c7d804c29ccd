"""What is recommended for a known observational study gives the adjusted answer, not the confounded one."""

from statistics import median

import dpcausal as dpc
from benchmarks.datasets import nhefs
from tests.support.engines import fresh_noise

RUNS = 24


def test_what_is_recommended_gives_the_adjusted_answer() -> None:
    data = nhefs()
    schema = data.schema("record")
    rehearsal = dpc.Rehearsal(
        schema, data.n, treated_share=data.treated_share, outcome_mean=2.0, outcome_sd=data.outcome_sd
    )
    ranking = dpc.rank_estimators(rehearsal, dpc.Guarantee(epsilon=1.0, delta=1e-6))
    assert not isinstance(ranking.best, dpc.DifferenceInMeans)
    effects = [ranking.estimate(fresh_noise(data.table, schema)) for _ in range(RUNS)]
    intervals = [effect.interval() for effect in effects if not effect.no_interval]
    assert len(intervals) >= 0.9 * RUNS
    assert median((high - low) / 2 for low, high in intervals) <= 1.6
    assert sum(low <= data.truth <= high for low, high in intervals) >= 0.8 * RUNS
    assert median(effect.estimate for effect in effects) > 2.6  # 2.5 without adjustment
