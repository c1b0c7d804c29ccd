"""What runs at a site: it hands the request to the site's own process and hands its message back, reading neither."""

import os
from pathlib import Path

from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from dpcausal.plugins.nvflare.job import MESSAGE, REQUEST, TASK
from dpcausal.site.worker import run_in_subprocess


class Answer(Executor):  # type: ignore[misc]
    """Answers a request. Whatever goes wrong, what leaves is one of NVFlare's codes and no text."""

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        """The site's message, or a code."""
        del fl_ctx, abort_signal
        request = shareable.get(REQUEST)
        if task_name != TASK or not isinstance(request, str):
            return make_reply(ReturnCode.BAD_TASK_DATA)
        try:
            message = run_in_subprocess(Path(os.environ["DPCAUSAL_SITE"]), request)
        except Exception:  # noqa: BLE001 - its text may say what no one outside may read
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        return Shareable({MESSAGE: message})
