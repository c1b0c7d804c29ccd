"""How a site starts the process that takes a question: with no code on its path but what is installed."""

import os
import shlex
from typing import Any

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher
from nvflare.app_common.job_launcher.process_launcher import ProcessHandle
from nvflare.utils.job_launcher_utils import get_credential_env
from nvflare.utils.process_utils import spawn_process


class InstalledCodeLauncher(ClientProcessJobLauncher):  # type: ignore[misc]
    """NVFlare's, which would also put the folder `custom` of what it was sent on the path, whether it is there or not.

    `only` lets in nothing with such a folder. If one were there all the same, Python would run code from it before
    anything else.
    """

    def launch_job(self, job_meta: dict[str, Any], fl_ctx: FLContext) -> ProcessHandle:
        """Start it."""
        secrets = get_credential_env(fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS))
        command = shlex.split(self.get_command(job_meta, fl_ctx))
        return ProcessHandle(process_adapter=spawn_process(command, os.environ | secrets))
