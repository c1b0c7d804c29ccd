"""An engine whose long passes show how far they are, to the person who runs it."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from dpcausal.schema.schema import Schema
from dpcausal.vault.engines import Engine, ExactInts, ObservedEngine

BAR_DELAY = 2.0
"""Seconds that a pass may take without a bar."""

_REFRESH_INTERVAL = 0.2

Share = Callable[[int], float | None]
"""The share of the pass under way that is done, given the number of units; None where nobody knows."""


class ProgressEngine(ObservedEngine):
    """An engine with a bar on stderr for each pass that takes long.

    A bar tells the public number of units, a share and time. It is drawn from a thread of its own, and goes when the
    pass is over.
    """

    __slots__ = ("_share", "_units")

    def __init__(self, engine: Engine, share: Share = lambda _: None) -> None:
        super().__init__(engine)
        self._share, self._units = share, 0

    def aggregate(self, cells: Mapping[str, int], sums: Sequence[str], *, whole: bool = False) -> ExactInts:
        """Return sums over groups of rows; see `Engine.aggregate`."""
        totals = super().aggregate(cells, sums, whole=whole)
        if whole and "1" in sums:  # the number of all units is public, that of units in the comparison may not be
            self._units = int(totals[..., list(sums).index("1")].sum())
        return totals

    def with_schema(self, schema: Schema) -> Self:
        """Return the same table seen through another schema; see `with_schema` of the engines."""
        other = super().with_schema(schema)
        other._share = getattr(other._engine, "share", self._share)  # noqa: SLF001 (its own copy)
        return other

    @contextmanager
    def _reading(self, verb: str) -> Iterator[None]:  # noqa: ARG002 (every reading has the same bar)
        """Show a bar while a reading takes long."""
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(over,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _watch(self, over: threading.Event) -> None:
        if over.wait(BAR_DELAY):
            return
        from rich.console import Console  # noqa: PLC0415 (only where somebody waits)
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            line = progress.add_task(f"reading {self._units:,} units" if self._units else "reading", total=None)
            while not over.wait(_REFRESH_INTERVAL):
                share = self._share(self._units)
                if share is not None:
                    progress.update(line, total=1.0, completed=share)

    def __repr__(self) -> str:
        return repr(self._engine)
