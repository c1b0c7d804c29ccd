"""Operation of a real coordinator and a real site over TLS: logs, status, backup, and a workspace that moves."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.ports import reserved_port
from tests.support.site_folders import approve_study, example_study, make_site_folder

# The gate runs the page docs/operation.md, and tests of status, backup and restore without a network.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("federation"), pytest.mark.timeout(600)]


def run(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == code, done.output
    return done.output


@contextmanager
def serving(log: Path, *words: object) -> Iterator[psutil.Process]:
    """Run a command that serves, as a supervisor would; in the end kill it with all that it started."""
    with (
        log.open("wb") as output,
        subprocess.Popen([sys.executable, "-m", "dpcausal", *map(str, words)], stdout=output, stderr=output) as started,  # noqa: S603
    ):
        process = psutil.Process(started.pid)
        try:
            yield process
        finally:
            for each in (*process.children(recursive=True), process):
                each.kill()


def until(found: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.5)


def status(kind: str, folder: Path) -> dict[str, dict[str, Any]]:
    done = CliRunner().invoke(app, [kind, "status", str(folder), "--json"])
    checks: dict[str, dict[str, Any]] = json.loads(done.output)["checks"]
    return checks


def logged(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_life_of_a_coordinator_and_a_site(tmp_path: Path) -> None:
    port = reserved_port()
    workspace, north = tmp_path / "workspace", tmp_path / "north"
    run("federation", "init", workspace, "anna", "--host", "localhost", "--port", port)
    schema = standard_schema()
    key = make_site_folder(
        north, "north", synthetic_table(schema, 400), schema, {"anna": Workspace(workspace).key("anna").public}
    )
    run("site", "request-kit", north, "anna")
    (request,) = north.glob("nvflare/key/*.request.zip")
    run("federation", "admit", workspace, "north", key, "--units", 400, "--request", request)
    (signed,) = north.glob("nvflare/key/*.signed.zip")
    fingerprint = run("federation", "fingerprint", workspace).strip()
    run("site", "install-kit", north, signed, fingerprint)
    study = example_study(schema)
    (tmp_path / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    approve_study(north, study)
    at_server, at_site = tmp_path / "server.log", tmp_path / "north.log"

    with serving(at_server, "federation", "serve", workspace), serving(at_site, "site", "serve", north) as site:
        until(lambda: bool(status("site", north).get("connected", {}).get("value")))
        until(lambda: status("federation", workspace)["sites"]["value"]["north"])
        checks = status("site", north)
        assert abs(checks["clock"]["value"]) < 10
        assert checks["versions"]["value"]["server"] == checks["versions"]["value"]["dpcausal"]
        assert checks["certificate"]["level"] == "healthy"
        run("federation", "run", workspace, tmp_path / "study.toml", "--timeout", 120)
        run("site", "backup", north, "--out", tmp_path / "north.backup", "--with-keys")
        run("federation", "backup", workspace, "--out", tmp_path / "workspace.backup", "--with-keys")
        until(lambda: any(line["event"] == "study" for line in logged(at_server)))
        for log, told in ((at_server, {"sites": {"north": "answered"}}), (at_site, {"code": "answered"})):
            lines = logged(log)
            assert not [line for line in lines if line["level"] in {"ERROR", "CRITICAL"}]
            assert len(lines) <= 10
            (line,) = [line for line in lines if line["event"] == "study"]
            assert line.items() >= {**told, "requester": "anna"}.items()
        site.kill()
        until(lambda: status("site", north)["serving"]["level"] == "broken", 10)

    shutil.move(workspace, tmp_path / "lost")
    moved = tmp_path / "moved" / "workspace"
    run("federation", "restore", tmp_path / "workspace.backup", moved)
    restored = tmp_path / "moved" / "north"
    run("site", "restore", tmp_path / "north.backup", restored, code=1)
    shutil.copy(north / "table.parquet", restored)
    words = ("--by", "Ann", "--reason", "moved", "--lost-epsilon", 0)
    run("ledger", "restore", restored / "ledger.db", *words)
    again = study.to_toml().replace("epsilon = 1.0", "epsilon = 0.5")
    (tmp_path / "again.toml").write_text(again, encoding="utf-8")
    shutil.copytree(tmp_path / "north-people", tmp_path / "moved" / "north-people")
    approve_study(restored, Study.from_toml(again))
    with serving(at_server, "federation", "serve", moved), serving(at_site, "site", "serve", restored):
        until(lambda: bool(status("site", restored).get("connected", {}).get("value")))
        run("federation", "run", moved, tmp_path / "again.toml", "--timeout", 120)
