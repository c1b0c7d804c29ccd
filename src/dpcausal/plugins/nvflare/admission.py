"""What a site lets in before anything of it is written down: the one question of this package, to the letter."""

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

from dpcausal.plugins.nvflare.job import AT_SITES, SITE_CONFIG

_MOST_BYTES = 2**16
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # as NVFlare makes them: no other folder is named so
_QUESTION = f"config/{SITE_CONFIG}"
_SIGNATURES = {f"{place}{file}" for place in ("", "config/") for file in (NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE)}


class JobAdmission(DeployProcessor):  # type: ignore[misc]
    """NVFlare's command that puts a question into the kit, which here takes nothing but the question.

    NVFlare's own deletes the folder that the server names, be it the one with the site's certificates, unpacks into it
    what it was sent, and looks at it then: meanwhile something else can be put into the same folder, and let in. This
    one looks first, takes a folder that is not there yet, and does one thing after the other.

    NVFlare asks for a signature and for the site's rights as well. But to it the role "super" has them all, and who
    owns the authority can make a certificate with that role.
    """

    def __init__(self) -> None:
        super().__init__()
        self._one_at_a_time = Lock()

    def process(self, req: Message, app_ctx: Any) -> Message:  # noqa: ANN401 (NVFlare's engine)
        """NVFlare's reply, or a refusal. Of what is refused nothing was unpacked."""
        with self._one_at_a_time:
            if _is_new(Path(app_ctx.args.workspace), req.get_header(RequestHeader.JOB_ID)) and _is_question(req.body):
                return super().process(req, app_ctx)
            return error_reply("not the question of dpcausal")


def _is_new(kit: Path, name: object) -> bool:
    return isinstance(name, str) and bool(_ID.fullmatch(name)) and not (kit / name).exists()


def _is_question(sent: object) -> bool:
    if not isinstance(sent, bytes) or len(sent) > _MOST_BYTES:
        return False
    try:
        with ZipFile(BytesIO(sent)) as archive:
            names = archive.namelist()
            return (
                len(names) == len(set(names))
                and {_QUESTION} <= set(names) <= {"config/", _QUESTION, *_SIGNATURES}
                # As NVFlare packs it: what is compressed can unpack to any size.
                and all(member.compress_type == ZIP_STORED for member in archive.infolist())
                and bool(json.loads(archive.read(_QUESTION).decode()) == AT_SITES)
            )
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is not the question
        return False
