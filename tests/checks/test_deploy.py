"""Deployment files: units that systemd accepts, a compose file, command lines that the product understands, and SQL."""

import ast
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import jinja2
import pytest
import yaml
from typer.main import get_command

from checks.documents import ROOT
from dpcausal.cli import app

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
TIMERS = sorted((DEPLOY / "systemd").glob("*.timer"))
ONESHOT = [unit for unit in UNITS if unit.with_suffix(".timer").exists()]
SERVICES = [unit for unit in UNITS if unit not in ONESHOT]
PROGRAM = "/opt/dpcausal/bin/dpcausal"
HARDENED = (
    "UMask=0077",
    "NoNewPrivileges=true",
    "CapabilityBoundingSet=",
    "PrivateTmp=true",
    "PrivateDevices=true",
    "ProtectSystem=strict",
    "ProtectHome=true",
    "RestrictSUIDSGID=true",
    "SystemCallFilter=@system-service",
    "ReadWritePaths=/srv/dpcausal/%i",
)
EXITS_WITH_3 = {"dpcausal-coordinator@", "dpcausal-mailbox@", "dpcausal-site@"}
"""Services that end with this status where their certificate is not valid."""


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return found


def commands_in(text: str) -> list[list[str]]:
    """Return the command lines of dpcausal in a unit, as the service gets them."""
    found = []
    for start in re.findall(r"^Exec\w+=(.*)$", text, re.MULTILINE):
        words = shlex.split(start)
        if words[0] == "/bin/sh":  # the script's date is the only thing that the shell adds
            words = shlex.split(re.sub(r"\$\$\(.*?\)", "now", words[2]).removeprefix("exec "))
        if words[0] == PROGRAM:
            found.append(words[1:])
    return found


def parsed(words: list[str], folder: Path) -> str:
    """Let the product parse a command line, without running it, and return the command's name."""
    arguments = [re.sub(r"^/srv/dpcausal/[^/]+$", str(folder), word) for word in words]
    context: Any = get_command(app).make_context("dpcausal", list(arguments))
    while hasattr(context.command, "resolve_command"):  # the context's, because a group may be loaded when it is used
        name, command, arguments = context.command.resolve_command(context, arguments)
        context = command.make_context(name, list(arguments), parent=context)
    return str(context.command_path)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_product_understands_the_command_line_of_a_unit(unit: Path, tmp_path: Path) -> None:
    (words,) = commands_in(unit.read_text(encoding="utf-8"))
    assert parsed(words, tmp_path).startswith(f"dpcausal {words[0]} ")
    assert str(tmp_path) not in words
    assert "/srv/dpcausal/%i" in words


