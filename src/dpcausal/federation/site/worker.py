"""The worker of a site: computes an answer in a subprocess with limits, where a crash becomes an ordinary message."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from dpcausal.errors import LedgerError, TransportError
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body, opened
from dpcausal.federation.protocol.transport import parted
from dpcausal.federation.site.audit_log import AUDIT_LOG, AuditLog
from dpcausal.federation.site.policy import KEY, Policy
from dpcausal.utils.hash_chain import digest_of_text


def run_in_subprocess(folder: Path, request: str) -> str:
    """Answer a signed request with a signed message, within the time and memory that the site's policy allows."""
    policy = Policy.read(folder)
    key = Key.read(policy.site, folder / KEY)
    command = [sys.executable, "-P", "-m", "dpcausal.federation.site", str(folder)]
    with subprocess.Popen(  # noqa: S603 (this package's own module, on the site's folder)
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            message, _ = child.communicate(request, timeout=policy.seconds)
            opened(message, {policy.site: key.public})
        except (subprocess.TimeoutExpired, TransportError):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            message = key.seal(_stopped(folder, policy.site, request).to_json())
    return message


def _stopped(folder: Path, site: str, request: str) -> Message:
    body = claimed_body(parted(request)[0])
    message = Message(request=digest_of_text(body), study="", site=site, code="stopped")
    with contextlib.suppress(TransportError):
        asked = Request.from_json(body)
        message = replace(message, request=asked.id, study=digest_of_text(asked.study), version=asked.version)
    with contextlib.suppress(LedgerError):
        AuditLog(folder / AUDIT_LOG).write("answer", message.study, "", f"{message.request} {message.code}")
    return message
