"""Heartbeats of NVFlare's processes: a site notes each answer of the server, the server notes each site that calls.

The server adds its time and its version to its answers, so that a site can tell how far its own clock is off.
"""

import functools
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey, ReturnCode
from nvflare.private.defs import CellChannelTopic, CellMessageHeaderKeys
from nvflare.private.fed.server.fed_server import FederatedServer

from dpcausal.federation.operation.heartbeat import Heartbeat, hold_lock
from dpcausal.utils.validation import is_name

_TIME, _VERSION = "dpcausal_time", "dpcausal_version"


def observe_site(kit: Path) -> None:
    """Have this process, which is a site's, write a heartbeat into its kit after each answer of the server."""
    hold_lock(kit)
    Heartbeat(started=time.time()).write(kit)
    CoreCell.send_request = _site_calls(CoreCell.send_request, kit)


def observe_server(kit: Path) -> None:
    """Have this process, which is a server, write a heartbeat into its kit after each call of a site."""
    hold_lock(kit)
    Heartbeat(started=time.time()).write(kit)
    FederatedServer.client_heartbeat = _server_answers(FederatedServer.client_heartbeat, kit)


def _site_calls(send: Callable[..., Any], kit: Path) -> Callable[..., Any]:
    started = time.time()

    @functools.wraps(send)
    def send_request(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 (NVFlare's)
        before = time.time()
        reply = send(*arguments, **named)
        now = time.time()
        if named.get("topic") == CellChannelTopic.HEART_BEAT and _is_ok(reply):
            told = reply.get_header(_TIME)
            offset = told - (before + now) / 2 if isinstance(told, float) else None
            there = reply.get_header(_VERSION)
            Heartbeat(started, now, offset, there if isinstance(there, str) else "").write(kit)
        return reply

    return send_request


def _server_answers(answer: Callable[..., Any], kit: Path) -> Callable[..., Any]:
    beat = Heartbeat(started=time.time())
    lock = Lock()

    @functools.wraps(answer)
    def client_heartbeat(server: Any, request: Any) -> Any:  # noqa: ANN401 (NVFlare's)
        nonlocal beat
        reply = answer(server, request)
        site = request.get_header(CellMessageHeaderKeys.CLIENT_NAME)
        if _is_ok(reply) and is_name(site):
            now = time.time()
            reply.set_header(_TIME, now)
            reply.set_header(_VERSION, version("dpcausal"))
            with lock:
                beat = replace(beat, contact=now, sites={**beat.sites, site: now})
                beat.write(kit)
        return reply

    return client_heartbeat


def _is_ok(reply: Any) -> bool:  # noqa: ANN401 (NVFlare's message, or none)
    return reply is not None and reply.get_header(MessageHeaderKey.RETURN_CODE) == ReturnCode.OK
