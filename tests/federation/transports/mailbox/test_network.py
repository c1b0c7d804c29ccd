"""A real server over TLS: a study over it, its death, and callers that are slow, large or somebody else."""

import contextlib
import socket
import ssl
import time
from pathlib import Path

import pytest

import dpcausal as dpc
from dpcausal.errors import RefusedError, TransportError
from dpcausal.federation.coordinator.status import federation_status
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.health import BROKEN, HEALTHY
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.mailbox.authority import client_context
from dpcausal.federation.transports.mailbox.calls import CallFailedError, sign_call
from dpcausal.federation.transports.mailbox.client import Client
from dpcausal.federation.transports.mailbox.poller import Outbox, Poller, client_in, join_mailbox
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.federation.transports.mailbox.transport import MailboxTransport, admit_joined, invite
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.mailbox_server import MailboxServer
from tests.support.ports import reserved_port
from tests.support.site_folders import approve_study, make_site_folder

pytestmark = pytest.mark.xdist_group("mailbox")


def study(name: str) -> dpc.Study:
    return dpc.Study(
        name=name,
        question="Does treatment raise the score?",
        requester="anna",
        schema=standard_schema(),
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        pooling="minimum_variance",
    )


def site(server: MailboxServer, folder: Path, name: str, asked: dpc.Study | None) -> Poller:
    """Return the poller of a new site that has joined, and has approved a study."""
    table = synthetic_table(standard_schema(), 100, seed=len(name))
    make_site_folder(folder / name, name, table, standard_schema(), {"anna": server.anna.public})
    if asked is not None:
        approve_study(folder / name, asked)
    key = Key.read(name, folder / name / "site.key")
    server.join(key, folder / name / "mailbox")
    client = client_in(folder / name / "mailbox", key)
    return Poller(client, Outbox(folder / name / "mailbox" / "outbox"), Site(folder / name).answer, lambda _: None)


def coordinator(server: MailboxServer, asked: dpc.Study, timeout: float) -> dpc.Coordinator:
    admit_joined(server.client, server.folder / "mailbox" / "invitations", server.workspace)
    store = server.folder / f"{asked.name}.db"
    transport = MailboxTransport(server.client)
    return dpc.Coordinator(
        asked.to_toml(), server.workspace.roster, server.anna, transport, store=store, timeout=timeout, attempts=1
    )


def test_study_survives_the_death_of_the_server_at_each_step(tmp_path: Path) -> None:
    asked = study("killed")
    with MailboxServer(tmp_path / "workspace", workers=1) as server:
        north, south = (site(server, tmp_path, name, asked) for name in ("north", "south"))
        for step in (north.poll, lambda: None):
            with pytest.raises(RefusedError):  # not all have answered, and what was posted stays
                _ = _all(coordinator(server, asked, timeout=0.5))
            server.kill()
            assert north.turn() > 0
            server.start()
            step()
        north.poll()
        south.poll()
        server.kill()
        server.start()
        effect = coordinator(server, asked, timeout=100).run()
    assert [share.status for share in effect.sites] == ["answered", "answered"]


def _all(asking: dpc.Coordinator) -> dpc.Effect:
    asking._min_sites = 2
    return asking.run()


def test_late_answer_is_found_by_the_next_run_and_a_late_refusal_is_asked_again(
    server: MailboxServer, tmp_path: Path
) -> None:
    asked = study("late")
    polling = site(server, tmp_path, "late", None)
    with pytest.raises(RefusedError, match="late did not answer"):
        coordinator(server, asked, timeout=0.0).run()
    assert polling.poll() == 1  # undecided
    approve_study(tmp_path / "late", asked)
    with pytest.raises(RefusedError, match="did not answer"):  # the old refusal does not count, and it is asked again
        coordinator(server, asked, timeout=0.0).run()
    assert polling.poll() == 1
    assert coordinator(server, asked, timeout=0.0).run().n == 100


def test_roster_takes_a_key_only_with_the_secret_of_the_invitation(server: MailboxServer, tmp_path: Path) -> None:
    invitations = server.folder / "mailbox" / "invitations"
    key = Key.make("east", tmp_path / "east.key")
    invited = invite(server.client, invitations, "east", server.mailbox.authority, 60)
    join_mailbox(tmp_path / "east", invited.token, key)
    invite(server.client, invitations, "east", server.mailbox.authority, 60)  # again: what joined has the old secret
    assert "east" not in admit_joined(server.client, invitations, server.workspace)
    assert "east" not in server.workspace.roster.sites


