"""Hardened NVFlare settings: the files that replace the permissive ones of a new kit, and a check of them.

With NVFlare's defaults, a task may bring its own code, an administrator may read files at a site, the errors of a site
are streamed to the server, and everything is stored in a shared temporary folder.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpcausal.errors import TransportError, redact_errors
from dpcausal.federation.transports.nvflare.job import CONTROLLER, EXECUTOR

_STORAGE = "nvflare.app_common.storages.filesystem_storage.FilesystemStorage"
STREAMS = 1_000
"""The largest number of open streams of a server. A site needs one."""
_ROLES = ("project_admin", "org_admin", "lead", "member")
_RIGHTS = (
    "submit_job",
    "clone_job",
    "manage_job",
    "download_job",
    "view",
    "operate",
    "shell_commands",
    "byoc",
    "app_command",
)
_NOT_SETTINGS = (".default", ".sample")  # NVFlare reads these only where the file itself is absent, or never


def is_site(kit: Path) -> bool:
    """Return whether a kit is a site's, and not a server's."""
    return (kit / "startup" / "fed_client.json").exists()


def harden(kit: Path) -> None:
    """Write the hardened files into a site's or a server's kit, and remove scripts that would start it without them."""
    for script in kit.glob("startup/*.sh"):
        script.unlink()
    for name, content in _hardened(kit).items():
        (kit / name).write_text(f"{json.dumps(content, indent=2)}\n", encoding="utf-8")


def check_hardened(kit: Path) -> None:
    """Check that a kit's settings are exactly the hardened ones."""
    found = list(_permissive(kit))
    if found:
        raise TransportError(
            problem=f"{kit} does not have the hardened settings of dpcausal: {'; '.join(found)}",
            hint="create the kit again, with dpcausal federation renew FOLDER for the server, or with dpcausal site "
            "renew FOLDER for a site.",
        )


def _permissive(kit: Path) -> Iterator[str]:
    wanted = _hardened(kit)
    for name, content in wanted.items():
        yield from _differences(name, content, _read(kit / name))
    for file in sorted((kit / "local").iterdir()):
        if f"local/{file.name}" not in wanted and file.suffix not in _NOT_SETTINGS:
            yield f"local/{file.name} exists"
    for pattern in ("*resources.json", "*.sh"):  # read in addition to those in local; NVFlare's own way to start
        yield from (f"startup/{file.name} exists" for file in sorted(kit.glob(f"startup/{pattern}")))
    if len(str(kit).split()) > 1:
        yield "the path contains a blank, with which NVFlare cannot start tasks"


def _differences(place: str, wanted: Any, found: Any) -> Iterator[str]:  # noqa: ANN401 (JSON)
    if isinstance(wanted, list) and isinstance(found, list):
        wanted, found = ({str(place): each for place, each in enumerate(every)} for every in (wanted, found))
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            yield from _differences(f"{place} {key}", wanted.get(key), found.get(key))
    elif json.dumps(wanted) != json.dumps(found):  # as JSON, because to Python 1 and true are the same
        yield f"{place} is {json.dumps(found)} and not {json.dumps(wanted)}"


def _read(file: Path) -> Any:  # noqa: ANN401 (JSON)
    with redact_errors(
        OSError,
        ValueError,
        instead=lambda _: TransportError(
            problem=f"The settings file {file} cannot be read", hint="create the kit again."
        ),
    ):
        return json.loads(file.read_text(encoding="utf-8"))


def _hardened(kit: Path) -> dict[str, dict[str, Any]]:
    """Return every settings file as it should be. The startup files stay as they are, but with encryption."""
    if is_site(kit):
        startup = _read(kit / "startup" / "fed_client.json")
        return {
            "local/authorization.json": _rights(lead={"submit_job": "any"}),
            "local/resources.json": _site(),
            "local/comm_config.json": _communication() | {"backbone": {"connect_generation": 1}},
            "startup/fed_client.json": {
                "format_version": 2,
                "servers": startup.get("servers"),
                "client": startup.get("client", {}) | {"connection_security": "mtls"},
            },
        }
    startup = _read(kit / "startup" / "fed_server.json")
    servers = [server | {"connection_security": "mtls"} for server in startup.get("servers", [])]
    return {
        "local/authorization.json": _server_rights(),
        "local/resources.json": _server(kit.resolve()),
        "local/comm_config.json": _communication() | {"grpc": _streams()},
        "startup/fed_server.json": {"format_version": 2, "servers": servers},
    }