@pytest.mark.parametrize(
    "words", [["site", "serve"], ["site", "serve", "north", "--lisen", "x"], ["site", "srve", "n"]]
)
def test_a_wrong_command_line_is_found(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"Missing|No such"):
        parsed(words, tmp_path)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_runs_with_few_rights(unit: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    for line in (*HARDENED, "User=dpcausal", "Group=dpcausal"):
        assert f"\n{line}\n" in text
    first, last = (DEPLOY / "systemd" / "dpcausal-site@.service").read_text(encoding="utf-8"), text
    assert last[last.index("UMask=") :].split("\n\n")[0].rstrip() == first[first.index("UMask=") :].split("\n\n")[0]


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_service_starts_again_unless_its_certificate_is_not_valid(unit: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    assert "\nRestart=always\nRestartSec=10\n" in text
    assert "\nStartLimitIntervalSec=0\n" in text  # a database that is away for a day does not stop it for good
    assert ("\nRestartPreventExitStatus=3\n" in text) == (unit.stem in EXITS_WITH_3)
    assert "\nWantedBy=multi-user.target" in text


@pytest.mark.parametrize("timer", TIMERS, ids=lambda timer: timer.name)
def test_timer_starts_a_unit_that_ends(timer: Path) -> None:
    text = timer.with_suffix(".service").read_text(encoding="utf-8")
    assert "\nType=oneshot\n" in text
    assert "Restart=" not in text
    assert "[Install]" not in text
    assert ("\nSuccessExitStatus=1\n" in text) == ("health" in timer.name)


def test_a_nightly_backup_has_no_hour_that_daylight_saving_skips() -> None:
    for timer in TIMERS:
        when = re.findall(r"^OnCalendar=(.*)$", timer.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(when) == 1
        assert when[0].endswith(" UTC") or "*:" in when[0]


def test_every_console_is_behind_a_proxy() -> None:
    started = [" ".join(words) for unit in UNITS for words in commands_in(unit.read_text(encoding="utf-8"))]
    started += [" ".join(service["command"]) for service in services().values()]
    consoles = [command for command in started if " console " in command]
    assert len(consoles) == 3
    assert all(" --behind-proxy" in command for command in consoles)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    files = []
    for unit in (*UNITS, *TIMERS):
        # The program and the user exist only where it is installed.
        text = unit.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true").replace("=dpcausal\n", "=root\n")
        files.append(tmp_path / unit.name.replace("@", "@north"))
        files[-1].write_text(text, encoding="utf-8")
    done = subprocess.run(  # noqa: S603
        ["systemd-analyze", "verify", "--man=no", *map(str, files)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert not [line for line in done.stderr.splitlines() if "dpcausal" in line], done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(services()))
def test_container_runs_a_command_line_that_exists_without_rights(name: str, tmp_path: Path) -> None:
    service = services()[name]
    assert parsed(service["command"], tmp_path).startswith("dpcausal ")
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "always"
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    check = service["healthcheck"]["test"]
    if check[0] == "CMD-SHELL":
        parsed(shlex.split(check[1].partition(" > ")[0])[1:], tmp_path)


def test_every_part_is_deployed() -> None:
    assert set(services()) == {"coordinator", "site", "console", "mailbox", "poller"}
    site = {"site", "poller", "console", "metrics", "health", "notify", "backup"}
    coordinator = {
        "coordinator",
        "mailbox",
        *(f"coordinator-{part}" for part in ("console", "metrics", "health", "notify", "backup")),
    }
    assert {unit.name.removeprefix("dpcausal-").split("@")[0] for unit in UNITS} == site | coordinator
    readme = (DEPLOY / "README.md").read_text(encoding="utf-8")
    assert not [unit.name for unit in UNITS if unit.stem not in readme]


def test_image_does_not_run_as_root_and_takes_no_folder_that_may_hold_a_key() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert not re.search(r"\.key|DPCAUSAL_PASS", text)
    copied = {word for line in re.findall(r"^COPY ([^-].*)$", text, re.MULTILINE) for word in line.split()[:-1]}
    assert copied == {"pyproject.toml", "constraints.txt", "README.md", "LICENSE", "src"}


def test_image_and_units_have_what_their_services_need() -> None:
    (extras,) = re.findall(r"^ARG EXTRAS=(.*)$", (DEPLOY / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"federation", "console"} <= set(extras.split(","))
    assert "dpcausal[federation,console]" in (DEPLOY / "README.md").read_text(encoding="utf-8")


def test_the_product_understands_the_command_lines_of_the_scheduled_experiment(tmp_path: Path) -> None:
    tree = ast.parse((DEPLOY / "experiments" / "checkout_dag.py").read_text(encoding="utf-8"))
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.keyword) and each.arg == "bash_command"]
    commands = [ast.literal_eval(each.value) for each in calls]
    templates = [shlex.split(re.sub(r"{{.*?}}", "2", each)) for each in commands if each.startswith("dpcausal ")]
    (tmp_path / "checkout.toml").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        names = [parsed(words[1:], tmp_path) for words in templates]
    assert names == ["dpcausal experiment run", "dpcausal experiment watch"]


def test_the_users_of_the_scheduled_experiment_are_one_record_each_also_without_events() -> None:
    models = DEPLOY / "experiments" / "models"
    text = (models / "users.sql").read_text(encoding="utf-8")
    query = jinja2.Template(text).render(ref=lambda name: name, config=lambda **_: "")
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE assignments AS SELECT * FROM (VALUES (1, 'old', 1, DATE '2026-01-01'), "
        "(2, 'new', 1, DATE '2026-01-01')) AS t(user_id, arm, week, assigned_at)"
    )
    database.execute(
        "CREATE TABLE events AS SELECT * FROM (VALUES (1, DATE '2026-01-02', 30.0), (1, DATE '2026-01-03', 90.0), "
        "(1, DATE '2026-01-09', 5.0)) AS t(user_id, happened_at, revenue)"
    )
    assert sorted(database.execute(query).fetchall()) == [(1, "old", 1, 100.0, 1), (2, "new", 1, 0.0, 0)]
    (model,) = yaml.safe_load((models / "users.yml").read_text(encoding="utf-8"))["models"]
    assert {each["name"] for each in model["columns"]} <= {each[0] for each in database.description}
