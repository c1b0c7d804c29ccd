"""A real federation of processes over TLS: three sites as they should be, and one as NVFlare would have it.

The open site is the control: what is refused by the other three goes through there, and what never leaves them leaves
it.
"""

import contextlib
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from nvflare.lighter.utils import Identity, generate_cert, generate_keys, serialize_cert, serialize_pri_key

from dpcausal import DifferenceInMeans, Study
from dpcausal.errors import TransportError
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, opened
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.nvflare.job import AT_SITES, write_job
from dpcausal.federation.transports.nvflare.provision import (
    _request,
    fingerprint_of,
    install_kit,
    renew,
    request_kit,
    request_renewal,
    sign,
)
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.federation_processes import SERVER, Federation, holding
from tests.support.site_folders import approve_study, make_site_folder

pytestmark = [pytest.mark.costly("src"), pytest.mark.xdist_group("federation")]

SITES = ("north", "south", "west")
OPEN = "open"
STRANGERS = ("bare", "forger", "impostor")
MARKER = "the-patient-in-bed-7"
SHOUTED = "the-patient-in-bed-8"
"""What code at a site would shout out in an error."""

_STOCK = [sys.executable, "-m", "nvflare.private.fed.app.client.client_train", "-s", "fed_client.json"]
_SUBMIT = """
import json, os, sys, time
from nvflare.fuel.flare_api.flare_api import new_secure_session
admin = json.load(open(sys.argv[1] + "/startup/fed_admin.json"))["admin"]["username"]
session = new_secure_session(admin, sys.argv[1], timeout=60)
number = session.submit_job(sys.argv[2])
while not session.get_job_status(number).startswith("FINISHED"):
    time.sleep(0.5)
print(json.dumps(session.get_job_meta(number)), flush=True)
os._exit(0)
"""
_EVIL = f"""
from pathlib import Path
from nvflare.apis.executor import Executor

class Evil(Executor):
    def execute(self, *nothing):
        Path("code_ran").touch()
        raise RuntimeError("{SHOUTED}")
"""


@dataclass
class Asked:
    """Messages to a request, as they come in."""

    fed: Federation
    request: str
    messages: dict[str, str] = field(default_factory=dict)

    def of(self, sites: Sequence[str] = SITES, timeout: float = 120.0) -> dict[str, str]:
        self.fed.transport.ask(self.request, sites, timeout, self.messages.__setitem__)
        return self.messages

    def meanwhile(self) -> threading.Thread:
        thread = threading.Thread(target=self.of)
        thread.start()
        return thread

    def wait_for(self, *sites: str) -> None:
        end = time.monotonic() + 100
        while not self.messages.keys() >= set(sites):
            assert time.monotonic() < end
            time.sleep(0.1)


@dataclass(frozen=True)
class Network:
    """The federation, and what is needed to ask."""

    fed: Federation
    keys: dict[str, str]
    request: str
    facts: str

    def asked(self) -> Asked:
        return Asked(self.fed, self.request)

    def as_they_would_answer(self) -> dict[str, str]:
        """What each site has answered, once and for all."""
        return {site: Site(self.fed.sites[site]).answer(self.request) for site in SITES}

    def read(self, messages: dict[str, str]) -> dict[str, Message]:
        return {site: Message.from_json(opened(text, self.keys)[1]) for site, text in messages.items()}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder = tmp_path_factory.mktemp("federation")
    (folder / "temporary").mkdir()
    schema = standard_schema()
    anna = Key.make("anna", folder / "anna.key")
    study = Study(
        name="scores",
        question="Does treatment raise the score?",
        requester="anna",
        schema=schema,
        estimator=DifferenceInMeans(),
        epsilon=1.0,
        pooling="minimum_variance",
    )
    sites = {name: folder / MARKER / name for name in (*SITES, OPEN)}
    keys = {
        name: make_site_folder(where, name, synthetic_table(schema, 400), schema, {"anna": anna.public})
        for name, where in sites.items()
    }
    for where in sites.values():
        approve_study(where, study)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / "temporary"))
        fed = Federation(folder / "kits", sites)
        asks = [anna.seal(Request(study=study.to_toml(), ask=ask).to_json()) for ask in ("releases", "facts")]
        try:
            fed.start(SERVER)
            fed.start(*SITES)
            yield Network(fed, keys, *asks)
        finally:
            fed.stop()


def test_every_site_answers(network: Network) -> None:
    messages = network.asked().of()
    assert {site: message.code for site, message in network.read(messages).items()} == dict.fromkeys(SITES, "answered")
    assert messages == network.as_they_would_answer()


