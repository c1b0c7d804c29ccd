"""Effects of groups: found, with intervals that are as wide as can be where nothing can be seen."""

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 10),
    covariates=[dpc.Category("ward", ["a", "b", "c", "d"]), dpc.Real("age", 20, 80)],
)
TRUTHS = {"a": -1.0, "b": 0.0, "c": 1.0}


def vault_of(n: int, confounded: bool = False) -> dpc.Vault:
    """Nobody is in ward d."""
    generator = np.random.default_rng(3)
    ward, age = generator.choice(list("abc"), n), generator.uniform(20, 80, n)
    arm = (generator.random(n) < (0.2 + 0.01 * (age - 20) if confounded else 0.5)).astype(int)
    effect = np.array([TRUTHS[each] for each in ward])
    outcome = 3 + 0.05 * (age - 20) * confounded + effect * arm + generator.uniform(0, 3, n)
    table = pa.table({"t": arm, "y": outcome, "ward": ward, "age": age})
    return dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=50, delta=1e-3))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_effects_of_groups_are_found(delta: float) -> None:
    curve = dpc.SubgroupEffects(by=["ward"]).estimate(vault_of(30_000), epsilon=5.0, delta=delta)
    effects = curve.effect({"ward": list(TRUTHS)})
    assert effects == pytest.approx(list(TRUTHS.values()), abs=0.25)
    sampling, privacy = curve.standard_errors({"ward": list(TRUTHS)})
    assert sampling == pytest.approx([np.sqrt(9 / 12 * 2 / 5_000)] * 3, rel=0.2)
    assert max(privacy) < 0.05


def test_empty_group_has_the_widest_interval() -> None:
    curve = dpc.SubgroupEffects(by=["ward"]).estimate(vault_of(30_000), epsilon=2.0)
    low, high = curve.effect_interval({"ward": ["d"]})
    assert high[0] - low[0] > 10
    assert "ward=d" in next(note for note in curve.notes if "below the noise" in note)


def test_subgroup_effects_remove_confounding() -> None:
    vault = vault_of(60_000, confounded=True)
    plain = dpc.SubgroupEffects(by=["ward"]).estimate(vault, epsilon=10.0, delta=1e-6)
    adjusted = dpc.SubgroupEffects(by=["ward"], covariates=["age"]).estimate(vault, epsilon=10.0, delta=1e-6)
    at = {"ward": list(TRUTHS)}
    assert plain.ate(at) > 0.4
    assert adjusted.effect(at) == pytest.approx(list(TRUTHS.values()), abs=0.25)
    assert [receipt.query for receipt in adjusted.receipts] == [
        "covariate_counts",
        "missing_covariates",
        "bounded_influence_logistic",
        "regression_moments",
        "effect_moments",
        "missing_outcomes",
    ]


def test_noise_does_not_grow_with_the_number_of_groups() -> None:
    errors = []
    for count in (2, 20):
        sites = [f"site {number}" for number in range(count)]
        schema = dpc.Schema(SCHEMA.treatment, SCHEMA.outcome, [dpc.Category("site", sites)])
        curve = dpc.SubgroupEffects(by=["site"]).estimate(dpc.Rehearsal(schema, n=100_000), epsilon=1.0)
        errors.append(curve.standard_errors({"site": sites[:1]})[1][0])
    assert errors[1] / errors[0] == pytest.approx(10, rel=0.1)  # ten times fewer units in each, and the same noise


def test_groups_must_be_declared() -> None:
    with pytest.raises(QueryError):
        dpc.SubgroupEffects(by=["age"]).estimate(dpc.Rehearsal(SCHEMA, n=1_000), epsilon=1.0)
    with pytest.raises(QueryError, match="at most 200"):
        dpc.SubgroupEffects(by=[dpc.Cut("age", np.linspace(20.1, 79.9, 250).tolist())]).estimate(
            dpc.Rehearsal(SCHEMA, n=1_000), epsilon=1.0
        )
