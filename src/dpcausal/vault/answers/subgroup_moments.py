"""Numbers of units and sums of outcomes in groups by arm, or in clusters. Proof: docs/proofs/subgroup_moments.md."""

from dpcausal.queries import GRID, ClusterMoments, SubgroupMoments
from dpcausal.vault.answers.arm_moments import DEFICIT
from dpcausal.vault.answers.stratum_contrasts import strata
from dpcausal.vault.context import Answer, AnswerContext, answers


@answers(SubgroupMoments)
def answer(context: AnswerContext[SubgroupMoments]) -> Answer:
    """Return three sums for each arm of each group of the public list, rows or no rows."""
    query, schema, engine = context.query, context.schema, context.engine
    ticks = {}
    groups = zip(query.cells.names(schema), strata(query.cells.by, schema, engine), strict=True)
    for group, arms in groups:
        for arm, (size, total, squares) in enumerate(arms):
            ticks[f"size_{arm} of {group}"] = size
            ticks[f"total_{arm} of {group}"] = total
            ticks[f"deficit_{arm} of {group}"] = (size * GRID * GRID - squares) // GRID
    return Answer(ticks)


@answers(ClusterMoments)
def answer_clusters(context: AnswerContext[ClusterMoments]) -> Answer:
    """Return three sums for each cluster of the public list, over rows whose arm is that of the cluster."""
    query, schema = context.query, context.schema
    clusters = query.clusters(schema)
    place = [column.name for column in schema.covariates].index(query.cluster)
    cells = {f"covariate_{place}": len(clusters), "treatment": 2}
    sums = context.engine.aggregate(cells, ["1", "outcome", DEFICIT]).reshape(len(clusters), 2, 3)
    return Answer(
        {
            f"{part} of {name}": int(sums[at, arm, which])
            for at, (name, arm) in enumerate(clusters.items())
            for which, part in enumerate(("size", "total", "deficit"))
        }
    )
