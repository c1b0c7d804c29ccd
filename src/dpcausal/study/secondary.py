"""Reading the secondary analyses of a study: effect curves, and experiments with many metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from dpcausal.errors import StudyError
from dpcausal.estimators.conditional.meta_learners import DRLearner, RLearner
from dpcausal.estimators.conditional.subgroups import SubgroupEffects
from dpcausal.experiment import Experiment, Metric, Scorecard
from dpcausal.inference.many_outcomes import Method
from dpcausal.queries.basis import basis_of
from dpcausal.results.curve import EffectCurve
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source
from dpcausal.study.file import read_parameters, unknown_key
from dpcausal.utils.validation import check_keys, is_number

SecondaryResult = EffectCurve | Scorecard
"""What a secondary analysis gives."""

_ROLES = ("column", "denominator", "covariate")


class SecondaryEstimator(Protocol):
    """An estimator of a secondary analysis."""

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> SecondaryResult:
        """Return the result for a total of epsilon and delta."""
        ...


@dataclass(frozen=True)
class Secondary:
    """A secondary analysis, with its own price."""

    method: str
    estimator: SecondaryEstimator
    epsilon: float
    delta: float

    def estimate(self, source: Source) -> SecondaryResult:
        """Return the result."""
        return self.estimator.estimate(source, epsilon=self.epsilon, delta=self.delta)


@dataclass(frozen=True)
class _Experiment:
    """An experiment on the columns of a study's schema; its arms are those of the schema.

    Attributes:
        metrics: The metrics, each a table with the name of its column, and what else `Metric` has.
        method: As for `Experiment`, like all that follows.
        allocation: The share of units that each arm was meant to get.
    """

    label: str
    metrics: Sequence[Mapping[str, Any]]
    method: Method = "holm"
    level: float = 0.95
    allocation: Sequence[float] | None = None

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> Scorecard:
        schema = source.schema
        experiment = Experiment(
            name=self.label,
            treatment=schema.treatment,
            metrics=[_metric(each, schema) for each in self.metrics],
            epsilon=epsilon,
            delta=delta,
            method=self.method,
            level=self.level,
            allocation=self.allocation,
            unit=schema.unit,
            protects=schema.protects,
            entry=schema.entry,
        )
        return experiment.run(source)


def _metric(document: Mapping[str, Any], schema: Schema) -> Metric:
    check_keys("metric", document, ("column",), (*_ROLES[1:], "name", "weight", "lower_is_better"))
    columns: dict[str, Any] = {
        column.name: column.measured if isinstance(column, Real) else column
        for column in (schema.outcome, *schema.covariates)
    }
    for column in schema.required_columns:  # a unit that lacks one is in no arm, so none is ever missing
        columns[column.name] = replace(columns[column.name], missing=column.missing_value)
    unknown = [document[role] for role in _ROLES if role in document and document[role] not in columns]
    if unknown:
        raise StudyError(
            expected=f"metrics of the schema's outcome and covariates: {', '.join(columns)}",
            got=repr(unknown[0])[:100],
            hint="declare the column among the covariates, with its bounds.",
        )
    return Metric(**{name: columns[value] if name in _ROLES else value for name, value in document.items()})


SECONDARY: dict[str, type[Any]] = {
    "subgroup_effects": SubgroupEffects,
    "r_learner": RLearner,
    "dr_learner": DRLearner,
    "experiment": _Experiment,
}
"""The estimators of secondary analyses, by their names in a study's file."""


def read_secondary(secondary: object) -> dict[str, Secondary]:
    """Return secondary analyses, by label.

    Args:
        secondary: The table [secondary] of a study: for each label a table with the `name` of an estimator, an
            `epsilon`, perhaps a `delta`, and the estimator's parameters.
    """
    if not isinstance(secondary, Mapping):
        raise StudyError(expected="a table [secondary]", got=repr(secondary)[:100], hint="or leave it out.")
    found = {}
    for label, given in secondary.items():
        named = isinstance(given, Mapping) and given.get("name") in SECONDARY
        numbers = named and is_number(given.get("epsilon")) and is_number(given.get("delta", 0.0))
        if not isinstance(given, Mapping) or not numbers:
            raise StudyError(
                expected=f"in [secondary], tables with a name out of {', '.join(SECONDARY)} and their own epsilon",
                got=f"{label}: {given!r}"[:100],
                hint='write for instance [secondary.wards], and below it name = "subgroup_effects", by = ["ward"] and '
                f"epsilon = 0.5. {unknown_key(given, ('name', 'epsilon', 'delta')) if not named else ''}".strip(),
            )
        parameters = {key: value for key, value in given.items() if key not in ("name", "epsilon", "delta")}
        method, delta = str(given["name"]), float(given.get("delta", 0.0))
        found[str(label)] = Secondary(
            method, _estimator(str(label), method, parameters), float(given["epsilon"]), delta
        )
    return found


def _estimator(label: str, method: str, parameters: dict[str, Any]) -> SecondaryEstimator:
    whole = {}
    if "basis" in parameters:
        whole["basis"] = basis_of(parameters.pop("basis"))
    if SECONDARY[method] is _Experiment:
        metrics = parameters.pop("metrics", None)
        if not isinstance(metrics, list | tuple) or not all(isinstance(each, Mapping) for each in metrics):
            raise StudyError(
                expected=f"metrics of {label} as tables",
                got=repr(metrics)[:100],
                hint=f"write [[secondary.{label}.metrics]] above each, with its column.",
            )
        whole |= {"label": label, "metrics": tuple(metrics)}
    made: SecondaryEstimator = read_parameters(method, SECONDARY[method], parameters, **whole)
    return made
