"""The two components that NVFlare runs: `Ask` at the server, `Answer` at a site."""

import base64
import json
import os
import time
from pathlib import Path

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from dpcausal.federation.protocol.transport import parted, with_enclosed
from dpcausal.federation.site.worker import run_in_subprocess
from dpcausal.federation.transports.nvflare.job import COMMAND, MESSAGE, REQUEST, TASK
from dpcausal.federation.transports.nvflare.logs import log_answer, log_study

_POLL_SECONDS = 0.1


class AskController(Controller):  # type: ignore[misc]
    """Sends one request to every site, once, and holds their messages until the requester has fetched them.

    The requester fetches messages while this runs: NVFlare packs up results only after the slowest site has finished.
    """

    def __init__(self, request: str, seconds: int) -> None:
        super().__init__()
        self._request, enclosed = parted(base64.b64decode(request).decode())
        self._enclosed: dict[str, str] = json.loads(enclosed or "{}")
        self._seconds = seconds
        self._messages: dict[str, str] = {}
        self._fetched: set[str] = set()

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Register the requester's command."""
        fl_ctx.get_engine().register_app_command(COMMAND, self._fetch)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Send the request, and wait until all messages were fetched or the time is over."""
        end = time.monotonic() + self._seconds
        sites = [site.name for site in fl_ctx.get_engine().get_clients()]
        tasks = [self._asked(sites, self._request, fl_ctx)] if not self._enclosed else []
        for site, enclosed in self._enclosed.items():
            if site in sites:
                tasks.append(self._asked([site], with_enclosed(self._request, enclosed), fl_ctx))
        while time.monotonic() < end and not abort_signal.triggered:
            done = all(task.completion_status is not None for task in tasks)
            if done and self._fetched == self._messages.keys():
                break
            time.sleep(_POLL_SECONDS)
        log_study(self._request, self._messages, sites)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Do nothing: nothing is left to stop."""

    def _asked(self, sites: list[str], text: str, fl_ctx: FLContext) -> Task:
        """Send one text to sites."""
        task = Task(TASK, Shareable({REQUEST: text}), timeout=self._seconds, result_received_cb=self._receive)
        self.broadcast(task, fl_ctx, targets=sites, min_responses=len(sites))
        return task

    def _receive(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        del fl_ctx
        message = client_task.result.get(MESSAGE)
        self._messages[client_task.client.name] = message if isinstance(message, str) else ""

    def _fetch(self, topic: str, wanted: list[str], fl_ctx: FLContext) -> dict[str, str]:
        del topic, fl_ctx
        messages = {site: self._messages[site] for site in wanted if site in self._messages}
        self._fetched.update(messages)
        return messages


class AnswerExecutor(Executor):  # type: ignore[misc]
    """Hands a request to the site's worker and returns its message, reading neither.

    If anything fails, only one of NVFlare's codes leaves the site, and no text.
    """

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        """Return the site's message, or a code."""
        del fl_ctx, abort_signal
        request = shareable.get(REQUEST)
        if task_name != TASK or not isinstance(request, str):
            return make_reply(ReturnCode.BAD_TASK_DATA)
        try:
            message = run_in_subprocess(Path(os.environ["DPCAUSAL_SITE"]), request)
        except Exception:  # noqa: BLE001 - its text may hold what nobody outside may read
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        log_answer(request, message)
        return Shareable({MESSAGE: message})
