"""Where the values of covariates are: private medians, outer quantiles and shares of missing values."""

from collections.abc import Mapping
from dataclasses import dataclass

from dpcausal.errors import SchemaError
from dpcausal.estimators.base import epsilon_by_name
from dpcausal.estimators.covariate_scales import counted_numbers, fits
from dpcausal.estimators.missing_covariates import stored_or_new
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.scale_fit import FittedScale
from dpcausal.queries import CovariateCounts
from dpcausal.release import Receipt, format_receipt
from dpcausal.schema.real import Real
from dpcausal.source import Source, guarantee_for
from dpcausal.utils.text import format_number, html_table, table_rows, text_table

_CRITICAL = 1.96


@dataclass(frozen=True)
class CovariateQuantiles:
    """The median, the 5 % and 95 % quantiles and the share of missing values of each number of a schema.

    Quantiles are those of a distribution with three parameters that was fitted to noisy counts. Public: everything here
    is computed from a release.

    Attributes:
        fitted: The distribution of each covariate, and the scale by which models see it.
        receipts: The query and its price.
    """

    fitted: Mapping[str, FittedScale]
    receipts: tuple[Receipt, ...]

    def quantile(self, name: str, p: float) -> float:
        """Return the value of a covariate below which a share p of the units that have one is."""
        return self.fitted[name].quantile(p)

    @property
    def _table(self) -> list[tuple[str, str]]:
        covariates = [(name, _described(fit)) for name, fit in self.fitted.items()]
        return [*covariates, *table_rows("paid", tuple(map(format_receipt, self.receipts)))]

    def __str__(self) -> str:
        return text_table(_TITLE, self._table)

    def _repr_html_(self) -> str:
        """Return the same table as HTML for a notebook."""
        return html_table(_TITLE, self._table)


_TITLE = "Quantiles of covariates"


def _described(fit: FittedScale) -> str:
    """Return the quantiles and the share of missing values of a covariate, with the noise in the share at 95 %."""
    missing = f"missing {100 * fit.missing_share:.1f} % ± {100 * _CRITICAL * fit.missing_sd:.1f}"
    if not fit.found:
        return f"hidden by noise; {missing}"
    low, median, high = (format_number(fit.quantile(p)) for p in (0.05, 0.5, 0.95))
    return f"median {median}, 5 % below {low}, 5 % above {high}; {missing}"


@epsilon_by_name(1, "covariate_quantiles(vault, epsilon=0.2)")
def covariate_quantiles(source: Source, *, epsilon: float, delta: float = 0.0) -> CovariateQuantiles:
    """Release where the values of all covariates are that are numbers and declare no `typical` values.

    Later estimators of the same data set use the answer again for nothing, and so does this function.

    Args:
        source: A vault or a rehearsal.
        epsilon: What it may cost.
        delta: Its delta.

    Example:
        >>> from dpcausal import Binary, Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(Treatment("arm"), Binary("died"), covariates=[Real("age", 0, 120)])
        >>> found = covariate_quantiles(Rehearsal(schema, n=20_000), epsilon=0.2)
        >>> round(found.quantile("age", 0.5)), round(found.quantile("age", 0.95))
        (60, 93)
    """
    guarantee = guarantee_for(source, epsilon, delta)
    names = counted_numbers(source.schema)
    if not names:
        raise SchemaError(
            expected="a schema with a covariate that is a number and declares no typical values",
            got=", ".join(column.name for column in source.schema.covariates) or "no covariates",
            hint="listed values and declared typical values need no query.",
        )
    query = CovariateCounts(names)
    new = narrower(query, source, guarantee, query.own_names[0])
    release = source.release(query, stored_or_new(source, query, new, most=1.0))
    columns = [column for column in source.schema.covariates if isinstance(column, Real) and column.name in names]
    return CovariateQuantiles(fits(release, columns, source.n), (release.receipt,))
