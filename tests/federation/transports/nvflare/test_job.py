"""What is submitted, and what runs at a site: JSON, no code, and no text but a message."""

import base64
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from dpcausal.errors import TransportError
from dpcausal.federation.site.worker import run_in_subprocess
from dpcausal.federation.transports.nvflare.components import AnswerExecutor
from dpcausal.federation.transports.nvflare.job import AT_SITES, write_job
from dpcausal.federation.transports.nvflare.provision import request_kit
from dpcausal.federation.transports.nvflare.transport import FlareTransport
from tests.support.certificates import write_certificate

MARKER = "the-patient-in-bed-7"


def answered(task: str, data: Any) -> Shareable:
    return AnswerExecutor().execute(task, Shareable(data), FLContext(), Signal())


def test_job_is_json_without_code(tmp_path: Path) -> None:
    request = '{"body": "{JOB_ID} {SITE_NAME} ü"}'
    write_job(tmp_path, request, ["north", "south"], 60)
    found = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert found == {"meta.json", "server/config/config_fed_server.json", "sites/config/config_fed_client.json"}
    server = json.loads((tmp_path / "server/config/config_fed_server.json").read_text())
    carried = server["workflows"][0]["args"]["request"]
    assert base64.b64decode(carried).decode() == request
    assert "{" not in carried  # NVFlare would replace what stands in braces
    assert json.loads((tmp_path / "sites/config/config_fed_client.json").read_text()) == AT_SITES
    assert json.loads((tmp_path / "meta.json").read_text())["deploy_map"]["sites"] == ["north", "south"]


@pytest.mark.parametrize(
    ("task", "data"),
    [("answer", {}), ("answer", {"request": 1}), ("answer", {"request": ["x"]}), ("train", {"request": "x"})],
)
def test_anything_but_a_request_is_refused_with_a_code(task: str, data: dict[str, object]) -> None:
    assert answered(task, data).get_return_code() == ReturnCode.BAD_TASK_DATA


def test_no_error_text_leaves_a_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / MARKER  # no site is there
    with pytest.raises(Exception, match=MARKER):
        run_in_subprocess(folder, "request")
    monkeypatch.setenv("DPCAUSAL_SITE", str(folder))
    with caplog.at_level(logging.DEBUG):
        reply = answered("answer", {"request": "request"})
    assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
    assert MARKER not in repr(reply) + caplog.text


def test_site_without_a_folder_replies_with_a_code_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPCAUSAL_SITE", raising=False)
    assert answered("answer", {"request": "request"}).get_return_code() == ReturnCode.EXECUTION_EXCEPTION


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A requester's kit with a valid certificate, and no server."""
    (tmp_path / "startup").mkdir()
    for name in ("client.crt", "rootCA.pem"):
        write_certificate(tmp_path / "startup" / name, days=100)
    return tmp_path


def test_transport_without_a_server_fails_before_the_timeout(kit: Path) -> None:
    with pytest.raises(TransportError, match=r"in 0\.5 seconds"):
        FlareTransport(kit).ask("request", ["north"], 0.5, lambda _site, _message: None)


def test_client_that_cannot_start_is_a_transport_error(kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(TransportError, match="No NVFlare server"):
        FlareTransport(kit).ask("request" * 100_000, ["north"], 10, lambda _site, _message: None)


@pytest.mark.parametrize(
    ("package", "use"),
    [
        (
            "dpcausal",
            lambda folder: FlareTransport(folder).ask("request", ["north"], 0.1, lambda _site, _message: None),
        ),
        ("nvflare", lambda folder: request_kit(folder / "north", "", "")),
    ],
)
def test_code_in_the_working_folder_does_not_run(
    kit: Path, monkeypatch: pytest.MonkeyPatch, package: str, use: Callable[[Path], object]
) -> None:
    (kit / f"{package}.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(kit)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    with pytest.raises(TransportError):
        use(kit)
    assert not (kit / "ran").exists()
    subprocess.run([sys.executable, "-m", package], check=True)  # noqa: S603
    assert (kit / "ran").exists()
