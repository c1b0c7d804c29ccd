"""The whole audit."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from dpcausal.audit.finding import Finding
from dpcausal.audit.report import AuditReport
from dpcausal.audit.tasks import EFFORTS, Task, tasks
from dpcausal.errors import QueryError

Watcher = Callable[[int, int, list[Finding]], None]
"""Called after each task with how many are done, how many there are, and what the last one found."""


def audit(*, effort: str = "full", workers: int | None = None, watcher: Watcher | None = None) -> AuditReport:
    """Try to break every guarantee, and report how far that went.

    Checks run in processes of their own: in a script, call it under `if __name__ == "__main__":`. With one worker they
    run in this process.

    Args:
        effort: `smoke` makes every check on every estimator once, in a few minutes; `quick` takes some minutes, and
            `full` about forty on two cores.
        workers: How many processes to use; as many as there are cores, if left out.
        watcher: Called as results come in.
    """
    if effort not in EFFORTS:
        raise QueryError(expected=f"an effort out of {', '.join(EFFORTS)}", got=repr(effort), hint="quick is usual.")
    start = time.monotonic()
    todo = list(tasks(EFFORTS[effort]))
    found: list[list[Finding]] = [[] for _ in todo]
    for done, (place, findings) in enumerate(_outcomes(todo, workers or os.cpu_count() or 1), start=1):
        found[place] = findings
        if watcher:
            watcher(done, len(todo), findings)
    return AuditReport(tuple(finding for each in found for finding in each), effort, time.monotonic() - start)


def _outcomes(todo: Sequence[Task], workers: int) -> Iterator[tuple[int, list[Finding]]]:
    """Yield the findings of each task as it ends, with its place in the list."""
    if workers == 1:
        yield from ((place, _outcome(task)) for place, task in enumerate(todo))
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        running = {pool.submit(task): place for place, task in enumerate(todo)}
        for future in as_completed(running):
            yield running[future], _outcome(future.result)
    finally:
        pool.shutdown(cancel_futures=True)


def _outcome(result: Task) -> list[Finding]:
    try:
        return result()
    except Exception as error:  # noqa: BLE001 (a check that breaks down has not passed)
        detail = "".join(traceback.format_exception(error, limit=-3))
        return [Finding("error", "a check broke down", passed=False, detail=detail)]
