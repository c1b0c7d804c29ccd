"""The same questions answered without privacy, by code of its own, to compare with."""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.accuracy.references import scores
from benchmarks.papers.dp_cate.residual_learner import boosted_trees
from benchmarks.papers.dp_cate.tables import Table, Vector
from dpcausal.queries.basis import basis_values
from dpcausal.queries.profiles import codes_of

CLIP = 0.05


def same_functions(table: Table) -> tuple[Vector, Vector]:
    """Return effects of profiles and standard errors of an R-learner with the same functions, fitted as usual."""
    features, arms, outcomes = table.features, table.arms, table.outcomes
    share = np.clip(scores(features, arms), CLIP, 1 - CLIP)
    design = np.column_stack([np.ones(len(arms)), features])
    means = [design @ np.linalg.lstsq(design[arms == arm], outcomes[arms == arm], rcond=None)[0] for arm in (0, 1)]
    left = outcomes - share * means[1] - (1 - share) * means[0]
    own, others = (_values(table, cells) for cells in (_cells(table), table.profiles))
    along = own * (arms - share)[:, None]
    inverse = np.linalg.pinv(along.T @ along)
    weights = inverse @ (along.T @ left)
    missed = along * (left - along @ weights)[:, None]
    covariance = inverse @ (missed.T @ missed) @ inverse
    return others @ weights, np.sqrt(((others @ covariance) * others).sum(axis=1))


def _cells(table: Table) -> dict[str, Vector]:
    return {name: table.data.column(name) for name in table.data.names}


def _values(table: Table, cells: dict[str, Vector]) -> Vector:
    schema = table.data.schema("record")
    return basis_values(table.basis, codes_of(cells, table.basis.reads(schema)), schema)


def trees(table: Table) -> Vector:
    """Return effects by an R-learner of boosted trees, which take no functions; in one thread."""
    with threadpool_limits(1):
        model = boosted_trees().fit(table.features, table.arms, table.outcomes)
        return model.effect(table.profile_features)
