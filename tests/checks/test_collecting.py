"""Collecting imports what holds tests or examples only, and two processes never get one port."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.collecting import Collecting
from tests.support.ports import reserved_port

pytest_plugins = ["pytester"]

EXAMPLE = '"""\n>>> 1 + 1\n2\n"""'


def test_files_without_a_test_or_an_example_are_not_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(with_example=EXAMPLE, without="raise SystemError")
    pytester.makepyfile(test_one="def test_something(): ...", test_two=f"{EXAMPLE}\ndef test_another(): ...")
    done = pytester.inline_run("--doctest-modules", plugins=[Collecting()])
    assert [*done.countoutcomes()] == [4, 0, 0]


def test_a_port_is_reserved_once() -> None:
    command = [sys.executable, "-c", "from tests.support.ports import reserved_port; print(reserved_port())"]
    ports = {reserved_port(), reserved_port()}
    ports.add(int(subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=True).stdout))  # noqa: S603
    assert len(ports) == 3
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass
