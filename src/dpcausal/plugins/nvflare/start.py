"""Start a site or a server from its kit, in the foreground: under a supervisor, which starts it again if it ends."""

import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from dpcausal.plugins.nvflare.hardening import check_hardened


def start_site(kit: Path, folder: Path) -> NoReturn:
    """Become the process of a site, which dials the server and waits for questions.

    Args:
        kit: As `provision.install_kit` made it.
        folder: The site's own, with its policy, its ledger and where its table is.

    Raises:
        TransportError: If the kit's settings are not strict. Nothing was started.
    """
    check_hardened(kit)
    startup = json.loads((kit / "startup" / "fed_client.json").read_text(encoding="utf-8"))
    uid = f"uid={startup['client']['fqsn']}"
    _become("dpcausal.plugins.nvflare.site_process", "fed_client.json", kit, uid, DPCAUSAL_SITE=str(folder.resolve()))


def start_server(kit: Path) -> NoReturn:
    """Become the process of a server.

    Args:
        kit: As `provision.create_authority` made it.

    Raises:
        TransportError: If the kit's settings are not strict. Nothing was started.
    """
    check_hardened(kit)
    _become("nvflare.private.fed.app.server.server_train", "fed_server.json", kit)


def _become(module: str, startup: str, kit: Path, *options: str, **settings: str) -> NoReturn:
    environment = {
        **os.environ,
        "NVFLARE_SECURE_LOGGING": "true",
        "NVFLARE_CLIENT_OUTCOME_WAIT_TIMEOUT": "30",  # after so many seconds a stuck task is let go, not after 900
        "PYTHONSAFEPATH": "1",  # NVFlare works in the kit, where it unpacks what it is sent: import nothing from there
        "MALLOC_ARENA_MAX": "2",
        **settings,
    }
    where = ("-m", str(kit.resolve()), "-s", startup)
    what = ("--set", "secure_train=true", *options, "org=dpcausal", "config_folder=")
    os.execve(sys.executable, [sys.executable, "-u", "-m", module, *where, *what], environment)  # noqa: S606
