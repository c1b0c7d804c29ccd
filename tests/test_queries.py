import pytest

from dpcausal import queries
from dpcausal.errors import QueryError
from dpcausal.queries import QUERIES, Query


@pytest.mark.parametrize("query", [made() for made in QUERIES.values()])
def test_queries_survive_the_wire(query: Query) -> None:
    assert queries.from_dict(queries.to_dict(query)) == query


@pytest.mark.parametrize("document", [{}, {"query": "everything"}, {"query": None}])
def test_only_listed_queries_exist(document: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        queries.from_dict(document)


def test_a_listed_query_with_foreign_parameters_is_refused() -> None:
    with pytest.raises(QueryError):
        queries.from_dict({"query": "arm_totals", "sensitivity": 0})
