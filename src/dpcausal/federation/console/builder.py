"""A study put together in a form, from a study that is there, and what to expect of it. Nothing is asked or spent."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Self

from dpcausal.errors import DpcausalError, StudyError
from dpcausal.estimators.average import ESTIMATORS
from dpcausal.estimators.base import name_of
from dpcausal.report import Report
from dpcausal.schema.columns import Binary
from dpcausal.schema.real import Real
from dpcausal.schema.treatment import Treatment
from dpcausal.study.study import Study

METHODS = (
    *("difference_in_means", "regression_adjustment", "doubly_robust", "inverse_weighting"),
    *("propensity_matching", "stratification", "exact_matching"),
)
"""The estimators that need no more than a choice of covariates; others stay as the study that is changed has them."""

_ADJUSTING = ("covariates", "by")
_OF_TREATMENT = ("treated_share", "compared_share", "confounding", "overlap")
_OF_OUTCOME = ("outcome_mean", "outcome_sd", "compared_share", "confounding", "correlation")
"""The expectations that are about the treatment, and those about the outcome: another one has its own."""

_MOST_SITES, _MOST_UNITS = 20, 10**8


@dataclass(frozen=True)
class Draft:
    """What a form holds about a study.

    Attributes:
        covariates: The names of the covariates to declare and to adjust for.
        sites: How many sites are expected to answer.
        units: How many units each of them is expected to have.
        outcome_sd: The expected standard deviation of the outcome; empty where it is not known.
    """

    name: str
    question: str
    design: str
    method: str
    treatment: str
    outcome: str
    covariates: tuple[str, ...]
    epsilon: str
    delta: str
    sites: str = "3"
    units: str = "1000"
    outcome_sd: str = ""

    @classmethod
    def of(cls, study: Study) -> Self:
        """Return a study as a draft. Covariates that its method does not use are not chosen."""
        schema, method = study.schema, name_of(type(study.estimator))
        own = method not in METHODS
        sd = study.expected.get("outcome_sd")
        return cls(
            *(study.name, study.question, study.design, "" if own else method),
            *(schema.treatment.name, schema.outcome.name),
            tuple(each.name for each in schema.covariates) if own else study.adjusts_for,
            *(repr(study.epsilon), repr(study.delta)),
            outcome_sd="" if sd is None else repr(sd),
        )

    @classmethod
    def read(cls, form: Mapping[str, str], covariates: Sequence[str]) -> Self:
        """Read a draft from the fields of a form."""
        texts = {part.name: form.get(part.name, "").strip() for part in fields(cls) if part.name != "covariates"}
        return cls(covariates=tuple(covariates), **texts)

    def study(self, base: Study) -> Study:
        """Return the study, with all that the form does not say from another one.

        Raises:
            StudyError: If it is no study, in the words that its author needs.
        """
        before, known = Draft.of(base), {each.name: each for each in columns(base)}
        chosen, same_choice = set(self.covariates), set(self.covariates) == set(before.covariates)
        treatment: Treatment = base.schema.treatment
        if self.treatment != treatment.name:
            binary = self._column(known, self.treatment)
            treatment = Treatment(
                *(binary.name, binary.values),
                labels=binary.labels,
                undeclared=binary.missing,
                aliases=binary.aliases,
                strict=binary.strict,
            )
        declared = {each.name for each in base.schema.covariates} if same_choice else chosen
        schema = replace(
            base.schema,
            treatment=treatment,
            outcome=self._column(known, self.outcome),
            covariates=tuple(each for name, each in known.items() if name in declared - {self.outcome, self.treatment}),
        )
        stale: tuple[str, ...] = _OF_TREATMENT if self.treatment != before.treatment else ()
        stale += _OF_OUTCOME if self.outcome != before.outcome else ()
        expected = {name: value for name, value in base.expected.items() if name not in stale}
        if self.outcome_sd != before.outcome_sd:
            expected.pop("outcome_sd", None)
            expected |= {"outcome_sd": self._number("outcome_sd")} if self.outcome_sd else {}
        same_method = self.method == before.method and same_choice
        reasons = base.confounders if same_method or chosen == set(base.confounders) else {}
        return replace(
            base,
            name=self.name,
            question=self.question,
            design=self.design,  # type: ignore[arg-type]  # (the study checks it)
            confounders=reasons,
            estimator=base.estimator if same_method else self._estimator(base),
            schema=schema,
            expected=expected,
            epsilon=base.epsilon if self.epsilon == before.epsilon else self._number("epsilon"),
            delta=base.delta if self.delta == before.delta else self._number("delta"),
        )

    def report(self, study: Study) -> Report:
        """Return what to expect of a study, as the report on its effect will show it."""
        sites, units = int(self._number("sites")), int(self._number("units"))
        if not (1 <= sites <= _MOST_SITES and 2 <= units <= _MOST_UNITS):
            raise StudyError(
                problem=f"A plan is for 1 to {_MOST_SITES} sites of 2 to {_MOST_UNITS:,} units",
                hint="plan others in Python: study.rehearsed(n, sites=50) for sums, or study.rehearsed_pool.",
            )
        summed = study.pooling == "sums"
        sizes = {f"site {place + 1}": units for place in range(sites)}
        effect = study.rehearsed(sites * units, sites=sites) if summed else study.rehearsed_pool(sizes)
        return Report.of(effect, study, date=datetime.now(UTC).date())

    def _estimator(self, base: Study) -> Any:  # noqa: ANN401 (any estimator)
        if not self.method:
            return base.estimator
        if self.method not in METHODS:
            raise StudyError(problem="There is no such method here", hint="choose one from the list.")
        kind: Any = ESTIMATORS[self.method]
        own: Any = base.estimator if type(base.estimator) is kind else None
        for name in [part.name for part in fields(kind) if part.name in _ADJUSTING]:
            held = {getattr(each, "name", each): each for each in getattr(own, name, ())}  # a cut has its edges
            given = {name: [held.get(each, each) for each in self.covariates]}
            return replace(own, **given) if own else kind(**given)
        return own or kind()

    def _number(self, name: str) -> float:
        try:
            value = float(getattr(self, name))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise StudyError(problem=f"{name} must be a number", hint="write it as in 0.5.")
        return value

    @staticmethod
    def _column(known: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 (any column)
        if name not in known:
            raise StudyError(problem="A column that was chosen is not declared", hint="choose one from the list.")
        return known[name]


def columns(study: Study) -> list[Any]:
    """Return the columns that a study declares, but for its treatment."""
    return [study.schema.outcome, *study.schema.covariates]


def outcomes(study: Study) -> list[str]:
    """Return the columns that may be an outcome: its own, and numbers and columns with two values."""
    own = study.schema.outcome.name
    return [each.name for each in columns(study) if each.name == own or isinstance(each, Real | Binary)]


def treatments(study: Study) -> list[str]:
    """Return the columns that may be a treatment: its own, and those with two values."""
    return [study.schema.treatment.name, *(each.name for each in columns(study) if isinstance(each, Binary))]


def error_words(error: DpcausalError) -> str:
    """Return an error in a sentence, with what to do."""
    return f"{error.problem}. {error.hint}" if error.hint else f"{error.problem}."
