"""Provisioning of an NVFlare network: the authority of a federation, and the kits of its sites.

A site gets its kit without its private key ever leaving it:

1. The coordinator: `create_authority` creates the authority, the kits of server and requester, and a fingerprint. Each
   site must learn the fingerprint over another channel than the files, for instance by telephone.
2. A site: `request_kit` creates a key and a file to send.
3. The coordinator: `sign` creates a file to send back.
4. The site: `install_kit` checks the fingerprint and creates the kit, with hardened settings.

`renew` gives the server and the requesters new keys and certificates of the same authority. A site renews its kit with
the same steps as before, from `request_renewal` on. The old kit works until the new one is installed.
"""

import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcausal.errors import TransportError, redact_errors
from dpcausal.federation.transports.nvflare.certificates import keep_server_key
from dpcausal.federation.transports.nvflare.hardening import harden, is_site

_REQUESTER = "requester"
_RENEWAL = "renewal"
DAYS = 365
"""The validity of a certificate, unless another is chosen."""


def create_authority(folder: Path, federation: str, host: str, port: int = 8002, days: int = DAYS) -> str:
    """Create the authority of a new federation, and the kits of the server and the requester.

    Args:
        folder: A new folder. Whoever can read it can admit anyone to the network.
        host: The host name of the server, as sites reach it.
        port: The port of the server.
        days: The validity of the certificates of server and requester. That of the authority is ten years.

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
    _make_private(folder / "authority")
    _create_kit(folder, folder / "server", {"name": host, "type": "server"}, days)
    _create_kit(folder, folder / _REQUESTER, _requester(_REQUESTER), days)
    harden(folder / "server")
    return str(made["rootca_fingerprint_sha256"])


def add_requester(folder: Path, name: str, days: int = DAYS) -> Path:
    """Create the kit of another requester, and return it."""
    return _create_kit(folder, kit_of(folder, name), _requester(name), days)


def kit_of(folder: Path, name: str) -> Path:
    """Return where the kit is that `add_requester` creates."""
    return folder / "requesters" / name


def renew(folder: Path, days: int = DAYS) -> list[Path]:
    """Give the server and all requesters new certificates, and return their kits.

    The authority, its fingerprint and the server's key stay the same, so that sites need nothing new. A running server
    uses its new certificate after a restart. Requesters have new keys too.
    """
    host = json.loads((folder / "profile.yml").read_text(encoding="utf-8"))["server"]["host"]
    kits = {
        folder / "server": {"name": host, "type": "server"},
        folder / _REQUESTER: _requester(_REQUESTER),
        **{kit: _requester(kit.name) for kit in sorted(folder.glob("requesters/*"))},
    }
    for kit, who in kits.items():
        with tempfile.TemporaryDirectory(dir=folder) as made_in:
            new = _create_kit(folder, Path(made_in) / "kit", who, days)
            if who["type"] == "server":
                keep_server_key(new, kit, folder / "authority")
            _replace_startup(kit, new)
    harden(folder / "server")
    return list(kits)


def fingerprint_of(folder: Path) -> str:
    """Return the fingerprint of a federation's authority, as `create_authority` returned it."""
    certificate = ssl.PEM_cert_to_DER_cert((folder / "authority" / "rootCA.pem").read_text(encoding="ascii"))
    return f"SHA256:{hashlib.sha256(certificate).digest().hex(':').upper()}"


def request_kit(folder: Path, federation: str, site: str) -> Path:
    """Create a site's key, and the request to send to the coordinator.

    Args:
        folder: A new folder. The key stays in it.
        site: The name of the site, as in its policy.
    """
    return _request(folder, federation, {"name": site, "type": "client"})


def request_renewal(folder: Path) -> Path:
    """Create a new key for a site that has a kit, and the request to send to the coordinator.

    Args:
        folder: The folder that `request_kit` created. An earlier request for renewal does not count any more.
    """
    participant = json.loads((folder / "participant.yml").read_text(encoding="utf-8"))
    shutil.rmtree(folder / _RENEWAL, ignore_errors=True)
    return request_kit(folder / _RENEWAL, participant["name"], participant["participants"][0]["name"])


def sign(folder: Path, request: Path, site: str, days: int = DAYS) -> Path:
    """Admit a site to the network, and return the file to send back, which is beside its request.

    The signed file of an earlier request is replaced.

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
        fingerprint: The fingerprint of the authority, learned over another channel than the file.

    Raises:
        TransportError: If the fingerprint is incomplete or not that of the file, or the file does not answer this
            site's request.
    """
    whole, kit = _whole_fingerprint(fingerprint), folder / "kit"
    renewal = folder / _RENEWAL
    if renewal.exists():
        _replace_startup(kit, _receive(renewal, signed, whole, renewal / "kit"))
        shutil.rmtree(renewal)
    else:
        _receive(folder, signed, whole, kit)
    harden(kit)
    return kit


