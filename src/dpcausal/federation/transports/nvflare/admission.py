"""Admission of jobs at a site: only the job of this package, checked before anything is written to disk."""

import json
import re
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE
from nvflare.private.admin_defs import Message, error_reply
from nvflare.private.defs import RequestHeader
from nvflare.private.fed.client.training_cmds import DeployProcessor

from dpcausal.federation.transports.nvflare.job import AT_SITES, SITE_CONFIG

_MOST_BYTES = 2**16
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # as NVFlare makes them: no other folder is named so
_CONFIG = f"config/{SITE_CONFIG}"
_SIGNATURES = {f"{place}{file}" for place in ("", "config/") for file in (NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE)}


class JobAdmission(DeployProcessor):  # type: ignore[misc]
    """NVFlare's command that deploys a job into the kit, restricted to the job of this package.

    NVFlare's own command deletes the folder that the server names, even the one with the site's certificates, unpacks
    the job into it, and checks it afterwards: meanwhile another job can be put into the same folder, and be admitted.
    This command checks first, accepts only a new folder, and handles one job at a time.

    NVFlare also checks a signature and the site's rights. But it grants the role "super" all rights, and the owner of
    the authority can issue a certificate with that role.
    """

    def __init__(self) -> None:
        super().__init__()
        self._one_at_a_time = Lock()

    def process(self, req: Message, app_ctx: Any) -> Message:  # noqa: ANN401 (NVFlare's engine)
        """Return NVFlare's reply, or a refusal. Nothing of a refused job is unpacked."""
        with self._one_at_a_time:
            if _is_new(Path(app_ctx.args.workspace), req.get_header(RequestHeader.JOB_ID)) and _is_our_job(req.body):
                return super().process(req, app_ctx)
            return error_reply("not the job of dpcausal")


def _is_new(kit: Path, name: object) -> bool:
    return isinstance(name, str) and bool(_ID.fullmatch(name)) and not (kit / name).exists()


def _is_our_job(sent: object) -> bool:
    if not isinstance(sent, bytes) or len(sent) > _MOST_BYTES:
        return False
    try:
        with ZipFile(BytesIO(sent)) as archive:
            names = archive.namelist()
            return (
                len(names) == len(set(names))
                and {_CONFIG} <= set(names) <= {"config/", _CONFIG, *_SIGNATURES}
                # As NVFlare packs it: compressed data could unpack to any size.
                and all(member.compress_type == ZIP_STORED for member in archive.infolist())
                and bool(json.loads(archive.read(_CONFIG).decode()) == AT_SITES)
            )
    except Exception:  # noqa: BLE001 - a job that cannot be read is not ours
        return False
