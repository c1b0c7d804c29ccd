"""What the rows hold changes no output's shape and raises nothing."""

import itertools
import warnings

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.queries import (
    ArmRegressionMoments,
    AugmentedScores,
    EventCounts,
    OutcomeCounts,
    Query,
    RegressionMoments,
)
from dpcausal.schema.schema import PROTECTS, Protects

nan, inf = float("nan"), float("inf")

TABLES = {
    "both arms": {"t": [0, 1] * 5, "y": [0.3, 0.6] * 5},
    "one treated": {"t": [1] + [0] * 9, "y": [0.3] * 10},
    "none treated": {"t": [0] * 10, "y": [0.3] * 10},
    "none in control": {"t": [1] * 10, "y": [0.3] * 10},
    "nothing known": {"t": [None] * 10, "y": [None] * 10},
    "nothing finite": {"t": [nan, inf] * 5, "y": [inf, -inf] * 5},
    "at the bounds": {"t": [0, 1] * 5, "y": [0.0, 1.0] * 5},
    "two units": {"t": [0, 0], "y": [0.5, 0.5]},
}
TYPES = pa.schema({"t": pa.float64(), "y": pa.float64()})


def shape(effect: dpc.Effect) -> object:
    """What can be seen of an effect apart from its numbers."""
    fields = {name: type(getattr(effect, name)).__name__ for name in effect.__dataclass_fields__}
    lines = [line[:16] for line in str(effect).splitlines()]
    return (
        fields,
        len(effect.noise),
        len(effect.notes),
        effect.no_interval,
        effect.method,
        lines[0:1],
        len(effect.interval()),
    )


@pytest.mark.parametrize(("protects", "delta"), list(itertools.product(PROTECTS, (0.0, 1e-6))))
def test_every_table_gives_an_effect_of_one_shape(protects: Protects, delta: float) -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5), protects=protects
    )
    shapes = []
    for columns in TABLES.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vault = dpc.Vault(
                pa.table(columns, schema=TYPES), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=3, delta=1e-5)
            )
            effect = dpc.DifferenceInMeans().estimate(vault, epsilon=1.0, delta=delta)
        assert np.isfinite([effect.estimate, effect.sampling_sd or 0, effect.privacy_sd, *effect.interval()]).all()
        shapes.append(shape(effect))
    assert all(each == shapes[0] for each in shapes)


FAR = [1e9, -1e9, 0.0, 1.0, 1e9]
NEAR = [-each / 1e10 for each in FAR]
QUERIES: list[Query] = [
    RegressionMoments(["x", "k"]),
    RegressionMoments(["x", "k"], interaction=False),
    ArmRegressionMoments(["x", "k"]),
    OutcomeCounts([0.25, 0.5]),
    EventCounts([0.25, 0.5, 1.0], "k"),
    AugmentedScores(["x", "k"], FAR, FAR, NEAR, "ATE", 0.001, 5.0),
    AugmentedScores(["x", "k"], FAR, NEAR, FAR, "ATT", 0.1, 0.5),
    AugmentedScores(["x", "k"], NEAR, FAR, FAR, "ATO", 0.1, 1.0),
]


def test_every_table_gives_releases_of_one_shape() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", 0, 1, missing=0.5),
        covariates=[dpc.Real("x", 0, 1), dpc.Category("k", ["p", "q", "r"])],
    )
    asked = list(itertools.product(QUERIES, (dpc.Guarantee(epsilon=1.0), dpc.Guarantee(epsilon=1.0, delta=1e-6))))
    shapes = []
    for (name, columns), value in zip(TABLES.items(), "pqr?" * 2, strict=True):
        table = pa.table(columns, schema=TYPES)
        table = table.append_column("x", table["y"].take(np.arange(len(table))[::-1]))
        table = table.append_column(
            "k", pa.array([None if name == "nothing known" else value] * len(table), pa.string())
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=30, delta=1e-4))
            releases = [vault.release(*each) for each in asked]
        assert all(np.isfinite(release.values).all() for release in releases)
        shapes.append([(release.names, release.scales, release.public_values) for release in releases])
    assert all(each == shapes[0] for each in shapes)


def test_removing_the_only_unit_of_an_arm_does_not_change_the_shape() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1, missing=0.5))
    budget = dpc.Budget(epsilon=3)
    shapes = []
    for name in ("one treated", "none treated"):
        vault = dpc.Vault(pa.table(TABLES[name], schema=TYPES), schema, ledger="sqlite://", budget=budget)
        shapes.append(shape(dpc.DifferenceInMeans().estimate(vault, epsilon=1.0)))
    assert shapes[0] == shapes[1]


def test_failure_on_an_empty_arm_is_caught() -> None:
    """The mutant: the textbook formula raises, and so tells that the arm is empty."""
    treated = [y for t, y in zip([0] * 10, [0.3] * 10, strict=True) if t == 1]
    with pytest.raises(ZeroDivisionError):
        sum(treated) / len(treated)
