"""Estimators as DoWhy calls them: DoWhy identifies the adjustment set from a graph, and a source answers for a price.

DoWhy stores its frame, copies it into results and passes it to refuters, so that frame must contain no unit.
`empty_frame` makes one with the schema's columns and no data, which is all that identification needs.
"""

from typing import Any, NoReturn, Self

import pandas as pd
from dowhy.causal_estimator import CausalEstimate, CausalEstimator
from dowhy.causal_identifier import IdentifiedEstimand

from dpcausal.errors import QueryError, RefusedError
from dpcausal.queries import Cut
from dpcausal.rehearsal import Rehearsal
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.schema import Schema
from dpcausal.schema.treatment import TableColumn, listed_values
from dpcausal.source import Source, guarantee_for
from dpcausal.utils.validation import is_number


def empty_frame(schema: Schema) -> pd.DataFrame:
    """Return a frame with the schema's columns and no unit, for DoWhy to use instead of the table.

    Example:
        >>> from dpcausal import Real, Treatment
        >>> empty_frame(Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100))).shape
        (0, 2)
    """
    return pd.DataFrame({column.name: pd.Series(dtype=_type(column)) for column in schema.columns})


def _type(column: TableColumn) -> str:
    return "float64" if all(map(is_number, listed_values(column))) else "object"


class PrivateEstimator(CausalEstimator):  # type: ignore[misc] # DoWhy ships no types
    """An estimator of dpcausal for DoWhy: `backdoor.dpcausal.integrations.dowhy.PrivateEstimator`.

    It estimates once, for one price. Whatever would estimate again, such as a bootstrap or a refuter, is refused.

    Args:
        identified_estimand: The estimand that DoWhy identified. The estimator must adjust for exactly its set.
        estimator: Any estimator of an average effect.
        settings: Arguments of DoWhy's base class.
    """

    _confidence_intervals: Any  # DoWhy's: whether, or how, to make an interval

    def __init__(
        self,
        identified_estimand: IdentifiedEstimand,
        *,
        estimator: Estimator,
        **settings: Any,  # noqa: ANN401 (as DoWhy's)
    ) -> None:
        super().__init__(identified_estimand, **settings)
        _check_method(self._confidence_intervals or None)
        if self._significance_test or self._effect_strength_eval:
            _refuse("a significance test, or the strength of an effect")
        self._estimator = estimator
        self._effect: Effect | None = None
        self._schema: Schema | None = None

    def fit(
        self,
        data: pd.DataFrame,
        effect_modifier_names: list[str] | None = None,
        *,
        source: Source,
        epsilon: float,
        delta: float = 0.0,
    ) -> Self:
        """Set the source and the price. Nothing is spent yet.

        Args:
            data: A frame without units.
            effect_modifier_names: What DoWhy found in the graph; an average effect does not use it.
            source: A vault, or a coordinator of many sites.
            epsilon: The price of the effect.
            delta: The delta of the price, for estimators that need or benefit from one.
        """
        guarantee_for(source, epsilon, delta)
        _check_empty(data)
        _check_graph(self._target_estimand, self._estimator, source.schema)
        rehearsal = Rehearsal(source.schema, n=source.n)
        _check_average(self._estimator.estimate(rehearsal, epsilon=epsilon, delta=delta), source)
        self._effect_modifier_names = list(effect_modifier_names or ())
        self._asking, self._schema, self._effect = (source, epsilon, delta), source.schema, None
        return self

    def estimate_effect(
        self,
        data: pd.DataFrame,
        treatment_value: object = 1,
        control_value: object = 0,
        target_units: object = "ate",
        **_: object,
    ) -> CausalEstimate:
        """Estimate the effect and return it as DoWhy's estimate, whose `effect` is the full result.

        The first call pays. Later calls return the same effect.
        """
        _check_empty(data)
        if self._schema is None:
            raise QueryError(expected="a source and a price", got="none yet", hint="call fit first.")
        self._check_contrast(self._schema, control_value, treatment_value, target_units)
        self.update_input(treatment_value, control_value, target_units)
        if self._effect is None:
            source, epsilon, delta = self._asking
            self._effect = self._estimator.estimate(source, epsilon=epsilon, delta=delta)
            del self._asking  # a result must not lead back to the table
            # DoWhy would ask for the interval itself and fail, although the effect is paid for.
            if self._effect.no_interval:
                self._confidence_intervals = False
        estimate = CausalEstimate(
            data,
            self._target_estimand.treatment_variable,
            self._target_estimand.outcome_variable,
            self._effect.estimate,
            self._target_estimand,
            self._effect.method,
            control_value=control_value,
            treatment_value=treatment_value,
            effect=self._effect,
        )
        estimate.add_estimator(self)
        return estimate

    def _check_contrast(self, schema: Schema, control: object, treated: object, units: object) -> None:
        arms = schema.treatment.compared
        if (control, treated) != arms:
            raise QueryError(
                expected=f"control_value={arms[0]!r} and treatment_value={arms[1]!r}, the arms of the schema",
                got=f"{control!r} and {treated!r}",
                hint="pass both to estimate_effect as the schema writes them.",
            )
        estimand = getattr(self._estimator, "estimand", "ATE")
        if not isinstance(units, str) or units.upper() != estimand:
            raise QueryError(
                expected=f"target_units={estimand.lower()!r}, which is what {type(self._estimator).__name__} estimates",
                got=repr(units) if isinstance(units, str) else type(units).__name__,
                hint="choose an estimator of that effect, for instance DoublyRobust(covariates=…, estimand='ATT').",
            )

    def estimate_confidence_intervals(
        self,
        data: object,  # noqa: ARG002 (DoWhy's signature)
        estimate_value: object,  # noqa: ARG002
        confidence_level: float | None = None,
        method: object = None,
        **_: object,
    ) -> tuple[float, float]:
        """Return the effect's own interval, which accounts for sampling error and privacy noise."""
        _check_method(method)
        return self._known().interval(self.confidence_level if confidence_level is None else confidence_level)

    def estimate_std_error(self, data: object, method: object = None, **_: object) -> float | None:  # noqa: ARG002
        """Return the effect's own standard error; None where the sampling error was not asked for."""
        _check_method(method)
        return self._known().standard_error

    def _known(self) -> Effect:
        if self._effect is None:
            raise QueryError(expected="an effect", got="none yet", hint="call fit and then estimate_effect first.")
        return self._effect

    def test_significance(self, *_: object, **__: object) -> NoReturn:
        """Refuse: DoWhy tests by estimating again, on shuffled data."""
        _refuse("a significance test")

    def get_new_estimator_object(self, *_: object, **__: object) -> NoReturn:
        """Refuse: refuters and bootstraps begin here."""
        _refuse("a refuter, or a bootstrap")


