"""Families of outcomes: adjusted p-values, one budget, joint intervals."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, DpcausalError

N = 1_000
NAMES = ("a", "b", "c")
RANDOM = np.random.default_rng(0)
TABLE = pa.table({"arm": np.arange(N) % 2} | {name: RANDOM.random(N) for name in NAMES})


def vaults(epsilon: float) -> list[dpc.Vault]:
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=epsilon), as_of="now")
    schemas = [dpc.Schema(treatment=dpc.Treatment("arm"), outcome=dpc.Real(name, 0, 1)) for name in NAMES]
    return [dpc.Vault(TABLE, schema, ledger=ledger, as_of="now") for schema in schemas]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_benjamini_hochberg_agrees_with_scipy(p_values: list[float]) -> None:
    found = dpc.adjusted_p_values(p_values, "benjamini_hochberg")
    assert found == pytest.approx(stats.false_discovery_control(p_values), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_step_by_step(p_values: list[float]) -> None:
    """Holm's procedure from its definition: the smallest first, until one is too large."""
    adjusted, level = dpc.adjusted_p_values(p_values, "holm"), 0.05
    rejected: set[int] = set()
    for step, place in enumerate(np.argsort(p_values, kind="stable").tolist()):
        if p_values[place] * (len(p_values) - step) > level:
            break
        rejected.add(place)
    assert {place for place, value in enumerate(adjusted) if value <= level + 1e-12} >= rejected
    assert {place for place, value in enumerate(adjusted) if value <= level - 1e-12} <= rejected
    assert all(one <= other for one, other in zip(adjusted, dpc.adjusted_p_values(p_values, "bonferroni"), strict=True))


def test_one_budget_is_divided_by_weights_and_checked_before_the_first_query() -> None:
    opened = vaults(1.0)
    family = dpc.estimate_family(opened, dpc.DifferenceInMeans(), epsilon=1.0, weights=[2, 1, 1])
    assert [effect.guarantee.epsilon for effect in family.effects.values()] == [0.5, 0.25, 0.25]
    assert opened[0].ledger.spent.epsilon == pytest.approx(1.0)
    assert set(family.p_values) == set(NAMES)
    assert "adjusted p" in str(family)
    poor = vaults(0.9)
    with pytest.raises(BudgetExceededError):
        dpc.estimate_family(poor, dpc.DifferenceInMeans(), epsilon=1.0)
    assert poor[0].ledger.spent.epsilon == 0


def test_joint_intervals_are_wider() -> None:
    family = dpc.estimate_family(vaults(3.0), dpc.DifferenceInMeans(), epsilon=3.0)
    for name, (low, high) in family.intervals(0.95).items():
        least, most = family.effects[name].interval(0.95)
        assert low < least < most < high
        assert (low, high) == family.effects[name].interval(1 - 0.05 / 3)


def test_unusable_families_are_refused() -> None:
    opened = vaults(3.0)
    for sources, weights in (([], None), (opened, [1, 1]), (opened, [1, 1, 0]), ([opened[0]] * 2, None)):
        with pytest.raises(DpcausalError):
            dpc.estimate_family(sources, dpc.DifferenceInMeans(), epsilon=1.0, weights=weights)
    for p_values, method in (([0.5, 1.5], "holm"), ([0.5], "sidak"), ([float("nan")], "holm")):
        with pytest.raises(DpcausalError):
            dpc.adjusted_p_values(p_values, method)  # type: ignore[arg-type]


def test_comparisons_of_arms_are_named_by_their_arms() -> None:
    def rehearsed(compare: str, outcome: str = "score") -> dpc.Rehearsal:
        treatment = dpc.Treatment("dose", arms=("none", "low", "high"), compare=compare)
        return dpc.Rehearsal(dpc.Schema(treatment=treatment, outcome=dpc.Real(outcome, 0, 10)), n=3_000)

    family = dpc.estimate_family([rehearsed("low"), rehearsed("high")], dpc.DifferenceInMeans(), epsilon=1.0)
    assert list(family.effects) == ["dose=low against dose=none", "dose=high against dose=none"]
    both = [rehearsed(dose, outcome) for dose in ("low", "high") for outcome in ("score", "pain")]
    family = dpc.estimate_family(both, dpc.DifferenceInMeans(), epsilon=1.0)
    assert list(family.effects)[1] == "pain, dose=low against dose=none"
    with pytest.raises(DpcausalError):
        dpc.estimate_family([rehearsed("low"), rehearsed("low")], dpc.DifferenceInMeans(), epsilon=1.0)
