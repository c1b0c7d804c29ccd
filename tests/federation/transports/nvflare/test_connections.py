"""Connections to a server and inside a site: limited, denied and closed. With real processes over TLS."""

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from dpcausal.federation.transports.nvflare.connections import STREAMS_OF_ONE, Connections
from dpcausal.federation.transports.nvflare.hardening import check_hardened
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.federation_processes import SERVER, Federation
from tests.support.site_folders import make_site_folder

pytestmark = [pytest.mark.costly("src"), pytest.mark.xdist_group("federation")]

REVOKED = f"""[sites.north]
key = "{"ab" * 32}"
revoked = true
"""


class Stream:
    """A stream as a server sees it."""

    def __init__(self) -> None:
        self.status: grpc.StatusCode | None = None

    def abort(self, status: grpc.StatusCode, words: str) -> None:
        self.status = status
        raise ConnectionAbortedError(words)

    def cancel(self) -> None:
        self.status = grpc.StatusCode.CANCELLED


def test_one_certificate_holds_a_limited_number_of_streams() -> None:
    connections, one_too_many = Connections(None, print), Stream()
    held = [connections.admitted("north", Stream()) for _ in range(STREAMS_OF_ONE)]
    for each in held:
        each.__enter__()
    with pytest.raises(ConnectionAbortedError), connections.admitted("north", one_too_many):
        pass
    assert one_too_many.status == grpc.StatusCode.RESOURCE_EXHAUSTED
    with connections.admitted("south", Stream()):  # another certificate is not affected
        pass
    held[0].__exit__(None, None, None)
    with connections.admitted("north", Stream()):
        pass


def test_revoked_site_is_closed_and_denied_until_the_roster_changes(tmp_path: Path) -> None:
    roster, lines = tmp_path / "roster.toml", list[str]()
    roster.write_text("")
    connections, north, south, later = Connections(roster, lines.append), Stream(), Stream(), Stream()
    connections.refresh()
    with connections.admitted("north", north), connections.admitted("south", south):
        roster.write_text(REVOKED)
        connections.refresh()
        assert (north.status, south.status) == (grpc.StatusCode.CANCELLED, None)
        assert ["north" in line for line in lines] == [True]
    with pytest.raises(ConnectionAbortedError), connections.admitted("north", later):
        pass
    assert later.status == grpc.StatusCode.PERMISSION_DENIED
    roster.write_text("not TOML = = =")
    for _ in range(3):
        connections.refresh()
    assert len(lines) == 2  # said once
    with pytest.raises(ConnectionAbortedError), connections.admitted("north", Stream()):
        pass
    roster.write_text("# nobody is revoked")
    connections.refresh()
    with connections.admitted("north", Stream()):
        pass


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("connections")
    schema = standard_schema()
    sites = {name: folder / name for name in ("north", "south")}
    for name, where in sites.items():
        make_site_folder(where, name, synthetic_table(schema, 100), schema, {"anna": "ab" * 32})
    federation = Federation(folder / "kits", sites)
    try:
        federation.start(SERVER)
        federation.start("north")
        yield federation
    finally:
        federation.stop()


# Opens streams with the certificate of a kit, and prints how many are held and how many were refused after a while.
_FLOOD = """
import json, sys, threading, time
from pathlib import Path
import grpc
from nvflare.fuel.f3.drivers.grpc.streamer_pb2_grpc import StreamerStub
startup, number, seconds = Path(sys.argv[1]) / "startup", int(sys.argv[2]), float(sys.argv[3])
target = json.loads((startup / "fed_client.json").read_text())["servers"][0]["service"]["target"]
parts = [(startup / name).read_bytes() for name in ("rootCA.pem", "client.key", "client.crt")]
forever = threading.Event()
def nothing():
    forever.wait()
    yield None
calls = []
for _ in range(number):
    channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(*parts))
    calls.append((channel, StreamerStub(channel).Stream(nothing())))
end = time.monotonic() + seconds
while time.monotonic() < end and sum(call.is_active() for _, call in calls) > 16:
    time.sleep(0.2)
time.sleep(2)
codes = [call.code().name for _, call in calls if not call.is_active()]
print(json.dumps({"held": sum(call.is_active() for _, call in calls), "refused": codes}), flush=True)
sys.stdin.read()
import os
os._exit(0)
"""


