"""Average treatment effects."""

import re
from dataclasses import MISSING, fields
from typing import Any

from dpcausal.estimators.average.arm_contrasts import ArmContrasts as ArmContrasts
from dpcausal.estimators.average.block_average import BlockAverage as BlockAverage
from dpcausal.estimators.average.cluster_trial import ClusterTrial as ClusterTrial
from dpcausal.estimators.average.complier_effect import ComplierEffect as ComplierEffect
from dpcausal.estimators.average.difference_in_differences import DifferenceInDifferences as DifferenceInDifferences
from dpcausal.estimators.average.difference_in_means import DifferenceInMeans as DifferenceInMeans
from dpcausal.estimators.average.doubly_robust import DoublyRobust as DoublyRobust
from dpcausal.estimators.average.exact_matching import ExactMatching as ExactMatching
from dpcausal.estimators.average.factorial_effects import FactorialEffects as FactorialEffects
from dpcausal.estimators.average.formula_estimator import FormulaEstimator as FormulaEstimator
from dpcausal.estimators.average.inverse_weighting import InverseWeighting as InverseWeighting
from dpcausal.estimators.average.propensity_matching import PropensityMatching as PropensityMatching
from dpcausal.estimators.average.quantile_effects import QuantileEffects as QuantileEffects
from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment as RegressionAdjustment
from dpcausal.estimators.average.regression_discontinuity import RegressionDiscontinuity as RegressionDiscontinuity
from dpcausal.estimators.average.scheduled_difference import ScheduledDifference as ScheduledDifference
from dpcausal.estimators.average.stratification import Stratification as Stratification
from dpcausal.estimators.average.survival import Survival as Survival
from dpcausal.estimators.average.winsorised import Winsorised as Winsorised
from dpcausal.estimators.base import BaseEstimator
from dpcausal.queries.custom_sums import label_of, quoted
from dpcausal.results.effect import Estimator
from dpcausal.schema.columns import Binary, Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.utils.validation import did_you_mean

_SHIPPED: list[Any] = [
    kind
    for kind in vars().values()
    if isinstance(kind, type) and issubclass(kind, BaseEstimator) and kind is not BaseEstimator
]
"""Every estimator that is imported above."""


def _name(kind: type[BaseEstimator]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


ESTIMATORS: dict[str, type[Estimator]] = {_name(kind): kind for kind in _SHIPPED}
"""The estimators by their names in a study's file, and in one call."""


def suggest_estimator(name: object) -> str:
    """Return which estimator an unknown name may mean, as the beginning of a hint.

    Example:
        >>> suggest_estimator("AIPW"), suggest_estimator("t-test"), suggest_estimator("stratificaton")
        ("here that is 'doubly_robust'. ", "here that is 'difference_in_means'. ", "did you mean 'stratification'? ")
    """
    found = _ALSO_CALLED.get(_letters(name))
    return f"here that is {found!r}. " if found else did_you_mean(name, ESTIMATORS)


def class_also_called(name: str) -> str:
    """Return the class that another library or a textbook calls by a name; empty where there is none.

    Example:
        >>> class_also_called("AIPW"), class_also_called("PropensityScoreMatching"), class_also_called("Estimator")
        ('DoublyRobust', 'PropensityMatching', '')
    """
    found = _ALSO_CALLED.get(_letters(name))
    return ESTIMATORS[found].__name__ if found else ""


def _letters(name: object) -> str:
    """Return the letters of a name in small ones: however words are joined, the name is the same."""
    return re.sub(r"[^a-z0-9]", "", str(name).casefold())


_ALSO_CALLED = {_letters(other): _name(kind) for kind in _SHIPPED for other in kind.also_called.split()}
"""The names of other libraries and textbooks, in small letters only."""


def estimator_for(name: str, schema: Schema) -> Estimator:
    """Return the estimator of this name for every covariate of a schema; for exact matching all must be listed ones.

    The treatment received, the value before, the period and a factor are the first covariates of their kinds. For a
    cluster trial the clusters are the values of the first listed covariate, and every second one is treated. Cohorts of
    a schedule are those of the schema's column of entry. A cutoff is in the middle of the first number, with a
    bandwidth of a quarter of its range.
    """
    names = [column.name for column in schema.covariates]
    kind: Any = ESTIMATORS[name]
    roles: dict[str, object] = {"by": names, "covariates": names, "factor": (names or [""])[0]}
    roles |= {"received": _first(schema, Binary), "before": _first(schema, Real)}
    if not roles["before"]:
        roles["period"] = _first(schema, Binary | Category)
    number = next((column for column in schema.covariates if isinstance(column, Real)), schema.outcome)
    low, high = (number.low, number.high) if isinstance(number, Real) else (0.0, 1.0)
    roles |= {"running": roles["before"], "cutoff": (low + high) / 2, "bandwidth": (high - low) / 4}
    listed = next((column for column in schema.covariates if isinstance(column, Binary | Category)), None)
    if listed is not None:
        roles |= {"cluster": listed.name, "treated": tuple(listed.values[1::2])}
        roles |= {"cohorts": schema.entry or listed.name}
    roles |= _difference_as_formula(schema)
    optional = {"before", "period", "cells", "variance"}
    needed = [part.name for part in fields(kind) if part.default is MISSING or part.name in optional]
    estimator: Estimator = kind(**{part: roles[part] for part in needed if part in roles})
    return estimator


def _difference_as_formula(schema: Schema) -> dict[str, object]:
    """Return a difference in means as formulas of moments."""
    outcome, (control, treated) = (
        quoted(schema.outcome.name),
        (f"['{label_of(arm)}']" for arm in schema.treatment.compared),
    )
    variances = (f"variance({outcome}){arm} / n{arm}" for arm in (control, treated))
    return {
        "estimand": "average treatment effect: mean outcome with all treated minus mean outcome with none",
        "formula": f"mean({outcome}){treated} - mean({outcome}){control}",
        "variance": " + ".join(variances),
        "cells": [schema.treatment.name],
    }


def _first(schema: Schema, kind: Any) -> str:  # noqa: ANN401 (a class, or several)
    """Return the name of the first covariate of a kind; empty where there is none."""
    return next((column.name for column in schema.covariates if isinstance(column, kind)), "")
