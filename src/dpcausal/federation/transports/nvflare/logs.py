"""Logs of a site and of a server: JSON lines, one for each study, and the few of NVFlare that tell something.

NVFlare takes a logging configuration from the environment variable FL_LOG_LEVEL, in every process that it starts.
"""

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dpcausal.errors import TransportError
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import claimed_body, claimed_signer
from dpcausal.federation.protocol.transport import parted
from dpcausal.federation.transports.nvflare.job import COMMAND
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.validation import is_name

VARIABLE = "FL_LOG_LEVEL"
_STUDIES = logging.getLogger("dpcausal.studies")

# What NVFlare says when a connection begins or ends, by logger. Everything else below a warning is dropped.
_TOLD = {
    "root": ("Server started",),
    "FederatedClient": ("Successfully registered client",),
    "ClientManager": ("Client: New client",),
    "FederatedServer": ("Remove the dead Client",),
    "Communicator": ("Failed to send heartbeat",),
}
# The requester asks for messages while the server's process for the study is still starting: a later call succeeds.
_STARTING = {
    "CoreCell": re.compile(r"(no connection to child|cannot send to) '?server\.[0-9a-f-]{36}\b"),
    "AppCommandProcessor": re.compile(f"^no app command func for topic {COMMAND}$"),
}


class Told(logging.Filter):
    """Passes warnings and errors, lines about connections, and the lines of this package."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record."""
        if record.name.startswith("dpcausal"):
            return True
        message = record.getMessage()
        name = record.name.rpartition(".")[2]
        if record.levelno >= logging.WARNING:
            return not (name in _STARTING and _STARTING[name].search(message))
        return message.startswith(_TOLD.get(name, ()))


class JsonLines(logging.Formatter):
    """Writes one JSON object a line: the line about a study with its day only, all others with their time."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = datetime.fromtimestamp(record.created, UTC)
        study: Mapping[str, Any] | None = getattr(record, "study", None)
        if study is not None:
            return json.dumps({"day": at.date().isoformat(), "level": record.levelname, "event": "study", **study})
        line = {
            "time": at.isoformat(timespec="seconds"),
            "level": record.levelname,
            "event": "log",
            "logger": record.name.rpartition(".")[2],
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def settings() -> str:
    """Return the logging configuration, for NVFlare's environment variable."""
    here = __name__
    return json.dumps(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "filters": {"told": {"()": f"{here}.Told"}},
            "formatters": {"json": {"()": f"{here}.JsonLines"}},
            "handlers": {
                "console": {
                    "class": "logging.StreamHandler",
                    "stream": "ext://sys.stdout",
                    "filters": ["told"],
                    "formatter": "json",
                }
            },
            "root": {"level": "INFO", "handlers": ["console"]},
        }
    )


def log_answer(request: str, message: str) -> None:
    """Write the line about a study at a site: who asked, and the code of the site's message. No time but the day."""
    _STUDIES.info("study", extra={"study": _asked(request) | {"code": _code(message)}})


def log_study(request: str, messages: Mapping[str, str], sites: list[str]) -> None:
    """Write the line about a study at the server: the code of each site's message, as the message says it."""
    codes = {site: _code(messages[site]) if site in messages else "silent" for site in sorted(sites)}
    _STUDIES.info("study", extra={"study": _asked(request) | {"sites": codes}})


def _asked(request: str) -> dict[str, str]:
    try:
        request, _ = parted(request)
        asked = Request.from_json(claimed_body(request))
    except TransportError:
        return {"study": "", "requester": "", "ask": "unreadable"}
    signer = claimed_signer(request)
    return {"study": digest_of_text(asked.study), "requester": signer if is_name(signer) else "", "ask": asked.ask}


def _code(message: str) -> str:
    try:
        return Message.from_json(claimed_body(message)).code
    except TransportError:
        return "invalid"
