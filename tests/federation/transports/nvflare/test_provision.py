"""Kits: what is created, renewed and refused. With the real authority of NVFlare, and no connections."""

import json
import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from typer.testing import CliRunner

from dpcausal.cli import app
from dpcausal.errors import StudyError, TransportError
from dpcausal.federation.transports.nvflare.certificates import Validity
from dpcausal.federation.transports.nvflare.hardening import check_hardened
from dpcausal.federation.transports.nvflare.networks import network_of, networks, new_network
from dpcausal.federation.transports.nvflare.provision import (
    fingerprint_of,
    install_kit,
    request_kit,
    request_renewal,
    sign,
)

pytestmark = [pytest.mark.costly("src"), pytest.mark.xdist_group("federation")]


def run(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


def days_left(kit: Path) -> int:
    return Validity.of(kit).days_left(datetime.now(UTC))


def serial(kit: Path) -> int:
    (file,) = kit.glob("startup/*.crt")
    return x509.load_pem_x509_certificate(file.read_bytes()).serial_number


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("network") / "workspace"
    said = run("federation", "init", folder, "anna", "--name", "hips", "--host", "localhost", "--days", 10)
    assert "Name of the federation: hips" in said
    return folder


@pytest.fixture(scope="module")
def site(workspace: Path) -> Path:
    folder = workspace.parent / "north"
    public = run("site", "init", folder, "north").split()[-1]
    run("site", "request-kit", folder, "hips")
    request = folder / "nvflare" / "key" / "north.request.zip"
    run("federation", "admit", workspace, "north", public, "--units", 300, "--request", request, "--days", 5)
    run("site", "install-kit", folder, request.with_name("north.signed.zip"), fingerprint_of(workspace / "nvflare"))
    return folder


def test_validity_is_chosen_for_server_requester_and_site(workspace: Path, site: Path) -> None:
    assert days_left(workspace / "nvflare" / "server") == 9
    assert days_left(workspace / "nvflare" / "requester") == 9
    assert days_left(site / "nvflare" / "kit") == 4


def test_federation_has_a_name_of_its_own(workspace: Path) -> None:
    text = (workspace / "nvflare" / "authority" / "rootCA.pem").read_text()
    assert "hips" in x509.load_pem_x509_certificate(text.encode()).subject.rfc4514_string()
    assert (workspace / "anna.key").exists()


def test_renewal_keeps_the_fingerprint_and_the_key_of_the_server_only(workspace: Path) -> None:
    network = workspace / "nvflare"
    run("federation", "add-requester", workspace, "ben", "--days", 7)
    kits = [network / "server", network / "requester", network / "requesters" / "ben"]
    fingerprint, serials = fingerprint_of(network), [serial(kit) for kit in kits]
    keys = [next(kit.glob("startup/*.key")).read_bytes() for kit in kits]
    (network / "server" / "jobs").mkdir(mode=0o700)
    said = run("federation", "renew", workspace, "--days", 200)
    assert said.count("199 days") == 3
    assert fingerprint_of(network) == fingerprint
    assert not set(serials) & {serial(kit) for kit in kits}
    renewed = [next(kit.glob("startup/*.key")).read_bytes() for kit in kits]
    assert renewed[0] == keys[0]  # running sites go on
    assert not set(renewed[1:]) & set(keys)
    check_hardened(network / "server")
    assert (network / "server" / "jobs").is_dir()  # what the server stored stays
    for kit in kits:
        root = ssl.PEM_cert_to_DER_cert((kit / "startup" / "rootCA.pem").read_text())
        assert root == ssl.PEM_cert_to_DER_cert((network / "authority" / "rootCA.pem").read_text())


def test_second_requester_has_a_key_and_a_kit_of_its_own(workspace: Path) -> None:
    said = run("federation", "add-requester", workspace, "cleo")
    assert run("federation", "key", workspace, "cleo").strip() in said
    admin = workspace / "nvflare" / "requesters" / "cleo" / "startup" / "fed_admin.json"
    assert json.loads(admin.read_text())["admin"]["username"] == "cleo@dpcausal.org"
    assert "has a requester" in run("federation", "add-requester", workspace, "cleo", code=2)


def test_site_renews_while_its_old_kit_stays(workspace: Path, site: Path) -> None:
    kit = site / "nvflare" / "kit"
    before = serial(kit)
    request = Path(
        run("site", "renew", site).replace("\n", "").split(": ")[1].removesuffix("Install what comes back with")
    )
    assert serial(kit) == before
    check_hardened(kit)
    public = run("site", "key", site).strip()
    for _ in range(2):  # signing again replaces the file
        run("federation", "admit", workspace, "north", public, "--units", 300, "--request", request, "--days", 100)
    signed = request.with_name("north.signed.zip")
    assert "whole fingerprint" in run("site", "install-kit", site, signed, "", code=2)
    run("site", "install-kit", site, signed, fingerprint_of(workspace / "nvflare"))
    assert serial(kit) != before
    assert days_left(kit) == 99
    check_hardened(kit)
    assert not (site / "nvflare" / "renewal").exists()
    assert "dpcausal site serve" in run("site", "install-kit", site, request.parents[3] / "policy.toml", "", code=2)


@pytest.mark.parametrize("cut", [0, 8, 20, 101])
def test_incomplete_fingerprint_is_refused_before_the_file_is_read(workspace: Path, tmp_path: Path, cut: int) -> None:
    fingerprint = fingerprint_of(workspace / "nvflare")
    request_kit(tmp_path / "east", "hips", "east")
    with pytest.raises(TransportError, match="whole fingerprint"):
        install_kit(tmp_path / "east", tmp_path / "absent.zip", fingerprint[:cut])


def test_fingerprint_may_be_typed_in_small_letters(workspace: Path, tmp_path: Path) -> None:
    network = workspace / "nvflare"
    signed = sign(network, request_kit(tmp_path / "east", "hips", "east"), "east")
    typed = fingerprint_of(network).removeprefix("SHA256:").replace(":", " ").lower()
    assert install_kit(tmp_path / "east", signed, typed).is_dir()


def test_site_may_be_in_several_networks(site: Path) -> None:
    run("site", "request-kit", site, "knees")
    assert networks(site) == {"hips": site / "nvflare", "knees": site / "networks" / "knees"}
    assert network_of(site, "knees") == network_of(site, pending=True) == site / "networks" / "knees"
    assert "--network" in run("site", "serve", site, code=2)
    with pytest.raises(StudyError, match="site renew"):
        new_network(site, "hips")


def test_files_of_a_site_and_of_a_network_are_private(workspace: Path, site: Path) -> None:
    request_renewal(site / "nvflare")
    for folder in (workspace, site):
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
        assert not [path for path, mode in modes.items() if mode & 0o077]
