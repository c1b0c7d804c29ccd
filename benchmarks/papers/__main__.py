"""Run a paper's experiment: `python -m benchmarks.papers private --quick`.

A run can be stopped and started again: it goes on where it stopped. Figures and tables are written into a folder of
their own, and into the documentation only with --publish.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.data.files import add_data_option
from benchmarks.papers.index import FOLDER, PAPERS, index_tables, paper_of
from benchmarks.papers.paper import Paper, parts, run, written
from benchmarks.parts import PUBLISHED

_FIGURES = FOLDER.parent / "figures"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("paper", choices=PAPERS)
    parser.add_argument(
        "--quick", action="store_true", help="under two minutes on two cores: few settings, few repeats"
    )
    add_data_option(parser)
    parser.add_argument("--folder", type=Path, help="where runs, result and figures go (papers-NAME, if left out)")
    parser.add_argument("--workers", type=int, default=2, help="processes; 0 runs everything in this one")
    parser.add_argument("--publish", action="store_true", help="replace the results and figures of the documentation")
    chosen = parser.parse_args(given)
    if chosen.quick and chosen.publish:
        parser.error("a quick run is not published")
    paper = paper_of(chosen.paper)
    folder = chosen.folder or Path(f"papers-{paper.name}{'-quick' if chosen.quick else ''}")
    print(paper.title)
    for line in paper.left_out(chosen.quick, chosen.data):
        print(f"left out: {line}")
    result = run(paper, folder, quick=chosen.quick, data=chosen.data, workers=chosen.workers)
    paper.draw(result, folder)
    print(*paper.text(result), sep="\n")
    for claim in paper.claims(result):
        verdict = "" if chosen.quick else f" ({claim.verdict})"
        print(f"{claim.where}: {claim.says}\n    measured: {claim.measured}{verdict}")
    if chosen.quick:
        print("a quick run has too few repeats for verdicts")
    print(f"figures and result.json are in {folder}")
    if chosen.publish:
        publish(paper, result, folder)


def publish(paper: Paper, result: dict[str, object], folder: Path) -> None:
    """Replace the result, the figures and the tables of the documentation."""
    stored = PUBLISHED / f"papers_{PAPERS[paper.name]}.json"
    stored.write_text((folder / "result.json").read_text(encoding="utf-8"), encoding="utf-8")
    paper.draw(result, _FIGURES)
    tables, files = parts(paper, (FOLDER / f"{paper.name}.md").read_text(encoding="utf-8"), result)
    for file, numbers in files.items():
        (FOLDER / file).write_text(numbers, encoding="utf-8")
    _rewrite(f"{paper.name}.md", tables)
    _rewrite("index.md", index_tables())


def _rewrite(page: str, tables: Mapping[str, Iterable[str]]) -> None:
    text = (FOLDER / page).read_text(encoding="utf-8")
    (FOLDER / page).write_text(written(text, tables), encoding="utf-8")


if __name__ == "__main__":
    main()
