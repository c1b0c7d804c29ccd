"""The process of a job, at a site or at the server: NVFlare's own, behind the socket in the kit.

Its first argument is the module that NVFlare would run; the others are those of that module.
"""

import runpy
import sys

from dpcausal.federation.transports.nvflare.local_socket import prepare_process

MODULE = "dpcausal.federation.transports.nvflare.job_process"


def command_of(command: list[str]) -> list[str]:
    """Return NVFlare's command for a job's process with this module in front of NVFlare's."""
    place = command.index("-m") + 1
    return [*command[:place], MODULE, *command[place:]]


def main() -> None:
    """Run NVFlare's module."""
    prepare_process()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
