"""What runs at the server: it asks the sites and keeps their messages until the requester has fetched them."""

import base64
import time

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from dpcausal.plugins.nvflare.job import COMMAND, MESSAGE, REQUEST, TASK

_SECONDS_BETWEEN_LOOKS = 0.1


class Ask(Controller):  # type: ignore[misc]
    """One request to every site, once.

    The requester fetches messages while this runs: NVFlare packs up results only after the slowest site has gone.
    """

    def __init__(self, request: str, seconds: int) -> None:
        super().__init__()
        self._request = base64.b64decode(request).decode()
        self._seconds = seconds
        self._messages: dict[str, str] = {}
        self._fetched: set[str] = set()

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Listen for the requester."""
        fl_ctx.get_engine().register_app_command(COMMAND, self._fetch)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Ask, and stay until no more messages can come and all were fetched, or until time is over."""
        end = time.monotonic() + self._seconds
        sites = [site.name for site in fl_ctx.get_engine().get_clients()]
        task = Task(TASK, Shareable({REQUEST: self._request}), timeout=self._seconds, result_received_cb=self._keep)
        self.broadcast(task, fl_ctx, targets=sites, min_responses=len(sites))
        while time.monotonic() < end and not abort_signal.triggered:
            if task.completion_status is not None and self._fetched == self._messages.keys():
                break
            time.sleep(_SECONDS_BETWEEN_LOOKS)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing is left to stop."""

    def _keep(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        del fl_ctx
        message = client_task.result.get(MESSAGE)
        self._messages[client_task.client.name] = message if isinstance(message, str) else ""

    def _fetch(self, topic: str, wanted: list[str], fl_ctx: FLContext) -> dict[str, str]:
        del topic, fl_ctx
        messages = {site: self._messages[site] for site in wanted if site in self._messages}
        self._fetched.update(messages)
        return messages
