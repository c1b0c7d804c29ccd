"""A plugin of pytest that keeps the collection of ten thousand tests short.

Each worker collects all of them. Only files that hold an example are imported for examples. The first worker compiles
what is imported, and the others begin when it has collected. What collecting leaves stays for the whole run, so the
garbage collector does not look at it again.
"""

import gc
import time
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

COLLECTED = "dpcausal collected"
"""Under this name a worker is given the file to write when it has collected."""

PATIENCE = 300.0
"""Seconds after which the other workers begin all the same."""


class Collecting:
    """The plugin, in the process that starts workers and in each worker."""

    def __init__(self) -> None:
        self.folder: TemporaryDirectory[str] | None = None

    def pytest_configure_node(self, node: Any) -> None:
        """Start the first worker, and another one when that has collected."""
        if self.folder is None:
            self.folder = TemporaryDirectory()
            node.workerinput[COLLECTED] = str(Path(self.folder.name, "collected"))
            return
        end = time.monotonic() + PATIENCE
        while not Path(self.folder.name, "collected").exists() and time.monotonic() < end:
            time.sleep(0.1)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Leave out what is collected from what the garbage collector looks at."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.enable()
            if file := getattr(session.config, "workerinput", {}).get(COLLECTED):
                Path(file).touch()

    def pytest_unconfigure(self) -> None:
        """Let what was left out be freed."""
        gc.unfreeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Collect examples from files that hold one."""
        found = yield
        if b">>>" in file_path.read_bytes():
            return found
        return [each for each in found if type(each) is pytest.Module]
