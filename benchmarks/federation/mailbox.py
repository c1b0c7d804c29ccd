"""A thousand sites answer one study through a mailbox whose server is killed again and again; thirty real processes.

The sites of the first part are light: a few processes hold them all. Each has its own key and outbox, and polls as a
site does; its releases are those of a real vault, which five sites share and which has answered before the study
starts, so that what is timed is the server and the transport. The sites of the second part are processes of
`dpcausal site poll`, which read their tables.
"""

import heapq
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import mean, median
from typing import Any

import psutil

import dpcausal as dpc
from dpcausal.errors import RefusedError
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, opened
from dpcausal.federation.transports.mailbox.calls import CallFailedError
from dpcausal.federation.transports.mailbox.client import Client
from dpcausal.federation.transports.mailbox.poller import Outbox, Poller, client_in
from dpcausal.federation.transports.mailbox.transport import MailboxTransport, admit_joined
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.utils.hash_chain import digest_of_text
from tests.support.mailbox_server import MailboxServer
from tests.support.postgres import VARIABLE, fresh_database
from tests.support.site_folders import AS_OF, approve_study, make_site_folder

UNITS = 50
EVERY = 30.0
PROCESSES = 4
THREADS = 6
SHARING = 5


def measure(folder: Path, sites: int = 1000, kills: int = 20, real: int = 30) -> dict[str, Any]:
    """Time one study over light sites, and one over real processes."""
    found = {}
    if sites:
        found["light"] = _measure(folder / "light", sites, kills, _create_light_site, _light_sites)
    if real:
        found["real"] = _measure(folder / "real", real, min(kills, 3), _create_real_site, _real_sites)
    return found


def _study() -> dpc.Study:
    return dpc.Study(
        name="mailbox",
        question="Does treatment raise the score?",
        requester="anna",
        schema=standard_schema(),
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        pooling="minimum_variance",
    )


def _measure(
    folder: Path,
    sites: int,
    kills: int,
    create: Callable[[MailboxServer, Path, int], object],
    start: Callable[..., Any],
) -> dict[str, Any]:
    folder.mkdir(parents=True)
    names = [f"site{place:04}" for place in range(sites)]
    with fresh_database() if VARIABLE in os.environ else nullcontext("sqlite:///mailbox.db") as address:
        server = MailboxServer(folder / "workspace", address, workers=2, threads=8)
        with server:
            for place, name in enumerate(names):
                create(server, folder / name, place)
            began = time.monotonic()
            join_sites(server, folder, names)
            joined = time.monotonic() - began
            with start(server, folder, names) as report:
                prepared = time.monotonic() - began - joined
                result = _run(server, folder, kills)
            result["answered_of"] = f"{result['answered']} of {sites}"
    calls, failed = report["calls"], report["failures"]
    return {
        "database": address.partition(":")[0],
        "sites": sites,
        "seconds_to_join": round(joined, 1),
        "seconds_to_prepare": round(prepared, 1),
        "poll_seconds": EVERY,
        **result,
        "calls": calls,
        "calls_a_second": round(calls / result["seconds_for_the_study"], 1) if calls else None,
        "failed_calls": None if failed is None else dict(sorted(failed.items())),
        "megabytes_of_sites": report["megabytes"],
        "load_average": [round(each, 1) for each in os.getloadavg()],
    } | {key: value for key, value in report.items() if key not in {"calls", "failures", "megabytes"}}


def _create_light_site(server: MailboxServer, folder: Path, place: int) -> None:
    del server, place
    folder.mkdir()
    Key.make(folder.name, folder / "site.key")


def _create_real_site(server: MailboxServer, folder: Path, place: int) -> None:
    schema = standard_schema()
    table = synthetic_table(schema, UNITS, seed=place)
    make_site_folder(folder, folder.name, table, schema, {"anna": server.anna.public}, seconds=300)
    approve_study(folder, _study())


