"""Receivers of notices on this machine: a mail server with STARTTLS and logins, and a web server."""

import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

PASSWORD = "4711 and more"  # noqa: S105


@dataclass
class MailServer:
    """What a mail server received, and how it answers.

    Attributes:
        refused: The answer to a message in place of its acceptance; empty to accept it.
        logins: The passwords that were sent, each only after TLS.
    """

    port: int = 0
    refused: str = ""
    mails: list[EmailMessage] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)


@dataclass
class WebServer:
    """What a web server received: the headers and the body of each call.

    Attributes:
        status: Its answer.
    """

    port: int = 0
    status: int = 204
    calls: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


class _MailServer(socketserver.ThreadingTCPServer):
    """A server of one state, with a certificate or none."""

    def __init__(self, state: MailServer, certificate: Path | None) -> None:
        self.state, self.certificate = state, certificate
        super().__init__(("127.0.0.1", 0), _Mail)

    def handle_error(self, *_: object) -> None:
        """Print nothing where a caller goes, as one does who does not trust the certificate."""


class _Mail(socketserver.StreamRequestHandler):
    """One connection of a mail server."""

    server: _MailServer
    timeout = 10
    secure = False

    def handle(self) -> None:
        """Answer each line until the caller goes."""
        answers = {"EHLO": self.hello, "STARTTLS": self.start_tls, "AUTH": self.log_in, "DATA": self.take}
        self.reply("220 localhost")
        while line := self.rfile.readline().strip().decode():
            command = line.split()[0].upper()
            if command in answers:
                answers[command](line)
            else:
                self.reply("221 bye" if command == "QUIT" else "250 ok")

    def hello(self, _: str) -> None:
        """Say what the server can do."""
        offered = "250-AUTH PLAIN\r\n" if self.secure else "250-STARTTLS\r\n" if self.server.certificate else ""
        self.reply(f"250-localhost\r\n{offered}250 8BITMIME")

    def start_tls(self, _: str) -> None:
        """Go on by TLS."""
        assert self.server.certificate
        self.reply("220 go")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server.certificate)
        self.connection = context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.secure = True

    def log_in(self, line: str) -> None:
        """Check a password."""
        given = base64.b64decode(line.split()[2]).decode().split("\0")[2] if self.secure else ""
        self.server.state.logins.append(given)
        self.reply("235 ok" if given == PASSWORD else "535 no")

    def take(self, _: str) -> None:
        """Take a message; a server with a certificate takes none without a login."""
        state, mail = self.server.state, b""
        if self.server.certificate and not state.logins:
            self.reply("530 no")
            return
        self.reply("354 go")
        while (part := self.rfile.readline()) != b".\r\n":
            mail += part.removeprefix(b".") if part.startswith(b"..") else part
        if not state.refused:
            found = message_from_bytes(mail, policy=default)
            state.mails.append(found)
        self.reply(state.refused or "250 ok")

    def finish(self) -> None:
        """Close what TLS made."""
        super().finish()
        self.connection.close()

    def reply(self, text: str) -> None:
        """Send a line."""
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def mail_server(certificate: Path | None = None) -> Iterator[MailServer]:
    """Run a mail server; with a certificate, it accepts mail after STARTTLS and a login only."""
    state = MailServer()
    with _MailServer(state, certificate) as server:
        state.port = server.server_address[1]
        with _running(server):
            yield state


@contextmanager
def web_server() -> Iterator[WebServer]:
    """Run a web server."""
    state = WebServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.calls.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(state.status)
            if 300 <= state.status < 400:
                self.send_header("Location", f"http://127.0.0.1:{state.port}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_port
        with _running(server):
            yield state


@contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(5)