def is_pending(folder: Path) -> bool:
    """Return whether a site waits for the answer to a request that it has made in this folder."""
    return (folder / "key").exists() or (folder / _RENEWAL).exists()


def _whole_fingerprint(text: str) -> str:
    """Return a fingerprint as NVFlare compares it. NVFlare compares nothing if it is empty."""
    digits = re.sub("[\\s:]", "", text.strip().upper().removeprefix("SHA256:"))
    if not re.fullmatch("[0-9A-F]{64}", digits):
        raise TransportError(
            expected="the whole fingerprint of the network: SHA256: and 64 hexadecimal digits",
            got=f"a text with {len(digits)} digits",
            hint="ask the coordinator to read out what dpcausal federation fingerprint prints.",
        )
    return f"SHA256:{bytes.fromhex(digits).hex(':').upper()}"


def _requester(name: str) -> dict[str, str]:
    return {"name": f"{name}@dpcausal.org", "type": "admin", "role": "lead"}  # NVFlare requires an address as a name


def _create_kit(folder: Path, kit: Path, who: Mapping[str, str], days: int) -> Path:
    """Create a kit at the coordinator, where request and signature are in one place."""
    federation = json.loads((folder / "profile.yml").read_text(encoding="utf-8"))["name"]
    kit.parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as made_in:
        request = _request(Path(made_in) / "request", federation, who)
        signed, _ = _signed(folder, request, days)
        return _receive(Path(made_in) / "request", signed, fingerprint_of(folder), kit)


def _replace_startup(kit: Path, new: Path) -> None:
    """Replace keys and certificates of a kit by those of a new one. Everything else in the kit stays."""
    if is_site(kit) or (kit / "startup" / "fed_server.json").exists():
        harden(new)
    old = kit / "startup.old"
    shutil.rmtree(old, ignore_errors=True)
    (kit / "startup").rename(old)
    (new / "startup").rename(kit / "startup")
    shutil.rmtree(old)


def _create_folder(folder: Path) -> None:
    with redact_errors(OSError, instead=lambda error: _unusable(folder, error)):
        folder.mkdir(parents=True, mode=0o700)


def _unusable(folder: Path, error: Exception) -> TransportError:
    return TransportError(
        problem=f"{folder} is not the path of a new folder ({type(error).__name__})", hint="choose another path."
    )


def _request(folder: Path, federation: str, who: Mapping[str, str]) -> Path:
    _create_folder(folder)
    participant = {"name": federation, "participants": [{"org": "dpcausal", **who}]}
    (folder / "participant.yml").write_text(json.dumps(participant), encoding="utf-8")
    made = _nvflare(folder, "cert", "request", "-p", folder / "participant.yml", "--out", folder / "key")
    _make_private(folder)
    return Path(made["request_zip"])


def _signed(folder: Path, request: Path, days: int) -> tuple[Path, dict[str, Any]]:
    signed = request.with_name(f"{request.name.removesuffix('.request.zip')}.signed.zip")
    signed.unlink(missing_ok=True)
    options = ("-c", folder / "authority", "--profile", folder / "profile.yml", "--valid-days", days, "--out", signed)
    return signed, _nvflare(folder, "cert", "approve", request, *options)


def _receive(folder: Path, signed: Path, fingerprint: str, kit: Path) -> Path:
    with tempfile.TemporaryDirectory(dir=folder) as made_in:
        options = ("--request-dir", folder / "key", "-w", made_in, "--fingerprint", fingerprint)
        made = _nvflare(folder, "package", signed, *options)
        shutil.move(made["output_dir"], kit)
    _make_private(kit)
    shutil.rmtree(folder / "key")  # the kit holds the key now
    return kit


def _make_private(folder: Path) -> None:
    """Let only the owner read a folder."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)


def _nvflare(folder: Path, *command: object) -> dict[str, Any]:
    """Run a command of NVFlare, and return the data that it prints. NVFlare stores its own records in the folder."""
    done = subprocess.run(  # noqa: S603 (NVFlare's own module, which checks file names)
        [sys.executable, "-P", "-m", "nvflare.cli", "--format", "json", *map(str, command)],
        env=os.environ | {"HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        umask=0o077,
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
    if "--" in hint:  # an option of NVFlare's own command, which ours does not have
        hint = "remove or rename the file that is in the way, and try again."
    return TransportError(problem=f"nvflare {command[0]} {command[1]} failed: {got}", hint=hint)