def join_sites(server: MailboxServer, folder: Path, names: list[str]) -> None:
    """Let each site join by a token, one after another, as fast as the server admits."""
    for name in names:
        while True:
            try:
                server.join(Key.read(name, folder / name / "site.key"), folder / name / "mailbox")
            except CallFailedError as error:
                if error.reason != "busy":
                    raise
                time.sleep(error.retry_after)
            else:
                break
    admit_joined(server.client, folder / "workspace" / "mailbox" / "invitations", server.workspace)


def _run(server: MailboxServer, folder: Path, kills: int) -> dict[str, Any]:
    """Run the study while the server is killed, each time after a share of the sites has answered."""
    answered: dict[str, float] = {}
    transport = MailboxTransport(server.client)
    coordinator = dpc.Coordinator(
        _study().to_toml(),
        server.workspace.roster,
        server.anna,
        transport,
        store=folder / "requests.db",
        timeout=1200.0,
        attempts=1,
        on_response=lambda site, _: answered.update({site: time.monotonic()}),
    )
    effects: list[dpc.Effect] = []
    asking = threading.Thread(target=lambda: effects.append(coordinator.run()))
    total = len(server.workspace.roster.sites)
    began = time.monotonic()
    asking.start()
    killed, down, memory = 0, 0.0, list[float]()
    while asking.is_alive():
        asking.join(0.2)
        memory.append(sum(server.megabytes()))
        if killed < kills and len(answered) >= total * killed // (kills + 1) and time.monotonic() - began > 2:
            since = time.monotonic()
            server.kill()
            server.start(120)
            killed, down = killed + 1, down + time.monotonic() - since
    took = time.monotonic() - began
    times = sorted(each - began for each in answered.values())
    shares = effects[0].sites if effects else ()
    return {
        "answered": sum(share.status == "answered" for share in shares),
        "seconds_for_the_study": round(took, 1),
        "seconds_until_half_had_answered": round(median(times), 1) if times else None,
        "kills": killed,
        "seconds_without_a_server": round(down, 1),
        "megabytes_of_server": round(max(memory), 1),
        "failed_calls_of_the_coordinator": dict(sorted(transport.failures.items())),
        "estimate": effects[0].estimate if effects else None,
        "standard_error": effects[0].standard_error if effects else None,
    }


