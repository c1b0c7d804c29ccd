"""Effects as functions of covariates that are seen by their scores."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.guarantee import Guarantee
from dpcausal.queries import Basis, Cells, Polynomial
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, scaled
from dpcausal.utils.arrays import Array

_ENDS, _MIDDLE = 0.8, 0.2
"""How far a straight line is off at the ends of a bent one, and in the middle: in simulated trials with skewed
covariates, as a share of its slope times the root of the share of variance in which shapes differ."""

_NOTED = 0.01
"""From this share on readers are told that the shape of a scale matters."""


def scaled_for(
    basis: Basis | None, covariates: Sequence[str], source: Source, guarantee: Guarantee
) -> ScaledCovariates:
    """Return a source with covariates, and those of a basis, by their scores; see `with_scales`.

    Groups have edges anywhere between declared bounds, so scales of their covariates go on to the bounds.
    """
    own = [column.name for column in basis.reads(source.schema)] if basis is not None else []
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


def error_of_shapes(basis: Basis, scales: ScaledCovariates, squares: Array) -> Array:
    """Return a covariance of weights for effects that are straight in a number, or in its logarithm, not in its score.

    A score without a declared shape is halfway between both. Where an effect has a slope in the score, a line in either
    differs from it by up to about the root of the share of its variance that is not in the score, times the slope, at
    the ends of the scale, and by less in the middle. Only a basis of straight lines cannot bend.

    Args:
        squares: The expected square of each weight.
    """
    names, schema = basis.names(scales.source.schema), scales.source.schema
    found = np.zeros(len(names))
    if isinstance(basis, Polynomial) and basis.degree == 1:
        for column in basis.reads(schema):
            if column.name in scales.scales:
                place = names.index(column.name)
                error = scales.scales[column.name].shape_share * float(squares[place])
                found[place] += _ENDS**2 * error
                found[0] += _MIDDLE**2 * error
    return np.diag(found)


def seen_shapes(basis: Basis, scales: ScaledCovariates) -> tuple[str, ...]:
    """Return a note on the numbers in whose scores an effect is straight, which may not be straight in their values."""
    if not (isinstance(basis, Polynomial) and basis.degree == 1):
        return ()
    bent = [name for name in basis.covariates if name in scales.scales and scales.scales[name].shape_share > _NOTED]
    if not bent:
        return ()
    text = f"effects are straight in the scores of {', '.join(bent)}, halfway between values and logarithms; intervals "
    return (text + "allow for either. Declare typical and transform if you know which of them is straight",)
