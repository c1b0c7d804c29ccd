"""The only job that is ever submitted to NVFlare: a folder of JSON, without code, with a request in it."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpcausal.federation.protocol.transport import NOTHING, with_enclosed

EXECUTOR = "dpcausal.federation.transports.nvflare.components.AnswerExecutor"
CONTROLLER = "dpcausal.federation.transports.nvflare.components.AskController"
TASK = "answer"
COMMAND = "messages"
REQUEST, MESSAGE = "request", "message"
SITE_CONFIG = "config_fed_client.json"

AT_SITES: Mapping[str, Any] = {
    "format_version": 2,
    "executors": [{"tasks": [TASK], "executor": {"path": EXECUTOR, "args": {}}}],
    "task_data_filters": [],
    "task_result_filters": [],
    "components": [],
}
"""The part of the job that runs at a site. It never changes, so that a site can refuse anything else (`admission`)."""


def write_job(
    folder: Path, request: str, sites: Sequence[str], seconds: int, enclosed: Mapping[str, str] = NOTHING
) -> None:
    """Write the folder of a job that sends a request to sites and waits for them for some seconds.

    Args:
        enclosed: What a site gets with the request for itself alone.
    """
    text = with_enclosed(request, json.dumps(dict(enclosed)) if enclosed else "")
    at_server = {
        "format_version": 2,
        # Seconds after which a silent site counts as disconnected.
        "dead_client_grace_period": 10.0,
        "dead_client_check_lead_time": 5.0,
        # In base64, because NVFlare substitutes text in braces.
        "workflows": [
            {
                "id": "ask",
                "path": CONTROLLER,
                "args": {"request": base64.b64encode(text.encode()).decode(), "seconds": seconds},
            }
        ],
        "task_data_filters": [],
        "task_result_filters": [],
        "components": [],
    }
    meta = {
        "name": "request",
        "resource_spec": {},
        "min_clients": 1,
        "deploy_map": {"server": ["server"], "sites": list(sites)},
    }
    for file, content in (
        ("meta.json", meta),
        ("server/config/config_fed_server.json", at_server),
        (f"sites/config/{SITE_CONFIG}", AT_SITES),
    ):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")
