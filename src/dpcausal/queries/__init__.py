"""The closed list of questions that may be asked of a table.

A query is public: a frozen dataclass of public parameters. It knows from the schema what it would answer and how much
one unit can move that answer; nobody passes a sensitivity in. The proof of each is in docs/proofs, page by page.
"""

from dataclasses import asdict, fields
from typing import Any

from dpcausal.columns import declared_dict
from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee
from dpcausal.queries.arm_counts import ScoreCounts, StratumCounts
from dpcausal.queries.arm_moments import ArmMoments, ArmTotals
from dpcausal.queries.augmented_scores import AugmentedScores
from dpcausal.queries.basis import Basis, Cells, Fourier, Points, Polynomial, Spline
from dpcausal.queries.block_effects import BlockEffects
from dpcausal.queries.covariate_sums import CovariateSums, WeightedCovariates
from dpcausal.queries.cuts import Cut
from dpcausal.queries.effect_moments import EffectMoments
from dpcausal.queries.effect_weights import EffectWeights
from dpcausal.queries.influence_effects import InfluenceEffects
from dpcausal.queries.logistic import ObjectivePerturbedLogistic, OutputPerturbedLogistic
from dpcausal.queries.matched_contrast import MatchedContrast
from dpcausal.queries.noisy_matched_contrast import NoisyMatchedContrast
from dpcausal.queries.outcomes_below import OutcomesBelow
from dpcausal.queries.query import GRID, Coordinate, Norm, Query, Sensitivity
from dpcausal.queries.regression_moments import RegressionMoments
from dpcausal.queries.stratum_contrasts import StratumContrasts
from dpcausal.queries.stratum_matches import StratumMatches
from dpcausal.queries.subgroup_moments import SubgroupMoments
from dpcausal.queries.weighted_arms import WeightedArms
from dpcausal.schema import Schema

__all__ = [
    "GRID",
    "QUERIES",
    "ArmMoments",
    "ArmTotals",
    "AugmentedScores",
    "Basis",
    "BlockEffects",
    "Cells",
    "Coordinate",
    "CovariateSums",
    "Cut",
    "EffectMoments",
    "EffectWeights",
    "Fourier",
    "InfluenceEffects",
    "MatchedContrast",
    "Norm",
    "ObjectivePerturbedLogistic",
    "OutcomesBelow",
    "OutputPerturbedLogistic",
    "Points",
    "Polynomial",
    "Query",
    "RegressionMoments",
    "ScoreCounts",
    "NoisyMatchedContrast",
    "Sensitivity",
    "Spline",
    "StratumContrasts",
    "StratumCounts",
    "StratumMatches",
    "SubgroupMoments",
    "WeightedArms",
    "WeightedCovariates",
    "from_dict",
    "question",
    "to_dict",
]

_ALL: tuple[type[Query], ...] = (
    ArmTotals,
    ArmMoments,
    StratumContrasts,
    StratumMatches,
    OutputPerturbedLogistic,
    ObjectivePerturbedLogistic,
    WeightedArms,
    RegressionMoments,
    AugmentedScores,
    MatchedContrast,
    NoisyMatchedContrast,
    OutcomesBelow,
    SubgroupMoments,
    EffectMoments,
    EffectWeights,
    BlockEffects,
    InfluenceEffects,
    StratumCounts,
    ScoreCounts,
    CovariateSums,
    WeightedCovariates,
)

QUERIES: dict[str, type[Query]] = {query.name: query for query in _ALL}
"""Every query there is, by name."""


def question(query: Query, guarantee: Guarantee, schema: Schema, as_of: str | None) -> dict[str, Any]:
    """What makes two requests the same: all that the answer depends on, and nothing that is only for show.

    That includes the version of the data, so that a stored answer is never given for another one. Which of a unit's
    records is used may turn on any declared column, so with a unit all of them count.
    """
    return {
        "query": to_dict(query),
        "guarantee": guarantee.to_dict(),
        "columns": [column.meaning for column in (schema.columns if schema.unit else query.reads(schema))],
        "unit": declared_dict(schema.unit) if schema.unit else None,
        "as_of": as_of,
    }


def to_dict(query: Query) -> dict[str, Any]:
    """A query as plain values: its name and its parameters."""
    return {"query": query.name, **asdict(query)}  # type: ignore[call-overload]


def from_dict(document: dict[str, Any]) -> Query:
    """The query that `to_dict` wrote."""
    name = str(document.get("query"))
    parameters = {key: value for key, value in document.items() if key != "query"}
    known = [part.name for part in fields(QUERIES[name])] if name in QUERIES else []  # type: ignore[arg-type]
    if name not in QUERIES or sorted(parameters) != sorted(known):
        raise QueryError(
            expected=f"a query out of {', '.join(QUERIES)} with exactly its parameters",
            got=f"{name!r} with {', '.join(sorted(parameters)) or 'none'}",
            hint="only these questions may be asked of a table.",
        )
    try:
        return QUERIES[name](**parameters)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        if isinstance(error, QueryError):
            raise
        raise QueryError(
            expected=f"parameters of {name} of the kinds that it declares",
            got="something else",
            hint="write a query down with to_dict.",
        ) from None
