"""Fifty sites on one machine in one study: each a process of its own that dials a server over TLS."""

import threading
import time
from pathlib import Path
from statistics import mean
from typing import Any

import dpcausal as dpc
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.signatures import Key
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.federation_processes import SERVER, Federation, Memory
from tests.support.site_folders import approve_study, make_site_folder


def measure(folder: Path, sites: int = 50, units: int = 200) -> dict[str, Any]:
    """How long one study takes, and what memory each kind of process holds meanwhile."""
    key = Key.make("anna", folder / "anna.key")
    schema = standard_schema()
    study = dpc.Study(
        name="many",
        question="Does treatment raise the score?",
        requester="anna",
        schema=schema,
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        pooling="minimum_variance",
    )
    members = {}
    for place in range(sites):
        name = f"site{place:03}"
        table = synthetic_table(schema, units, seed=place)
        members[name] = Member(make_site_folder(folder / name, name, table, schema, {"anna": key.public}, seconds=300))
        approve_study(folder / name, study)
    start = time.monotonic()
    federation = Federation(folder / "kits", {name: folder / name for name in members})
    provisioned = time.monotonic() - start
    seen: list[Memory] = []
    with federation:
        started = time.monotonic() - start - provisioned
        done = threading.Event()
        watcher = threading.Thread(target=_watch, args=(federation, list(members), seen, done))
        watcher.start()
        store = folder / "many.db"
        coordinator = dpc.Coordinator(
            study.to_toml(), Roster(members), key, federation.transport, store=store, timeout=400.0, attempts=2
        )
        asked = time.monotonic()
        effect = coordinator.run()
        took = time.monotonic() - asked
        done.set()
        watcher.join()
        server = federation.memory(SERVER)
    return {
        "sites": sites,
        "answered": sum(share.status == "answered" for share in effect.sites),
        "seconds_to_provision": round(provisioned),
        "seconds_to_start": round(started),
        "seconds_for_the_study": round(took),
        "megabytes": {part: _megabytes(seen, part) for part in ("site", "task", "answer")},
        "megabytes_of_server": round(sum(each.own for each in server)),
        "estimate": effect.estimate,
        "standard_error": effect.standard_error,
    }


def _watch(federation: Federation, sites: list[str], seen: list[Memory], done: threading.Event) -> None:
    """Look at a few sites, time and again."""
    while not done.wait(2.0):
        for site in sites[::10]:
            seen.extend(federation.memory(site))


def _megabytes(seen: list[Memory], part: str) -> dict[str, float]:
    """Return what one process of a kind holds: on average by itself, and at most with what it shares."""
    found = [each for each in seen if each.part == part]
    if not found:
        return {}
    return {"own": round(mean(each.own for each in found), 1), "most": round(max(each.resident for each in found), 1)}
