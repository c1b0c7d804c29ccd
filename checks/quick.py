"""The tests that a change may break, the nearest first, for about three minutes: `make quick`.

The change is what differs from where the branch left `main`, or what `make quick CHANGED="path path"` names. A file of
tests is near where few imports lie between it and the change. Files are taken until their seconds in
`checks/seconds.json` fill the time; one that was never measured counts as a second. Those that are left are counted,
and `make check` runs them. Tests marked `slow` or `costly` are left out.
"""

import argparse
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from checks import passed
from checks.closure import ROOT, Sources

SECONDS = 150.0
"""CPU time of the tests. Starting and collecting take the rest of three minutes."""

FIXTURES = 10
"""So many imports farther counts what only the fixtures of a folder need."""

PYTEST = ("-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-m", "not slow and not costly")


def changed_files() -> list[Path]:
    """Return what changed since the branch left `main`, and what is not committed."""
    start = _git("merge-base", "HEAD", "main")[0]
    return [Path(name) for name in _git("diff", "--name-only", start) + _git("ls-files", "-o", "--exclude-standard")]


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], check=True, cwd=ROOT, capture_output=True, text=True)  # noqa: S603, S607
    return done.stdout.splitlines()


def nearest(changed: Collection[Path], sources: Sources) -> dict[Path, int]:
    """Return the files of tests that need a changed file, the nearest first, with the number of imports between."""
    modules = {path for path in sources.modules.values() if path in changed}
    for folder, data in sources.data.items():
        if not {*data}.isdisjoint(changed):
            modules |= {path for path in sources.modules.values() if path.parent == folder}
    found = {path: 0 for path in modules if path.parts[0] == "src"}  # for the examples in them
    for test in (path for path in sources.modules.values() if path.name.startswith("test_")):
        own, fixtures = sources.closure(test), sources.closure(*sources.conftests(test))
        distances = [own[path] for path in modules & own.keys()]
        distances += [FIXTURES + fixtures[path] for path in modules & fixtures.keys()]
        if distances:
            found[test] = min(distances)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def within(tests: Collection[Path], seconds: Mapping[str, float], limit: float = SECONDS) -> list[Path]:
    """Return the tests, in their order, that fit into the time; what was never measured counts as one second."""
    chosen, spent = [], 0.0
    for test in tests:
        cost = seconds.get(test.as_posix(), 1.0)
        if spent + cost <= limit:
            chosen.append(test)
            spent += cost
    return chosen


def main() -> None:
    """Run the tests of a change."""
    parser = argparse.ArgumentParser(prog="python -m checks.quick", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("changed", nargs="*", type=Path, help="files that changed; by default as git says")
    parser.add_argument("--list", action="store_true", help="only print the files of tests and their seconds")
    chosen = parser.parse_args()
    seconds = passed.seconds_of_files()
    tests = nearest(chosen.changed or changed_files(), Sources())
    fitting = within(tests, seconds)
    left = [test for test in tests if test not in fitting]
    if not fitting:
        sys.exit("quick: no test needs what changed")
    code = 0
    if chosen.list:
        for test in fitting:
            print(f"{tests[test]:3} {seconds.get(test.as_posix(), 1.0):6.1f} s  {test}")
    else:
        code = subprocess.run([sys.executable, *PYTEST, *map(str, fitting)], check=False, cwd=ROOT).returncode  # noqa: S603
    print(f"quick: {len(fitting)} files of tests; {len(left)} that a change may break as well are left to `make check`")
    for test in (test for test in left if tests[test] <= 1):
        print(f"    near, but long: {test}")
    sys.exit(code)


if __name__ == "__main__":
    main()