def _site() -> dict[str, Any]:
    return {
        "format_version": 2,
        # The one class by its full name: of a listed package, any function could be called with any arguments.
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [EXECUTOR],
        "allow_log_streaming": False,
        "client": {"retry_timeout": 30, "compression": "Gzip"},
        "components": [
            {
                "id": "resource_manager",
                "path": "nvflare.app_common.resource_managers.gpu_resource_manager.GPUResourceManager",
                "args": {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0, "expiration_period": 300},
            },
            {
                "id": "resource_consumer",
                "path": "nvflare.app_common.resource_consumers.gpu_resource_consumer.GPUResourceConsumer",
                "args": {},
            },
            {
                "id": "process_launcher",
                "path": "dpcausal.federation.transports.nvflare.site_process.InstalledCodeLauncher",
                "args": {},
            },
        ],
    }


def _communication() -> dict[str, Any]:
    """Return how NVFlare's processes on one machine reach each other: by a socket in the kit (`local_socket`)."""
    return {"allow_adhoc_conns": False, "internal": {"scheme": "unix", "resources": {"connection_security": "clear"}}}


def _streams() -> dict[str, Any]:
    """Return how many streams a server holds open; `connections` limits those with one certificate."""
    largest = 2**31 - 2**21  # bytes of a frame, as NVFlare has it
    options = [["grpc.max_send_message_length", largest], ["grpc.max_receive_message_length", largest]]
    return {"max_workers": STREAMS, "options": options}


def _server_rights() -> dict[str, Any]:
    """Return the rights at the server: the requester may follow its own jobs, an administrator may exclude sites."""
    return _rights(
        lead={"submit_job": "any", "manage_job": "n:submitter", "app_command": "n:submitter", "view": "any"},
        project_admin={"view": "any", "operate": "any"},
    )


def _rights(**granted: dict[str, str]) -> dict[str, Any]:
    none = dict.fromkeys(_RIGHTS, "none")
    return {"format_version": "1.0", "permissions": {role: none | granted.get(role, {}) for role in _ROLES}}


def _server(kit: Path) -> dict[str, Any]:
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [CONTROLLER],
        "servers": [
            {
                "admin_storage": "transfer",
                "max_num_clients": 2000,
                "heart_beat_timeout": 30,
                "download_job_url": "http://download.server.com/",
                "admin_timeout": 10.0,
            }
        ],
        "snapshot_persistor": {
            "path": "nvflare.app_common.state_persistors.storage_state_persistor.StorageStatePersistor",
            "args": {
                "uri_root": "/",
                "storage": {"path": _STORAGE, "args": {"root_dir": str(kit / "snapshots"), "uri_root": "/"}},
            },
        },
        "components": [
            {
                "id": "job_scheduler",
                "path": "nvflare.app_common.job_schedulers.job_scheduler.DefaultJobScheduler",
                # A job for disconnected sites is retried every few seconds.
                "args": {"max_jobs": 4, "min_schedule_interval": 1.0, "max_schedule_interval": 5.0},
            },
            {
                "id": "job_manager",
                "path": "nvflare.apis.impl.job_def_manager.SimpleJobDefManager",
                "args": {"uri_root": str(kit / "jobs"), "job_store_id": "job_store"},
            },
            {"id": "job_store", "path": _STORAGE},
            {
                "id": "process_launcher",
                "path": "dpcausal.federation.transports.nvflare.server_process.ServerJobLauncher",
                "args": {},
            },
        ],
    }
