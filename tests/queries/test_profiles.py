"""Profiles of covariates, as people give them, become the integers of a table."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpcausal import Binary, Real
from dpcausal.errors import QueryError
from dpcausal.queries.profiles import codes_of
from dpcausal.schema.columns import indicator_of

AGE = Real("age", 18, 90)
COLUMNS = (AGE, Binary("sex"), indicator_of(AGE))


@pytest.mark.parametrize(
    "profiles",
    [
        {"age": [20, math.nan], "sex": [0, 1]},
        {"age": [20, None], "sex": [0, 1], "age is missing": [0, 1]},
        pd.DataFrame({"age": [20, None], "sex": [0, 1]}),
        pa.table({"age": [20.0, None], "sex": [0, 1]}),
        [[20, 0], [math.nan, 1]],
        np.array([[20, 0, 0], [math.nan, 1, 1]]),
    ],
    ids=["mapping", "with the indicator", "frame", "Arrow", "lines", "array with the indicator"],
)
def test_values_tell_whether_a_number_is_missing(profiles: object) -> None:
    """Whether a model has an indicator depends on noisy counts, so that nobody knows to give one."""
    codes = codes_of(profiles, COLUMNS)
    assert list(codes) == ["age", "sex", "age is missing"]
    assert codes["age is missing"].tolist() == [0, 1]
    assert codes["sex"].tolist() == [0, 1]


def test_a_covariate_that_is_left_out_is_named() -> None:
    with pytest.raises(QueryError, match="each of age, sex, not columns sex"):
        codes_of({"sex": [0, 1]}, COLUMNS)