@pytest.mark.slow
def test_certificates_are_renewed_while_everything_runs(network: Network) -> None:
    fed, north = network.fed, network.fed.kits["north"].parent
    before = (north / "kit" / "startup" / "client.crt").read_bytes()
    signed = sign(fed.coordinator, request_renewal(north), "north")
    renew(fed.coordinator)  # also that of the requester, who asks next
    install_kit(north, signed, fingerprint_of(fed.coordinator))
    assert (north / "kit" / "startup" / "client.crt").read_bytes() != before
    assert network.asked().of() == network.as_they_would_answer()
    fed.kill("north")
    fed.start("north")  # with the new certificate, at a server that still has the old one


@pytest.mark.slow
def test_frozen_site_costs_only_its_own_answer(network: Network) -> None:
    asked = network.asked()
    with network.fed.frozen("south"):
        asking = asked.meanwhile()
        asked.wait_for("north", "west")
        assert set(asked.messages) == {"north", "west"}
    asking.join()
    assert asked.messages == network.as_they_would_answer()  # it came back before the timeout


@pytest.mark.slow  # a lost server stays in the gate
def test_killed_client_costs_only_time(network: Network) -> None:
    asked = network.asked()
    with network.fed.frozen("south"):
        asking = asked.meanwhile()
        for _ in range(2):
            kill_client()
    asking.join()
    assert asked.messages == network.as_they_would_answer()


