"""The one thing that is ever submitted to NVFlare: a folder of JSON, without code, with a request in it."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

EXECUTOR = "dpcausal.plugins.nvflare.executor.Answer"
CONTROLLER = "dpcausal.plugins.nvflare.controller.Ask"
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
"""What runs at a site. It never changes, so that a site can refuse anything else (see `only`)."""


def write_job(folder: Path, request: str, sites: Sequence[str], seconds: int) -> None:
    """Write the folder that asks some sites, and waits for them so many seconds."""
    at_server = {
        "format_version": 2,
        # Seconds after which a site that fell silent no longer counts as there.
        "dead_client_grace_period": 10.0,
        "dead_client_check_lead_time": 5.0,
        # In base64, because NVFlare replaces what stands in braces.
        "workflows": [
            {
                "id": "ask",
                "path": CONTROLLER,
                "args": {"request": base64.b64encode(request.encode()).decode(), "seconds": seconds},
            }
        ],
        "task_data_filters": [],
        "task_result_filters": [],
        "components": [],
    }
    meta = {
        "name": "question",
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
