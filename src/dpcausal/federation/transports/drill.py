"""Drills: restore a backup into an empty place, and prove that what was restored serves. The place is removed after it.

Nothing outside of it is changed: a ledger or a witness elsewhere is only read, and no site or coordinator is called.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import tomli_w

from dpcausal.errors import DpcausalError
from dpcausal.federation.coordinator.backup import mailbox_database, restore_workspace
from dpcausal.federation.coordinator.requests import check_intact
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.operation.archive import Restored
from dpcausal.federation.operation.contents import MAILBOX
from dpcausal.federation.operation.health import ATTENTION, BROKEN, HEALTHY, Check, Status, check_certificate
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, opened
from dpcausal.federation.site.audit_log import AUDIT_LOG
from dpcausal.federation.site.backup import has_own_ledger, restore_site
from dpcausal.federation.site.policy import KEY
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.mailbox.calls import CallFailedError
from dpcausal.federation.transports.mailbox.client import Client
from dpcausal.federation.transports.mailbox.poller import connected_address
from dpcausal.federation.transports.mailbox.settings import FILE, Mailbox

_SECONDS = 180.0
_NO_KEYS = "the backup holds no keys: make one with --with-keys"


def drill_workspace(file: Path) -> Status:
    """Restore a workspace into an empty place, and return what of it works there.

    Its store is verified, its keys are read, and its mailbox is started on this machine and answers a signed call.
    """
    with tempfile.TemporaryDirectory(prefix="dpcausal-drill") as temporary:
        place = Path(temporary) / "workspace"
        restored = restore_workspace(file, place)
        return Status("drill of federation", restored.manifest.name, tuple(_workspace_checks(place, restored)))


def drill_site(file: Path) -> Status:
    """Restore a site into an empty place, and return what of it works there.

    Its ledger and audit log are verified, and it answers a request: with a refusal, since a stranger signed it.
    """
    with tempfile.TemporaryDirectory(prefix="dpcausal-drill") as temporary:
        place = Path(temporary) / "site"
        restored = restore_site(file, place)
        manifest = restored.manifest
        checks = [Check("restored", HEALTHY, f"{len(manifest.files)} files, each as the manifest says")]
        words = f"answers after: {'; '.join(restored.steps)}" if restored.stopped else "may answer at once"
        held = has_own_ledger(place)
        words = words if held else f"not in the backup; {words}"
        checks.append(Check("ledger", HEALTHY if held else ATTENTION, words.replace(str(place), "FOLDER")))
        whole = "whole" if (place / AUDIT_LOG).exists() else "empty"
        checks += [Check("audit_log", HEALTHY, whole), *_answering(place, manifest.with_keys)]
        return Status("drill of site", manifest.name, (*checks, *_membership(place)))


def _workspace_checks(place: Path, restored: Restored) -> Iterator[Check]:
    manifest, workspace = restored.manifest, Workspace(place)
    yield Check("restored", HEALTHY, f"{len(manifest.files)} files, each as the manifest says")
    yield Check("roster", HEALTHY, f"{len(workspace.roster.sites)} sites")
    count = check_intact(workspace.store) if workspace.store.exists() else 0
    yield Check("requests", HEALTHY, f"whole, {count} stored", count)
    names = [file.stem for file in place.glob("*.key")]
    if manifest.with_keys:
        for name in names:
            yield _tried(f"key_{name}", partial(_read_key, workspace, name))
    else:
        yield Check("keys", ATTENTION, _NO_KEYS)
    if (server := workspace.network / "server").is_dir():
        found = check_certificate(server, "certificate_server")
        yield replace(found, words=f"{found.words}; the server of the network was not started")
    if (place / MAILBOX / FILE).exists():
        serves = names and not restored.missing
        yield _tried("mailbox", lambda: _serve_mailbox(place)) if serves else Check("mailbox", ATTENTION, _NO_KEYS)


def _tried(name: str, part: Callable[[], str]) -> Check:
    try:
        return Check(name, HEALTHY, part(), value=True)
    except DpcausalError as error:
        return Check(name, BROKEN, error.problem, value=False)


def _read_key(workspace: Workspace, name: str) -> str:
    workspace.key(name)
    return "can be read"


def _serve_mailbox(place: Path) -> str:
    """Start the restored mailbox on this machine, make a signed call, and return what it answered, in words."""
    mailbox = Mailbox.read(place / MAILBOX)
    words = "the server started, showed its certificate and answered a signed call"
    if mailbox_database(place) is None:  # never the database in use
        document = tomllib.loads((place / MAILBOX / FILE).read_text(encoding="utf-8"))
        (place / MAILBOX / FILE).write_text(tomli_w.dumps(document | {"database": "sqlite:///drill.db"}))
        words += ", with an empty database: its own is not in the backup"
    name = next((name for name in mailbox.requesters if (place / f"{name}.key").is_file()), "")
    with _server(place) as address:
        client = Client(mailbox.address, mailbox.authority, Workspace(place).key(name), 5.0, place=address)
        return f"{words}: {_joined_sites(client)} sites have joined"


def _joined_sites(client: Client) -> int:
    """Return the number of sites that a server lists, as soon as it has started."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            return len(client.call("GET", "/sites")["sites"])
        except CallFailedError as error:
            if error.reason not in {"refused", "reset", "timeout"} or time.monotonic() > end:
                raise
        time.sleep(0.2)


@contextmanager
def _server(place: Path) -> Iterator[str]:
    """Run the mailbox server of a workspace on a free port of this machine, and give its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--listen", f"127.0.0.1:{port}", "--workers", "1", "--threads", "2")
    command = [sys.executable, "-P", "-m", "dpcausal", "federation", "mailbox", "serve", str(place), *options]
    with subprocess.Popen(  # noqa: S603 (this package's own command)
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as running:
        try:
            yield f"https://127.0.0.1:{port}"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def _answering(place: Path, with_keys: bool) -> Iterator[Check]:
    if not with_keys:
        yield Check("answers", ATTENTION, _NO_KEYS)
        return
    yield _tried("answers", lambda: _refused_stranger(place))


def _refused_stranger(place: Path) -> str:
    """Let a restored site answer a request that a stranger signed, and return what it did, in words."""
    public = Key.read("", place / KEY).public
    stranger = Key.make("stranger", place.parent / "stranger.key")
    site = Site(place)
    answer = site.answer(stranger.seal(Request(study="", ask="facts").to_json()))
    _, body = opened(answer, {site.policy.site: public})
    return f"answered a request of a stranger, signed with its own key: {Message.from_json(body).code}"


def _membership(place: Path) -> Iterator[Check]:
    if (place / MAILBOX).is_dir():
        yield _tried("mailbox", lambda: f"joined at {connected_address(place / MAILBOX)}, which was not called")
    for kit in (*place.glob("nvflare/kit"), *place.glob("networks/*/kit")):
        yield check_certificate(kit, f"certificate_{kit.parent.name}")
