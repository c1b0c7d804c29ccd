"""Serve a mailbox with gunicorn over TLS."""

import ssl
from datetime import UTC, datetime
from typing import Any

from gunicorn.app.base import BaseApplication

from dpcausal.errors import CertificateError
from dpcausal.federation.operation.deadline_worker import DeadlineWorker
from dpcausal.federation.operation.ports import check_may_listen
from dpcausal.federation.transports.mailbox.authority import SERVER, last_day, server_context
from dpcausal.federation.transports.mailbox.server import create_app, print_line
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.federation.transports.mailbox.store import MailboxStore


def serve(mailbox: Mailbox, listen: str, workers: int, threads: int) -> None:
    """Serve until stopped.

    Raises:
        CertificateError: If the certificate of the server has expired.
        TransportError: If the database cannot be used.
    """
    ends = last_day(mailbox.folder / SERVER)
    if ends < datetime.now(UTC):
        raise CertificateError(
            expected="a valid certificate of the server",
            got=f"one that expired at {ends:%Y-%m-%d %H:%M} UTC",
            hint="renew it with: dpcausal federation mailbox renew FOLDER.",
        )
    check_may_listen(listen)
    MailboxStore(mailbox.database_address, 1).create(mailbox.requesters)
    print_line(f"event=start address={mailbox.address} listen={listen} workers={workers} threads={threads}")
    _Gunicorn(mailbox, listen, workers, threads).run()


class _Gunicorn(BaseApplication):  # type: ignore[misc]
    """The server process, with its settings."""

    def __init__(self, mailbox: Mailbox, listen: str, workers: int, threads: int) -> None:
        self._mailbox = mailbox
        self._threads = threads
        self._context_of: tuple[int, ssl.SSLContext] | None = None
        self._options = {
            "bind": listen,
            "workers": workers,
            "threads": threads,
            "worker_class": DeadlineWorker,
            "worker_connections": 1000,
            "backlog": 2048,
            "keepalive": 5,
            "timeout": 60,
            "graceful_timeout": 10,
            "loglevel": "warning",
            "certfile": str(mailbox.folder / SERVER),  # gunicorn serves TLS only if this is set
            "ssl_context": self._context,
            "control_socket_disable": True,
            "limit_request_line": 1000,
            "limit_request_fields": 40,
            "limit_request_field_size": 2000,
        }
        super().__init__()

    def load_config(self) -> None:
        """Set the options."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:  # noqa: ANN401 (an application)
        """Return the application, in each worker process; a reload reads the settings again."""
        mailbox = Mailbox.read(self._mailbox.folder)
        return create_app(MailboxStore(mailbox.database_address, self._threads), mailbox.address)

    def _context(self, _settings: object, _default: object) -> ssl.SSLContext:
        """Return the TLS settings for a connection, read again after the certificate was renewed.

        A connection that comes while the key and the certificate are replaced gets the ones before.
        """
        try:
            written = (self._mailbox.folder / SERVER).stat().st_mtime_ns
            if self._context_of is None or self._context_of[0] != written:
                self._context_of = written, server_context(self._mailbox.folder)
        except OSError:  # ssl.SSLError is one
            if self._context_of is None:
                raise
        return self._context_of[1]
