"""How rows become the bounded integers that a query asks for, one file for each proof.

Each file registers its functions with `@answers(SomeQuery)`. An answer names its numbers as the query's coordinates do;
the proof that one unit moves them no further than the query says is on the page of the same name in docs/proofs.
"""

import importlib
import pkgutil

from dpcausal.queries import QUERIES
from dpcausal.vault.context import ANSWERS

__all__ = ["ANSWERS"]

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")

if set(ANSWERS) != set(QUERIES.values()):
    raise ImportError("every query needs one answer, and every answer its query")
