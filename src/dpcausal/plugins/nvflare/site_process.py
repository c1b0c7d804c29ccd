"""The process of a site: NVFlare's own, which here knows no commands but those that a question takes.

NVFlare's asks the site's rights about a command only where the server says that it should. A server that is not honest
would not, and could have any file of the site read out to it.
"""

import sys
from typing import Any

from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.defs import TrainingTopic
from nvflare.private.fed.app.client import client_train
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

from dpcausal.plugins.nvflare.admission import JobAdmission

_KEPT = {
    TrainingTopic.CHECK_RESOURCE,
    TrainingTopic.CANCEL_RESOURCE,
    TrainingTopic.START_JOB,
    TrainingTopic.ABORT,
    TrainingTopic.NOTIFY_JOB_STATUS,
}


def kept_commands() -> list[Any]:
    """What NVFlare's process can be told to do, without everything that a question does not take."""
    kept = [one for one in ClientRequestProcessors.request_processors if set(one.get_topics()) <= _KEPT]
    return [JobAdmission(), *kept]


def main() -> None:
    """Run, as NVFlare's own process does."""
    ClientRequestProcessors.request_processors = kept_commands()
    given = client_train.parse_arguments()
    sys.exit(MainProcessMonitor.run(main_func=client_train.main, run_dir=given.workspace, args=given))


if __name__ == "__main__":
    main()
