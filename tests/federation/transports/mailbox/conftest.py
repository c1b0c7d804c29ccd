"""The mailbox's application without a network, and a real server."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.transports.mailbox.calls import sign_call
from dpcausal.federation.transports.mailbox.invitations import Invitation
from dpcausal.federation.transports.mailbox.server import create_app
from dpcausal.federation.transports.mailbox.settings import Mailbox
from dpcausal.federation.transports.mailbox.store import MailboxStore
from dpcausal.utils.hash_chain import digest_of_text
from tests.support.mailbox_server import MailboxServer
from tests.support.postgres import VARIABLE, fresh_database

ADDRESS = "https://mailbox.example:8443"


@dataclass
class Desk:
    """The application, with the keys of anna and ben, who may send requests, and of sites."""

    app: FlaskClient
    folder: Path
    authority: str
    lines: list[str]
    database: str

    def key(self, name: str) -> Key:
        file = self.folder / f"{name}.key"
        return Key.read(name, file) if file.exists() else Key.make(name, file)

    def call(
        self, name: str, method: str, target: str, document: Mapping[str, Any] | None = None, **changes: Any
    ) -> tuple[int, dict[str, Any]]:
        """Make a signed call, and return its status and its document. Changes are to the header or the body."""
        body = b"" if document is None else json.dumps(document).encode()
        header = sign_call(self.key(name), ADDRESS, method, target, body)
        headers = {"Authorization": changes.get("header", header)}
        return self.send(method, target, changes.get("body", body), headers)

    def send(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        reply = self.app.open(target, method=method, data=body, headers=dict(headers))
        return reply.status_code, reply.get_json()

    def invite(self, site: str, expires: int = 2**40, by: str = "anna", status: int = 200) -> Invitation:
        invitation = Invitation.new(ADDRESS, self.authority, site, expires)
        document = {"site": site, "pass_digest": digest_of_text(invitation.door_pass), "expires": expires}
        assert self.call(by, "POST", "/invitations", document)[0] == status
        return invitation

    def join(self, invitation: Invitation, key: Key | None = None) -> int:
        key = key or self.key(invitation.site)
        parts = {"site": invitation.site, "key": key.public}
        proof = {"pass": invitation.door_pass, "binding": invitation.bind(key.public)}
        return self.send("POST", "/join", key.seal(json.dumps(parts | proof)).encode(), {})[0]

    def joined(self, *sites: str) -> None:
        for site in sites:
            assert self.join(self.invite(site)) == 200

    def ask(self, study: str, *sites: str, by: str = "anna") -> Request:
        request = Request(study=study, ask="releases")
        document = {"text": self.key(by).seal(request.to_json()), "sites": list(sites)}
        assert self.call(by, "POST", "/requests", document) == (200, {})
        return request

    def message(self, site: str, request: Request) -> str:
        body = Message(request=request.id, study="", site=site, code="undecided")
        return self.key(site).seal(body.to_json())

    def waiting(self, site: str) -> list[dict[str, Any]]:
        status, document = self.call(site, "GET", "/requests?after=0")
        assert status == 200
        return list(document["requests"])


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> str:
    return Mailbox.create(tmp_path_factory.mktemp("authority"), ADDRESS, "sqlite:///mailbox.db", {}, 1).authority


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, authority: str) -> Iterator[Desk]:
    """The application on an empty database, of each kind."""
    if request.param == "sqlite":
        yield opened(tmp_path, f"sqlite:///{tmp_path / 'mailbox.db'}", authority)
    elif VARIABLE not in os.environ:
        pytest.skip(f"the environment variable {VARIABLE} names no server")
    else:
        with fresh_database() as address:
            yield opened(tmp_path, address, authority)


def opened(folder: Path, database: str, authority: str) -> Desk:
    store, lines = MailboxStore(database, 2), list[str]()
    store.create({name: Key.make(name, folder / f"{name}.key").public for name in ("anna", "ben")})
    return Desk(create_app(store, ADDRESS, lines.append).test_client(), folder, authority, lines, database)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailboxServer]:
    """A real server, for tests that leave it as it is."""
    with MailboxServer(tmp_path_factory.mktemp("server") / "workspace") as running:
        yield running
