"""A process that has imported dpcausal and forks for every page of the documents and every command on it.

To start Python and import dpcausal takes over a second, and the documents do it a hundred times. The server imports and
runs nothing. A fork of it has memory, folder, environment and streams of its own, as a new process would have; only the
imports are shared.

`running(FOLDER)` starts one, in which a warning is an error, with two programs:

    FOLDER/page PAGE            runs the blocks of a page, as `python -m checks.documents PAGE` does
    FOLDER/dpcausal WORDS       runs a command
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import dpcausal
from checks.documents import ROOT, run

PRELOAD = ("dpcausal.cli", "matplotlib.figure", "pandas", "pyarrow.parquet", "sqlalchemy.dialects.sqlite")
PROGRAMS = ("page", "dpcausal")
WARNINGS = ("error", "ignore:PySpark does not yet fully support pandas:FutureWarning")
SECONDS_TO_START, SECONDS_TO_END = 200, 10

CLIENT = """#!{python} -IS
import json, os, socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect({address!r})
message = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(client, [len(message).to_bytes(4, "big")], [0, 1, 2])
client.sendall(message)
sys.exit(int(client.recv(4) or b"1"))
"""


@contextlib.contextmanager
def running(folder: Path) -> Iterator[None]:
    """Start a server, wait until its programs can be used, and end it afterwards."""
    filters = [word for each in WARNINGS for word in ("-W", each)]
    command = [sys.executable, *filters, "-m", "checks.fork_server", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, env=environment(folder), stdin=subprocess.DEVNULL) as server:  # noqa: S603
        try:
            end = time.monotonic() + SECONDS_TO_START
            while not (folder / PROGRAMS[-1]).exists():
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("the fork server did not start")
                time.sleep(0.05)
            yield
        finally:
            server.kill()


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a page: the server's programs first, then those of this environment."""
    return {
        **os.environ,
        "COLUMNS": "80",
        "MPLBACKEND": "Agg",
        "_TYPER_FORCE_DISABLE_TERMINAL": "1",  # no colours, on whatever machine
        "PATH": os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }


def serve(folder: Path) -> None:
    """Import, write the programs, and fork for each that is started."""
    for module in PRELOAD:
        import_module(module)
    for name in dpcausal.__all__:
        getattr(dpcausal, name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(64)
    for program in PROGRAMS:
        new = folder / f"{program}.new"
        new.write_text(CLIENT.format(python=sys.executable, address=listener.getsockname()), encoding="utf-8")
        new.chmod(0o755)
        new.rename(folder / program)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a keeper
    while True:
        client, _ = listener.accept()
        if not os.fork():
            listener.close()
            keep(client)
        client.close()


def keep(client: socket.socket) -> None:
    """Run a program in a fork and send its exit code; end it if its client ends first."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(client, 4, 3)
    with client.makefile("rb") as incoming:
        message = incoming.read(int.from_bytes(size, "big"))
    worker = os.fork()
    if not worker:
        client.close()
        os._exit(work(message, streams))
    for stream in (*streams, 0, 1, 2):  # a pipe ends when the program does
        os.close(stream)
    ended = os.pidfd_open(worker)
    if ended not in select.select([ended, client.fileno()], [], [])[0]:
        for how in (signal.SIGTERM, signal.SIGKILL):
            if not select.select([ended], [], [], 0)[0]:
                os.killpg(worker, how)
                select.select([ended], [], [], SECONDS_TO_END)
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        client.sendall(str(code & 0xFF).encode())
    os._exit(0)


def work(message: bytes, streams: list[int]) -> int:
    """Become the program, and return its exit code."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv, folder, environment = json.loads(message)
    sys.modules["__main__"] = ModuleType("__main__")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        if Path(sys.argv[0]).name == "page":
            sys.path.insert(0, folder)
            run(Path(sys.argv[1]))
        else:
            import_module("dpcausal.cli").app()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 (as the interpreter does)
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
