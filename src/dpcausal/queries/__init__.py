"""The closed list of queries that may be asked of a table.

A query is public: a frozen dataclass of public parameters. It derives its answer's coordinates and their sensitivity
from the schema; nobody passes a sensitivity in. The file of a query's class is also the name of its
answer in `vault/answers`, of its proof in `docs/proofs` and, after `test_`, of its tests in `tests/privacy`.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from dpcausal.errors import QueryError
from dpcausal.guarantee import Guarantee

# Shorter names, exported to type checkers too. A query needs none to be registered: see `QUERIES`.
from dpcausal.queries.arm_counts import ScoreCounts as ScoreCounts
from dpcausal.queries.arm_counts import StratumCounts as StratumCounts
from dpcausal.queries.arm_moments import ArmMoments as ArmMoments
from dpcausal.queries.arm_moments import ArmTotals as ArmTotals
from dpcausal.queries.arm_regression_moments import ArmRegressionMoments as ArmRegressionMoments
from dpcausal.queries.augmented_scores import AugmentedScores as AugmentedScores
from dpcausal.queries.basis import Basis as Basis
from dpcausal.queries.basis import Cells as Cells
from dpcausal.queries.basis import Fourier as Fourier
from dpcausal.queries.basis import Polynomial as Polynomial
from dpcausal.queries.basis import Spline as Spline
from dpcausal.queries.cell_moments import CellMoments as CellMoments
from dpcausal.queries.change_moments import ChangeMoments as ChangeMoments
from dpcausal.queries.covariate_counts import CovariateCounts as CovariateCounts
from dpcausal.queries.covariate_moments import CovariateMoments as CovariateMoments
from dpcausal.queries.covariate_sums import CovariateSums as CovariateSums
from dpcausal.queries.covariate_sums import WeightedCovariates as WeightedCovariates
from dpcausal.queries.covariate_totals import CovariateTotals as CovariateTotals
from dpcausal.queries.custom_sums import CustomSums as CustomSums
from dpcausal.queries.cutoff_moments import CutoffMoments as CutoffMoments
from dpcausal.queries.cuts import Cut as Cut
from dpcausal.queries.effect_moments import EffectMoments as EffectMoments
from dpcausal.queries.effect_weights import EffectWeights as EffectWeights
from dpcausal.queries.event_counts import EventCounts as EventCounts
from dpcausal.queries.features import with_indicators
from dpcausal.queries.instrument_moments import InstrumentMoments as InstrumentMoments
from dpcausal.queries.logistic import BoundedInfluenceLogistic as BoundedInfluenceLogistic
from dpcausal.queries.logistic import ObjectivePerturbedLogistic as ObjectivePerturbedLogistic
from dpcausal.queries.logistic import OutputPerturbedLogistic as OutputPerturbedLogistic
from dpcausal.queries.look_moments import LookMetrics as LookMetrics
from dpcausal.queries.look_moments import LookMoments as LookMoments
from dpcausal.queries.look_moments import LookQuery
from dpcausal.queries.matched_contrast import MatchedContrast as MatchedContrast
from dpcausal.queries.metric_moments import MetricMoments as MetricMoments
from dpcausal.queries.metric_moments import SegmentMetrics as SegmentMetrics
from dpcausal.queries.missing_covariates import MissingCovariates as MissingCovariates
from dpcausal.queries.missing_outcomes import MissingOutcomes as MissingOutcomes
from dpcausal.queries.noisy_matched_contrast import NoisyMatchedContrast as NoisyMatchedContrast
from dpcausal.queries.observed_logistic import AllUnitsLogistic as AllUnitsLogistic
from dpcausal.queries.observed_logistic import ObservedLogistic as ObservedLogistic
from dpcausal.queries.observed_scores import ObservedScores as ObservedScores
from dpcausal.queries.outcome_counts import ArmOutcomeCounts as ArmOutcomeCounts
from dpcausal.queries.outcome_counts import OutcomeCounts as OutcomeCounts
from dpcausal.queries.query import GRID as GRID
from dpcausal.queries.query import Coordinate as Coordinate
from dpcausal.queries.query import Norm as Norm
from dpcausal.queries.query import Query as Query
from dpcausal.queries.query import Sensitivity as Sensitivity
from dpcausal.queries.received_moments import ReceivedMoments as ReceivedMoments
from dpcausal.queries.regression_moments import RegressionMoments as RegressionMoments
from dpcausal.queries.stratum_contrasts import StratumContrasts as StratumContrasts
from dpcausal.queries.stratum_matches import StratumMatches as StratumMatches
from dpcausal.queries.subgroup_moments import ClusterMoments as ClusterMoments
from dpcausal.queries.subgroup_moments import SubgroupMoments as SubgroupMoments
from dpcausal.queries.varying_effect_moments import VaryingEffectMoments as VaryingEffectMoments
from dpcausal.queries.weighted_arms import WeightedArms as WeightedArms
from dpcausal.queries.weighted_counts import WeightedCounts as WeightedCounts
from dpcausal.queries.weighted_regression_moments import WeightedRegressionMoments as WeightedRegressionMoments
from dpcausal.schema.columns import Indicator, declared_dict
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import Treatment
from dpcausal.utils.discovery import classes_in


def question(query: Query, guarantee: Guarantee, schema: Schema, as_of: str | None) -> dict[str, Any]:
    """Return what makes two requests the same: all that the answer depends on, and nothing else.

    That includes the version of the data, so that an answer stored for one version is never given for another. Which of
    a unit's records is used may depend on any declared column, so with a unit all of them count, and every arm. A look
    of a prepaid schedule is answered once, from the version on which it is asked first, so no version is part of it.
    Who is in the comparison depends on every required column; a query that does not read the treatment counts all
    units.
    """
    schema = seen_by(query, schema)
    columns = query.reads(schema)
    if schema.unit:
        columns = (*schema.columns, *([schema.treatment.every_arm] if schema.treatment.outside else []))
    compares = any(isinstance(column, Treatment) for column in columns)
    required = schema.required_columns if compares else ()
    return {
        "query": to_dict(query),
        "guarantee": guarantee.to_dict(),
        "columns": [column.meaning for column in columns],
        "required": [column.meaning | {"missing": None} for column in required],
        "unit": declared_dict(schema.unit) if schema.unit else None,
        "as_of": None if query.prepaid else as_of,
        **({"claim": schema.claim.to_dict()} if schema.claim else {}),
    }


def seen_by(query: Query, schema: Schema) -> Schema:
    """Return a schema as a query sees it.

    Units that lack what the query requires are outside the comparison, and numbers of which it tells who has none have
    an indicator. For a query of missing outcomes the outcome is whether it is missing, and nobody is outside for lack
    of one.
    """
    if not query.counts_missing:
        return with_indicators(schema.requiring(query.required), query.indicated)
    if not schema.outcome_may_be_missing:
        raise QueryError(
            problem=f"The outcome {schema.outcome.name!r} cannot be missing: it declares what counts in place of a "
            "missing value, or is a total",
            hint="no outcome is missing then: there is nothing to count.",
        )
    return replace(schema, outcome=Indicator(schema.outcome.name, of=schema.outcome))


def is_summable(query: Query) -> bool:
    """Return whether the answer is a fixed sum over units, so that masked answers of sites can be added up.

    A look of a prepaid schedule is paid for with the others; values without noise and draws inside the answer do not
    add up.
    """
    return query.adds_up and not (query.prepaid or query.public_values or query.draws)


def queries_asked(question: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the queries in a question, as a ledger holds it: one, or those of a secure sum."""
    asked = question.get("questions", [question])
    return tuple(str(each.get("query", {}).get("query", "unknown")) for each in asked)


def payment(query: Query, question: dict[str, Any]) -> dict[str, Any]:
    """Return what is paid for: the question itself, or of a prepaid schedule's look the schedule with all its looks."""
    if not query.prepaid:
        return question
    return question | {"query": {name: part for name, part in question["query"].items() if name != "look"}}


def previous_look(query: Query) -> Query | None:
    """Return the look before a look of a prepaid schedule; None for the first, and for any other query."""
    if not isinstance(query, LookQuery) or query.look == 1:
        return None
    return replace(query, look=query.look - 1)


def to_dict(query: Query) -> dict[str, Any]:
    """Return a query as plain values: its name and its parameters."""
    return {"query": query.name, **asdict(query)}  # type: ignore[call-overload]


def from_dict(document: dict[str, Any]) -> Query:
    """Return the query that `to_dict` wrote."""
    name = str(document.get("query"))
    parameters = {key: value for key, value in document.items() if key != "query"}
    known = [part.name for part in fields(QUERIES[name])] if name in QUERIES else []  # type: ignore[arg-type]
    if name not in QUERIES or sorted(parameters) != sorted(known):
        raise QueryError(
            expected=f"a query out of {', '.join(QUERIES)} with exactly its parameters",
            got=f"{name!r} with {', '.join(sorted(parameters)) or 'none'}",
            hint="a table answers only these queries.",
        )
    try:
        return QUERIES[name](**parameters)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        if isinstance(error, QueryError):
            raise
        raise QueryError(
            expected=f"parameters of {name} of the kinds that it declares",
            got="something else",
            hint="write queries with to_dict.",
        ) from None


# Last, because modules of this folder import what stands above.
QUERIES: dict[str, type[Query]] = {kind.name: kind for kind in classes_in(__name__) if "name" in vars(kind)}
"""Every query there is, by name: each in a file of this folder. What else must be known of it is derived from it."""
