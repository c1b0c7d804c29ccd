"""Ports of this machine for servers that a test starts."""

import fcntl
import os
import socket
from pathlib import Path
from tempfile import gettempdir

_RANGE = range(20_000, 32_000)
"""Below the ports that systems give to outgoing connections, and to those who ask for any."""


def reserved_port() -> int:
    """Return a port on which nobody listens and that nobody else is given for as long as this process runs.

    A port that was only looked for might be taken by another one before the server has started.
    """
    folder = Path(gettempdir(), f"dpcausal-ports-{os.getuid()}")
    folder.mkdir(exist_ok=True)
    for port in _RANGE:
        lock = os.open(folder / str(port), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as free:
                free.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
        else:
            return port
    raise OSError("no port is free")
