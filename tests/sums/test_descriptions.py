"""Descriptions of queries give the integers of their answers, as SQL on every engine and by NumPy."""

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest

from dpcausal.errors import TableError
from dpcausal.queries import QUERIES, seen_by
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.schema import Protects
from dpcausal.sums.adding import addends
from dpcausal.sums.evaluation import evaluate
from dpcausal.sums.printing import is_printable, sql
from dpcausal.vault.coercion import column_names
from dpcausal.vault.table import open_table
from tests.sums.agreement import NORMS, described, disagreements, uneven
from tests.support.conformance.schemas import random_case
from tests.support.conformance.sums import OpenEngine
from tests.support.open_engines import OPENED, NotHereError
from tests.support.slow import marked, sampled
from tests.vault.sql_texts import THREE_ARMS as SCHEMA
from tests.vault.sql_texts import extremes

if TYPE_CHECKING:
    from dpcausal.sums.numbers import Number

NO_SUMS = {
    "stratum_contrasts",
    "stratum_matches",
    "output_perturbed_logistic",
    "bounded_influence_logistic",
    "objective_perturbed_logistic",
    "all_units_logistic",
    "observed_logistic",
    "matched_contrast",
    "noisy_matched_contrast",
    "effect_weights",
    "effect_moments",
    "look_metrics",
    "look_moments",
    "weighted_regression_moments",
}
"""Answers that are no sums of bounded numbers over units. Four are: one of functions of covariates that are tabulated
otherwise, two whose bound is that of all looks together, and one of vectors that are bounded as a whole."""


THREE_ARMS = replace(SCHEMA, entry="ward")  # by which looks are scheduled


def short(queries: Iterable[SummingQuery]) -> list[SummingQuery]:
    """Return queries of which only one for each class has the long tables of a score."""
    chosen = {
        repr(query) if not (hasattr(query, "coefficients") or hasattr(query, "propensity")) else type(query): query
        for query in queries
    }
    return list(chosen.values())


@cache
def kinds() -> list[SummingQuery]:
    return list(described(THREE_ARMS))


def test_descriptions_give_the_integers_of_answers_for_far_cells_of_three_arms() -> None:
    queries = [*short(kinds()), *extremes(THREE_ARMS)]
    assert disagreements(open_table(uneven(), THREE_ARMS), THREE_ARMS, queries, ["l2"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("protects", get_args(Protects))
def test_every_description_gives_the_integers_of_the_answer(protects: Protects) -> None:
    schema = replace(THREE_ARMS, protects=protects)
    assert disagreements(open_table(uneven(), schema), schema, [*described(schema), *extremes(schema)]) == []


@pytest.mark.parametrize("place", sampled(range(60), every=20))
def test_descriptions_give_the_integers_of_answers_for_random_schemas(place: int) -> None:
    case = random_case(place)
    try:
        engine = open_table(case.table, case.schema)
    except TableError:
        pytest.skip("a column of a type that is not read")
    norm = NORMS[place % 2]
    assert disagreements(engine, case.schema, short(described(case.schema)), [norm]) == []


@pytest.fixture(params=["duckdb", "postgresql", "clickhouse", marked("spark")], scope="module")
def opened(request: pytest.FixtureRequest) -> Iterator[OpenEngine]:
    with ExitStack() as stack:
        try:
            engine = stack.enter_context(OPENED[request.param]())
        except (NotHereError, ImportError) as error:
            pytest.skip(str(error))
        yield engine


@pytest.mark.xdist_group("postgresql")
def test_every_number_of_every_description_is_the_same_on_every_engine(opened: OpenEngine) -> None:
    numbers: dict[str, Number] = {}
    for query in (*kinds(), *extremes(THREE_ARMS)):
        for sums in query.sums(seen_by(query, THREE_ARMS), "record", "l2"):
            wanted = addends(sums)
            parts = (*wanted.factors, *wanted.numbers)
            numbers |= {sql(number): number for number in parts if is_printable(number)}
    units = open_table(uneven(), THREE_ARMS).collect(column_names(THREE_ARMS), 10**6)
    lines = evaluate(list(numbers.values()), units)
    found = opened(uneven(), THREE_ARMS).aggregate({"arm": 4, "covariate_4": 3}, list(numbers))
    place = 3 * units["arm"] + units["covariate_4"]
    expected = np.array([[int(line[place == cell].sum()) for line in lines] for cell in range(12)], dtype=object)
    differing = (found.reshape(12, -1) != expected).any(axis=0)
    assert [text for text, differs in zip(numbers, differing, strict=True) if differs] == []
    assert len(numbers) > 100


def test_only_what_is_no_sum_over_units_has_no_description() -> None:
    by_name = {name: any(isinstance(each, kind) for each in kinds()) for name, kind in QUERIES.items()}
    assert {name for name, is_described in by_name.items() if not is_described} == NO_SUMS


def test_descriptions_label_each_of_their_cells() -> None:
    last = {type(query): query for query in kinds()}
    for query in last.values():
        for sums in query.sums(seen_by(query, THREE_ARMS), "record", "l2"):
            assert math.prod(sums.cells.values()) == len(sums.labels)
