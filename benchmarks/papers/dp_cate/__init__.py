"""DP-CATE (Schröder, Melnychuk and Feuerriegel 2025): `python -m benchmarks.papers dp-cate`."""

from benchmarks.papers.dp_cate import figures, page, runs
from benchmarks.papers.paper import Paper

PAPER = Paper(
    name="dp-cate",
    title="Schröder, Melnychuk and Feuerriegel: Differentially private learners for heterogeneous treatment effects "
    "(DP-CATE). ICLR 2025",
    tasks=runs.tasks,
    left_out=runs.left_out,
    result=runs.result,
    text=page.text,
    draw=figures.draw,
    tables=page.tables,
    claims=page.claims,
)
