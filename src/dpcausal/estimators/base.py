"""How estimators here are called, for people who know other libraries."""

import json
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

from dpcausal.errors import ArgumentError, GuaranteeError
from dpcausal.estimators.missing_covariates import missing_counted, says_what_missing_means
from dpcausal.estimators.missing_outcomes import counting_missing
from dpcausal.estimators.plausibility import with_warnings
from dpcausal.estimators.scale_ends import beyond_typical, left_at_ends, mostly_at_an_end
from dpcausal.queries.cuts import cuts_of
from dpcausal.queries.features import name_tuple
from dpcausal.rehearsal.pricing import look_ahead
from dpcausal.release import Release
from dpcausal.results.curve import EffectCurve
from dpcausal.results.effect import Effect
from dpcausal.schema.columns import Binary, Column, Indicator
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import RandomisedSource, RecordingSource, Source, is_within, units_compared
from dpcausal.utils.hash_chain import digest_of
from dpcausal.utils.other_names import OtherNames, check_fit

_ASK = "effect = estimator.estimate(vault, epsilon=1.0)"

_SEED = "noise has no seed, which would undo it; the same request gives the stored answer again, and costs nothing."
_LEVEL = "the level is chosen afterwards: effect.interval(0.95)."
_NOT_HERE = dict.fromkeys(("seed", "random_state", "rng"), _SEED) | dict.fromkeys(
    ("alpha", "level", "conf_level"), _LEVEL
)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def epsilon_by_name(
    positions: int, example: str
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorate a function so that a call without epsilon by its name raises an error with a right example."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        called = signature(function)
        known = [name for name in called.parameters if name != "self"]
        of_estimator = "self" in signature(function).parameters

        @wraps(function)
        def checked(*given: Parameters.args, **named: Parameters.kwargs) -> Result:
            if of_estimator and not (given and isinstance(given[0], BaseEstimator)):
                raise ArgumentError(
                    problem="This is the class of an estimator, not an estimator",
                    hint="make one first: DifferenceInMeans().estimate(vault, epsilon=1.0).",
                )
            if "epsilon" not in named or len(given) > positions:
                raise GuaranteeError(
                    problem="epsilon is missing: what this may cost has no default"
                    if len(given) <= positions
                    else "epsilon must be given by its name",
                    hint=f"write {example}; epsilon near 1 is a usual choice.",
                )
            if unknown := [name for name in named if name not in known]:
                raise GuaranteeError(
                    problem=f"There is no argument {unknown[0]!r} here; there are {', '.join(known)}",
                    hint=_NOT_HERE.get(unknown[0], f"write {example}; other choices are the estimator's own."),
                )
            check_fit(called, example, example, given, named)
            return function(*given, **named)

        return checked

    return decorate


class BaseEstimator(OtherNames):
    """The base of all estimators: it checks the budget before the first query, and hints at other libraries' calls.

    Attributes:
        also_called: Names of the method in other libraries and textbooks, in snake case.
        counts_missing: Whether a result shows the share of missing outcomes in each arm, for a small part of epsilon.
        estimates_average: Whether no parameter changes what it estimates, an average effect over its target. Its
            effects can then be pooled with those of any such estimator, unless answers chose more, such as a cap.
    """

    also_called: ClassVar[str] = ""
    counts_missing: ClassVar[bool] = True
    estimates_average: ClassVar[bool] = False

    _instead: ClassVar[dict[str, str]] = {
        "fit train learn run estimate_effect fit_transform fit_predict": f"write {_ASK}: it asks the vault once, for a "
        "price, and returns the effect.",
        "predict effect const_marginal_effect": f"first {_ASK}; an effect that varies is a curve, which has "
        "curve.effect(profiles).",
        "conf_int confint confidence_interval interval": f"first {_ASK}, then effect.interval(0.95).",
        "summary describe params coef_ ate att": f"first {_ASK}, then print(effect).",
    }

    def __post_init__(self) -> None:
        for part in ("covariates", "by"):
            names = getattr(self, part, None)
            if (names is not None and not isinstance(names, Sequence)) or isinstance(names, str):
                object.__setattr__(self, part, name_tuple(names))

    @classmethod
    def for_schema(cls, schema: Schema) -> Self:
        """Return an estimator of this kind for every covariate of a schema, and all else by default.

        An estimator that needs more than `covariates` or `by` says here what that is; checks and audits use it.
        """
        names = [column.name for column in schema.covariates]
        needed = [part.name for part in fields(cls) if part.default is MISSING]  # type: ignore[arg-type]
        return cls(**{part: names for part in needed if part in ("by", "covariates")})

    def __init_subclass__(cls, **more: Any) -> None:  # noqa: ANN401 (as the parent has it)
        super().__init_subclass__(**more)
        if "estimate" in vars(cls):
            named = epsilon_by_name(2, ".estimate(vault, epsilon=1.0)")
            estimate = _with_handling(cls.estimate)  # type: ignore[attr-defined]
            cls.estimate = named(look_ahead(counting_missing(estimate)))  # type: ignore[attr-defined]


def _with_handling(estimate: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate an estimator's method: a result says which estimator made it, an effect also how cells were handled.

    That is what missing cells of its covariates count as, how many units are compared, and which declared covariates an
    adjustment does not use.
    """

    @wraps(estimate)
    def handled(self: Any, source: Source, **options: Any) -> Result:  # noqa: ANN401 (as the method has it)
        recording = RecordingSource(source)
        result = estimate(self, recording, **options)
        written = plain_estimator(self)
        if isinstance(result, EffectCurve):
            return replace(result, estimator=written)
        if not isinstance(result, Effect):
            return result
        by = getattr(self, "by", None)
        names = getattr(self, "covariates", ()) if not by else [cut.name for cut in cuts_of(by)]
        counted = (result.compared, result.compared_sd)
        compared, noise_sd = _compared(result, source, recording.releases) if counted[0] is None else counted
        unused = [column.name for column in source.schema.covariates if names and column.name not in names_in(self)]
        notes = (f"declared, but not adjusted for: {', '.join(unused)}",) if unused else ()
        known = {name for each in recording.releases for name in missing_counted(each.query)}
        seen = zip(recording.releases, recording.schemas, strict=True)
        left = {name: share for each in seen for name, share in left_at_ends(each[0], source, each[1]).items()}
        return replace(
            result,
            warnings=with_warnings(result, *beyond_typical(left, source.schema)).warnings,
            compared=compared,
            compared_sd=noise_sd,
            no_interval=result.no_interval or mostly_at_an_end(left),
            assumptions=(*result.assumptions, *_handling(names, source, recording.schemas, known)),
            notes=tuple(dict.fromkeys((*result.notes, *notes))),
            is_risk_difference=isinstance(source.schema.outcome, Binary) and not result.quantity,
            estimator=written,
            declared=declared_for(self, source.schema),
            defining=({} if self.estimates_average else written) | dict(result.defining or {}),
        )

    return handled


def _handling(
    names: Sequence[str], source: Source, seen: Sequence[Schema], counted: Collection[str]
) -> tuple[str, ...]:
    """Return as what missing cells of covariates counted in models, which may have given scales and indicators."""
    declared = source.schema
    schema = next((each for each in reversed(seen) if each.scales), declared)
    columns = [column for column in schema.covariates if isinstance(column, Indicator)]
    found = [column.name for column in columns if column.of.name in names and column not in declared.covariates]
    known = names if is_within(source, RandomisedSource) else counted
    return *_shapes(names, schema, known), *schema.covariate_handling([*name_tuple(names), *found])


def _shapes(names: Sequence[str], schema: Schema, counted: Collection[str]) -> tuple[str, ...]:
    """Return what models take to be true of covariates: few lack a value, where numbers are, and how they act.

    Args:
        counted: Those of which it is known how many values are missing, or of which that leaves nothing in.
    """
    used = [each for each in schema.covariates if each.name in names and not isinstance(each, Indicator)]
    numbers = [each for each in used if isinstance(each, Real) and each.scale]
    typical = [f"{each.name} {each.typical[0]:,g} to {each.typical[1]:,g}" for each in numbers if each.typical]
    unshaped = [each.name for each in numbers if not each.transform]
    halfway = "acting in models halfway between the value and its normal score, as no transform is declared"
    never = (*(schema.unit.added if schema.unit else ()), *schema.required, *counted)
    uncounted = [each.name for each in used if each.name not in never and _uncounted(each)]
    lack = "few units lack a value, since what it confounds among them stays in; nobody counts them"
    within = "about 90 % of units are within the declared typical values, and values far beyond count alike in models"
    return (
        *((f"{within}: {', '.join(typical)}",) if typical else ()),
        *((f"{lack}: {', '.join(uncounted)}",) if uncounted else ()),
        *((f"{halfway}: {', '.join(unshaped)}",) if unshaped else ()),
    )


def _uncounted(column: Column) -> bool:
    """Return whether missing values of a covariate are seen by nobody, unless they are counted."""
    if isinstance(column, Real):
        return bool(column.scale and column.typical and not column.indicator)
    return not (column.indicator or says_what_missing_means(column))


def _compared(effect: Effect, source: Source, releases: Sequence[Release]) -> tuple[float | None, float]:
    """Return the number of units in the comparison, as releases show it, and the noise in it."""
    sizes = effect.arm_sizes
    if sizes is not None:
        both = [float(name in effect.arms) for name in sizes.names]
        noise = sum(term.variance for term in sizes.noise_along(both))
        counted = sum(size for name, size in zip(sizes.names, sizes.values, strict=True) if name in effect.arms)
        return float(min(counted, source.n)), math.sqrt(noise)
    if known := [release for release in releases if "compared" in release.names]:
        release = min(known, key=lambda each: each.variance("compared"))
        return units_compared(source, release), math.sqrt(release.variance("compared"))
    if source.arm_sizes is not None:
        return float(sum(source.arm_sizes)), 0.0
    return (None, 0.0) if source.schema.units_may_leave(source.schema.protects) else (float(source.n), 0.0)


def name_of(kind: type) -> str:
    """Return the name of an estimator in a study's file: that of its class in snake case.

    Example:
        >>> name_of(BaseEstimator)
        'base_estimator'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def plain_estimator(estimator: object) -> dict[str, Any]:
    """Return an estimator's name and parameters as JSON has them, without absent ones."""
    plain = asdict(estimator) if is_dataclass(estimator) and not isinstance(estimator, type) else {}
    inner = {name: getattr(estimator, name) for name in plain}
    plain |= {name: plain_estimator(each) for name, each in inner.items() if isinstance(each, BaseEstimator)}
    plain = {"name": name_of(type(estimator)), **{name: value for name, value in plain.items() if value is not None}}
    found: dict[str, Any] = json.loads(json.dumps(plain, default=str))
    return found


def declared_for(estimator: object, schema: Schema) -> str:
    """Return the digest of what a schema declares of the columns that an estimator uses."""
    document = schema.to_dict() | {"entry": None}  # it names no column that enters the estimate
    used = names_in(estimator) | set(schema.required)
    document["covariates"] = [column for column in document["covariates"] if column["name"] in used]
    return digest_of(document)


def names_in(part: object) -> set[str]:
    """Return every name in the parameters of an estimator: those of all columns that it uses, in whatever role."""
    if isinstance(part, str):
        return {part}
    if (named := getattr(part, "columns", None)) is not None:  # a formula has them within its texts
        return set(named)
    parts = [getattr(part, each.name) for each in fields(part)] if is_dataclass(part) else part
    return set().union(*map(names_in, parts)) if isinstance(parts, list | tuple) else set()
