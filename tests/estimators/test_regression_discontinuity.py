"""The effect at a cutoff: it agrees with least squares on both sides, and its noise is as large as it says."""

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.schema.schema import PROTECTS, Protects
from tests.support.engines import fresh_noise


def columns_of(n: int = 8_000, *, below: bool = False) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    risk = random.uniform(0, 40, n)
    arm = ((risk < 10) if below else (risk >= 10)).astype(int)
    ldl = np.clip(random.normal(4 + 0.05 * (risk - 10) - arm * (1 + 0.02 * (risk - 10)), 0.6), 0, 8)
    return {"statin": arm, "ldl": ldl, "risk": risk}


def schema_of(protects: Protects = "record") -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("statin"),
        outcome=dpc.Real("ldl", 0, 8),
        covariates=[dpc.Real("risk", 0, 40)],
        protects=protects,
    )


def least_squares(columns: dict[str, np.ndarray], bandwidth: float) -> tuple[list[float], float]:
    """Return the mean at the cutoff in each arm, and the standard error of their difference."""
    beyond, means, variance = columns["risk"] - 10, [], 0.0
    for arm in (0, 1):
        inside = (columns["statin"] == arm) & (np.abs(beyond) <= bandwidth)
        features = np.column_stack([np.ones(inside.sum()), beyond[inside]])
        solution = np.linalg.lstsq(features, columns["ldl"][inside])[0]
        residuals = columns["ldl"][inside] - features @ solution
        means.append(float(solution[0]))
        variance += residuals @ residuals / (len(residuals) - 2) * np.linalg.inv(features.T @ features)[0, 0]
    return means, float(variance**0.5)


@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("protects", PROTECTS)
def test_estimate_and_error_are_those_of_least_squares(protects: Protects, below: bool) -> None:
    columns = columns_of(below=below)
    source = fresh_noise(pa.table(columns), schema_of(protects))
    effect = dpc.RegressionDiscontinuity("risk", 10, 5, treated_below=below).estimate(source, epsilon=100.0)
    means, error = least_squares(columns, 5)
    assert effect.estimate == pytest.approx(means[1] - means[0], abs=0.03)
    assert effect.sampling_sd == pytest.approx(error, rel=0.03)
    assert effect.arm_means is not None
    assert effect.arm_means.values == pytest.approx(means, abs=0.03)
    assert dpc.Effect.from_json(effect.to_json()) == effect


@pytest.mark.slow  # tests/statistics compares the same without chance
def test_noise_is_as_large_as_it_says() -> None:
    source = fresh_noise(pa.table(columns_of()), schema_of())
    design = dpc.RegressionDiscontinuity("risk", 10, 8)
    effects = [design.estimate(source, epsilon=1.0) for _ in range(200)]
    spread = np.std([effect.estimate for effect in effects])
    assert spread == pytest.approx(np.mean([effect.privacy_sd for effect in effects]), rel=0.2)


def test_too_few_units_have_no_interval() -> None:
    columns = columns_of()
    far = np.abs(columns["risk"] - 10) > 4.9
    table = pa.table({name: values[far] for name, values in columns.items()})
    vault = dpc.Vault(table, schema_of(), ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    effect = dpc.RegressionDiscontinuity("risk", 10, 5).estimate(vault, epsilon=1.0)
    with pytest.raises(RefusedError, match="side of the cutoff"):
        effect.interval()


def test_rehearsal_expects_what_an_even_spread_gives() -> None:
    design = dpc.RegressionDiscontinuity("risk", 10, 5)
    spread = 3**-0.5  # of risks between their bounds, all of them equally frequent
    plan = design.estimate(dpc.Rehearsal(schema_of(), n=8_000, outcome_sd=0.6, covariate_sd=spread), epsilon=1.0)
    found = design.estimate(fresh_noise(pa.table(columns_of()), schema_of()), epsilon=1.0)
    assert plan.privacy_sd == pytest.approx(found.privacy_sd, rel=0.2)
    assert plan.sampling_sd == pytest.approx(least_squares(columns_of(), 5)[1], rel=0.2)


def test_several_tables_add_up_to_one() -> None:
    columns = columns_of(4_000)
    halves = [pa.table({name: values[start::2] for name, values in columns.items()}) for start in (0, 1)]
    query, guarantee = dpc.queries.CutoffMoments("risk", 10, 5), dpc.Guarantee(epsilon=100.0)
    parts = [fresh_noise(table, schema_of()).release(query, guarantee) for table in halves]
    whole = fresh_noise(pa.table(columns), schema_of()).release(query, guarantee)
    for name in whole.names:
        slack = 10 * whole.scale(name)
        assert sum(part.value(name) for part in parts) == pytest.approx(whole.value(name), abs=slack)
