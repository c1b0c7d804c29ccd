"""The choice between Laplace noise and Gaussian noise."""

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.estimators.narrower import narrower
from dpcausal.queries import RegressionMoments
from dpcausal.queries.calibration import calibrate

NAMES = [f"x{place}" for place in range(10)]
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Real(name, 0, 1) for name in NAMES]
)
ALLOWED = dpc.Guarantee(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(("features", "delta"), [(1, 0.0), (10, 1e-6)])
def test_narrower_takes_the_noise_of_smaller_standard_deviation(features: int, delta: float) -> None:
    query = RegressionMoments(NAMES[:features])
    chosen = narrower(query, dpc.Rehearsal(SCHEMA, 1_000), ALLOWED, "arm * outcome")
    assert chosen == dpc.Guarantee(epsilon=1.0, delta=delta)
    sds = []
    for each in (dpc.Guarantee(epsilon=1.0), ALLOWED):
        noise = calibrate(query, SCHEMA, each)
        place = [at.name for at in noise.sensitivity.coordinates].index("arm * outcome")
        sds.append((noise.scales[place] or 0.0) * (2**0.5 if each.delta == 0 else 1))
    assert (sds[0] < sds[1]) == (delta == 0)


def test_narrower_never_adds_a_delta() -> None:
    pure = dpc.Guarantee(epsilon=1.0)
    assert narrower(RegressionMoments(NAMES), dpc.Rehearsal(SCHEMA, 1_000), pure, "arm * outcome") == pure


def test_gaussian_noise_stays_under_a_zcdp_budget_where_it_costs_less() -> None:
    source = dpc.Rehearsal(SCHEMA, 1_000, rule="zcdp")
    assert narrower(RegressionMoments(NAMES[:1]), source, ALLOWED, "arm * outcome") == ALLOWED
    budget = dpc.Budget(epsilon=1, delta=1e-6, rule="zcdp")
    table = pa.table({"t": [0, 1] * 50, "y": [0.2, 0.7] * 50} | {name: [0.5] * 100 for name in NAMES})
    effect = dpc.DifferenceInMeans().estimate(
        dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=budget), epsilon=0.9, delta=1e-6
    )
    assert effect.guarantee.delta == 1e-6
