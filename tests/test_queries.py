import pytest

from dpcausal import queries
from dpcausal.errors import QueryError
from dpcausal.queries import QUERIES, ArmMoments, ArmTotals, Cut, Query, StratumContrasts


@pytest.mark.parametrize("query", [ArmTotals(), ArmMoments(), StratumContrasts([Cut("x"), Cut("age", [30, 40.5])], 3)])
def test_queries_survive_the_wire(query: Query) -> None:
    assert queries.from_dict(queries.to_dict(query)) == query


def test_every_query_is_tried_here() -> None:
    assert set(QUERIES) == {"arm_totals", "arm_moments", "stratum_contrasts"}


@pytest.mark.parametrize("document", [{}, {"query": "everything"}, {"query": None}])
def test_only_listed_queries_exist(document: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        queries.from_dict(document)


def test_a_listed_query_with_foreign_parameters_is_refused() -> None:
    with pytest.raises(QueryError):
        queries.from_dict({"query": "arm_totals", "sensitivity": 0})
