"""The connection between NVFlare's processes on one machine: a Unix socket in the kit, and no port.

NVFlare's own internal listener is a port on the loopback address, which answers every process on the machine. Only the
owner of the kit can open this socket.
"""

import os
import socket
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

from nvflare.fuel.f3.cellnet.net_agent import NetAgent
from nvflare.fuel.f3.communicator import driver_mgr
from nvflare.fuel.f3.drivers.base_driver import BaseDriver
from nvflare.fuel.f3.drivers.driver import ConnectorInfo
from nvflare.fuel.f3.drivers.driver_params import DriverCap
from nvflare.fuel.f3.drivers.socket_conn import ConnectionHandler, SocketConnection

SCHEME = "unix"
KIT = "DPCAUSAL_KIT"
"""The environment variable with the path of the kit, for a process and the tasks that it starts."""

_SOCKET = "internal.sock"
_URL = f"{SCHEME}://kit"


class _Listener(ThreadingUnixStreamServer):
    """Accepts connections of the kit's owner."""

    daemon_threads = True

    def __init__(self, driver: "LocalSocketDriver", connector: ConnectorInfo) -> None:
        self.driver = driver
        self.connector = connector
        self.ssl_context = None
        self.local_addr = _URL
        folder = os.open(os.environ[KIT], os.O_RDONLY | os.O_DIRECTORY)
        try:
            Path(_address(folder)).unlink(missing_ok=True)  # left by a process that was killed
            super().__init__(_address(folder), ConnectionHandler)
        finally:
            os.close(folder)


class LocalSocketDriver(BaseDriver):  # type: ignore[misc]
    """NVFlare's driver for the socket in the kit."""

    def __init__(self) -> None:
        super().__init__()
        self._listener: _Listener | None = None

    @staticmethod
    def supported_transports() -> list[str]:
        """Return the scheme of the socket's address."""
        return [SCHEME]

    @staticmethod
    def capabilities() -> dict[str, Any]:
        """Return what NVFlare should know: send heartbeats, no TLS."""
        return {DriverCap.SEND_HEARTBEAT.value: True, DriverCap.SUPPORT_SSL.value: False}

    def listen(self, connector: ConnectorInfo) -> None:
        """Accept connections until shut down."""
        self.connector = connector
        self._listener = _Listener(self, connector)
        self._listener.serve_forever()

    def connect(self, connector: ConnectorInfo) -> None:
        """Connect, and read until the connection ends."""
        self.connector = connector
        folder = os.open(os.environ[KIT], os.O_RDONLY | os.O_DIRECTORY)
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            channel.connect(_address(folder))
        finally:
            os.close(folder)
        connection = SocketConnection(channel, connector)
        self.add_connection(connection)
        connection.read_loop()
        self.close_connection(connection)

    def shutdown(self) -> None:
        """Close all connections."""
        self.close_all()
        if self._listener:
            self._listener.shutdown()

    @staticmethod
    def get_urls(scheme: str, resources: dict[str, Any]) -> tuple[str, str]:
        """Return the addresses to connect to and to listen on: there is one socket for each kit."""
        del scheme, resources
        return _URL, _URL


def _address(folder: int) -> str:
    """Return a short path of the socket: the name of a socket may have 107 bytes, and a kit's path may have more."""
    return f"/proc/self/fd/{folder}/{_SOCKET}"


class _NoRequests:
    """A cell as NVFlare's network agent sees it, on which the agent registers no requests."""

    def __init__(self, cell: Any) -> None:  # noqa: ANN401 (NVFlare's cell)
        self._cell = cell

    def register_request_cb(self, **request: object) -> None:
        """Register nothing."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (NVFlare's cell)
        return getattr(self._cell, name)


def prepare_process() -> None:
    """Make NVFlare use the socket, and answer no requests about this process. Call it before NVFlare starts.

    NVFlare's network agent takes requests to report about its process, to change its routes and to stop it, from
    everyone who reaches the process.
    """
    driver_mgr.register(LocalSocketDriver)
    make = NetAgent.__init__

    def make_silent(agent: NetAgent, cell: Any, *more: Any, **named: Any) -> None:  # noqa: ANN401 (NVFlare's cell)
        make(agent, _NoRequests(getattr(cell, "core_cell", cell)), *more, **named)

    NetAgent.__init__ = make_silent
