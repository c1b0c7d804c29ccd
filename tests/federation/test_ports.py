"""A service that cannot listen says so at once, and what to do."""

import socket

import pytest

from dpcausal.errors import StudyError
from dpcausal.federation.operation.ports import check_may_listen


def test_port_in_use_is_named_with_what_to_do() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(StudyError, match="Another process listens on") as raised:
            check_may_listen(address)
        assert "--listen" in str(raised.value)
    check_may_listen(address)


@pytest.mark.parametrize("listen", ["127.0.0.1", "8480", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:http"])
def test_address_without_a_port_is_refused(listen: str) -> None:
    with pytest.raises(StudyError, match="an address and a port"):
        check_may_listen(listen)


def test_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StudyError, match=r"cannot listen on 192\.0\.2\.1:8480"):
        check_may_listen("192.0.2.1:8480")
