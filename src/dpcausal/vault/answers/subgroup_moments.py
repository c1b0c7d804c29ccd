"""Numbers of units and sums of outcomes in groups by arm, or in clusters. Proof: docs/proofs/subgroup_moments.md."""

from dpcausal.queries import ClusterMoments, SubgroupMoments
from dpcausal.queries.cuts import bins
from dpcausal.vault.answers.arm_moments import DEFICIT
from dpcausal.vault.answers.stratum_contrasts import bin_expression
from dpcausal.vault.context import Answer, AnswerContext, answers


@answers(SubgroupMoments)
def answer(context: AnswerContext[SubgroupMoments]) -> Answer:
    """Return three sums for each arm of each group of the public list, rows or no rows."""
    query, schema = context.query, context.schema
    by = query.cells.by
    cells = dict(zip((bin_expression(cut, schema) for cut in by), bins(by, schema), strict=True)) | {"treatment": 2}
    sums = context.engine.aggregate(cells, ["1", "outcome", DEFICIT]).reshape(-1, 2, 3)
    return Answer(
        {
            f"{part}_{arm} of {group}": int(sums[at, arm, which])
            for at, group in enumerate(query.cells.names(schema))
            for arm in (0, 1)
            for which, part in enumerate(("size", "total", "deficit"))
        }
    )


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