def test_server_with_another_certificate_is_not_called(server: MailboxServer, tmp_path: Path) -> None:
    other = Mailbox.create(tmp_path / "other", server.mailbox.address, "sqlite:///mailbox.db", {}, 1)
    with pytest.raises(CallFailedError) as failed:
        Client(server.mailbox.address, other.authority, server.anna).call("GET", "/sites")
    assert failed.value.reason == "certificate"
    key = Key.make("far", tmp_path / "far.key")
    invited = invite(server.client, tmp_path / "invitations", "far", other.authority, 60)
    with pytest.raises(CallFailedError, match="certificate"):
        join_mailbox(tmp_path / "far", invited.token, key)
    assert not (tmp_path / "far").exists()


def test_status_of_the_coordinator_says_whether_a_server_with_its_certificate_answers(
    server: MailboxServer, tmp_path: Path
) -> None:
    def level() -> int:
        return next(each.level for each in federation_status(folder).checks if each.name == "serving_mailbox")

    folder = server.folder
    assert level() == HEALTHY
    folder = tmp_path  # another authority, at the same address
    Mailbox.create(folder / "mailbox", server.mailbox.address, "sqlite:///mailbox.db", {}, 10)
    Workspace.new(folder, "ben")
    assert level() == BROKEN


def test_absent_server_and_unknown_requester_are_reported(server: MailboxServer, tmp_path: Path) -> None:
    nobody = Client(f"https://localhost:{reserved_port()}", server.mailbox.authority, server.anna)
    transport = MailboxTransport(nobody)
    with pytest.raises(TransportError, match="No mailbox server answered"):
        transport.ask(server.anna.seal("{}"), ["north"], 0.2, lambda *_: None)
    assert list(transport.failures) == ["refused"]
    stranger = Client(server.mailbox.address, server.mailbox.authority, Key.make("ben", tmp_path / "ben.key"))
    with pytest.raises(CallFailedError) as failed:
        MailboxTransport(stranger).ask("{}", ["north"], 5.0, lambda *_: None)
    assert failed.value.reason == "unknown"


def raw(server: MailboxServer) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=40)
    return client_context(server.mailbox.authority).wrap_socket(plain, server_hostname="localhost")


def received(connection: ssl.SSLSocket) -> bytes:
    found = b""
    try:
        while part := connection.recv(4096):
            found += part
    except OSError:
        pass
    return found


def test_huge_body_is_refused_unread(server: MailboxServer) -> None:
    head = f"POST /messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {10**12}\r\nConnection: close\r\n\r\n"
    with raw(server) as connection:
        connection.sendall(head.encode())  # and no body, for which a server that reads it would wait in vain
        assert b" 413 " in received(connection).split(b"\r\n")[0]
    chunked = "POST /join HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with raw(server) as connection:
        connection.sendall(chunked.encode())
        assert b" 411 " in received(connection).split(b"\r\n")[0]


def test_slow_callers_are_disconnected_and_do_not_stop_others(server: MailboxServer) -> None:
    body = b"x" * 1000
    header = sign_call(server.anna, server.mailbox.address, "POST", "/invitations", body)
    head = f"POST /invitations HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\nContent-Length: 1000\r\n\r\n"
    with contextlib.ExitStack() as connections:
        slow = [connections.enter_context(raw(server)) for _ in range(6)]
        start = time.monotonic()
        for place, connection in enumerate(slow):
            connection.sendall(head.encode() if place % 2 else b"GET /sites HTTP/1.1\r\nHost")
        while slow and time.monotonic() - start < 200:
            slow = [connection for connection in slow if takes_a_byte(connection)]
            assert "sites" in server.client.call("GET", "/sites")
            time.sleep(1.0)
    assert not slow
    assert time.monotonic() - start > 15


def takes_a_byte(connection: ssl.SSLSocket) -> bool:
    try:
        connection.sendall(b"x")
    except OSError:
        return False
    return True


def test_other_protocols_and_tricks_in_paths_get_nothing(server: MailboxServer) -> None:
    for line in ("GET /../mailbox.toml HTTP/1.1", "GET /%2e%2e/server.key HTTP/1.1", "GET http://x/sites HTTP/1.1"):
        with raw(server) as connection:
            connection.sendall(f"{line}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            first = received(connection).split(b"\r\n")[0]
            assert first.startswith((b"HTTP/1.1 4", b"HTTP/1.1 401"))
    with socket.create_connection(("127.0.0.1", server.port), timeout=40) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" not in plain.recv(4096)
    assert "sites" in server.client.call("GET", "/sites")
