"""A small proxy on loopback that opens tunnels with CONNECT."""

import base64
import contextlib
import socket
import threading
from typing import Self


class ConnectProxy:
    """A proxy, while its context lasts.

    Args:
        credentials: `user:password`, without which it refuses; empty for none.
    """

    def __init__(self, credentials: str = "") -> None:
        self.opened: list[str] = []
        self._want = f"Basic {base64.b64encode(credentials.encode()).decode()}" if credentials else ""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        """Start."""
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with caller, contextlib.suppress(OSError):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += (part := caller.recv(1))
                if not part:
                    return
            line, *headers = head.decode("latin-1").split("\r\n")
            given = [each.partition(": ")[2] for each in headers if each.lower().startswith("proxy-authorization:")]
            if self._want and given != [self._want]:
                caller.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            target = line.split()[1]
            self.opened.append(target)
            with socket.create_connection(("127.0.0.1", int(target.rpartition(":")[2]))) as server:
                caller.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=_copy, args=(caller, server), daemon=True)
                back.start()
                _copy(server, caller)
                back.join()


def _copy(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            to.sendall(part)
    for each in (source, to):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
