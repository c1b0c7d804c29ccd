"""A secure sum of real site processes over TLS, of which some are killed in the middle of each round.

Each site is a process of its own that polls a mailbox server, answers from its own folder and reads its own table. The
processes are forked from one that has loaded the libraries, so that what is timed is the protocol. Killed processes
are started again after the sum was opened, and poll what they missed: their ledgers must not pay twice.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import dpcausal as dpc
from benchmarks.federation.mailbox import join_sites
from dpcausal.errors import RefusedError
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.protocol.messages import STEPS, Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site.sessions import SESSIONS, unfinished_sessions
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.mailbox.poller import Outbox, Poller, client_in
from dpcausal.federation.transports.mailbox.transport import MailboxTransport
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.mailbox_server import MailboxServer
from tests.support.site_folders import allow_secure_sums, approve_study, make_site_folder

UNITS = 200
EVERY = 3.0
KILLS: Mapping[str, int] = {"shares": 3, "masked": 4, "confirm": 2, "unmask": 1}
"""The number of sites to kill in each round, as soon as the first site has answered it."""


def measure(
    folder: Path, sites: int = 50, kills: Mapping[str, int] = KILLS, timeout: float = 90.0, after: float = 45.0
) -> dict[str, Any]:
    """Run one study with secure sums while sites are killed, and count what was answered and paid."""
    names = [f"site{place:02}" for place in range(sites)]
    honest = -(-2 * sites // 3)
    server = MailboxServer(folder / "workspace", workers=2, threads=8)
    with server:
        keys = {name: _create(server, folder / name, place) for place, name in enumerate(names)}
        allow_secure_sums({name: folder / name for name in names})
        join_sites(server, folder, names)
        study = _study(keys, honest)
        processes = {name: _started(folder / name, study) for name in names}
        try:
            result = _Run(server, folder, study, processes, kills, timeout).result()
            for name in result["killed"]:
                processes[name] = _started(folder / name, study)
            time.sleep(after)
        finally:
            for process in processes.values():
                process.kill()
                process.join()
    return {"sites": sites, "honest": honest, "units": sites * UNITS, **result, **_left(folder, names)}


def described(result: Mapping[str, Any]) -> str:
    """Return a run in words, for the documentation."""
    killed = ", ".join(f"{count} in round {STEPS.index(step) + 1}" for step, count in result["killed_by_round"].items())
    kilobytes = max(result["bytes_of_requests"].values()) / 1000
    return f"""- {result["sites"]} sites, `honest` {result["honest"]}; killed: {killed}.
