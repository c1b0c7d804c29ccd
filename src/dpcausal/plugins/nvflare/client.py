"""The requester's process: connects to the server, asks, and writes down each message that comes.

It is a process of its own so that nothing NVFlare does can keep the coordinator waiting, or get into its memory. Reads
one JSON object from standard input and writes a JSON list of site and message on a line for each message.
"""

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from nvflare.fuel.flare_api.api_spec import InternalError, JobNotRunning, NoReply
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from dpcausal.plugins.nvflare.job import COMMAND, write_job

UNREACHED = 3
"""The exit code that says: no server was there in all that time."""

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_FOR_THE_SERVER = 10.0
_LONGEST_ROUND = 900.0  # a site that was restarted meanwhile never answers: NVFlare does not give it its task again


def ask(kit: Path, request: str, sites: Sequence[str], seconds: float, on_response: Callable[[str, str], None]) -> bool:
    """Ask until every site has answered or time is over; whether a server was there at all."""
    end = time.monotonic() + seconds
    missing = set(sites)
    reached = False
    pause = _FIRST_PAUSE
    while missing and (left := end - time.monotonic()) > 0:
        # NVFlare raises a great many things. The cure for each is to connect anew and to ask again, which costs
        # nothing: a site that has answered gives the same answer.
        with suppress(Exception), closing(_connected(kit, min(left, _SECONDS_FOR_THE_SERVER))) as session:
            reached = True
            _one_round(session, request, missing, end, on_response)
        if missing:
            time.sleep(max(0.0, min(pause, end - time.monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE)
    return reached


def _connected(kit: Path, seconds: float) -> Session:
    user = json.loads((kit / "startup" / "fed_admin.json").read_text(encoding="utf-8"))["admin"]["username"]
    return new_secure_session(user, str(kit), timeout=seconds, command_timeout=_SECONDS_FOR_THE_SERVER)


def _one_round(
    session: Session, request: str, missing: set[str], end: float, on_response: Callable[[str, str], None]
) -> None:
    """Submit the question once, and stay with it."""
    seconds = math.ceil(max(1.0, min(end - time.monotonic(), _LONGEST_ROUND)))
    with tempfile.TemporaryDirectory() as folder:
        question = Path(folder) / "question"
        write_job(question, request, sorted(missing), seconds)
        submitted = session.submit_job(str(question))
    try:
        _stay_with(session, submitted, missing, end, on_response)
    finally:
        if missing:
            session.abort_job(submitted)  # it would ask a site that is away when it comes back, for nobody


def _stay_with(
    session: Session, question: str, missing: set[str], end: float, on_response: Callable[[str, str], None]
) -> None:
    """Fetch messages until none is missing, or the question has ended, or time is over."""
    while missing and time.monotonic() < end:
        try:
            messages = session.do_app_command(question, COMMAND, sorted(missing))
        except (JobNotRunning, NoReply, InternalError):  # not yet, or no more
            if str(session.get_job_status(question)).startswith("FINISHED"):
                return
            messages = {}
        for site, message in messages.items():
            if message and site in missing:
                on_response(site, message)
                missing.remove(site)
        if missing:
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def main() -> None:
    """Ask what standard input says."""
    # NVFlare prints: what it prints goes where errors go, and only messages to standard output.
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def on_response(site: str, message: str) -> None:
        try:
            print(json.dumps([site, message]), file=lines, flush=True)
        except OSError:  # nobody listens any more
            os._exit(0)

    asked = json.load(sys.stdin)
    reached = ask(Path(asked["kit"]), asked["request"], asked["sites"], asked["seconds"], on_response)
    os._exit(0 if reached else UNREACHED)  # without waiting for NVFlare's threads


if __name__ == "__main__":
    main()
