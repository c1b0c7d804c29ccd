"""Deployment files: units that systemd accepts, a compose file, and commands that exist."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from checks.commands import all_commands
from checks.documents import ROOT

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMMANDS = {tuple(words[1:3]) for words in all_commands()}


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_starts_a_command_that_exists_and_restarts_it(unit: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    (command,) = re.findall(r"^ExecStart=/opt/dpcausal/bin/dpcausal (\w+) (\w+)", text, re.MULTILINE)
    assert command in COMMANDS
    for line in ("Restart=always", "NoNewPrivileges=true", "ProtectSystem=strict", "UMask=0077", "User=dpcausal"):
        assert f"\n{line}\n" in text


def test_every_console_is_behind_a_proxy() -> None:
    started = [line for unit in UNITS for line in unit.read_text(encoding="utf-8").split("\n") if "ExecStart" in line]
    started += [" ".join(service["command"]) for service in services().values()]
    consoles = [command for command in started if " console " in command]
    assert len(consoles) == 2
    assert all(" --behind-proxy" in command for command in consoles)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    file = tmp_path / unit.name.replace("@", "@north")
    # The program and the user exist only where it is installed.
    text = (
        unit.read_text(encoding="utf-8")
        .replace("/opt/dpcausal/bin/dpcausal", "/bin/true")
        .replace("=dpcausal\n", "=root\n")
    )
    file.write_text(text, encoding="utf-8")
    done = subprocess.run(  # noqa: S603
        ["systemd-analyze", "verify", "--man=no", str(file)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert not [line for line in done.stderr.splitlines() if unit.name.split("@", maxsplit=1)[0] in line], done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(services()))
def test_container_runs_a_command_that_exists_without_rights(name: str) -> None:
    service = services()[name]
    assert tuple(service["command"][:2]) in COMMANDS
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


def test_all_three_parts_are_deployed() -> None:
    assert set(services()) == {"coordinator", "site", "console"}
    assert {unit.name.split("-")[1].split("@")[0] for unit in UNITS} == {"coordinator", "site", "console"}


def test_image_does_not_run_as_root_and_names_no_key() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER dpcausal$", text, re.MULTILINE)
    assert not re.search(r"\.key|DPCAUSAL_PASS", text)