def _check_average(rehearsed: object, source: Source) -> None:
    """Raise, before anything is spent, unless DoWhy can hold the result."""
    if not isinstance(rehearsed, Effect) or isinstance(source, Rehearsal):
        raise RefusedError(
            expected="an estimator of an average effect, and a source with units",
            got="a rehearsal" if isinstance(rehearsed, Effect) else type(rehearsed).__name__,
            hint="DoWhy cannot hold these: call the estimator's own estimate(source, epsilon=…).",
        )


def _refuse(what: str) -> NoReturn:
    raise RefusedError(
        expected="one estimate, with its own interval",
        got=f"{what}, which estimates repeatedly on changed data",
        hint="each estimate would have its price; use get_confidence_intervals(), or a Report for sensitivity to "
        "confounding.",
    )


def _check_method(method: object) -> None:
    if method not in (None, True, "default"):
        _refuse(f"the method {method!r}")


def _check_empty(data: pd.DataFrame) -> None:
    if len(data):
        raise RefusedError(
            expected="a model whose frame contains no units",
            got=f"a frame of {len(data):,}",
            hint="DoWhy stores and copies its frame: give it empty_frame(schema), and the table to a Vault.",
        )


def _check_graph(identified: IdentifiedEstimand, estimator: Estimator, schema: Schema) -> None:
    """Raise unless the graph, the schema and the estimator describe the same study."""
    roles = identified.treatment_variable, identified.outcome_variable
    if roles != ([schema.treatment.name], [schema.outcome.name]):
        raise QueryError(
            expected=f"the effect of {schema.treatment.name} on {schema.outcome.name}, as the schema declares",
            got=f"that of {', '.join(roles[0])} on {', '.join(roles[1])}",
            hint="name the same two columns in CausalModel and in the schema.",
        )
    method = identified.identifier_method or "backdoor"
    if not method.startswith(("backdoor", "general_adjustment")):
        raise QueryError(
            expected="an effect that is identified by adjustment",
            got=f"one by {method}",
            hint="write method_name='backdoor.dpcausal.integrations.dowhy.PrivateEstimator'.",
        )
    named = set(identified.get_adjustment_set())
    undeclared = named - {column.name for column in schema.covariates}
    if undeclared:
        raise QueryError(
            expected="an adjustment set of covariates that the schema declares",
            got=f"one with {', '.join(sorted(undeclared))}",
            hint="declare them with public bounds, or omit them from the frame, as unobserved.",
        )
    by = {each.name if isinstance(each, Cut) else each for each in getattr(estimator, "by", None) or ()}
    used = by | set(getattr(estimator, "covariates", ()))
    if used != named:
        raise QueryError(
            expected=f"an estimator that adjusts for {_listed(named)}, as identified ({method})",
            got=f"{type(estimator).__name__} for {_listed(used)}",
            hint="identified.backdoor_variables has the other valid sets; name one instead of backdoor.",
        )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
