"""Every estimator gives the closed form of its estimand, and prints the errors that it has."""

from collections.abc import Collection

import pytest

import dpcausal as dpc
from dpcausal.estimators.base import BaseEstimator
from tests.statistics.case import Case
from tests.statistics.cases import CASES, WITHOUT_A_CASE, estimators_in, results
from tests.statistics.checks import CHECKS
from tests.support.slow import SLOW

pytestmark = pytest.mark.xdist_group("statistics")  # in one process: they share what was estimated

COSTLY = pytest.mark.costly("tests/statistics/estimators")  # cases are found in this folder


IN_EVERY_RUN = {"difference in means", "distribution functions", "inverse weighting, ATT", "subgroup effects"}
"""The others are costly: the same code gives the same verdict. What is expected to fail never passes: it is slow."""


def marks_of(case: Case, check: str) -> Collection[pytest.MarkDecorator]:
    if check in case.pending:
        return (SLOW,)
    return () if case.name in IN_EVERY_RUN else (COSTLY,)


@pytest.mark.parametrize(
    ("name", "check"),
    [pytest.param(case.name, check, marks=marks_of(case, check)) for case in CASES for check in CHECKS],
)
def test_check_passes(name: str, check: str, request: pytest.FixtureRequest) -> None:
    evidence = results(name)
    reason = evidence.case.pending.get(check)
    if reason:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    wrong = CHECKS[check](evidence)
    assert not wrong, wrong


def test_every_public_estimator_is_a_case() -> None:
    public = {name: getattr(dpc, name) for name in dpc.__all__}
    estimators = {
        name
        for name, kind in public.items()
        if isinstance(kind, type) and issubclass(kind, BaseEstimator) and hasattr(kind, "estimate")
    }
    missing = estimators - set().union(*(estimators_in(case.estimator) for case in CASES)) - set(WITHOUT_A_CASE)
    assert len(estimators) > 20
    assert not missing, (
        f"{', '.join(sorted(missing))}: write its closed form and its cases into a module of "
        "tests/statistics/estimators; mutants follow"
    )
