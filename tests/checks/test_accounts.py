"""Costly tests run where something that they need changed, and what tests cost is written down."""

import json
from pathlib import Path

import pytest

from checks import passed
from checks.closure import Sources
from tests.support.accounts import VARIABLE, Accounts

pytest_plugins = ["pytester"]

TESTS = """
import pytest

def needed():
    import checks.passed
    import tests.helper

@pytest.mark.costly("deploy")
def test_first(): ...

@pytest.mark.costly
def test_second(): assert {second} == 2

@pytest.mark.costly
@pytest.mark.slow
def test_larger(): ...

def test_cheap(): assert sum(range(10 ** 6))
"""
SETTINGS = """
[pytest]
markers =
    slow
    costly
addopts = -p no:cacheprovider -m "not slow"
"""


@pytest.fixture
def root(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a file of tests, and without passes."""
    empty = dict.fromkeys(
        (
            "tests/helper.py",
            "checks/passed.py",
            "src/dpcausal/other.py",
            "deploy/start.sh",
            "docs/page.md",
            "pyproject.toml",
            "constraints.txt",
        ),
        "",
    )
    for name, text in {**empty, "tests/test_file.py": TESTS.format(second=2), "pytest.ini": SETTINGS}.items():
        (pytester.path / name).parent.mkdir(parents=True, exist_ok=True)
        (pytester.path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(passed, "FILE", pytester.path / "checks/passed.json")
    return pytester.path


def run(pytester: pytest.Pytester, *words: str) -> list[int]:
    """Return how many tests passed, were skipped and failed."""
    accounts = Accounts(leaves_out="costly" not in words, sources=Sources(pytester.path))
    return [*pytester.inline_run("tests", *words, plugins=[accounts]).countoutcomes()]


def test_costly_tests_run_once_where_nothing_changes(
    root: Path, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(pytester) == [3, 0, 0]
    assert run(pytester, "-rs") == [1, 2, 0]
    last = passed.last_pass("tests/test_file.py")
    assert last
    assert f"passed on {last.date}, and nothing that it needs changed since" in capsys.readouterr().out
    assert run(pytester, "-m", "costly") == [3, 0, 0]


@pytest.mark.parametrize(
    ("changed", "runs_again"),
    [
        ("tests/test_file.py", True),
        ("tests/helper.py", True),
        ("deploy/start.sh", True),
        ("constraints.txt", True),
        ("pyproject.toml", True),
        ("src/dpcausal/other.py", False),
    ],
)
def test_costly_tests_run_again_where_what_they_need_changed(
    changed: str, runs_again: bool, root: Path, pytester: pytest.Pytester
) -> None:
    run(pytester)
    with (root / changed).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert run(pytester) == ([3, 0, 0] if runs_again else [1, 2, 0])


def test_file_with_a_failure_did_not_pass(root: Path, pytester: pytest.Pytester) -> None:
    (root / "tests/test_file.py").write_text(TESTS.format(second=3), encoding="utf-8")
    assert run(pytester) == [2, 0, 1]
    assert run(pytester) == [2, 0, 1]
    assert passed.last_pass("tests/test_file.py") is None


@pytest.mark.parametrize("words", [("tests", "-k", "first"), ("tests/test_file.py::test_first",)])
def test_part_of_a_file_is_not_a_pass(words: tuple[str, ...], root: Path, pytester: pytest.Pytester) -> None:
    accounts = Accounts(leaves_out=True, sources=Sources(root))
    assert [*pytester.inline_run(*words, plugins=[accounts]).countoutcomes()] == [1, 0, 0]
    assert passed.last_pass("tests/test_file.py") is None


def test_seconds_of_each_file_are_written(
    root: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(root / "seconds.json"))
    run(pytester)
    seconds = json.loads((root / "seconds.json").read_text(encoding="utf-8"))
    assert seconds["tests"].keys() == {"collection", "tests/test_file.py"}
    assert seconds["costly"].keys() == {"tests/test_file.py"}
    assert all(each > 0 for each in seconds["tests"].values())


READS = 'Path("docs/page.md").read_text()'
STARTS = 'subprocess.run([sys.executable, "-c", ""])'


@pytest.mark.parametrize(
    ("place", "does", "named", "missing"),
    [
        ("file", READS, "deploy", "docs/page.md"),
        ("file", READS, "docs", None),
        ("fixture", READS, "deploy", "docs/page.md"),
        ("fixture", READS, "docs", None),
        ("fixture", STARTS, "deploy", "src"),
        ("test", READS, "deploy", "docs/page.md"),
        ("test", READS, "docs", None),
        ("test", READS, "docs/page.md", None),
        ("test", 'os.close(os.open("docs/page.md", 0))', "deploy", "docs/page.md"),
        ("test", 'Path("docs/page.md").resolve().read_text()', "deploy", "docs/page.md"),
        ("test", 'subprocess.run(["cat", Path("docs/page.md").resolve()])', "deploy", "docs/page.md"),
        ("test", 'subprocess.run(["true", Path("tests/helper.py").resolve()])', "src", "tests/helper.py"),
        ("test", 'subprocess.run(["true"])', "deploy", None),
        ("test", 'subprocess.run(["true", "a" * 5_000])', "deploy", None),
        ("test", STARTS, "deploy", "src"),
        ("test", STARTS, "src", None),
        ("test", 'subprocess.run("true | python3 -c 1", shell=True)', "deploy", "src"),
        ("test", 'subprocess.run(["true", Path(sys.executable).with_name("gunicorn")])', "deploy", "src"),
        ("test", 'subprocess.run([sys.executable, "-m", "tests.helper"])', "deploy", None),
        ("test", 'Path("new").touch()', "deploy", None),
    ],
)
def test_costly_test_names_what_it_opens_and_starts(
    place: str, does: str, named: str, missing: str | None, *, root: Path, pytester: pytest.Pytester
) -> None:
    done = {each: does if each == place else "..." for each in ("file", "fixture", "test")}
    lines = ["import os, pytest, subprocess, sys", "from pathlib import Path", done["file"]]
    lines += ["@pytest.fixture(scope='module')", f"def fixture(): {done['fixture']}"]
    lines += [f"@pytest.mark.costly({named!r})", f"def test_one(fixture): {done['test']}", f"def test_other(): {does}"]
    (root / "tests/test_file.py").write_text("\n".join(lines), encoding="utf-8")
    accounts = Accounts(leaves_out=True, sources=Sources(pytester.path))
    outcomes = pytester.inline_run("tests", plugins=[accounts])
    said = [str(report.longrepr) for report in outcomes.getfailures()]
    assert said == ([f"its mark costly(…) must also name: {missing}"] if missing else [])
    assert (passed.last_pass("tests/test_file.py") is None) == bool(missing)
