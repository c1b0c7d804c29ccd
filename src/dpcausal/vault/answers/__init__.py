"""How rows become the bounded integers that a query asks for.

A query that is described as sums is added up as its description says (`vault.adding`). Others have a file each, which
registers its functions with `@answers(SomeQuery)`. An answer names its numbers as the query's coordinates do; the proof
that one unit moves them no further than the query says is on the page of the same name in docs/proofs.
"""

from dpcausal.queries import QUERIES
from dpcausal.queries.summing import SummingQuery
from dpcausal.utils.discovery import modules_in
from dpcausal.vault import adding
from dpcausal.vault.context import ANSWERS, answers

__all__ = ["ANSWERS"]

list(modules_in(__name__))  # each registers its answers as it is imported

for _query in QUERIES.values():
    if issubclass(_query, SummingQuery) and _query not in ANSWERS:
        answers(_query, kernel=adding.runs_kernel)(adding.answer)

if set(ANSWERS) != set(QUERIES.values()):
    raise ImportError("every query needs one answer, and every answer its query")
