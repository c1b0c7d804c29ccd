"""Answer one request, from standard input to standard output, within the limits of the site's policy."""

import fcntl
import os
import resource
import signal
import sys
from pathlib import Path

from dpcausal.federation.site.policy import Policy


def main() -> None:
    """Set the limits, then read, answer and write."""
    folder = Path(sys.argv[1])
    policy = Policy.read(folder)
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_DATA, (policy.memory_bytes, policy.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold the table
    signal.alarm(int(policy.seconds) + 1)  # in case the parent process is gone
    fcntl.flock(os.open(folder / "answering", os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)  # one answer at a time
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # output that a library prints is not part of the message

    from dpcausal.federation.site.site import Site  # noqa: PLC0415 (its libraries count against the limit)

    message = Site(folder).answer(sys.stdin.read())
    with os.fdopen(out, "w", encoding="utf-8") as output:
        output.write(message)


main()
