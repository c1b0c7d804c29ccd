"""The health of a coordinator: its servers, its certificates, and which sites of its roster are connected."""

import time
from collections.abc import Iterator
from pathlib import Path

from dpcausal.errors import DpcausalError
from dpcausal.federation.coordinator.backup import NETWORKS
from dpcausal.federation.coordinator.requests import FORMAT as REQUESTS_FORMAT
from dpcausal.federation.coordinator.requests import check_intact
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.contents import MAILBOX, Contents
from dpcausal.federation.operation.health import (
    ATTENTION,
    BROKEN,
    HEALTHY,
    Check,
    Status,
    check_backup,
    check_certificate,
    check_certificates,
    check_disk,
    check_mailbox_server,
    check_serving,
    check_versions,
)
from dpcausal.federation.operation.heartbeat import FRESH_SECONDS, Heartbeat


def federation_status(folder: Path) -> Status:
    """Look at a coordinator's workspace, and return what was found."""
    workspace = Workspace(folder)
    sites = list(workspace.roster.keys)
    checks = (
        *_network(workspace.network, sites),
        *_mailbox(folder / MAILBOX),
        _requests(workspace.store),
        check_disk(folder),
        check_backup(folder, Contents.of(folder, NETWORKS)),
    )
    return Status("federation", folder.resolve().name, (*checks, check_versions({"requests": REQUESTS_FORMAT})))


def _network(network: Path, sites: list[str]) -> Iterator[Check]:
    server = network / "server"
    if not server.is_dir():
        if not (network.parent / MAILBOX).is_dir():
            yield Check("serving", HEALTHY, "without a network: sites answer by files", value=False)
        return
    yield from check_serving(server)
    yield _sites(server, sites)
    yield check_certificate(server, "certificate_server")
    for kit in sorted({*network.glob("requester"), *network.glob("requesters/*")}):
        yield check_certificate(kit, f"certificate_{kit.name}")


def _mailbox(folder: Path) -> Iterator[Check]:
    if folder.is_dir():
        yield check_mailbox_server(folder)
        yield check_certificates("certificate_mailbox", folder / "server.pem", folder / "authority.pem")


def _sites(server: Path, sites: list[str]) -> Check:
    beat = Heartbeat.read(server)
    now = time.time()
    seen = beat.sites if beat else {}
    absent = [site for site in sites if now - seen.get(site, 0.0) > FRESH_SECONDS]
    words = f"{len(sites) - len(absent)} of {len(sites)} connected"
    words += f"; not: {', '.join(absent)}" if absent else ""
    value = {site: site not in absent for site in sites}
    return Check("sites", ATTENTION if absent else HEALTHY, words, value)


def _requests(store: Path) -> Check:
    if not store.exists():
        return Check("requests", HEALTHY, "none yet", 0)
    try:
        count = check_intact(store)
    except DpcausalError as error:
        return Check("requests", BROKEN, error.problem)
    return Check("requests", HEALTHY, f"{count} stored", count)
