"""What questions have in common that are asked with models of the table that are public already."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpcausal.errors import QueryError
from dpcausal.queries.query import Query
from dpcausal.queries.scores import check_coefficients, kept_within, score_columns
from dpcausal.schema import Schema
from dpcausal.treatment import TableColumn
from dpcausal.validation import is_number


@dataclass(frozen=True)
class Modelled(Query):
    """A question asked with a propensity score and a regression of the outcome in each arm.

    Attributes:
        covariates: The covariates of all three models.
        propensity: The coefficients of the propensity, in the order of `feature_names`, as a logistic query's.
        control: The coefficients of the regression in the control arm, of features divided as for the propensity; it
            gives the outcome in half ranges from the middle of its range.
        treated: The same in the treated arm.
    """

    covariates: Sequence[str]
    propensity: Sequence[float]
    control: Sequence[float]
    treated: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "covariates", self.covariates if isinstance(self.covariates, str) else tuple(self.covariates)
        )
        for model in ("propensity", "control", "treated"):
            object.__setattr__(self, model, kept_within(getattr(self, model)))

    def check_models(self, schema: Schema) -> None:
        """Raise unless every model has a coefficient for each feature."""
        for model in (self.propensity, self.control, self.treated):
            check_coefficients(model, self.covariates, schema)

    def reads(self, schema: Schema) -> tuple[TableColumn, ...]:
        """The columns that the answer depends on."""
        return *score_columns(self.covariates, schema), schema.outcome


def check_limits(clip: object, limit: object) -> None:
    """Raise unless propensities and what is added up are kept within limits."""
    if not (is_number(clip) and is_number(limit) and 1e-3 <= clip < 0.5 and 0.5 <= limit <= 1e4):  # type: ignore[operator]
        raise QueryError(
            expected="a clip from 0.001 to below 0.5 and a limit from 0.5 to 10,000",
            got=f"clip={clip!r}, limit={limit!r}",
            hint="a clip of 0.05 and a limit of 1 to 5 are usual; a larger limit needs more noise.",
        )
