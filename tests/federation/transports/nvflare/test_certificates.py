"""Certificates that are not valid: processes end with words and exit code 3, at the start and while they run."""

import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from dpcausal.cli import app
from dpcausal.errors import CertificateError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.transports.nvflare import provision
from dpcausal.federation.transports.nvflare.certificates import Validity
from dpcausal.federation.transports.nvflare.provision import create_authority, install_kit, request_kit, sign
from dpcausal.federation.transports.nvflare.transport import FlareTransport
from tests.support.nvflare_commands import nvflare_here
from tests.support.slow import sampled

pytestmark = pytest.mark.xdist_group("federation")

LIBRARIES = list(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
needs_faketime = pytest.mark.skipif(not LIBRARIES, reason="no libfaketime in /usr/lib")
SECONDS = 60


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace and a site of one network."""
    folder = tmp_path_factory.mktemp("certificates")
    with patch.object(provision, "_nvflare", nvflare_here):
        return make_network(folder)


def make_network(folder: Path) -> Path:
    for words in (("federation", "init", folder / "workspace", "anna"), ("site", "init", folder / "north", "north")):
        assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 0
    authority = folder / "workspace" / "nvflare"
    fingerprint = create_authority(authority, "hips", "localhost", 28417)
    place = folder / "north" / "nvflare"
    install_kit(place, sign(authority, request_kit(place, "hips", "north"), "north"), fingerprint)
    return folder


COMMANDS = {
    "site": ("site", "serve", "north"),
    "server": ("federation", "serve", "workspace"),
    "requester": ("federation", "run", "workspace", "study.toml"),
}


def start(network: Path, who: str, seconds: float) -> "subprocess.Popen[str]":
    """Start a command whose clock is this many seconds ahead."""
    clock = {"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME": f"{seconds:+.0f}s"}
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "dpcausal", *COMMANDS[who]],
        cwd=network,
        env=os.environ | clock,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: "subprocess.Popen[str]", seconds: float) -> tuple[int, str]:
    try:
        _, printed = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return process.returncode, printed


CLOCKS = [(400, "that has not expired"), (-1, "that is valid already")]


@needs_faketime
@pytest.mark.parametrize(
    ("who", "days", "why"),
    sampled([(who, *CLOCKS[(at + place) % 2]) for at, who in enumerate(COMMANDS) for place in (0, 1)], 2),
)
def test_command_ends_with_words_and_a_code(network: Path, study: Path, who: str, days: int, why: str) -> None:
    assert study.exists()
    began = time.monotonic()
    code, printed = ended(start(network, who, days * 86_400), SECONDS)
    assert code == 3, printed
    assert why in printed
    assert "Traceback" not in printed
    assert time.monotonic() - began < SECONDS


@needs_faketime
@pytest.mark.slow  # commands with wrong clocks stay in the gate
def test_running_site_and_server_end_when_their_certificates_expire(network: Path) -> None:
    kits = {"server": network / "workspace" / "nvflare" / "server", "site": network / "north" / "nvflare" / "kit"}
    lead = 60.0  # seconds from the start to the end of the first certificate
    end = min(Validity.of(kit).end for kit in kits.values())
    began = time.monotonic()
    ahead = (end - datetime.now(UTC)).total_seconds() - lead
    running = {who: start(network, who, ahead) for who in kits}
    try:
        for who, process in running.items():
            own = lead + (Validity.of(kits[who]).end - end).total_seconds()
            code, printed = ended(process, own + SECONDS)
            after = time.monotonic() - began - own
            assert code == 3, printed
            assert "Error: This needs a certificate that has not expired" in printed
            assert re.search(r"Warning: The certificate of .* expires on .*, in 0 days", printed)
            assert after < SECONDS, f"{who} ended {after:.1f} s after its certificate"
    finally:
        for process in running.values():
            process.kill()


@pytest.fixture(scope="module")
def study(network: Path) -> Path:
    file = network / "study.toml"
    file.write_text(
        """
version = 2
name = "scores"
question = "Does treatment raise the score?"
requester = "anna"
epsilon = 1.0
pooling = "minimum_variance"

[estimator]
name = "difference_in_means"

[schema.treatment]
name = "arm"
arms = [0, 1]

[schema.outcome]
kind = "real"
name = "score"
low = 0.0
high = 100.0
"""
    )
    key = Key.read("north", network / "north" / "site.key").public
    admit = ["federation", "admit", str(network / "workspace"), "north", key, "--units-unknown"]
    assert CliRunner().invoke(app, admit).exit_code == 0
    return file


def test_validity_is_that_of_the_shorter_certificate(network: Path) -> None:
    validity = Validity.of(network / "north" / "nvflare" / "kit")
    assert validity.name == "north"
    assert validity.end - validity.start <= timedelta(days=365)
    for moment, why in ((validity.end, "expired"), (validity.start, "valid already")):
        step = timedelta(seconds=1)
        validity.check(moment)
        with pytest.raises(CertificateError, match=why):
            validity.check(moment + (step if moment == validity.end else -step))


def test_warning_begins_thirty_days_before_the_end(network: Path) -> None:
    validity = Validity.of(network / "workspace" / "nvflare" / "server")
    assert not validity.warning(validity.end - timedelta(days=31))
    assert "in 30 days" in validity.warning(validity.end - timedelta(days=30))
    assert "federation renew" in validity.warning(validity.end - timedelta(days=1))
    assert "site renew" in Validity.of(network / "north" / "nvflare" / "kit").warning(validity.end)


def test_kit_without_a_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="create the kit again"):
        FlareTransport(tmp_path).ask("request", ["north"], 1.0, lambda *_: None)
