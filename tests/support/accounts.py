"""A plugin of pytest: what each file of tests costs, and which tests marked `costly` need not run.

A costly test runs where something that decides it changed since the costly tests of its file last passed: the import
closure of the file and of its fixtures, the pinned versions, and other files and folders that the mark names, as in
`@pytest.mark.costly("deploy")`. A run in which they all pass writes that to `checks/passed.json`. A run that selects
`costly` by its mark, as `make slow` does, leaves none out.

Imports do not show which files a test opens and which processes it starts. So each costly test is watched where it is
collected and where it runs. It fails where it opens a file of the checkout that decides nothing, or starts another
Python and does not name `src`, unless that runs a module of the closure.
"""

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from checks import passed
from checks.closure import Sources

VARIABLE = "DPCAUSAL_SECONDS"
"""The environment variable that names a file for the CPU seconds of each file of tests, and of collecting them."""

ALWAYS = ("constraints.txt", "pyproject.toml")
"""What decides every test: the pinned versions and the settings."""

IMPORTS = "dpcausal imports"
"""Under this name workers are told what modules import."""


class Accounts:
    """The plugin. What a worker finds out travels to the process that writes it with the report of each test.

    Args:
        leaves_out: Whether costly tests that passed are skipped.
        sources: The checkout.
    """

    def __init__(self, *, leaves_out: bool, sources: Sources) -> None:
        self.leaves_out, self.sources = leaves_out, sources
        self.deciding: dict[Path, set[Path]] = {}
        self.named: dict[Path, set[str]] = defaultdict(set)
        self.opened: dict[Path, list[str]] = {}
        self.start, self.has_started = 0.0, False
        self.seconds: dict[str, float] = defaultdict(float)
        self.spent: dict[str, float] = defaultdict(float)
        self.passed: dict[tuple[str, str, int], set[str]] = defaultdict(set)
        self.failed: set[str] = set()

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what modules import, which takes seconds to find out."""
        costly = [path for path in self.sources.modules.values() if self._may_be_costly(path)]
        self.sources.closure(*costly)
        node.workerinput[IMPORTS] = {module: list(needed) for module, needed in self.sources.found.items()}

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Note what a file of tests opens while it is imported."""
        if isinstance(collector, pytest.Module) and self._may_be_costly(collector.path):
            WATCH.begin(self.sources, set(), names_all=True)
        try:
            return (yield)
        finally:
            if found := WATCH.end():
                self.opened[collector.path] = found

    def _may_be_costly(self, path: Path) -> bool:
        return path.name.startswith("test_") and b"costly" in (self.sources.root / path).read_bytes()

    @pytest.hookimpl(tryfirst=True)  # before any are left out by their names
    def pytest_collection_modifyitems(self, config: pytest.Config, items: Sequence[pytest.Item]) -> None:
        """Skip what passed, and note of each file what its costly tests depend on and how many they are.

        Where single tests are named, how many others a file has is not known, and none of them passes it.
        """
        names_tests = any("::" in each for each in config.args)
        costly = [item for item in items if item.get_closest_marker("costly") and not item.get_closest_marker("slow")]
        count = Counter(item.path for item in costly)
        for item in costly:
            self.named[item.path].update(*(mark.args for mark in item.iter_markers("costly")))
        self.deciding = {path: self.files(path, self.named[path]) for path in count}
        digests = {path: self.sources.digest(files) for path, files in self.deciding.items()}
        for item in costly:
            file, current = item.path.relative_to(self.sources.root), digests[item.path]
            last = passed.last_pass(file.as_posix())
            if self.leaves_out and last and last.digest == current:
                reason = f"passed on {last.date}, and nothing that it needs changed since; `make slow` runs it"
                item.add_marker(pytest.mark.skip(reason=reason))
            number = 0 if names_tests else count[item.path]
            item.user_properties.append(("costly", [file.as_posix(), current, number]))

    def files(self, path: Path, others: Iterable[str]) -> set[Path]:
        """Return all that decides a file of tests."""
        root, file = self.sources.root, path.relative_to(self.sources.root)
        named = [root / name for name in (*ALWAYS, *others)]
        inside = [each for place in named for each in ([place] if place.is_file() else place.rglob("*"))]
        other = {each.relative_to(root) for each in inside if each.is_file() and each.suffix != ".pyc"}
        return self.sources.needed(file, *self.sources.conftests(file)) | other

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Watch a costly test, with its fixtures."""
        if item.path in self.deciding and item.get_closest_marker("costly") and not item.get_closest_marker("skip"):
            WATCH.begin(self.sources, self.deciding[item.path], names_all="src" in self.named[item.path])
            WATCH.hear_of(self.opened.get(item.path, []))
        try:
            return (yield)
        finally:
            WATCH.end()

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
            if found := WATCH.end():
                report.outcome, report.longrepr = "failed", f"its mark costly(…) must also name: {', '.join(found)}"
            report.user_properties.append(("seconds", passed.cpu_seconds() - self.start))
            if not self.has_started:
                report.user_properties.append(("collection", self.start))
            self.has_started = True
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what reports say."""
        file, told = report.nodeid.partition("::")[0], cast("dict[str, Any]", dict(report.user_properties))
        self.seconds["collection"] += told.get("collection", 0)
        (self.spent if "costly" in told else self.seconds)[file] += told.get("seconds", 0)
        if report.failed:
            self.failed.add(file)
        if "costly" in told and report.when == "call" and report.passed:
            self.passed[tuple(told["costly"])].add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write it down, in the process that has all reports."""
        if hasattr(session.config, "workerinput"):
            return
        for (file, current, count), tests in self.passed.items():
            if len(tests) == count and file not in self.failed:
                passed.record_pass(file, current, self.spent[file])
        if VARIABLE in os.environ:
            told = {"tests": self.seconds, "costly": self.spent}
            Path(os.environ[VARIABLE]).write_text(json.dumps(told), encoding="utf-8")


class Watch:
    """What a test opens and starts. Python calls it for each file and process, and it looks while a test is watched."""

    def __init__(self) -> None:
        self.sources, self.deciding, self.names_all = Sources(), set[Path](), False
        self.found: set[str] | None = None
        self.is_told = False

    def begin(self, sources: Sources, deciding: set[Path], *, names_all: bool) -> None:
        """Watch from now on.

        Args:
            sources: The checkout.
            deciding: The files of it that decide the test.
            names_all: Whether all of the package does, as it may where another process runs it.
        """
        self.sources, self.deciding, self.names_all, self.found = sources, deciding, names_all, set()
        if not self.is_told:
            sys.addaudithook(self)  # for good: there is no way to take one out
            self.is_told = True

    def end(self) -> list[str]:
        """Watch no longer, and return what the mark should have named."""
        found, self.found = self.found, None
        return sorted(found or ())

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Hear of an event of the interpreter."""
        if self.found is None:
            return
        if event == "open" and not str(args[0]).endswith((".py", ".pyc")):  # these are imported
            self._opened(args[0])
        if event == "subprocess.Popen":
            words = [os.fsdecode(word) for word in args[1]]
            self.hear_of(words)
            modules = {self.sources.modules.get(word) for word in words}
            if _starts_python(words) and not self.names_all and self.deciding.isdisjoint(modules):
                self.found.add("src")

    def hear_of(self, names: Iterable[str]) -> None:
        """Note what is a file among some names."""
        for name in names:
            self._opened(Path(self.sources.root, name))

    def _opened(self, name: object) -> None:
        """Note a file of the checkout that decides nothing."""
        if self.found is None or not isinstance(name, str | bytes | os.PathLike):
            return
        path = Path(os.path.abspath(os.fsdecode(name)))  # noqa: PTH100 (links are not followed)
        if path.is_relative_to(self.sources.root):
            file = path.relative_to(self.sources.root)
            is_hidden = any(part[0] == "." and part != ".ci" for part in file.parts)  # caches and environments
            is_file = os.path.isfile(path)  # noqa: PTH113 (a word of a command may be too long for a path)
            if file not in self.deciding and not is_hidden and is_file:
                self.found.add(file.as_posix())


def _starts_python(words: Iterable[str]) -> bool:
    """Return whether a command is one of Python, or of this environment, maybe by way of a shell."""
    programs = [Path(part) for word in words for part in word.split()]
    here = Path(sys.executable).parent
    return any(each.name.startswith(("python", "dpcausal")) or each.parent == here for each in programs)


WATCH = Watch()
