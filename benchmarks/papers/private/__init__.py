"""PrivATE (Yuan et al. 2025): `python -m benchmarks.papers private`."""

from benchmarks.papers.paper import Paper
from benchmarks.papers.private.claims import claims
from benchmarks.papers.private.experiment import left_out, result, tasks
from benchmarks.papers.private.figures import draw
from benchmarks.papers.private.tables import tables, text

PAPER = Paper(
    name="private",
    title="PrivATE (Yuan et al. 2025): differentially private average treatment effects of observational data",
    tasks=tasks,
    left_out=left_out,
    result=result,
    text=text,
    draw=draw,
    tables=tables,
    claims=claims,
)
