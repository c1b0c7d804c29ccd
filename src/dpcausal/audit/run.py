"""Runs the whole audit."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed

from dpcausal.audit.finding import Finding
from dpcausal.audit.report import AuditReport
from dpcausal.audit.tasks import FULL, QUICK, tasks

Watcher = Callable[[int, int, list[Finding]], None]
"""Called after each task with how many are done, how many there are, and what the last one found."""


def audit(*, quick: bool = False, workers: int | None = None, watcher: Watcher | None = None) -> AuditReport:
    """Try to break every guarantee, and report how far that went.

    Checks run in processes of their own: in a script, call it under `if __name__ == "__main__":`.

    Args:
        quick: A short version, in some minutes; the full one takes about forty on two cores.
        workers: How many processes to use; as many as there are cores, if left out.
        watcher: Called as results come in.
    """
    start = time.monotonic()
    todo = list(tasks(QUICK if quick else FULL))
    found: list[list[Finding]] = [[] for _ in todo]
    pool = ProcessPoolExecutor(workers or os.cpu_count(), multiprocessing.get_context("spawn"))
    try:
        running = {pool.submit(task): place for place, task in enumerate(todo)}
        for done, future in enumerate(as_completed(running), start=1):
            found[running[future]] = _outcome(future)
            if watcher:
                watcher(done, len(todo), found[running[future]])
    finally:
        pool.shutdown(cancel_futures=True)
    return AuditReport(tuple(finding for each in found for finding in each), quick, time.monotonic() - start)


def _outcome(future: Future[list[Finding]]) -> list[Finding]:
    try:
        return future.result()
    except Exception as error:  # noqa: BLE001 (a check that breaks down has not passed)
        detail = "".join(traceback.format_exception(error, limit=-3))
        return [Finding("error", "a check broke down", passed=False, detail=detail)]
