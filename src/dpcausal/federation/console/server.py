"""Serving a console: gunicorn, in one process with a few threads."""

from pathlib import Path
from typing import Any, Literal

from dpcausal.errors import MissingExtraError, StudyError
from dpcausal.federation.console.settings import Settings
from dpcausal.utils.validation import is_loopback

try:
    from gunicorn.app.base import BaseApplication

    from dpcausal.federation.console.application import coordinator_console, site_console
    from dpcausal.federation.operation.deadline_worker import DeadlineWorker
    from dpcausal.federation.operation.ports import check_may_listen
except ImportError:
    raise MissingExtraError(
        problem="Flask and gunicorn, which serve the console, are not both installed",
        hint='pip install "dpcausal[console]".',
    ) from None


class _Server(BaseApplication):  # type: ignore[misc]  # (gunicorn has no types)
    """Gunicorn with an application that was made before it started."""

    def __init__(self, app: object, options: dict[str, Any]) -> None:
        self._app, self._options = app, options
        super().__init__()

    def load_config(self) -> None:
        """Take the options, and nothing from the command line or the environment."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> object:
        """Return the application."""
        return self._app


def serve(kind: Literal["site", "coordinator"], folder: Path, listen: str, *, behind_proxy: bool) -> None:
    """Serve the console of a folder, until stopped.

    Args:
        listen: The address and port to listen on.
        behind_proxy: Whether a proxy with TLS is before it; without one it listens on this machine only.

    Raises:
        StudyError: If it would be reachable from other machines without a proxy, or the address in its settings and
            `behind_proxy` contradict each other.
    """
    host = listen.rpartition(":")[0].strip("[]")
    if not behind_proxy and not is_loopback(host):
        raise StudyError(
            expected="--listen with an address of this machine, such as 127.0.0.1:8480",
            got=listen,
            hint="put a proxy with TLS before the console, and pass --behind-proxy.",
        )
    settings = Settings.read(folder, listen)
    if behind_proxy and not settings.secure:
        raise StudyError(
            problem="With --behind-proxy the address in console.toml must begin with https, and it is "
            f"{settings.address}",
            hint='write the address that people open: address = "https://console.hospital.example".',
        )
    if settings.secure and not behind_proxy:
        raise StudyError(
            problem=f"The address in console.toml is {settings.address}, which --behind-proxy serves, and it "
            "was not given",
            hint="add --behind-proxy: the proxy names each client's address, without which all of them count as one.",
        )
    check_may_listen(listen)
    make = site_console if kind == "site" else coordinator_console
    app = make(folder, settings, behind_proxy=behind_proxy)
    options = {
        "bind": listen,
        "workers": 1,
        "threads": 16,
        "worker_class": DeadlineWorker,
        "timeout": 120,
        "limit_request_line": 2_000,
        "limit_request_fields": 50,
        "forwarded_allow_ips": "127.0.0.1",
        "umask": 0o077,
        "control_socket_disable": True,
        "proc_name": "dpcausal console",
    }
    _Server(app, options).run()
