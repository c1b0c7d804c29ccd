"""A federation on this machine: a server, sites and a requester, each its own process, over TLS on loopback."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from dpcausal.federation.transports.nvflare.provision import create_authority, install_kit, request_kit, sign
from dpcausal.federation.transports.nvflare.transport import FlareTransport
from tests.support.ports import reserved_port

SERVER = "server"
_NAME = "benchmark"
_THERE = {SERVER: "Server started"}
_PARTS = {"site_process": "site", "worker_process": "task", "dpcausal.federation.site": "answer"}
# The kernel ends the process when the thread that started it ends, however that comes about; 1 is PR_SET_PDEATHSIG.
_BOUND = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"
_START = "import sys; from pathlib import Path; from dpcausal.federation.transports.nvflare import start; "
_START += "start.start_{}(*map(Path, sys.argv[1:]))"


@dataclass(frozen=True)
class Memory:
    """What one process holds, in megabytes.

    Attributes:
        part: `site` for the process that waits, `task` for NVFlare's that takes a question, `answer` for the one that
            reads the table.
        resident: What it holds, shared pages included.
        own: What would be free if it ended.
    """

    part: str
    resident: float
    own: float


class Federation:
    """A server and some sites, which are started, killed, frozen and stopped by name. Leaves no process behind.

    Args:
        folder: Where all kits go.
        sites: The folder of each site, by name.
    """

    def __init__(self, folder: Path, sites: Mapping[str, Path]) -> None:
        self.sites = dict(sites)
        self.folder = folder
        self.coordinator = folder / "coordinator"
        fingerprint = create_authority(self.coordinator, _NAME, "localhost", reserved_port())
        self.kits = {SERVER: self.coordinator / "server"}
        self.roster = folder / "roster.toml"
        self.roster.touch()

        def kit(name: str) -> Path:
            signed = sign(self.coordinator, request_kit(folder / name, _NAME, name), name)
            return install_kit(folder / name, signed, fingerprint)

        with ThreadPoolExecutor(os.cpu_count()) as several:
            self.kits |= dict(zip(sites, several.map(kit, sites), strict=True))
        self.transport = FlareTransport(self.coordinator / "requester")
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.start(SERVER)
        self.start(*self.sites)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *names: str) -> None:
        """Start the server or sites, and wait until they are there."""
        for name in names:
            beside = self.roster if name == SERVER else self.sites[name]
            what = ("server" if name == SERVER else "site", self.kits[name], beside)
            self.run(name, [sys.executable, "-c", _START.format(what[0]), *map(str, what[1:])])
        for name in names:
            self.wait_for(name, _THERE.get(name, "Successfully registered client"))

    def run(self, name: str, command: list[str]) -> None:
        """Start a process under a name of this federation, or under another one; only from the main thread."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("processes end with the thread that starts them: start them from the main thread")
        with self.log(name).open("wb") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _BOUND, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        """What a process printed since it was last started."""
        return self.folder / f"{name}.log"

    def wait_for(self, name: str, text: str, seconds: float = 200) -> None:
        """Wait until a process has printed a text."""
        end = time.monotonic() + seconds
        while text not in self.log(name).read_text(encoding="utf-8", errors="replace"):
            if time.monotonic() > end or self._running[name].poll() is not None:
                raise TimeoutError(f"{name} did not say {text!r}: {self.log(name)}")
            time.sleep(0.1)

    def ended(self, name: str, seconds: float) -> int:
        """The exit code of a process that ends by itself."""
        return self._running[name].wait(seconds)

    def kill(self, *names: str) -> None:
        """End processes with all that they started, as a power cut would."""
        for name in names:
            _signal(signal.SIGSTOP, self._tree(name))  # so that it starts nothing while it is being killed
            _signal(signal.SIGKILL, self._tree(name))
            self._running.pop(name).wait()

    def kill_parent(self, name: str) -> None:
        """End only the process that waits; what it started is on its own."""
        self._running[name].kill()
        self._running.pop(name).wait()

    def kill_part(self, name: str, part: str) -> bool:
        """End only a site's processes of one part, see `Memory`; whether there was one."""
        processes = [process for process in self._tree(name) if _part(process) == part]
        _signal(signal.SIGKILL, processes)
        return bool(processes)

    @contextlib.contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """Have everything of a site stand still, as if the network were gone."""
        tree = self._tree(name)
        _signal(signal.SIGSTOP, tree)
        try:
            yield
        finally:
            _signal(signal.SIGCONT, tree)

    def memory(self, name: str) -> list[Memory]:
        """What every process of a site, or of the server, holds now."""
        held = []
        for process in self._tree(name):
            with contextlib.suppress(psutil.Error):
                full = process.memory_full_info()
                held.append(Memory(_part(process), full.rss / 2**20, full.uss / 2**20))
        return held

    def stop(self) -> None:
        """End everything, also what was left alone by a process that started it."""
        self.kill(*list(self._running))
        ours = {str(self.folder), *map(str, self.sites.values())}
        _signal(
            signal.SIGKILL, [each for each in psutil.process_iter() if any(path in _command(each) for path in ours)]
        )

    def _tree(self, name: str) -> list[psutil.Process]:
        try:
            parent = psutil.Process(self._running[name].pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return ""


def _part(process: psutil.Process) -> str:
    command = _command(process)
    return next((part for text, part in _PARTS.items() if text in command), SERVER)


def _signal(number: int, processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def holding(text: str, *places: Path) -> list[Path]:
    """Every file that holds a text, also inside of archives."""
    found = []
    for file in (file for place in places for file in [place, *place.rglob("*")] if file.is_file()):
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                contents = [archive.read(name) for name in archive.namelist()]
        else:
            contents = [file.read_bytes()]
        found += [file for content in contents if text.encode() in content]
    return found
