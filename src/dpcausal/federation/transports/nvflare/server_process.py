"""The process of a server: NVFlare's server process, with a heartbeat and with limits on its connections."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.job_launcher.process_launcher import ProcessHandle
from nvflare.app_common.job_launcher.server_process_launcher import ServerProcessJobLauncher
from nvflare.fuel.f3.cellnet.net_manager import NetManager
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.fuel.hci.reg import CommandModuleSpec
from nvflare.private.fed.app.server import server_train
from nvflare.utils.job_launcher_utils import get_credential_env
from nvflare.utils.process_utils import spawn_process

from dpcausal.federation.transports.nvflare.certificates import print_line, watch_certificate
from dpcausal.federation.transports.nvflare.connections import Connections
from dpcausal.federation.transports.nvflare.job_process import command_of
from dpcausal.federation.transports.nvflare.liveness import observe_server
from dpcausal.federation.transports.nvflare.local_socket import KIT, prepare_process

ROSTER = "DPCAUSAL_ROSTER"
"""The environment variable with the path of the roster; empty without one."""


class ServerJobLauncher(ServerProcessJobLauncher):  # type: ignore[misc]
    """Starts the process of a job at the server, behind the socket in the kit."""

    def launch_job(self, job_meta: dict[str, Any], fl_ctx: FLContext) -> ProcessHandle:
        """Start the process."""
        secrets = get_credential_env(fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS))
        command = command_of(shlex.split(self.get_command(job_meta, fl_ctx)))
        return ProcessHandle(process_adapter=spawn_process(command, os.environ | secrets))


def _no_network_commands(module: NetManager) -> CommandModuleSpec:
    """Return a list of no commands, in place of those that ask sites about their processes and connections."""
    return CommandModuleSpec(name=type(module).__name__, cmd_specs=[])


def main() -> None:
    """Run as NVFlare's server process does, within these limits."""
    prepare_process()
    NetManager.get_spec = _no_network_commands
    roster = os.environ.get(ROSTER)
    connections = Connections(Path(roster) if roster else None, print_line)
    connections.guard()
    connections.watch()
    watch_certificate(Path(os.environ[KIT]))
    observe_server(Path(os.environ[KIT]))
    arguments = server_train.parse_arguments()
    sys.exit(MainProcessMonitor.run(main_func=server_train.main, run_dir=arguments.workspace, args=arguments))


if __name__ == "__main__":
    main()
