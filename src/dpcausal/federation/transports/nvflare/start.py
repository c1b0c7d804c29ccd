"""Start a site or a server from its kit, in the foreground. A supervisor should restart it when it ends."""

import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from dpcausal.federation.transports.nvflare import logs
from dpcausal.federation.transports.nvflare.certificates import check_certificate
from dpcausal.federation.transports.nvflare.hardening import check_hardened


def start_site(kit: Path, folder: Path) -> NoReturn:
    """Replace this process by that of a site, which connects to the server and waits for requests.

    Raises:
        TransportError: If the kit is not hardened. Nothing was started.
        CertificateError: If the kit's certificate has expired or is not valid yet.
    """
    check_hardened(kit)
    check_certificate(kit)
    startup = json.loads((kit / "startup" / "fed_client.json").read_text(encoding="utf-8"))
    uid = f"uid={startup['client']['fqsn']}"
    _exec(
        "dpcausal.federation.transports.nvflare.site_process",
        "fed_client.json",
        kit,
        uid,
        DPCAUSAL_SITE=str(folder.resolve()),
    )


def start_server(kit: Path, roster: Path | None = None) -> NoReturn:
    """Replace this process by that of a server.

    Args:
        kit: The kit that `provision.create_authority` created.
        roster: The roster. Sites that are revoked in it cannot connect; it is read again when it changes.

    Raises:
        TransportError: If the kit is not hardened. Nothing was started.
        CertificateError: If the kit's certificate has expired or is not valid yet.
    """
    check_hardened(kit)
    check_certificate(kit)
    denied = str(roster.resolve()) if roster else ""
    _exec("dpcausal.federation.transports.nvflare.server_process", "fed_server.json", kit, DPCAUSAL_ROSTER=denied)


def _exec(module: str, startup: str, kit: Path, *options: str, **settings: str) -> NoReturn:
    environment = {
        **os.environ,
        "NVFLARE_SECURE_LOGGING": "true",
        "NVFLARE_CLIENT_OUTCOME_WAIT_TIMEOUT": "30",  # abandon a stuck task after 30 seconds instead of 900
        "PYTHONSAFEPATH": "1",  # import nothing from the kit, where NVFlare unpacks jobs
        "MALLOC_ARENA_MAX": "2",
        logs.VARIABLE: logs.settings(),
        "DPCAUSAL_KIT": str(kit.resolve()),
        **settings,
    }
    os.umask(0o077)  # what NVFlare writes is for the owner only
    where = ("-m", str(kit.resolve()), "-s", startup)
    what = ("--set", "secure_train=true", *options, "org=dpcausal", "config_folder=")
    os.execve(sys.executable, [sys.executable, "-u", "-m", module, *where, *what], environment)  # noqa: S606
