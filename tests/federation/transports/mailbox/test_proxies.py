"""Calls through a proxy of the hospital, as HTTPS_PROXY names it."""

from urllib.parse import urlsplit

import pytest

from dpcausal.federation.transports.mailbox.calls import CallFailedError
from dpcausal.federation.transports.mailbox.client import Client
from tests.support.connect_proxy import ConnectProxy
from tests.support.mailbox_server import MailboxServer

pytestmark = pytest.mark.xdist_group("mailbox")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def caller(server: MailboxServer) -> Client:
    return Client(server.mailbox.address, server.mailbox.authority, server.anna)


@pytest.mark.parametrize(
    ("credentials", "address"),
    [
        ("", "http://{place}"),
        ("", "{place}"),
        ("adams:p@ss word", "http://adams:p%40ss%20word@{place}"),
        ("adams:secret", "adams:secret@{place}"),
    ],
)
def test_a_call_goes_through_the_proxy(
    server: MailboxServer, monkeypatch: pytest.MonkeyPatch, credentials: str, address: str
) -> None:
    with ConnectProxy(credentials) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", address.format(place=proxy.place))
        client = caller(server)
        assert "sites" in client.call("GET", "/sites")
        client.close()
    assert proxy.opened == [urlsplit(server.mailbox.address).netloc]


def test_no_proxy_is_heeded(server: MailboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", urlsplit(server.mailbox.address).hostname or "")
    assert "sites" in caller(server).call("GET", "/sites")


@pytest.mark.parametrize(
    "address", ["http://adams:wrong@{place}", "http://{place}", "socks5://adams:wrong@{place}", "http://[adams:wrong"]
)
def test_an_unusable_proxy_is_named_without_its_password(
    server: MailboxServer, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    with ConnectProxy("adams:secret") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", address.format(place=proxy.place))
        with pytest.raises(CallFailedError, match="HTTPS_PROXY") as raised:
            caller(server).call("GET", "/sites")
    assert raised.value.reason == "proxy"
    assert "wrong" not in str(raised.value)


def test_a_proxy_that_is_down_is_named(server: MailboxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with pytest.raises(CallFailedError, match="HTTPS_PROXY"):
        caller(server).call("GET", "/sites")
