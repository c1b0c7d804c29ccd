"""What the four experiments have in common: tasks that can be stopped and resumed, a result, tables and figures."""

import csv
import io
import json
import multiprocessing
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.progress import progress

Result = dict[str, Any]
"""The figures of a paper's experiment, as JSON."""


@dataclass(frozen=True)
class Task:
    """One piece of work, small enough to be lost when a run is stopped.

    Attributes:
        key: Its name, the same in every run; what was found under it is not computed again.
        work: A function at the top of a module, so that another process can call it.
        arguments: Its arguments. The function returns something that JSON can hold.
    """

    key: str
    work: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of a paper beside what was measured.

    Attributes:
        where: The theorem, figure or table that makes it.
        says: What the paper says.
        measured: What the stored result says, with its numbers.
        verdict: Whether it holds.
    """

    where: str
    says: str
    measured: str
    verdict: str = field(default="holds")

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"expected a verdict among {', '.join(VERDICTS)}, got {self.verdict!r}")


VERDICTS = ("holds", "holds in part", "does not hold", "cannot be checked")


@dataclass(frozen=True)
class Paper:
    """A paper's experiment.

    Attributes:
        name: What the command calls it.
        title: Its authors, title and venue.
        tasks: Return the tasks of the quick or the full run, with the data sets in a folder or without.
        left_out: Return a line for each part that this run leaves out, and why.
        result: Return the figures from what the tasks found, by key.
        text: Return the figures for a terminal.
        draw: Draw the paper's figures from the figures of a run into a folder.
        tables: Return the tables of the documentation's page, by the name of their place on it.
        claims: Return the paper's claims beside what was measured.
    """

    name: str
    title: str
    tasks: Callable[[bool, Path | None], Sequence[Task]]
    left_out: Callable[[bool, Path | None], Iterable[str]]
    result: Callable[[Mapping[str, Any]], Result]
    text: Callable[[Result], Iterable[str]]
    draw: Callable[[Result, Path], None]
    tables: Callable[[Result], Mapping[str, Iterable[str]]]
    claims: Callable[[Result], Sequence[Claim]]


def run(paper: Paper, folder: Path, *, quick: bool, data: Path | None, workers: int = 2) -> Result:
    """Run the tasks that the folder does not hold yet, and return the figures of all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "runs.jsonl"
    found = dict(_kept(kept))
    tasks = paper.tasks(quick, data)
    waiting = [task for task in tasks if task.key not in found]
    if found:
        print(f"{len(tasks) - len(waiting):,} of {len(tasks):,} runs are in {kept}; delete it to begin afresh")
    with kept.open("a", encoding="utf-8") as file:
        file.write("\n" if found else "")  # ends a line that was cut short
        for key, value in progress(_done(waiting, workers), len(waiting), "runs"):
            found[key] = value
            file.write(json.dumps({"key": key, "found": value}) + "\n")
            file.flush()
    result = paper.result({task.key: found[task.key] for task in tasks})
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def written(page: str, tables: Mapping[str, Iterable[str]]) -> str:
    """Return a page with each table written afresh between its two marks."""
    for name, lines in tables.items():
        begin, end = f"<!-- {name} begin -->", f"<!-- {name} end -->"
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = f"{before}{begin}\n\n" + "\n".join(lines) + f"\n\n{end}{after}"
    return page


def shown(page: str, tables: Mapping[str, Iterable[str]]) -> dict[str, Iterable[str]]:
    """Return the tables that a page has marks for."""
    return {name: lines for name, lines in tables.items() if f"<!-- {name} begin -->" in page}


def linked(paper: str, page: str, tables: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return the other tables as CSV, by the file that the page must link to."""
    there = shown(page, tables)
    files = {
        f"tables/{paper}-{name.replace(' ', '-')}.csv": as_csv(tables[name]) for name in tables if name not in there
    }
    if missing := [file for file in files if f"]({file})" not in page]:
        raise ValueError(f"the page on {paper} has neither a table nor a link for {', '.join(missing)}")
    return files


def as_csv(lines: Iterable[str]) -> str:
    """Return a table of the documentation as CSV; of two below each other, both with their heads."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for line in lines:
        if line.startswith("|") and not line.startswith("|---"):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            rows.writerow(cell.strip().replace("\\|", "|").replace("**", "") for cell in cells)
    return text.getvalue()


def claims_table(claims: Iterable[Claim]) -> Iterator[str]:
    """Return the claims that do not simply hold, with our verdicts, as a table of the documentation."""
    claims = list(claims)
    others = [claim for claim in claims if claim.verdict != VERDICTS[0]]
    yield "| where | the paper says | verdict |"
    yield "|---|---|---|"
    for claim in others:
        yield f"| {claim.where} | {claim.says} | {claim.verdict} |"
    yield ""
    yield f"The other {len(claims) - len(others)} of {len(claims)} claims hold."


def claims_measured(claims: Iterable[Claim]) -> Iterator[str]:
    """Return the paper's claims with what we measured, as a table."""
    yield "| where | the paper says | we measured | verdict |"
    for claim in claims:
        yield f"| {claim.where} | {claim.says} | {claim.measured} | {claim.verdict} |"


def parts(paper: Paper, page: str, result: Result) -> tuple[dict[str, Iterable[str]], dict[str, str]]:
    """Return the tables that a paper's page shows, and the CSV files that it links to."""
    tables = {name: list(lines) for name, lines in paper.tables(result).items()}
    claims = paper.claims(result)
    files = linked(paper.name, page, {**tables, "claims measured": list(claims_measured(claims))})
    return {**shown(page, tables), "claims": claims_table(claims)}, files


def _kept(file: Path) -> Iterator[tuple[str, Any]]:
    """What earlier runs found; a last line that was cut short is left out."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            each = json.loads(line)
        except json.JSONDecodeError:
            continue
        yield each["key"], each["found"]


def _done(tasks: Sequence[Task], workers: int) -> Iterator[tuple[str, Any]]:
    if workers == 0 or not tasks:  # here and now, without processes
        yield from map(_one, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(_one, tasks)


def _one(task: Task) -> tuple[str, Any]:
    return task.key, task.work(*task.arguments)
