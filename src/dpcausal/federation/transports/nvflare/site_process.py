"""The process of a site: NVFlare's client process, with only the commands that a job of this package needs.

NVFlare checks a site's rights to a command only where the server asks for that. A dishonest server would not, and could
have any file of the site read out to it.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher
from nvflare.app_common.job_launcher.process_launcher import ProcessHandle
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.defs import TrainingTopic
from nvflare.private.fed.app.client import client_train
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors
from nvflare.utils.job_launcher_utils import get_credential_env
from nvflare.utils.process_utils import spawn_process

from dpcausal.federation.transports.nvflare.admission import JobAdmission
from dpcausal.federation.transports.nvflare.certificates import watch_certificate
from dpcausal.federation.transports.nvflare.job_process import command_of
from dpcausal.federation.transports.nvflare.liveness import observe_site
from dpcausal.federation.transports.nvflare.local_socket import KIT, prepare_process

_ALLOWED = {
    TrainingTopic.CHECK_RESOURCE,
    TrainingTopic.CANCEL_RESOURCE,
    TrainingTopic.START_JOB,
    TrainingTopic.ABORT,
    TrainingTopic.NOTIFY_JOB_STATUS,
}


class InstalledCodeLauncher(ClientProcessJobLauncher):  # type: ignore[misc]
    """Starts the process of a job with no code on its path but what is installed.

    NVFlare's own launcher also puts the folder `custom` of a job on the path, whether it exists or not. `admission`
    refuses jobs with such a folder. If one existed nevertheless, Python would run code from it before anything else.
    """

    def launch_job(self, job_meta: dict[str, Any], fl_ctx: FLContext) -> ProcessHandle:
        """Start the process."""
        secrets = get_credential_env(fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS))
        command = command_of(shlex.split(self.get_command(job_meta, fl_ctx)))
        return ProcessHandle(process_adapter=spawn_process(command, os.environ | secrets))


def allowed_commands() -> list[Any]:
    """Return the commands of NVFlare's client process that a job of this package needs, and no others."""
    allowed = [one for one in ClientRequestProcessors.request_processors if set(one.get_topics()) <= _ALLOWED]
    return [JobAdmission(), *allowed]


def main() -> None:
    """Run as NVFlare's client process does, with these commands only."""
    prepare_process()
    ClientRequestProcessors.request_processors = allowed_commands()
    watch_certificate(Path(os.environ[KIT]))
    arguments = client_train.parse_arguments()
    observe_site(Path(os.environ[KIT]))
    sys.exit(MainProcessMonitor.run(main_func=client_train.main, run_dir=arguments.workspace, args=arguments))


if __name__ == "__main__":
    main()
