"""Student's distribution agrees with SciPy's, far into its tails."""

import pytest
from scipy import stats

from dpcausal.uncertainty.interval import student_beyond, student_half_width

FREEDOM = [1, 2, 5, 18, 78, 999, 5_000]


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("distance", [0.0, 1e-3, 1.96, 6.0, 20.0, -1e-3, -3.0])
def test_students_tail_is_scipys(freedom: int, distance: float) -> None:
    assert student_beyond(distance, freedom) == pytest.approx(stats.t.sf(distance, freedom), rel=1e-7)


@pytest.mark.parametrize("freedom", FREEDOM)
@pytest.mark.parametrize("level", [0.01, 0.5, 0.95, 0.999999])
def test_students_quantile_is_scipys(freedom: int, level: float) -> None:
    assert student_half_width(freedom, level) == pytest.approx(stats.t.ppf((1 + level) / 2, freedom), rel=1e-7)


def test_very_many_degrees_of_freedom_are_near_the_normal() -> None:
    assert student_half_width(100_000, 0.95) == pytest.approx(stats.t.ppf(0.975, 100_000), rel=1e-6)
