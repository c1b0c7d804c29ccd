"""Who is who on the transport: a federation's authority, and how a site gets a kit without its key ever leaving it.

1. The coordinator: `create_authority` makes the authority, the kits of server and requester, and a fingerprint. It tells each site the
   fingerprint by a way that the site trusts: read out on the telephone, not sent along with the rest.
2. A site: `request_kit` makes a key and a file to send.
3. The coordinator: `sign` makes a file to send back.
4. The site: `install_kit` checks the fingerprint and makes the kit, with strict settings.
"""

import hashlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcausal.errors import TransportError, redact_errors
from dpcausal.plugins.nvflare.hardening import harden

_REQUESTER = "requester@dpcausal.org"  # NVFlare wants an address here: it is a name, and no mail goes there
_DAYS = 365


def create_authority(folder: Path, federation: str, host: str, port: int = 8002) -> str:
    """Make a new federation's authority, and in `server` and `requester` the kits of those two.

    Args:
        folder: Where; a new folder. Who can read it can let anyone in.
        federation: The name of the federation.
        host: The server's name, as sites dial it.
        port: Where the server listens.

    Returns:
        The fingerprint of the authority, to be told to every site.
    """
    folder.mkdir(parents=True, mode=0o700)
    profile = {
        "name": federation,
        "scheme": "grpc",
        "connection_security": "mtls",
        "server": {"host": host, "fed_learn_port": port},
    }
    (folder / "profile.yml").write_text(json.dumps(profile), encoding="utf-8")  # JSON is YAML
    made = _nvflare(folder, "cert", "init", "--profile", folder / "profile.yml", "-o", folder / "authority")
    fingerprint = str(made["rootca_fingerprint_sha256"])
    for kit, who in (
        ("server", {"name": host, "type": "server"}),
        ("requester", {"name": _REQUESTER, "type": "admin", "role": "lead"}),
    ):
        with tempfile.TemporaryDirectory() as nowhere:
            request = _request(Path(nowhere) / kit, federation, who)
            signed, _ = _signed(folder, request, _DAYS)
            _receive(Path(nowhere) / kit, signed, fingerprint, folder / kit)
    harden(folder / "server")
    return fingerprint


def fingerprint_of(folder: Path) -> str:
    """The fingerprint of a federation's authority once more, as `create_authority` told it.

    Args:
        folder: The federation's, as `create_authority` made it.
    """
    certificate = ssl.PEM_cert_to_DER_cert((folder / "authority" / "rootCA.pem").read_text(encoding="ascii"))
    return f"SHA256:{hashlib.sha256(certificate).digest().hex(':').upper()}"


def request_kit(folder: Path, federation: str, site: str) -> Path:
    """Make a site's key, and the request to send to the coordinator.

    Args:
        folder: Where; a new folder. The key stays in it.
        federation: The name of the federation.
        site: The name of the site, as in the study.
    """
    return _request(folder, federation, {"name": site, "type": "client"})


def sign(folder: Path, request: Path, site: str, days: int = _DAYS) -> Path:
    """Let a site in: the file to send back, beside its request.

    Args:
        folder: The federation's, as `create_authority` made it.
        request: What the site sent.
        site: Who is said to have sent it.
        days: How long it is let in. NVFlare cannot take a certificate back: keep this short.

    Raises:
        TransportError: If the request is for something else, for instance for an administrator.
    """
    signed, who = _signed(folder, request, days)
    if (who["name"], who["cert_type"]) != (site, "client"):
        signed.unlink()
        raise TransportError(
            expected=f"the request of a site named {site!r}",
            got=f"one of {who['name']!r} for the part of {who['cert_type']!r}",
            hint="ask who sent it what it is for.",
        )
    return signed


def install_kit(folder: Path, signed: Path, fingerprint: str) -> Path:
    """Make the site's kit from what the coordinator sent back.

    Args:
        folder: As for `request_kit`.
        signed: What the coordinator sent back.
        fingerprint: What the coordinator said, by another way than the file came.

    Raises:
        TransportError: If the fingerprint is not the file's, or the file not an answer to this site's request.
    """
    kit = _receive(folder, signed, fingerprint, folder / "kit")
    harden(kit)
    return kit


def _request(folder: Path, federation: str, who: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, mode=0o700)
    participant = {"name": federation, "participants": [{"org": "dpcausal", **who}]}
    (folder / "participant.yml").write_text(json.dumps(participant), encoding="utf-8")
    made = _nvflare(folder, "cert", "request", "-p", folder / "participant.yml", "--out", folder / "key")
    return Path(made["request_zip"])


def _signed(folder: Path, request: Path, days: int) -> tuple[Path, dict[str, Any]]:
    signed = request.with_name(f"{request.name.removesuffix('.request.zip')}.signed.zip")
    options = ("-c", folder / "authority", "--profile", folder / "profile.yml", "--valid-days", days, "--out", signed)
    return signed, _nvflare(folder, "cert", "approve", request, *options)


def _receive(folder: Path, signed: Path, fingerprint: str, kit: Path) -> Path:
    with tempfile.TemporaryDirectory(dir=folder) as made_in:
        options = ("--request-dir", folder / "key", "-w", made_in, "--fingerprint", fingerprint)
        made = _nvflare(folder, "package", signed, *options)
        shutil.move(made["output_dir"], kit)
    shutil.rmtree(folder / "key")  # the kit has the key now; there need not be two
    return kit


def _nvflare(folder: Path, *command: object) -> dict[str, Any]:
    """What NVFlare's command line says it made. It keeps its own records in the folder."""
    done = subprocess.run(  # noqa: S603 (its own module; names of files are checked by it)
        [sys.executable, "-P", "-m", "nvflare.cli", "--format", "json", *map(str, command)],
        env=os.environ | {"HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    with redact_errors(
        ValueError,
        IndexError,
        instead=lambda _: _refused(command, "did not run", 'pip install "dpcausal[federation]".'),
    ):
        said = json.loads(done.stdout.splitlines()[-1])
    if said["status"] != "ok":
        raise _refused(command, str(said["message"]), str(said["hint"]))
    return dict(said["data"])


def _refused(command: tuple[object, ...], got: str, hint: str) -> TransportError:
    return TransportError(expected=f"nvflare {command[0]} {command[1]} to succeed", got=got, hint=hint)