def kill_client() -> None:
    """Kill the client process of the requester once it runs."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                if (
                    "dpcausal.federation.transports.nvflare.client" in child.cmdline()
                    and child.status() != psutil.STATUS_ZOMBIE
                ):
                    child.kill()
                    return
        time.sleep(0.1)
    raise TimeoutError("there is no client process")


def test_lost_server_costs_only_time(network: Network) -> None:
    asked = network.asked()
    asking = asked.meanwhile()
    while not any(held.part == "task" for held in network.fed.memory("north")):
        assert asking.is_alive()
        time.sleep(0.05)
    network.fed.kill(SERVER)
    be_hostile(network.fed)
    asking.join()
    assert asked.messages == network.as_they_would_answer()


# From here on the server lets everything through and takes every log that it can get.


def be_hostile(fed: Federation) -> None:
    kit = fed.kits[SERVER]
    receiver = {"id": "log_receiver", "path": "nvflare.app_common.logging.job_log_receiver.JobLogReceiver", "args": {}}
    settings = json.loads((kit / "local" / "resources.json").read_text())
    settings |= {"class_allow_list": ["*"], "components": [*settings["components"], receiver]}
    (kit / "local" / "resources.json").write_text(json.dumps(settings))
    rights = {"format_version": "1.0", "permissions": {"lead": "any"}}
    (kit / "local" / "authorization.json").write_text(json.dumps(rights))
    start = "import sys; from pathlib import Path; from dpcausal.federation.transports.nvflare import logs, start; "
    start += "logs.settings = lambda: 'INFO'; "  # all that NVFlare tells
    start += (
        "start._exec('dpcausal.federation.transports.nvflare.server_process', 'fed_server.json', Path(sys.argv[1]))"
    )
    fed.run(SERVER, [sys.executable, "-c", start, str(kit)])
    fed.wait_for(SERVER, "Server started")


def start_as_nvflare_does(fed: Federation, name: str, kit: Path) -> None:
    uid = json.loads((kit / "startup" / "fed_client.json").read_text())["client"]["fqsn"]
    more = ["-m", str(kit), "--set", "secure_train=true", f"uid={uid}", "org=dpcausal", "config_folder="]
    fed.run(name, [*_STOCK, *more])


def open_up(fed: Federation) -> None:
    """Give a site the settings that NVFlare gives it, and no list of classes."""
    kit = fed.kits[OPEN]
    for name in ("authorization.json", "resources.json"):
        shutil.copy(kit / "local" / f"{name}.default", kit / "local" / name)
    (kit / "local" / "comm_config.json").unlink()
    settings = json.loads((kit / "local" / "resources.json").read_text())
    (kit / "local" / "resources.json").write_text(json.dumps(settings | {"class_allow_list": ["*"]}))
    start_as_nvflare_does(fed, OPEN, kit)
    fed.wait_for(OPEN, "Successfully registered client")


def send_strangers(fed: Federation) -> None:
    """One without a certificate, one with a certificate that it made itself, and one with that of another site."""
    private, public = generate_keys()
    forged = generate_cert(Identity("east", "dpcausal"), Identity("benchmark"), private, public)
    for name in STRANGERS:
        kit = fed.folder / name
        shutil.copytree(fed.kits[OPEN], kit, ignore=shutil.ignore_patterns("*.txt", "*.log"))
        if name == "forger":
            (kit / "startup" / "client.key").write_bytes(serialize_pri_key(private))
            (kit / "startup" / "client.crt").write_bytes(serialize_cert(forged))
        startup = json.loads((kit / "startup" / "fed_client.json").read_text())
        startup["client"] |= {"fqsn": "east", "connection_security": "clear" if name == "bare" else "mtls"}
        (kit / "startup" / "fed_client.json").write_text(json.dumps(startup))
        start_as_nvflare_does(fed, name, kit)


def submit(fed: Federation, name: str, executor: dict[str, Any], code: str = "") -> "subprocess.Popen[str]":
    """Submit another job to all four sites."""
    folder = fed.folder / name
    write_job(folder, "request", [*SITES, OPEN], 10)
    config = json.loads(json.dumps(AT_SITES))
    config["executors"][0]["executor"] = executor
    (folder / "sites" / "config" / "config_fed_client.json").write_text(json.dumps(config))
    if code:
        (folder / "sites" / "custom").mkdir()
        (folder / "sites" / "custom" / "evil.py").write_text(code)
    command = [sys.executable, "-c", _SUBMIT, str(fed.transport.kit), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603


@pytest.fixture(scope="module")
def attacked(network: Network) -> dict[str, list[str]]:
    """What sites said to code that was shipped, and to a class that was named, while strangers try to get in."""
    open_up(network.fed)
    send_strangers(network.fed)
    running = {
        "shipped": submit(network.fed, "shipped", {"path": "evil.Evil", "args": {}}, _EVIL),
        "named": submit(network.fed, "named", {"path": "subprocess.Popen", "args": {"args": ["touch", "class_ran"]}}),
    }
    said = {name: process.communicate(timeout=120)[0].splitlines()[-1] for name, process in running.items()}
    return {name: json.loads(text)["job_deploy_detail"] for name, text in said.items()}


@pytest.mark.parametrize(("what", "trace"), [("shipped", "code_ran"), ("named", "class_ran")])
def test_only_our_job_runs_at_a_site(network: Network, attacked: dict[str, list[str]], what: str, trace: str) -> None:
    refused = {f"{site}: not the job of dpcausal" for site in SITES}
    assert refused | {f"{OPEN}: OK"} <= set(attacked[what])
    assert [name for name, kit in network.fed.kits.items() if (kit / trace).exists()] == [OPEN]


@pytest.mark.usefixtures("attacked")
def test_no_error_text_reaches_the_server(network: Network) -> None:
    # In the process of the task: its folder, which is named like the marker, is not a site's any more.
    (network.fed.sites["north"] / "policy.toml").rename(network.fed.sites["north"] / "policy.away")
    # In the process that reads the table: it is not there, and the error says where it should be.
    (network.fed.sites["west"] / "table.parquet").rename(network.fed.sites["west"] / "table.away")
    messages = Asked(network.fed, network.facts).of(["north", "west"], timeout=60)
    assert {site: message.code for site, message in network.read(messages).items()} == {"west": "failed"}
    assert re.search("peer=north.*peer_rc=EXECUTION_EXCEPTION", network.fed.log(SERVER).read_text())
    seen = network.fed.coordinator, network.fed.log(SERVER), network.fed.folder.parent / "temporary"
    assert not holding(MARKER, *seen)
    assert holding(SHOUTED, *seen)  # what was shouted at the open site came through


@pytest.mark.usefixtures("attacked")
def test_clients_without_a_valid_certificate_never_connect(network: Network) -> None:
    there = "Successfully registered client"
    assert [name for name in (*STRANGERS, OPEN) if there in network.fed.log(name).read_text()] == [OPEN]
    assert set(re.findall("New client (.*)@", network.fed.log(SERVER).read_text())) == {OPEN}


def test_authority_signs_only_the_expected_site(network: Network, tmp_path: Path) -> None:
    east = request_kit(tmp_path / "east", "benchmark", "east")
    boss = _request(tmp_path / "boss", "benchmark", {"name": "boss@here.org", "type": "admin", "role": "lead"})
    for request, name in ((east, "north"), (boss, "boss@here.org")):
        with pytest.raises(TransportError, match="the request of a site"):
            sign(network.fed.coordinator, request, name)
        assert not list(request.parent.glob("*.signed.zip"))


def test_kit_of_another_authority_is_refused(network: Network, tmp_path: Path) -> None:
    signed = sign(network.fed.coordinator, request_kit(tmp_path / "east", "benchmark", "east"), "east")
    with pytest.raises(TransportError, match="ingerprint"):
        install_kit(tmp_path / "east", signed, "SHA256:" + ":".join(["00"] * 32))


def test_permissive_site_does_not_start(network: Network) -> None:
    kit = network.fed.kits["south"]
    settings = json.loads((kit / "local" / "resources.json").read_text())
    (kit / "local" / "resources.json").write_text(json.dumps(settings | {"allow_log_streaming": True}))
    network.fed.kill("south")
    with pytest.raises(TimeoutError):
        network.fed.start("south")
    assert "allow_log_streaming is true and not false" in network.fed.log("south").read_text()
