"""How estimators here are called, for people who know other libraries."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, ParamSpec, TypeVar

from dpcausal.effect import Effect
from dpcausal.errors import GuaranteeError
from dpcausal.other_names import OtherNames
from dpcausal.queries.cuts import cuts_of
from dpcausal.queries.features import name_tuple
from dpcausal.rehearsal.pricing import look_ahead
from dpcausal.source import Source

_ASK = "effect = estimator.estimate(vault, epsilon=1.0)"

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def epsilon_by_name(
    positions: int, example: str
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorate a function so that a call without epsilon by its name raises an error with a right example.

    Args:
        positions: How many arguments may be given by position.
        example: A right call.
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @wraps(function)
        def checked(*given: Parameters.args, **named: Parameters.kwargs) -> Result:
            if "epsilon" not in named or len(given) > positions:
                raise GuaranteeError(
                    expected="epsilon, by its name: what this may cost has no default",
                    got="no epsilon" if len(given) <= positions else f"{len(given) - positions} more by position",
                    hint=f"write {example}; epsilon near 1 is a usual choice.",
                )
            return function(*given, **named)

        return checked

    return decorate


class BaseEstimator(OtherNames):
    """The base of all estimators: it checks the budget before the first query, and hints at other libraries' calls.

    Attributes:
        also_called: Names of the method in other libraries and textbooks, in snake case.
    """

    also_called: ClassVar[str] = ""

    _instead: ClassVar[dict[str, str]] = {
        "fit train learn run estimate_effect fit_transform fit_predict": f"write {_ASK}: it asks the vault once, for a "
        "price, and returns the effect.",
        "predict effect const_marginal_effect": f"first {_ASK}; an effect that varies is a curve, which has "
        "curve.effect(profiles).",
        "conf_int confint confidence_interval interval": f"first {_ASK}, then effect.interval(0.95).",
        "summary describe params coef_ ate att": f"first {_ASK}, then print(effect).",
    }

    def __post_init__(self) -> None:
        covariates = getattr(self, "covariates", None)
        if isinstance(covariates, str):
            object.__setattr__(self, "covariates", name_tuple(covariates))

    def __init_subclass__(cls, **more: Any) -> None:  # noqa: ANN401 (as the parent has it)
        super().__init_subclass__(**more)
        if "estimate" in vars(cls):
            named = epsilon_by_name(2, ".estimate(vault, epsilon=1.0)")
            cls.estimate = named(look_ahead(_with_handling(cls.estimate)))  # type: ignore[attr-defined]


def _with_handling(estimate: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate an estimator's method: an effect also prints as what missing cells of its covariates count."""

    @wraps(estimate)
    def handled(self: Any, source: Source, **options: Any) -> Result:  # noqa: ANN401 (as the method has it)
        result = estimate(self, source, **options)
        if not isinstance(result, Effect):
            return result
        by = getattr(self, "by", None)
        names = getattr(self, "covariates", ()) if not by else [cut.name for cut in cuts_of(by)]
        return replace(result, assumptions=(*result.assumptions, *source.schema.covariate_handling(names)))

    return handled
