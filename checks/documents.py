"""Every block of code in the README and the docs runs, in order, as a reader would run it.

    ```python                     runs, in one namespace for the page, in an empty folder
    ```toml title="study.toml"    is written to a file of that name in that folder; without a title it must parse
    ```console                    lines that begin with "$ " are run by bash in that folder and must exit with 0; with
                                  " &" at the end they are left running until the page is over; other lines show
                                  output as it came, which is not compared, because noise differs
    ```text                       was printed exactly so by the blocks before it
    ```sh                         installs, from the first line on; run by the release check, not here
    ```r                          runs in R: by `python -m checks.r_package`, not here
    ```                           drawings and formulas

`python -m checks.documents docs/index.md` runs the blocks of one page in the folder where it is called.
"""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "toml", "console", "text", "sh", "r", ""}
RUN = {"python", "toml", "console", "text"}

CODE = re.compile(r"^(\$|pip|dpcausal|import|from \S+ import|python|git|conda|docker)\s", re.MULTILINE)
INSTALL = ("pip install ", "python -m venv ", ". .venv/bin/activate", "conda env create ")


@dataclass(frozen=True)
class Block:
    """What stands between two fences, and where."""

    language: str
    title: str
    body: str
    line: int


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page in order of appearance, those inside lists and boxes too."""
    found = []
    fence = re.compile(r'^( *)```(\w*)(?: title="([\w.-]+)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
    for match in fence.finditer(text):
        indent, language, title, body = match.groups()
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(language, title or "", re.sub(f"^{indent}", "", body, flags=re.MULTILINE), line))
    return found


def commands(block: Block) -> list[str]:
    """Return the commands of a console block, each with the lines that continue it."""
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", block.body, re.MULTILINE)


def output(block: Block) -> str:
    """Return what a console block shows apart from its commands."""
    return re.sub(r"^\$ (?:.*\\\n)*.*$", "", block.body, flags=re.MULTILINE)


def run(page: Path) -> None:
    """Run the blocks of a page in this folder; raise at the first that fails."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    with contextlib.ExitStack() as running:
        for block in blocks(page.read_text(encoding="utf-8")):
            where = f"{page.name}, line {block.line}"
            if block.language == "python":
                with contextlib.redirect_stdout(io.StringIO()) as stdout:
                    # Lines are counted as on the page, so that a failure names them.
                    exec(compile("\n" * (block.line - 1) + block.body, page.name, "exec"), names)  # noqa: S102
                printed += trimmed(stdout.getvalue())
            elif block.language == "toml" and block.title:
                Path(block.title).write_text(block.body, encoding="utf-8")
            elif block.language == "console":
                for command in commands(block):
                    if command.endswith(" &"):
                        running.enter_context(left_running(command.removesuffix(" &")))
                        continue
                    done = bash(command)
                    printed += trimmed(done.stdout)
                    assert done.returncode == 0, (
                        f"{where}: {command}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
                    )
            elif block.language == "text":
                assert trimmed(block.body) in printed, (
                    f"{where}: this was not printed\n{block.body}\nbut this was\n{printed}"
                )


def trimmed(text: str) -> str:
    """Return a text without spaces at the ends of its lines."""
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


def bash(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it printed; it fails if any part of a pipe does."""
    words = ["bash", "-o", "pipefail", "-c", command]
    return subprocess.run(  # noqa: S603
        words, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200
    )


@contextlib.contextmanager
def left_running(command: str) -> Iterator[None]:
    """Run a server, with all that it starts, until the page is over."""
    server = subprocess.Popen(  # noqa: S603
        ["bash", "-c", command],  # noqa: S607
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        start_new_session=True,
    )
    try:
        yield
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(timeout=10)


def faults(text: str, extras: set[str]) -> list[str]:
    """Return what is against the conventions on a page, so that a block of it would not be run as it should be."""
    found = []
    fences = len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE))
    page = blocks(text)
    if fences != 2 * len(page):
        found.append("a fence that is not understood, or not closed")
    for block in page:
        shown = {"": block.body, "console": output(block)}.get(block.language, "")
        if block.language not in LANGUAGES:
            found.append(f"line {block.line}: no such language: {block.language}")
        if match := CODE.search(shown):
            found.append(f"line {block.line}: {match[0]!r} begins a line of what is not run")
        if block.language == "toml":
            try:
                tomllib.loads(block.body)
            except tomllib.TOMLDecodeError as error:
                found.append(f"line {block.line}: {error}")
        if block.language == "sh":
            for line in block.body.splitlines():
                if not line.startswith(INSTALL):
                    found.append(f"line {block.line}: {line!r} does not install")
                named = re.findall(r"\[([\w,]+)\]", line.split("#")[0])
                found += [f"no extra {extra}" for group in named for extra in group.split(",") if extra not in extras]
    return found


if __name__ == "__main__":
    run(Path(sys.argv[1]))