@contextmanager
def _light_sites(server: MailboxServer, folder: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    """Start a few processes that hold all sites; gives what they counted once they have ended."""
    report: dict[str, Any] = {}
    command = [sys.executable, "-m", "benchmarks.federation.mailbox", str(folder), server.anna.public]
    shares = [names[place::PROCESSES] for place in range(PROCESSES)]
    processes = [
        subprocess.Popen([*command, *share], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for share in shares
        if share
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield report
        found = [json.loads(process.communicate("stop\n", timeout=120)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    report |= {
        "processes_of_sites": len(processes),
        "calls": sum(each["calls"] for each in found),
        "failures": dict(sum((Counter(each["failures"]) for each in found), Counter[str]())),
        "computed": sum(each["computed"] for each in found),
        "left_in_outboxes": sum(each["left"] for each in found),
        "megabytes": [round(each["megabytes"], 1) for each in found],
    }


@contextmanager
def _real_sites(server: MailboxServer, folder: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    """Start a process of `dpcausal site poll` for each site; gives their memory once they have ended."""
    del server
    report: dict[str, Any] = {}
    processes = []
    for name in names:
        with (folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "dpcausal", "site", "poll", str(folder / name), "--every", str(EVERY)]
            processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))  # noqa: S603
    try:
        yield report
        held = [psutil.Process(process.pid).memory_full_info() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    lines = [(folder / f"{name}.log").read_text(encoding="utf-8") for name in names]
    report |= {
        "calls": None,
        "failures": None,
        "disconnections_in_logs": dict(Counter(each.split("reason=")[1].split()[0] for each in _disconnected(lines))),
        "computed": sum(text.count("event=study") for text in lines),
        "left_in_outboxes": sum(len(list((folder / name / "mailbox" / "outbox").glob("*.json"))) for name in names),
        "megabytes": {
            "resident": round(mean(each.rss for each in held) / 2**20, 1),
            "own": round(mean(each.uss for each in held) / 2**20, 1),
            "most": round(max(each.rss for each in held) / 2**20, 1),
        },
    }


def _disconnected(texts: list[str]) -> list[str]:
    return [line for text in texts for line in text.splitlines() if "event=disconnected" in line]


class _CountingClient:
    """A client that counts its calls, and the failed ones by reason."""

    def __init__(self, client: Client, calls: Counter[str]) -> None:
        self._client, self._calls = client, calls

    def call(self, *parts: Any, **query: Any) -> dict[str, Any]:  # noqa: ANN401 (as of a client)
        self._calls["all"] += 1
        try:
            return self._client.call(*parts, **query)
        except CallFailedError as error:
            self._calls[error.reason] += 1
            raise

    def close(self) -> None:
        self._client.close()


def _content(name: str, place: int) -> dict[str, Any]:
    """Return the content of an answer to the study, from a small vault."""
    study = _study()
    table = synthetic_table(study.schema, UNITS, seed=place)
    vault = dpc.Vault(table, study.schema, ledger="sqlite://", budget=dpc.Budget(epsilon=10.0), as_of=AS_OF)
    releases = study.prepare(vault, name).run().releases
    answer = {"releases": [json.loads(release.to_json()) for release in releases]}
    return {"n": vault.n, "arm_sizes": vault.arm_sizes, "as_of": vault.as_of, "answer": answer}


class _LightSite:
    """A site whose releases were computed beforehand."""

    def __init__(self, key: Key, anna: str, content: Mapping[str, Any]) -> None:
        self._key, self._anna, self._content = key, anna, content
        self._study = _study().to_toml()
        self.computed = 0

    def answer(self, request: str) -> str:
        """Verify a request, and sign the answer."""
        _, body = opened(request, {"anna": self._anna})
        asked = Request.from_json(body)
        if asked.study != self._study:
            raise RefusedError(expected="the study", got="another one", hint="none.")
        self.computed += 1
        study = digest_of_text(asked.study)
        message = Message(request=asked.id, study=study, site=self._key.owner, code="answered", **self._content)
        return self._key.seal(message.to_json())


def _hold_sites(folder: Path, anna: str, names: list[str]) -> None:
    """Hold sites in this process: poll for each of them when it is due, until a line arrives on standard input."""
    calls: Counter[str] = Counter()
    sites: list[_LightSite] = []
    pollers, content = [], dict[str, Any]()
    for name in names:
        key = Key.read(name, folder / name / "site.key")
        if len(sites) % SHARING == 0:
            content = _content(name, int(name.removeprefix("site")))
        sites.append(_LightSite(key, anna, content))
        client: Any = _CountingClient(client_in(folder / name / "mailbox", key), calls)
        outbox = Outbox(folder / name / "mailbox" / "outbox")
        pollers.append(Poller(client, outbox, sites[-1].answer, lambda _: None, EVERY))
    stop, lock = threading.Event(), threading.Lock()
    now = time.monotonic()
    due = [(now + EVERY * place / len(pollers), place) for place in range(len(pollers))]
    heapq.heapify(due)

    def work() -> None:
        while not stop.is_set():
            with lock:
                at, place = heapq.heappop(due) if due else (float("inf"), 0)
            if stop.wait(min(1.0, max(0.0, at - time.monotonic()))) or at - time.monotonic() > 0:
                if at < float("inf"):
                    with lock:
                        heapq.heappush(due, (at, place))
                continue
            pause = pollers[place].turn()
            with lock:
                heapq.heappush(due, (time.monotonic() + pause, place))

    print("ready", flush=True)
    with ThreadPoolExecutor(THREADS) as pool:
        working = [pool.submit(work) for _ in range(THREADS)]
        sys.stdin.readline()
        stop.set()
        for each in working:
            each.result()
    print(
        json.dumps(
            {
                "calls": calls.pop("all", 0),
                "failures": calls,
                "computed": sum(site.computed for site in sites),
                "left": sum(len(list((folder / name / "mailbox" / "outbox").glob("*.json"))) for name in names),
                "megabytes": psutil.Process().memory_info().rss / 2**20,
            }
        )
    )


if __name__ == "__main__":
    _hold_sites(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
