"""A schedule of looks gives the difference in means so far, with the noise that it says."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError

WEEKS = 6
SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm", arms=("a", "b", "c"), compare="c"),
    outcome=dpc.Real("y", 0, 1),
    covariates=[dpc.Category("week", list(range(1, WEEKS + 1)))],
    entry="week",
)


def table() -> pa.Table:
    random = np.random.default_rng(0)
    week, arm = np.sort(random.integers(1, WEEKS + 1, 3_000)), random.choice(["a", "b", "c"], 3_000)
    y = np.clip(random.normal(0.3 + 0.2 * (arm == "c"), 0.1), 0, 1)
    return pa.table({"week": week, "arm": arm, "y": y})


def vault(rule: str) -> dpc.Vault:
    budget = dpc.Budget(epsilon=100, delta=1e-6, rule=rule)  # type: ignore[arg-type]
    return dpc.Vault(table(), SCHEMA, ledger="sqlite://", budget=budget)


@pytest.mark.parametrize(("delta", "rule"), [(1e-6, "zcdp"), (0.0, "additive")])
@pytest.mark.parametrize("look", [1, 4, None])
def test_with_little_noise_it_is_the_difference_of_all_units_so_far(delta: float, rule: str, look: int | None) -> None:
    effect = dpc.ScheduledDifference("week", look).estimate(vault(rule), epsilon=50.0, delta=delta)
    frame = table().to_pandas()
    seen = frame[frame["week"] <= (look or WEEKS)].groupby("arm")["y"]
    means, errors = seen.mean(), seen.var() / seen.count()
    assert effect.estimate == pytest.approx(means["c"] - means["a"], abs=5 * effect.privacy_sd + 1e-9)
    assert effect.privacy_sd < 0.2 * effect.sampling_sd  # type: ignore[operator]
    assert effect.sampling_sd == pytest.approx((errors["a"] + errors["c"]) ** 0.5, rel=0.1)
    assert effect.contrasts.names == ("arm=b against arm=a", "arm=c against arm=a")  # type: ignore[union-attr]
    assert len(effect.receipts) == 1


def test_two_arms_have_one_interval() -> None:
    """The only contrast is the effect itself, whose interval is printed once."""
    schema = replace(SCHEMA, treatment=dpc.Treatment("arm", arms=("a", "c")))
    two = table().filter(pc.not_equal(table()["arm"], "b"))
    source = dpc.Vault(two, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=4, delta=1e-6))
    effect = dpc.ScheduledDifference("week").estimate(source, epsilon=1.0)
    assert effect.contrasts is not None
    assert effect.contrasts.values == (effect.estimate,)
    assert "contrast " not in str(effect)
    assert "contrast " in str(dpc.ScheduledDifference("week").estimate(vault("additive"), epsilon=1.0))


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_noise_of_looks_has_the_variances_and_correlations_that_are_told(delta: float) -> None:
    """Many draws of the noise of all looks, put together as the running sums are."""
    rehearsal = dpc.Rehearsal(SCHEMA, n=3_000, rule="zcdp" if delta else "additive")
    effects = [
        dpc.ScheduledDifference("week", look).estimate(rehearsal, epsilon=1.0, delta=delta)
        for look in range(1, WEEKS + 1)
    ]
    sizes = np.arange(1, WEEKS + 1)
    sds = np.array([effect.privacy_sd for effect in effects]) * sizes  # of sums, up to a factor
    weights = [1, 1 / 2, 3 / 8, 5 / 16, 35 / 128, 63 / 256] if delta else [1.0] * WEEKS
    draws = np.random.default_rng(1).normal(0, 1, (WEEKS, 100_000))
    running = np.array([sum(weights[look - s] * draws[s] for s in range(look + 1)) for look in range(WEEKS)])
    assert sds / sds[0] == pytest.approx(running.std(axis=1), rel=0.02)
    told = dpc.ScheduledDifference("week").noise_correlations(SCHEMA, delta)
    assert told == pytest.approx(np.corrcoef(running), abs=0.02)


def test_look_beyond_the_schedule_is_refused_before_anything_is_spent() -> None:
    door = vault("zcdp")
    with pytest.raises(QueryError, match="look 7"):
        dpc.ScheduledDifference("week", 7).estimate(door, epsilon=1.0, delta=1e-6)
    assert door.ledger.spent.epsilon == 0


def test_late_units_count_as_parts_in_sums_and_sizes_alike() -> None:
    """A week that arrives two looks late; the mean of each arm stays within those of its units."""
    whole = table()
    late = pa.compute.equal(whole["week"], 1)
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=100, delta=1e-6, rule="zcdp"), as_of="1")
    effects = []
    for look in range(1, 5):
        if look > 1:
            ledger.add_version(str(look))
        seen = pa.compute.less_equal(whole["week"], look)
        there = seen if look > 2 else pa.compute.and_(seen, pa.compute.invert(late))
        rest = whole.filter(pa.compute.or_(there, pa.compute.equal(whole["week"], 6)))  # a table is never empty
        door = dpc.Vault(rest, SCHEMA, ledger=ledger, as_of=str(look))
        effects.append(dpc.ScheduledDifference("week", look).estimate(door, epsilon=50.0, delta=1e-6))
    assert effects[-1].estimate == pytest.approx(0.2, abs=0.02)
    sizes = effects[-1].arm_sizes
    assert sizes is not None
    in_full = whole.filter(pa.compute.less_equal(whole["week"], 4)).num_rows
    assert in_full - late.to_pandas().sum() < sum(sizes.values) < in_full
