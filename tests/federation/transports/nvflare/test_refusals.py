"""What a site does not do for a server that is hostile; for what it lets in, see `test_only`.

Beside each refusal stands what NVFlare does without ours: it lets the same thing in.
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.fl_exception import UnsafeComponentError
from nvflare.apis.workspace import Workspace
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher
from nvflare.app_common.widgets.component_path_authorizer import ComponentPathAuthorizer
from nvflare.fuel.sec.audit import AuditService
from nvflare.private.admin_defs import Message
from nvflare.private.defs import SysCommandTopic, new_cell_message
from nvflare.private.fed.client.admin import FedAdminAgent
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

from dpcausal.federation.transports.nvflare.admission import JobAdmission
from dpcausal.federation.transports.nvflare.hardening import harden
from dpcausal.federation.transports.nvflare.job import EXECUTOR
from dpcausal.federation.transports.nvflare.site_process import InstalledCodeLauncher, allowed_commands

SECRET = "the patient in bed 7"  # noqa: S105


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A site's strict kit."""
    for name in ("startup", "local"):
        (tmp_path / "kit" / name).mkdir(parents=True)
    (tmp_path / "kit" / "startup" / "fed_client.json").write_text("{}")
    harden(tmp_path / "kit")
    return Workspace(str(tmp_path / "kit"), "north")


@pytest.mark.parametrize("path", ["subprocess.Popen", "dpcausal.quick.estimate", f"{EXECUTOR}s", "os.system"])
def test_no_other_class_is_instantiated(workspace: Workspace, path: str) -> None:
    ComponentPathAuthorizer().authorize_component_config({"path": EXECUTOR}, workspace=workspace)
    with pytest.raises(UnsafeComponentError):
        ComponentPathAuthorizer().authorize_component_config({"path": path}, workspace=workspace)
    settings = Path(workspace.get_resources_file_path())
    settings.write_text(json.dumps({"class_allow_list": ["*"]}))
    ComponentPathAuthorizer().authorize_component_config({"path": path}, workspace=workspace)


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "table.csv"
    file.write_text(SECRET)
    AuditService.initialize(str(tmp_path / "audit"))
    yield file
    AuditService.close()
    AuditService.the_auditor = None


def replied(commands: list[Any], order: Message) -> str:
    """What a site's process says to an order of its server, which does not ask whether it is allowed."""
    cell = SimpleNamespace(register_request_cb=lambda **_: None)
    site = SimpleNamespace(new_context=lambda: contextlib.nullcontext(FLContext()))
    agent = FedAdminAgent("north", cell, site)
    for command in commands:
        agent.register_processor(command)
    return str(agent._dispatch_request(new_cell_message({}, order)).payload.body)


def test_hostile_server_cannot_read_a_file(secret: Path) -> None:
    order = Message(topic=SysCommandTopic.SHELL, body=f"cat {secret}")
    assert SECRET in replied(ClientRequestProcessors.request_processors, order)
    assert "invalid_request" in replied(allowed_commands(), order)


def test_only_the_allowed_commands_remain() -> None:
    allowed = {topic: command for command in allowed_commands() for topic in command.get_topics()}
    assert isinstance(allowed.pop("train.deploy"), JobAdmission)
    assert set(allowed) == {
        "scheduler.check_resource",
        "scheduler.cancel_resource",
        "train.start_job",
        "train.abort",
        "train.notify_job_status",
    }


def test_job_process_imports_only_installed_code(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    custom = Path(workspace.get_app_custom_dir("1"))
    custom.mkdir(parents=True)
    (custom / "beside.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    context = FLContext()
    context.set_prop(FLContextKey.WORKSPACE_OBJECT, workspace)
    context.set_prop(FLContextKey.JOB_PROCESS_ARGS, {})
    monkeypatch.setenv("PYTHONSAFEPATH", "1")

    def ran(launcher: ClientProcessJobLauncher) -> bool:
        monkeypatch.setattr(launcher, "get_command", lambda *_: f"{sys.executable} -m beside")
        launcher.launch_job({"job_id": "1"}, context).wait()
        return (tmp_path / "ran").exists()

    assert not ran(InstalledCodeLauncher())
    assert ran(ClientProcessJobLauncher())
