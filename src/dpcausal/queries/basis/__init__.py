"""Public functions of covariates: an effect that varies between units is a weighted sum of them.

Functions are tabulated, and evaluated in integers, so that a table's unit and a public profile get the same numbers.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.errors import QueryError
from dpcausal.queries.basis.fourier import Fourier
from dpcausal.queries.basis.functions import LENGTH, Basis
from dpcausal.queries.basis.partitions import Cells
from dpcausal.queries.basis.polynomial import Polynomial
from dpcausal.queries.basis.spline import Spline
from dpcausal.queries.profiles import Codes
from dpcausal.schema.schema import Schema

__all__ = ["LENGTH", "Basis", "Cells", "Fourier", "Polynomial", "Spline", "basis_of", "basis_values"]

_KINDS: dict[str, type[Any]] = {
    "polynomial": Polynomial,
    "spline": Spline,
    "fourier": Fourier,
    "cells": Cells,
}


def basis_of(given: object) -> Any:  # noqa: ANN401 (one of several classes)
    """Return a basis, from itself or from its plain values."""
    if type(given) in _KINDS.values():
        return given
    kind = given.get("kind") if isinstance(given, Mapping) else None
    if isinstance(given, Mapping) and kind in _KINDS:
        made = _KINDS[kind]
        parts = {key: value for key, value in given.items() if key != "kind"}
        if set(parts) <= set(made.__dataclass_fields__):
            return made(**parts)
    raise QueryError(
        expected="a basis: Polynomial, Spline, Fourier or Cells",
        got=repr(given),
        hint='write for instance Spline(["age"]).',
    )


def basis_values(basis: Basis, codes: Codes, schema: Schema) -> NDArray[np.float64]:
    """Return the functions of some profiles, one line a profile."""
    values: NDArray[np.float64] = basis.ticks(codes, schema).T / LENGTH
    return values
