"""A kit's settings: every change that would let more through is seen, and named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpcausal.errors import TransportError
from dpcausal.federation.transports.nvflare.hardening import check_hardened, harden

STOCK_LAUNCHER = "nvflare.app_common.job_launcher.client_process_launcher.ClientProcessJobLauncher"


def kit(folder: Path, part: str) -> Path:
    """What NVFlare makes, as far as it matters here."""
    for name in ("startup", "local"):
        (folder / name).mkdir(parents=True)
    (folder / "startup" / "start.sh").touch()
    for name in ("authorization.json.default", "resources.json.default", "privacy.json.sample"):
        (folder / "local" / name).write_text("{}")
    server: dict[str, Any] = {"name": "demo", "service": {"target": "localhost:8002", "scheme": "grpc"}}
    if part == "site":
        client = {"ssl_cert": "client.crt", "fqsn": "north", "connection_security": "mtls"}
        startup = {"format_version": 2, "servers": [server], "client": client}
        (folder / "startup" / "fed_client.json").write_text(json.dumps(startup))
    else:
        startup = {"format_version": 2, "servers": [server | {"connection_security": "mtls"}]}
        (folder / "startup" / "fed_server.json").write_text(json.dumps(startup))
    return folder


def change(file: Path, place: list[Any], value: object) -> None:
    settings = part = json.loads(file.read_text())
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    file.write_text(json.dumps(settings))


@pytest.mark.parametrize("part", ["site", "server"])
def test_new_kit_is_permissive_until_hardened(tmp_path: Path, part: str) -> None:
    new = kit(tmp_path / "kit", part)
    with pytest.raises(TransportError):
        check_hardened(new)
    harden(new)
    check_hardened(new)
    assert not (new / "startup" / "start.sh").exists()


@pytest.mark.parametrize(
    ("part", "file", "place", "value"),
    [
        *(
            ("site", "local/authorization.json", ["permissions", role, right], "any")
            for role in ("project_admin", "org_admin", "lead", "member")
            for right in ("byoc", "shell_commands", "operate")
        ),
        ("site", "local/authorization.json", ["permissions", "project_admin"], "any"),
        ("site", "local/authorization.json", ["permissions", "guest"], "any"),
        ("site", "local/resources.json", ["class_list_enforcement_mode"], "warn"),
        ("site", "local/resources.json", ["class_allow_list"], ["*"]),
        ("site", "local/resources.json", ["class_allow_list"], ["dpcausal."]),
        ("site", "local/resources.json", ["allow_log_streaming"], True),
        ("site", "local/resources.json", ["allow_log_streaming"], 0),
        ("site", "local/resources.json", ["app_validator"], {"path": "some.Thing"}),
        ("site", "local/resources.json", ["components", 2, "path"], STOCK_LAUNCHER),
        ("site", "local/resources.json", ["client", "site_config"], {}),
        ("site", "startup/fed_client.json", ["client", "connection_security"], "tls"),
        ("site", "startup/fed_client.json", ["require_signed_jobs"], False),
        ("site", "startup/fed_client.json", ["components"], [{"id": "more", "path": "some.Thing"}]),
        ("server", "local/authorization.json", ["permissions", "lead", "byoc"], "any"),
        ("server", "local/resources.json", ["class_allow_list"], ["*"]),
        ("server", "local/resources.json", ["servers", 0, "heart_beat_timeout"], 600),
        ("server", "local/resources.json", ["components", 1, "args", "uri_root"], "/tmp/nvflare/jobs-storage"),  # noqa: S108
        ("server", "local/resources.json", ["components", 3], {"id": "log_receiver", "path": "some.Receiver"}),
        ("server", "startup/fed_server.json", ["servers", 0, "connection_security"], "clear"),
    ],
)
def test_permissive_setting_is_named(tmp_path: Path, part: str, file: str, place: list[Any], value: object) -> None:
    strict = kit(tmp_path / "kit", part)
    harden(strict)
    change(strict / file, place, value)
    with pytest.raises(TransportError) as refused:
        check_hardened(strict)
    assert " ".join([file, *map(str, place)]) in refused.value.problem


@pytest.mark.parametrize(
    "spoil",
    [
        lambda kit: (kit / "local" / "resources.json").unlink(),
        lambda kit: (kit / "local" / "authorization.json").write_text("not JSON"),
        lambda kit: (kit / "local" / "more__p_resources.json").write_text("{}"),
        lambda kit: (kit / "local" / "comm_config.json").write_text("{}"),
        lambda kit: (kit / "local" / "custom").mkdir(),
        lambda kit: (kit / "startup" / "more__resources.json").write_text("{}"),
        lambda kit: (kit / "startup" / "sub_start.sh").touch(),
    ],
)
def test_missing_or_extra_file_is_found(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    strict = kit(tmp_path / "kit", "site")
    harden(strict)
    spoil(strict)
    with pytest.raises(TransportError):
        check_hardened(strict)


def test_moved_server_kit_is_found(tmp_path: Path) -> None:
    harden(kit(tmp_path / "kit", "server"))
    moved = (tmp_path / "kit").rename(tmp_path / "elsewhere")
    with pytest.raises(TransportError, match="uri_root"):
        check_hardened(moved)


def test_blank_in_the_path_is_found(tmp_path: Path) -> None:
    blank = kit(tmp_path / "my kit", "site")
    harden(blank)
    with pytest.raises(TransportError, match="blank"):
        check_hardened(blank)
