"""A plugin of pytest: what each file of tests costs, and which tests marked `costly` need not run.

A costly test runs where something that decides it changed since the costly tests of its file last passed: the import
closure of the file and of its fixtures, the pinned versions, and other files and folders that the mark names, as in
`@pytest.mark.costly("deploy")`. A run in which they all pass writes that to `checks/passed.json`. A run that selects
`costly` by its mark, as `make slow` does, leaves none out.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from checks import passed
from checks.closure import Sources

VARIABLE = "DPCAUSAL_SECONDS"
"""The environment variable that names a file for the CPU seconds of each file of tests, and of collecting them."""


class Accounts:
    """The plugin. What a worker finds out travels to the process that writes it with the report of each test.

    Args:
        leaves_out: Whether costly tests that passed are skipped.
        sources: The checkout.
    """

    def __init__(self, *, leaves_out: bool, sources: Sources) -> None:
        self.leaves_out, self.sources = leaves_out, sources
        self.start, self.has_started = 0.0, False
        self.seconds: dict[str, float] = defaultdict(float)
        self.spent: dict[str, float] = defaultdict(float)
        self.passed: dict[tuple[str, str, int], set[str]] = defaultdict(set)
        self.failed: set[str] = set()

    @pytest.hookimpl(tryfirst=True)  # before any are left out by their names
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Skip what passed, and note of each file what its costly tests depend on and how many they are."""
        costly = [item for item in items if item.get_closest_marker("costly") and not item.get_closest_marker("slow")]
        count = Counter(item.path for item in costly)
        others: dict[Path, set[str]] = defaultdict(set)
        for item in costly:
            others[item.path].update(*(mark.args for mark in item.iter_markers("costly")))
        digests = {path: self.digest(path, others[path]) for path in count}
        for item in costly:
            file, current = item.path.relative_to(self.sources.root), digests[item.path]
            last = passed.last_pass(file.as_posix())
            if self.leaves_out and last and last.digest == current:
                reason = f"passed on {last.date}, and nothing that it needs changed since; `make slow` runs it"
                item.add_marker(pytest.mark.skip(reason=reason))
            item.user_properties.append(("costly", [file.as_posix(), current, count[item.path]]))

    def digest(self, path: Path, others: Iterable[str]) -> str:
        """Return the digest of all that decides a file of tests."""
        root, file = self.sources.root, path.relative_to(self.sources.root)
        named = [root / name for name in ("constraints.txt", *others)]
        inside = [each for place in named for each in ([place] if place.is_file() else place.rglob("*"))]
        other = [each.relative_to(root) for each in inside if each.is_file() and each.suffix != ".pyc"]
        return self.sources.digest(file, *self.sources.conftests(file), other=other)

    def pytest_runtest_logstart(self) -> None:
        """Start the clock of a test."""
        self.start = passed.cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write the seconds of a test into its last report; the first test also tells those of collecting."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("seconds", passed.cpu_seconds() - self.start))
            if not self.has_started:
                report.user_properties.append(("collection", self.start))
            self.has_started = True
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what reports say."""
        file, told = report.nodeid.partition("::")[0], cast("dict[str, Any]", dict(report.user_properties))
        self.seconds["collection"] += told.get("collection", 0)
        self.seconds[file] += told.get("seconds", 0)
        if report.failed:
            self.failed.add(file)
        if "costly" in told and report.when == "call" and report.passed:
            self.passed[tuple(told["costly"])].add(report.nodeid)
        if "costly" in told and report.when == "teardown":
            self.spent[file] += told["seconds"]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write it down, in the process that has all reports."""
        if hasattr(session.config, "workerinput"):
            return
        for (file, current, count), tests in self.passed.items():
            if len(tests) == count and file not in self.failed:
                passed.record_pass(file, current, self.spent[file])
        if VARIABLE in os.environ:
            Path(os.environ[VARIABLE]).write_text(json.dumps(self.seconds), encoding="utf-8")
