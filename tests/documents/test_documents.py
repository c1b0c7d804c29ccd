"""Every block of code in the README and the docs runs, in order, as a reader would run it: see `checks.documents`."""

import os
import re
import shutil
import subprocess
import time
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

import checks.commands
import dpcausal
from checks import fork_server
from checks.commands import all_commands
from checks.documents import DOCUMENTS, ROOT, RUN, blocks, faults
from checks.mkdocs_hooks import filled
from dpcausal.cli import app
from tests.support.slow import SLOW

# What some pages need beyond this package: published tables (from the folder DPCAUSAL_DATA), programs, modules.
FILES = {"docs/walkthrough.md": {"nsw.csv": "lalonde/nsw_lalonde_722.csv"}}
PROGRAMS = {"docs/console.md": "curl", "docs/scaling.md": "java"}
MODULES = {
    "docs/console.md": ["authlib"],
    "docs/scaling.md": ["pyspark"],
    "docs/interoperation.md": ["sklearn"],
}
# Pages that start servers: one of a group at a time.
GROUPS = {
    "docs/certificates.md": "federation",
    "docs/console.md": "console",
    **dict.fromkeys(("docs/federation-quickstart.md", "docs/operation.md"), "federation"),
    "docs/mailbox.md": "mailbox",
    "docs/scaling.md": "spark",
}
# Pages that start Java, or a network to renew its certificates, as tests in vault/ and federation/ do.
LONG = {"docs/certificates.md", "docs/scaling.md"}
COSTLY = pytest.mark.costly("src", "README.md", "docs")  # all pages are read for those that run


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def marks(page: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a page: its group, and whether it is left out."""
    left_out = [SLOW] if page in LONG else [COSTLY] if page in GROUPS else []
    return [pytest.mark.xdist_group(GROUPS.get(page, page)), *left_out]


PAGES = [
    pytest.param(path, id=name(path), marks=marks(name(path)))
    for path in DOCUMENTS
    if any(block.language in RUN for block in blocks(path.read_text(encoding="utf-8")))
]


def start(page: Path, folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a fork of its own, in an empty folder."""
    words = [str(programs / "page"), str(page)]
    with (folder.parent / "log").open("w+", encoding="utf-8") as log:  # a file: a server may outlive a pipe
        done = subprocess.run(  # noqa: S603
            words,
            check=False,
            cwd=folder,
            env=fork_server.environment(programs),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        log.seek(0)
        return subprocess.CompletedProcess(words, done.returncode, log.read(), "")


@pytest.mark.timeout(600)  # where a page starts servers and is not alone on the machine
@pytest.mark.parametrize("path", PAGES)
def test_page_runs_and_prints_what_it_shows(path: Path, programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    program = PROGRAMS.get(name(path))
    if program and not shutil.which(program):
        pytest.skip(f"no {program}")
    for module in MODULES.get(name(path), []):
        if not find_spec(module):
            pytest.skip(f"no {module}")
    for target, source in FILES.get(name(path), {}).items():
        published = Path(os.environ.get("DPCAUSAL_DATA", ""), source)
        if not published.is_file():
            pytest.skip(f"the environment variable DPCAUSAL_DATA names no folder that holds {source}")
        shutil.copy(published, folder / target)
    done = start(path, folder, programs)
    assert done.returncode == 0, done.stdout


EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_block_is_run_or_exempt(path: Path) -> None:
    assert not faults(path.read_text(encoding="utf-8"), EXTRAS)


@pytest.mark.parametrize(
    "page",
    [
        "```\n$ dpcausal run study.toml\n```\n",
        "```\npip install dpcausal\n```\n",
        "```bash\nls\n```\n",
        "```python {.copy}\n1 / 0\n```\n",
        "~~~python\n1 / 0\n~~~\n",
        "```console\n$ ls\ndpcausal run study.toml\n```\n",
        "```toml\nname = \n```\n",
        "```sh\ncurl example.org\n```\n",
        "```sh\npip install 'dpcausal[no_such_extra]'\n```\n",
        "```python\n1 / 0\n",
    ],
)
def test_block_that_would_not_be_run_is_caught(page: str) -> None:
    assert faults(page, EXTRAS)


GOOD = """
- in a list:

    ```toml title="study.toml"
    a = 1
    ```

```console
$ cat study.toml \\
    study.toml
a = 1
$ sleep 1000 &
```
```text
a = 1
a = 1
```
```python
value = 1
```
```python
print(value, end="\\n")
```
"""


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("", ""),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nimport warnings\nwarnings.warn('odd')\n```\n", "UserWarning: odd"),
        ("```console\n$ false\n```\n", "ended with 1"),
        ("```console\n$ false | true\n```\n", "ended with 1"),
        ("```text\na = 2\n```\n", "was not printed"),
    ],
)
def test_page_that_fails_or_prints_otherwise_is_caught(added: str, said: str, programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    page = tmp_path / "page.md"
    page.write_text(GOOD + added, encoding="utf-8")
    done = start(page, folder, programs)
    assert (done.returncode == 0) == (added == ""), done.stdout
    assert said in done.stdout


def test_a_page_finds_nothing_of_the_page_before(programs: Path, tmp_path: Path) -> None:
    page, folder = tmp_path / "page.md", tmp_path / "folder"
    folder.mkdir()
    lines = [
        "import os, sys, dpcausal",
        "assert not hasattr(dpcausal, 'left_here') and 'LEFT' not in os.environ and 'left_here' not in globals()",
        "left_here = dpcausal.left_here = os.environ['LEFT'] = 'left'",
        "assert sys.flags.dev_mode is False and os.getcwd() == sys.path[0]",
    ]
    page.write_text("\n".join(["```python", *lines, "```", ""]), encoding="utf-8")
    for _ in range(2):
        done = start(page, folder, programs)
        assert done.returncode == 0, done.stdout


def test_a_fork_ends_with_the_program_that_asked_for_it(programs: Path, tmp_path: Path) -> None:
    page, number = tmp_path / "page.md", tmp_path / "number"
    lines = [
        "import os, time",
        "open('new', 'w').write(str(os.getpid()))",
        "os.rename('new', 'number')",
        "time.sleep(60)",
    ]
    page.write_text("\n".join(["```python", *lines, "```", ""]), encoding="utf-8")
    with subprocess.Popen([programs / "page", page], cwd=tmp_path, env=fork_server.environment(programs)) as client:  # noqa: S603
        while not number.exists():
            time.sleep(0.05)
        client.kill()
    with pytest.raises(ProcessLookupError):  # noqa: PT012 (until then it goes on)
        for _ in range(400):
            os.kill(int(number.read_text(encoding="utf-8")), 0)
            time.sleep(0.05)


def test_first_page_shows_an_effect_as_it_is_printed() -> None:
    page = (ROOT / "docs" / "first-effect.md").read_text(encoding="utf-8")
    (shown,) = [block.body for block in blocks(page) if block.language == "console"]
    trial = dpcausal.datasets.stroke_trial()
    vault = dpcausal.Vault(
        trial.path, trial.schema, ledger="sqlite://", budget=dpcausal.Budget(epsilon=1), as_of="2026"
    )
    printed = str(dpcausal.DifferenceInMeans().estimate(vault, epsilon=1.0))
    assert re.findall(r"^\w.*?(?=  )", shown, re.MULTILINE) == re.findall(r"^\w.*?(?=  )", printed, re.MULTILINE)


def test_every_public_name_is_in_the_reference() -> None:
    page = filled((ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8"))
    links = re.findall(r"^\| \[`(\w+)`\]\(\w+\.md#dpcausal\.\w+\)", page, re.MULTILINE)
    missing = sorted(set(dpcausal.__all__).difference(links))
    assert not missing, f"write ::: dpcausal.{missing[0]} on a page of docs/reference"
    assert len(set(links)) == len(links), "a name is on two pages of docs/reference"


def test_every_command_is_in_the_reference() -> None:
    page = checks.commands.PAGE.read_text(encoding="utf-8")
    assert page == checks.commands.page(), "run python -m checks.commands"


@pytest.mark.parametrize("words", list(all_commands()), ids=" ".join)
def test_every_command_has_help(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words[1:], "--help"])
    assert done.exit_code == 0
    assert "Usage:" in done.output
    assert "--help" in done.output


def test_no_page_names_a_private_folder() -> None:
    for path in [*DOCUMENTS, *sorted((ROOT / "docs").rglob("*.ipynb"))]:
        text = path.read_text(encoding="utf-8")
        assert not any(folder in text for folder in ("/root/", "/work/", "/tmp/dev", "shared/")), name(path)  # noqa: S108
