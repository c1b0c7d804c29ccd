"""A real console on loopback: callers that stall, and strangers that guess passwords."""

import socket
from contextlib import ExitStack
from pathlib import Path

from dpcausal.federation.console.settings import FILE
from tests.federation.console.conftest import PASSWORD
from tests.support.console_server import ConsoleServer

FORM = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\ncsrf="
HEADER = b"GET /login HTTP/1.1\r\nHost: 127.0"


def test_requests_that_stall_do_not_stop_the_console(folder: Path) -> None:
    with ConsoleServer(folder) as console:
        host = {"Host": f"127.0.0.1:{console.port}"}
        for begun in (FORM, HEADER):
            with ExitStack() as stack:
                stalled = [
                    stack.enter_context(socket.create_connection(("127.0.0.1", console.port), 60))
                    for _ in range(24)  # more than the console has threads
                ]
                for connection in stalled:
                    connection.sendall(begun)
                assert console.get("/login", host).status == 200
                for connection in stalled:
                    assert connection.recv(1) in {b"", b"H"}  # closed, or refused in words


def test_strangers_lock_nobody_out_behind_a_proxy(folder: Path) -> None:
    (folder / FILE).write_text('version = 1\naddress = "https://console.north.example"\n')
    with ConsoleServer(folder, behind_proxy=True) as console:

        def login(name: str, password: str, address: str, **cookies: str) -> int:
            return console.login(name, password, forwarded(address), cookies)

        adams = dict[str, str]()
        assert console.login("adams", PASSWORD, forwarded("192.0.2.1"), adams) == 302
        adams = {name: value for name, value in adams.items() if name.endswith("-browser")}  # the session ended
        guesses = [login(f"nobody{number}", "wrong", "203.0.113.9") for number in range(21)]
        assert guesses == [401] * 20 + [429]  # the stranger's address is refused
        assert login("brown", PASSWORD, "192.0.2.2") == 302  # with a new browser
        assert [login("adams", "wrong", f"198.51.100.{number // 5}") for number in range(51)] == [401] * 50 + [429]
        assert login("adams", "wrong", "192.0.2.1") == 429
        for address in ("192.0.2.1", "192.0.2.7"):
            assert login("adams", PASSWORD, address, **adams) == 302
            assert login("adams", "wrong", address, **adams) == 401
            assert login("brown", "wrong", address, **adams) == 401  # it is no browser of Dr. Brown

        unnamed = console.get("/login", {"Host": "console.north.example"})
        assert unnamed.status == 400
        assert b"X-Forwarded-For" in unnamed.data


def forwarded(address: str) -> dict[str, str]:
    return {"Host": "console.north.example", "X-Forwarded-For": address, "X-Forwarded-Proto": "https"}