- {result["outcome"]}, with {result["in_the_sum"]} sites in the sum, in {result["seconds"]:.0f} seconds, at a load average of {result["load_average"][0]:.0f}.
- {result["sites_that_paid"]} sites paid, and none more than {result["most_debits_of_a_site"]} time; \
{result["sites_that_confirmed"]} confirmed a sum, none more than {result["most_confirmations_of_a_site"]}.
- Sites of which shares of both kinds left: {result["opened_twice"]}. Sessions that hold secrets at the end: {result["sessions_with_secrets"]}.
- The largest request has {kilobytes:.0f} kB. The privacy error is {result["privacy_sd_over_one_table"]} times that of one table with the same units.
"""  # noqa: E501 (lines of a list)


def _study(keys: Mapping[str, str], honest: int) -> dpc.Study:
    return dpc.Study(
        name="secure",
        question="Does treatment raise the score?",
        requester="anna",
        schema=standard_schema(),
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        pooling="sums",
        aggregation="secure",
        secure={"honest": honest, "colluding": 0},
        sites=keys,
    )


def _create(server: MailboxServer, folder: Path, place: int) -> str:
    schema = standard_schema()
    table = synthetic_table(schema, UNITS, seed=place)
    return make_site_folder(folder, folder.name, table, schema, {"anna": server.anna.public}, witness="witness.log")


def _started(folder: Path, study: dpc.Study) -> BaseProcess:
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(folder, study), daemon=True)
    process.start()
    return process


def _serve(folder: Path, study: dpc.Study) -> None:
    """Approve the study, then poll until killed."""
    site = Site(folder)
    if site.status(site.receive(study.to_toml())) != "approved":
        approve_study(folder, study)
    mailbox = folder / "mailbox"
    client = client_in(mailbox, Key.read(folder.name, folder / "site.key"))
    with (folder / "poll.log").open("a", encoding="utf-8") as log:
        Poller(
            client, Outbox(mailbox / "outbox"), site.answer, lambda line: print(line, file=log, flush=True), EVERY
        ).run(threading.Event())


class _Run:
    """One run of the study, during which sites are killed."""

    def __init__(  # noqa: PLR0913, PLR0917 (what a run needs)
        self,
        server: MailboxServer,
        folder: Path,
        study: dpc.Study,
        processes: Mapping[str, BaseProcess],
        kills: Mapping[str, int],
        timeout: float,
    ) -> None:
        self._study, self._processes, self._kills = study, processes, kills
        self._store = folder / "requests.db"
        self._answered: dict[str, set[str]] = {}
        self._killed: dict[str, str] = {}
        self._first: dict[str, float] = {}
        self._coordinator = dpc.Coordinator(
            study.to_toml(),
            server.workspace.roster,
            server.anna,
            MailboxTransport(server.client),
            store=self._store,
            timeout=timeout,
            attempts=1,
            on_response=self._responded,
        )

    def result(self) -> dict[str, Any]:
        """Run the study, and return what came of it."""
        began = time.monotonic()
        effect, refused = None, ""
        try:
            effect = self._coordinator.run()
        except RefusedError as error:
            refused = error.problem
        took = time.monotonic() - began
        shares = effect.sites if effect else ()
        plain = replace(self._study, aggregation="plain", secure={}, sites={})
        one_table = plain.rehearsed(effect.n).privacy_sd if effect else None
        return {
            "outcome": "answered" if effect else "refused",
            "refused": refused,
            "in_the_sum": sum(share.status == "answered" for share in shares),
            "killed": dict(sorted(self._killed.items())),
            "killed_by_round": dict(Counter(self._killed.values())),
            "answers_by_round": {step: len(sites) for step, sites in self._answered.items()},
            "seconds": round(took, 1),
            "bytes_of_requests": self._sizes(),
            "estimate": effect.estimate if effect else None,
            "privacy_sd": effect.privacy_sd if effect else None,
            "privacy_sd_over_one_table": round(effect.privacy_sd / one_table, 3) if effect and one_table else None,
            "opened_twice": self._opened_twice(),
            "load_average": [round(each, 1) for each in os.getloadavg()],
        }

    def _responded(self, site: str, words: str) -> None:
        """Note an answer; at the first one of a round, kill sites that have not answered it yet."""
        if not words.startswith("answered"):
            return
        step = STEPS[int(words.partition("(round ")[2][0]) - 1]
        first = step not in self._answered
        self._answered.setdefault(step, set()).add(site)
        if first:
            alive = [name for name in sorted(self._processes) if name not in self._killed and name != site]
            for name in alive[: self._kills.get(step, 0)]:
                pid = self._processes[name].pid
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                self._killed[name] = step

    def _sizes(self) -> dict[str, int]:
        texts = Requests(self._store).texts_of(self._study.digest)
        return {Request.from_json(claimed_body(text)).ask: len(text) for text in texts}

    def _opened_twice(self) -> int:
        """Return for how many sites both kinds of shares left any site: with enough of both, it would be unmasked."""
        store, seeds, mask_keys = Requests(self._store), set[str](), set[str]()
        for request, _, _, _ in store.asked():
            for _, text in store.messages(request):
                answer = Message.from_json(claimed_body(text)).answer or {}
                seeds |= set(answer.get("unmask", {}).get("seeds", {}))
                mask_keys |= set(answer.get("unmask", {}).get("mask_keys", {}))
        return len(seeds & mask_keys)


def _left(folder: Path, names: list[str]) -> dict[str, Any]:
    """Return how often sites paid and confirmed, from their ledgers, and how many sessions still hold secrets."""
    kinds = [_kinds(folder / name) for name in names]
    return {
        "sites_that_paid": sum("debit" in each for each in kinds),
        "most_debits_of_a_site": max(each["debit"] for each in kinds),
        "sites_that_confirmed": sum("confirm" in each for each in kinds),
        "most_confirmations_of_a_site": max(each["confirm"] for each in kinds),
        "sessions_with_secrets": sum(len(unfinished_sessions(folder / name / SESSIONS)) for name in names),
    }


def _kinds(folder: Path) -> Counter[str]:
    return Counter(entry.kind for entry in Site(folder).ledger().entries())
