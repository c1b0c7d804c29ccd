"""Provisioning of an NVFlare network: the authority of a federation, and the kits of its sites.

A site gets its kit without its private key ever leaving it:

1. The coordinator: `create_authority` creates the authority, the kits of server and requester, and a fingerprint. Each
   site must learn the fingerprint over another channel than the files, for instance by telephone.
2. A site: `request_kit` creates a key and a file to send.
3. The coordinator: `sign` creates a file to send back.
4. The site: `install_kit` checks the fingerprint and creates the kit, with hardened settings.
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

_REQUESTER = "requester@dpcausal.org"  # NVFlare requires an address: it is only a name
_DAYS = 365


def create_authority(folder: Path, federation: str, host: str, port: int = 8002) -> str:
    """Create the authority of a new federation, and the kits of the server and the requester.

    Args:
        folder: A new folder. Whoever can read it can admit anyone to the network.
        federation: The name of the federation.
        host: The host name of the server, as sites reach it.
        port: The port of the server.

    Returns:
        The fingerprint of the authority, for every site.
    """
    _create_folder(folder)
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
    """Return the fingerprint of a federation's authority, as `create_authority` returned it.

    Args:
        folder: The folder that `create_authority` created.
    """
    certificate = ssl.PEM_cert_to_DER_cert((folder / "authority" / "rootCA.pem").read_text(encoding="ascii"))
    return f"SHA256:{hashlib.sha256(certificate).digest().hex(':').upper()}"


def request_kit(folder: Path, federation: str, site: str) -> Path:
    """Create a site's key, and the request to send to the coordinator.

    Args:
        folder: A new folder. The key stays in it.
        federation: The name of the federation.
        site: The name of the site, as in its policy.
    """
    return _request(folder, federation, {"name": site, "type": "client"})


def sign(folder: Path, request: Path, site: str, days: int = _DAYS) -> Path:
    """Admit a site to the network, and return the file to send back, which is beside its request.

    Args:
        folder: The folder that `create_authority` created.
        request: The site's request.
        site: The site's name.
        days: The validity of its certificate. NVFlare cannot revoke a certificate: choose a short time.

    Raises:
        TransportError: If the request is for another name or role, for instance for an administrator.
    """
    signed, who = _signed(folder, request, days)
    if (who["name"], who["cert_type"]) != (site, "client"):
        signed.unlink()
        raise TransportError(
            expected=f"the request of a site named {site!r}",
            got=f"one of {who['name']!r} for the role {who['cert_type']!r}",
            hint="ask the sender what the request is for.",
        )
    return signed


def install_kit(folder: Path, signed: Path, fingerprint: str) -> Path:
    """Create the site's kit from the signed request.

    Args:
        folder: The folder that `request_kit` created.
        signed: The file that the coordinator sent back.
        fingerprint: The fingerprint of the authority, learned over another channel than the file.

    Raises:
        TransportError: If the fingerprint is not that of the file, or the file does not answer this site's request.
    """
    kit = _receive(folder, signed, fingerprint, folder / "kit")
    harden(kit)
    return kit


def _create_folder(folder: Path) -> None:
    with redact_errors(OSError, instead=lambda error: _unusable(folder, error)):
        folder.mkdir(parents=True, mode=0o700)


def _unusable(folder: Path, error: Exception) -> TransportError:
    return TransportError(
        expected="the path of a new folder", got=f"{folder} ({type(error).__name__})", hint="choose another path."
    )


def _request(folder: Path, federation: str, who: Mapping[str, str]) -> Path:
    _create_folder(folder)
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
    shutil.rmtree(folder / "key")  # the kit holds the key now
    return kit


def _nvflare(folder: Path, *command: object) -> dict[str, Any]:
    """Run a command of NVFlare, and return the data that it prints. NVFlare stores its own records in the folder."""
    done = subprocess.run(  # noqa: S603 (NVFlare's own module, which checks file names)
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
        output = json.loads(done.stdout.splitlines()[-1])
    if output["status"] != "ok":
        raise _refused(command, str(output["message"]), str(output["hint"]))
    return dict(output["data"])


def _refused(command: tuple[object, ...], got: str, hint: str) -> TransportError:
    return TransportError(expected=f"nvflare {command[0]} {command[1]} to succeed", got=got, hint=hint)
