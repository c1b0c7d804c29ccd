"""A worker of gunicorn that disconnects callers that are too slow."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

SECONDS = 20.0
"""The longest time from the first byte of a call to its reply, or to `end_deadline`; and that of sending a reply."""

_CURRENT = threading.local()


class DeadlineWorker(ThreadWorker):  # type: ignore[misc]
    """A worker of gunicorn that disconnects a caller that is too slow, and closes connections in its own threads.

    Gunicorn waits without a limit for the rest of a call, and closes connections in the thread that accepts new ones.
    """

    def handle(self, conn: TConn) -> Any:  # noqa: ANN401 (as the parent has it)
        """Serve one call."""
        with _deadline(conn.sock):
            outcome = super().handle(conn)
        if outcome is False:
            with suppress(OSError):
                conn.close(graceful=True)
            conn.close = lambda graceful=False: None  # noqa: ARG005 (as the method has it)
        return outcome

    def handle_request(self, req: Any, conn: TConn) -> Any:  # noqa: ANN401 (as the parent has it)
        """Answer one call; a caller that does not read its reply is disconnected too."""
        conn.sock.settimeout(SECONDS)
        return super().handle_request(req, conn)


def end_deadline() -> None:
    """Let the current call take as long as it needs from now on: it was read to its end."""
    timer = getattr(_CURRENT, "timer", None)
    if timer is not None:
        timer.cancel()


@contextmanager
def _deadline(connection: socket.socket) -> Iterator[None]:
    """Shut a connection down unless the block ends in time."""
    # TLS replaces the socket object, and its own cannot be duplicated.
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        timer = threading.Timer(SECONDS, _shut_down, [own])
        timer.daemon = True
        timer.start()
        _CURRENT.timer = timer
        try:
            yield
        finally:
            timer.cancel()


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
