"""What a site lets in, piece by piece, where the server, the authority and the asker are all hostile.

Beside each refusal stands what NVFlare does without ours: it lets the same thing in.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nvflare.apis.fl_constant import SiteType
from nvflare.apis.fl_context import FLContext
from nvflare.apis.fl_exception import UnsafeComponentError
from nvflare.apis.workspace import Workspace
from nvflare.app_common.widgets.component_path_authorizer import ComponentPathAuthorizer
from nvflare.fuel.sec.audit import AuditService
from nvflare.fuel.sec.authz import AuthorizationService
from nvflare.fuel.utils.zip_utils import zip_directory_to_bytes
from nvflare.private.admin_defs import Message
from nvflare.private.defs import SysCommandTopic, new_cell_message
from nvflare.private.fed.app.fl_app_validator import FLAppValidator
from nvflare.private.fed.client.admin import FedAdminAgent
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors
from nvflare.private.fed.utils.app_authz import AppAuthzService
from nvflare.private.fed.utils.app_deployer import AppDeployer
from nvflare.security.security import FLAuthorizer

from dpcausal.federation.flare.only import OnlyTheQuestion
from dpcausal.federation.flare.question import AT_SITES, EXECUTOR, write_question
from dpcausal.federation.flare.site_process import kept_commands
from dpcausal.federation.flare.strict import make_strict

SECRET = "the patient in bed 7"  # noqa: S105


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """What arrives at a site."""
    write_question(tmp_path / "question", "request", ["north"], 60)
    return tmp_path / "question" / "sites"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A site's strict kit."""
    for name in ("startup", "local"):
        (tmp_path / "kit" / name).mkdir(parents=True)
    (tmp_path / "kit" / "startup" / "fed_client.json").write_text("{}")
    make_strict(tmp_path / "kit")
    return Workspace(str(tmp_path / "kit"), "north")


def stock() -> FLAppValidator:
    return FLAppValidator(SiteType.CLIENT)


def ours() -> FLAppValidator:
    return FLAppValidator(SiteType.CLIENT, [OnlyTheQuestion()])


def ship_code(app: Path) -> None:
    (app / "custom").mkdir()
    (app / "custom" / "evil.py").write_text("print('hello')")


def name_another_class(app: Path) -> None:
    changed = json.loads(json.dumps(AT_SITES))
    changed["executors"][0]["executor"] = {"path": "subprocess.Popen", "args": {"args": ["true"]}}
    (app / "config" / "config_fed_client.json").write_text(json.dumps(changed))


def add_a_component(app: Path) -> None:
    (app / "config" / "config_fed_client.json").write_text(json.dumps({**AT_SITES, "components": [{"id": "more"}]}))


def write_nonsense(app: Path) -> None:
    (app / "config" / "config_fed_client.json").write_text(json.dumps({"no": "executors"}))


def test_the_question_is_let_in(app: Path) -> None:
    assert ours().validate(str(app)) == ("", {})
    for folder in (app, app / "config"):
        (folder / ".__nvfl_sig.json").write_text("{}")  # as NVFlare signs it
    assert ours().validate(str(app)) == ("", {})


@pytest.mark.parametrize(
    "spoil",
    [
        ship_code,
        name_another_class,
        add_a_component,
        write_nonsense,
        lambda app: (app / "custom").mkdir(),
        lambda app: (app / "config" / "config_fed_client.conf").write_text("{}"),
        lambda app: (app / "config" / "environment.json").write_text("{}"),
    ],
)
def test_everything_else_is_not(app: Path, spoil: Any) -> None:
    spoil(app)
    assert stock().validate(str(app))[0] == ""
    assert ours().validate(str(app))[0]


@pytest.fixture
def rights(workspace: Workspace) -> Iterator[None]:
    """A site's strict rights, in force."""
    before = AuthorizationService.the_authorizer, AppAuthzService.app_validator
    AuthorizationService.the_authorizer = None
    AuthorizationService.initialize(
        FLAuthorizer("dpcausal", json.loads(Path(workspace.get_authorization_file_path()).read_text()))
    )
    yield
    AuthorizationService.the_authorizer, AppAuthzService.app_validator = before


@pytest.mark.usefixtures("rights")
def test_not_even_the_role_that_may_everything_ships_code(app: Path, workspace: Workspace) -> None:
    ship_code(app)
    shipped = zip_directory_to_bytes(str(app), "")

    def refusal(role: str, validator: FLAppValidator) -> object:
        AppAuthzService.initialize(validator)
        meta = {"submitter_name": "a", "submitter_org": "b", "submitter_role": role}
        return AppDeployer().deploy(workspace, "1", meta, "sites", shipped, FLContext())

    assert refusal("project_admin", stock()) == "BYOC not permitted"
    assert refusal("super", stock()) is None  # NVFlare lets it in
    assert refusal("super", ours()) == "not the question of dpcausal"


@pytest.mark.parametrize("path", ["subprocess.Popen", "dpcausal.notebook.estimate", f"{EXECUTOR}s", "os.system"])
def test_no_other_class_is_made(workspace: Workspace, path: str) -> None:
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


def test_a_hostile_server_cannot_read_a_file(secret: Path) -> None:
    order = Message(topic=SysCommandTopic.SHELL, body=f"cat {secret}")
    assert SECRET in replied(ClientRequestProcessors.request_processors, order)
    assert "invalid_request" in replied(kept_commands(), order)


def test_few_commands_are_left() -> None:
    topics = {topic for command in kept_commands() for topic in command.get_topics()}
    assert topics == {
        "scheduler.check_resource",
        "scheduler.cancel_resource",
        "train.deploy",
        "train.start_job",
        "train.abort",
        "train.notify_job_status",
    }
