"""Reading the diagnostics that a study requires."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpcausal.diagnostics import Balance, Overlap
from dpcausal.errors import StudyError
from dpcausal.estimators.average.difference_in_means import DifferenceInMeans
from dpcausal.estimators.average.doubly_robust import LARGEST_CLIP, DoublyRobust
from dpcausal.estimators.average.inverse_weighting import InverseWeighting
from dpcausal.results.effect import Estimator
from dpcausal.study.file import read_parameters
from dpcausal.utils.validation import is_number

DIAGNOSTICS: dict[str, type[Any]] = {"overlap": Overlap, "balance": Balance}
"""The diagnostics that a study can require."""


def read_diagnostics(
    requires: object, used: Estimator, method: str, adjusts_for: Sequence[str], design: str
) -> dict[str, tuple[Overlap | Balance, float]]:
    """Return required diagnostics, by name, each with its epsilon."""
    if not isinstance(requires, Mapping):
        raise StudyError(expected="a table [requires]", got=repr(requires)[:100], hint="or leave it out.")
    found = {}
    for name, given in requires.items():
        if name not in DIAGNOSTICS or not isinstance(given, Mapping) or not is_number(given.get("epsilon")):
            raise StudyError(
                expected=f"requires: {' or '.join(DIAGNOSTICS)}, each with an epsilon of its own",
                got=f"{name}: {given!r}"[:100],
                hint='write for instance [requires.balance], and below it epsilon = 0.2 and covariates = ["age"].',
            )
        parameters = {key: value for key, value in given.items() if key != "epsilon"}
        diagnostic = read_parameters(name, DIAGNOSTICS[name], parameters)
        if isinstance(diagnostic, Balance):
            diagnostic = _after_adjustment(diagnostic, given, _weights(used, method, adjusts_for, design), method)
        found[name] = diagnostic, float(given["epsilon"])
    return found


def _weights(used: Estimator, method: str, adjusts_for: Sequence[str], design: str) -> dict[str, Any]:
    """Return how balance is weighted after adjustment: as the estimator weights, or unweighted.

    The arms of a trial may be compared unweighted: that checks the randomisation.
    """
    over_all = isinstance(used, DoublyRobust) and used.include_missing
    if isinstance(used, InverseWeighting | DoublyRobust) and not over_all:
        weights: dict[str, Any] = {"weighted_by": tuple(adjusts_for), "estimand": used.estimand}
        return weights | {"clip": LARGEST_CLIP if used.clip is None else used.clip}  # a smaller one may follow
    if not isinstance(used, DifferenceInMeans) and design != "trial":
        raise StudyError(
            expected="a required balance after adjustment: with inverse_weighting, "
            "doubly_robust or difference_in_means, or of a trial",
            got=f"one with {method}, which " + ("weights for having an outcome too" if over_all else "has no weights"),
            hint="require overlap instead: it shows whether units of both arms can be compared.",
        )
    return {"weighted_by": ()}


def _after_adjustment(balance: Balance, given: Mapping[str, Any], weights: Mapping[str, Any], method: str) -> Balance:
    made = replace(balance, **weights)
    other = [name for name in weights if name in given and getattr(balance, name) != getattr(made, name)]
    if other:
        raise StudyError(
            expected=f"a required balance as {method} adjusts: "
            f"{', '.join(f'{name} {getattr(made, name)}' for name in other)}",
            got=", ".join(f"{name} {getattr(balance, name)}" for name in other),
            hint="leave these out of [requires.balance]; they follow from the estimator.",
        )
    return made
