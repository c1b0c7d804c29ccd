"""Whether a service may listen on an address: gunicorn tries for seconds, and then says only that it could not."""

import errno
import socket

from dpcausal.errors import StudyError


def check_may_listen(listen: str) -> None:
    """Raise if no service can listen on an address with a port now, for instance because another one does.

    Raises:
        StudyError: If it is not an address with a port, or cannot be bound.
    """
    host, _, port = listen.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise StudyError(
            expected="--listen with an address and a port", got=repr(listen), hint="for instance 127.0.0.1:8480."
        )
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, int(port)))
        except OSError as error:
            raise _refused(listen, error) from None


def _refused(listen: str, error: OSError) -> StudyError:
    if error.errno == errno.EADDRINUSE:
        return StudyError(
            problem=f"Another process listens on {listen}",
            hint="perhaps this service runs already: stop it first, or choose another port with --listen.",
        )
    if error.errno == errno.EACCES:
        return StudyError(
            problem=f"This user may not listen on {listen}", hint="choose a port above 1023 with --listen."
        )
    return StudyError(
        problem=f"This machine cannot listen on {listen} ({error.strerror})",
        hint="name an address of this machine with --listen.",
    )
