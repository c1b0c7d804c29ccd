"""Average treatment effects: every estimator in a file of this folder has a name here, in studies and in one call."""

import re
from typing import Any

from dpcausal.estimators.base import BaseEstimator, name_of
from dpcausal.results.effect import Estimator
from dpcausal.schema.schema import Schema
from dpcausal.utils.discovery import classes_in
from dpcausal.utils.validation import did_you_mean

_SHIPPED: list[Any] = list(classes_in(__name__, BaseEstimator))


ESTIMATORS: dict[str, type[Estimator]] = {name_of(kind): kind for kind in _SHIPPED}
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


_ALSO_CALLED = {_letters(other): name_of(kind) for kind in _SHIPPED for other in kind.also_called.split()}
"""The names of other libraries and textbooks, in small letters only."""


def estimator_for(name: str, schema: Schema) -> Estimator:
    """Return the estimator of this name for every covariate of a schema; for exact matching all must be listed ones."""
    kind: Any = ESTIMATORS[name]
    estimator: Estimator = kind.for_schema(schema)
    return estimator