def flood(kit: Path, number: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _FLOOD, str(kit), str(number), "60"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def flooded(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout
    return dict(json.loads(process.stdout.readline()))


def test_one_site_cannot_shut_out_another(fed: Federation) -> None:
    with flood(fed.kits["north"], 150) as attack:
        found = flooded(attack)
        assert found["held"] < STREAMS_OF_ONE  # the site itself holds one
        assert set(found["refused"]) == {"RESOURCE_EXHAUSTED"}
        assert found["held"] + len(found["refused"]) == 150
        began = time.monotonic()
        fed.start("south")
        print(f"{found['held']} held; south registered in {time.monotonic() - began:.1f} s")  # noqa: T201
        attack.communicate()


def test_site_listens_on_no_port(fed: Federation) -> None:
    process = psutil.Process(fed._running["north"].pid)
    assert [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN] == []
    internal = fed.kits["north"] / "internal.sock"
    assert stat.S_ISSOCK(internal.stat().st_mode)
    assert not internal.stat().st_mode & 0o077
    server = psutil.Process(fed._running[SERVER].pid)
    listening = {each.laddr.port for each in server.net_connections("inet") if each.status == psutil.CONN_LISTEN}
    assert len(listening) == 1


_PROCESS_INFO = """
import json, os, sys
from nvflare.fuel.flare_api.flare_api import new_secure_session
admin = json.load(open(sys.argv[1] + "/startup/fed_admin.json"))["admin"]["username"]
session = new_secure_session(admin, sys.argv[1], timeout=60)
said = [repr(session.api.do_command(command)) for command in sys.argv[2:]]
print("SAID" + json.dumps(said), flush=True)
os._exit(0)
"""


def test_no_process_reports_about_itself(fed: Federation) -> None:
    commands = ["process_info north", "peers north", "stop_cell north", "process_info server", "list_jobs"]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _PROCESS_INFO, str(fed.transport.kit), *commands],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("SAID"))
    *refused, allowed = json.loads(line.removeprefix("SAID"))
    assert all(said.endswith("not found'}") for said in refused), refused
    assert "No jobs found" in allowed  # the requester is logged in


# Connects to a site as its own server would through a task: by the socket in the kit, with the rights of its owner.
_INSIDE = """
import json, sys, time
from dpcausal.federation.transports.nvflare.local_socket import driver_mgr, LocalSocketDriver
from nvflare.fuel.f3.cellnet.core_cell import CoreCell, Message
driver_mgr.register(LocalSocketDriver)
cell = CoreCell("north.evil", root_url="", secure=False, credentials={}, parent_url="unix://kit")
cell.start()
while not cell.is_backbone_ready():
    time.sleep(0.1)
topics = ("process_info", "peers", "config_vars", "stop_cell")
said = {}
for topic in topics:
    reply = cell.send_request("_net_manager", topic, "north", Message(payload={}), timeout=5.0)
    said[topic] = [reply.get_header("cn__return_code"), reply.get_header("cn__error"), reply.payload is None]
print("SAID" + json.dumps(said), flush=True)
import os
os._exit(0)
"""


def test_process_of_the_same_user_learns_nothing_from_a_site(fed: Federation) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _INSIDE],
        env=os.environ | {"DPCAUSAL_KIT": str(fed.kits["north"])},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("SAID"))
    said = json.loads(line.removeprefix("SAID"))
    assert all(code == "process_exception" and why == "no callback" for code, why, _ in said.values()), said


def test_revocation_closes_the_connection_and_other_sites_stay(fed: Federation) -> None:
    began = time.monotonic()
    fed.roster.write_text(REVOKED)
    fed.wait_for(SERVER, "Closed a connection of north")
    print(f"closed after {time.monotonic() - began:.1f} s")  # noqa: T201
    with flood(fed.kits["north"], 3) as attack:
        assert flooded(attack) == {"held": 0, "refused": ["PERMISSION_DENIED"] * 3}
        attack.communicate()
    with flood(fed.kits["south"], 3) as other:
        assert flooded(other)["held"] == 3
        other.communicate()


def test_limits_are_hardened_settings(fed: Federation) -> None:
    for kit in fed.kits.values():
        check_hardened(kit)
    settings = json.loads((fed.kits[SERVER] / "local" / "comm_config.json").read_text())
    assert settings["grpc"]["max_workers"] == 1_000
