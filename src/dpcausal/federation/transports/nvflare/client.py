"""The client process of the requester: connects to the server, submits the job, and prints each message that arrives.

It is a separate process so that NVFlare cannot block the coordinator or fill its memory. It reads one JSON object from
standard input and writes a line for each message: a JSON list of site and message.
"""

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from nvflare.fuel.flare_api.api_spec import InternalError, JobNotRunning, NoReply
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from dpcausal.federation.transports.nvflare.job import COMMAND, write_job
from dpcausal.federation.transports.nvflare.transport import UNREACHED

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_POLL_SECONDS = 0.5
_SERVER_SECONDS = 10.0
_LONGEST_JOB = 900.0  # a site that restarts during a job never answers it: NVFlare does not assign the task again


def ask(  # noqa: PLR0913, PLR0917 (as the transport)
    kit: Path,
    request: str,
    sites: Sequence[str],
    seconds: float,
    on_response: Callable[[str, str], None],
    enclosed: Mapping[str, str],
) -> bool:
    """Submit the job until every site has answered or the time is over; return whether a server was reached."""
    end = time.monotonic() + seconds
    missing = set(sites)
    reached = False
    pause = _FIRST_PAUSE
    while missing and (left := end - time.monotonic()) > 0:
        # NVFlare raises many kinds of errors. The remedy for each is to connect and ask again, at no cost: a site that
        # has answered gives the same answer.
        with suppress(Exception), closing(_connect(kit, min(left, _SERVER_SECONDS))) as session:
            reached = True
            _run_job(session, request, enclosed, missing, end, on_response)
        if missing:
            time.sleep(max(0.0, min(pause, end - time.monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE)
    return reached


def _connect(kit: Path, seconds: float) -> Session:
    user = json.loads((kit / "startup" / "fed_admin.json").read_text(encoding="utf-8"))["admin"]["username"]
    return new_secure_session(user, str(kit), timeout=seconds, command_timeout=_SERVER_SECONDS)


def _run_job(  # noqa: PLR0913, PLR0917 (as the transport)
    session: Session,
    request: str,
    enclosed: Mapping[str, str],
    missing: set[str],
    end: float,
    on_response: Callable[[str, str], None],
) -> None:
    """Submit the job once, and collect its messages."""
    seconds = math.ceil(max(1.0, min(end - time.monotonic(), _LONGEST_JOB)))
    with tempfile.TemporaryDirectory() as folder:
        write_job(Path(folder) / "job", request, sorted(missing), seconds, enclosed)
        job = session.submit_job(str(Path(folder) / "job"))
    try:
        _collect(session, job, missing, end, on_response)
    finally:
        if missing:
            session.abort_job(job)  # otherwise it would still ask a site that reconnects later


def _collect(
    session: Session, job: str, missing: set[str], end: float, on_response: Callable[[str, str], None]
) -> None:
    """Fetch messages until none is missing, the job has finished, or the time is over."""
    while missing and time.monotonic() < end:
        try:
            messages = session.do_app_command(job, COMMAND, sorted(missing))
        except (JobNotRunning, NoReply, InternalError):  # not running yet, or finished
            if str(session.get_job_status(job)).startswith("FINISHED"):
                return
            messages = {}
        for site, message in messages.items():
            if message and site in missing:
                on_response(site, message)
                missing.remove(site)
        if missing:
            time.sleep(_POLL_SECONDS)


def main() -> None:
    """Submit the request from standard input."""
    # NVFlare prints to standard output: send that to standard error, so that standard output holds only messages.
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def on_response(site: str, message: str) -> None:
        try:
            print(json.dumps([site, message]), file=lines, flush=True)
        except OSError:  # the coordinator is gone
            os._exit(0)

    asked = json.load(sys.stdin)
    kit, request, sites = Path(asked["kit"]), asked["request"], asked["sites"]
    reached = ask(kit, request, sites, asked["seconds"], on_response, asked["enclosed"])
    os._exit(0 if reached else UNREACHED)  # without waiting for NVFlare's threads


if __name__ == "__main__":
    main()
