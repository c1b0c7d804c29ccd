"""Effects as functions of covariates that are seen by their scores."""

from collections.abc import Sequence
from dataclasses import replace

from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Basis, Cells
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import RandomisedSource, Source, scaled


def scaled_for(
    basis: Basis | None,
    covariates: Sequence[str],
    source: Source,
    guarantee: Guarantee,
    *,
    propensity: float | None = None,
) -> ScaledCovariates:
    """Return a source with covariates, and those of a basis, by their scores; see `with_scales`.

    Groups have edges anywhere between declared bounds, so scales of their covariates go on to the bounds. Where the
    propensity is known, treatment was randomised, and missing values are not counted.
    """
    own = [column.name for column in basis.reads(source.schema)] if basis is not None else []
    source = source if propensity is None else RandomisedSource(source)
    found = with_scales(source, list(dict.fromkeys([*covariates, *own])), guarantee)
    numbers = {column.name: column for column in found.source.schema.covariates if isinstance(column, Real)}
    whole = {
        name: column.scale.reaching(column.low, column.high)
        for name, column in numbers.items()
        if isinstance(basis, Cells) and name in own and column.scale is not None
    }
    return replace(found, source=scaled(found.source, whole)) if whole else found


def seen_by_scores(basis: Basis, schema: Schema) -> tuple[str, ...]:
    """Return a note on the numbers whose scores an effect is a function of: beyond some values all count alike."""
    if isinstance(basis, Cells):
        return ()
    ends = [
        f"{column.name} {column.reach[0]:.3g} to {column.reach[1]:.3g}"
        for column in basis.reads(schema)
        if isinstance(column, Real) and column.scale is not None
    ]
    return (f"effects are functions of scores, and change only within these values: {', '.join(ends)}",) if ends else ()
