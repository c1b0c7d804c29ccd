"""Admission of jobs where the server, the authority and the requester are all hostile: only our job gets in.

Each test also shows the control: NVFlare without our check admits the same job.
"""

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event, Thread
from unittest.mock import Mock
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from nvflare.apis.fl_constant import SiteType
from nvflare.fuel.sec.authz import AuthorizationService
from nvflare.fuel.utils.zip_utils import unzip_all_from_bytes, zip_directory_to_bytes
from nvflare.private.admin_defs import Message, MsgHeader, ReturnCode
from nvflare.private.defs import RequestHeader, TrainingTopic
from nvflare.private.fed.app.fl_app_validator import FLAppValidator
from nvflare.private.fed.client.client_engine import ClientEngine
from nvflare.private.fed.client.client_engine_internal_spec import ClientEngineInternalSpec
from nvflare.private.fed.client.training_cmds import DeployProcessor
from nvflare.private.fed.utils.app_authz import AppAuthzService
from nvflare.security.security import FLAuthorizer

from dpcausal.federation.transports.nvflare.admission import JobAdmission
from dpcausal.federation.transports.nvflare.hardening import harden
from dpcausal.federation.transports.nvflare.job import AT_SITES, write_job

NAME = "0e5b7a3c-9d41-4f62-8a07-3c1d2e4f5a6b"
CONFIG = "config/config_fed_client.json"
REFUSED = "not the job of dpcausal"
DONE = "deployed sites to north"
UNPACKS = "nvflare.private.fed.utils.app_deployer.unzip_all_from_bytes"
STAGES = "nvflare.private.fed.client.training_cmds.unzip_all_from_bytes"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """What arrives at a site."""
    write_job(tmp_path / "job", "request", ["north"], 60)
    return tmp_path / "job" / "sites"


@pytest.fixture(autouse=True)
def kit(tmp_path: Path) -> Iterator[Path]:
    """A site's strict kit, with its rights in force."""
    kit = tmp_path / "kit"
    for name in ("startup", "local"):
        (kit / name).mkdir(parents=True)
    (kit / "startup" / "fed_client.json").write_text("{}")
    harden(kit)
    before = AuthorizationService.the_authorizer, AppAuthzService.app_validator
    AuthorizationService.the_authorizer = None
    AuthorizationService.initialize(
        FLAuthorizer("dpcausal", json.loads((kit / "local/authorization.json").read_text()))
    )
    AppAuthzService.initialize(FLAppValidator(SiteType.CLIENT))
    yield kit
    AuthorizationService.the_authorizer, AppAuthzService.app_validator = before


def reply(command: DeployProcessor, kit: Path, sent: object, name: object = NAME, role: str = "super") -> str:
    """What a site says when its server has it take something in, from someone who may everything."""
    site = Mock(spec=ClientEngineInternalSpec)
    site.args = Mock(workspace=str(kit))
    site.get_client_name.return_value = "north"
    site.get_component.return_value = None
    site.deploy_app = partial(ClientEngine.deploy_app, site)
    order = Message(topic=TrainingTopic.DEPLOY, body=sent)
    order.set_header(RequestHeader.JOB_ID, name)
    order.set_header(RequestHeader.JOB_META, {"name": "request", "submitter_role": role})
    order.set_header(RequestHeader.APP_NAME, "sites")
    said = command.process(order, site)
    assert (said.get_header(MsgHeader.RETURN_CODE) == ReturnCode.OK) == (said.body == DONE)
    return str(said.body)


def files(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*")}


def zipped(*members: tuple[str, str | bytes], compression: int = 0) -> bytes:
    archive = io.BytesIO()
    with ZipFile(archive, "w", compression) as writing:
        for name, content in members:
            writing.writestr(name, content)
    return archive.getvalue()


def our_job() -> tuple[str, str]:
    return CONFIG, json.dumps(AT_SITES)


def test_our_job_is_admitted(app: Path, kit: Path) -> None:
    assert reply(JobAdmission(), kit, zip_directory_to_bytes(str(app), "")) == DONE
    assert files(kit / NAME / "app_north") == {"config", CONFIG}
    assert (kit / NAME / "meta.json").exists()


def test_job_with_a_false_signature_is_refused(app: Path, kit: Path) -> None:
    for folder in (app, app / "config"):
        for name in (".__nvfl_sig.json", ".__nvfl_submitter.crt"):
            (folder / name).write_text("{}")
    before = files(kit)
    assert "signature verification" in reply(JobAdmission(), kit, zip_directory_to_bytes(str(app), ""))
    assert files(kit) == before


def ship_code(app: Path) -> None:
    (app / "custom").mkdir()
    (app / "custom" / "evil.py").write_text("print('hello')")


def name_another_class(app: Path) -> None:
    changed = json.loads(json.dumps(AT_SITES))
    changed["executors"][0]["executor"] = {"path": "subprocess.Popen", "args": {"args": ["true"]}}
    (app / CONFIG).write_text(json.dumps(changed))


@pytest.mark.parametrize(
    "spoil",
    [
        ship_code,
        name_another_class,
        lambda app: (app / CONFIG).write_text(json.dumps({**AT_SITES, "components": [{"id": "more"}]})),
        lambda app: (app / CONFIG).write_text(json.dumps({"no": "executors"})),
        lambda app: (app / "custom").mkdir(),
        lambda app: (app / "more.txt").touch(),
        lambda app: (app / ".__nvfl_submitter.crt").mkdir(),
        lambda app: (app / ".__nvfl_submitter.crt").write_text("-" * 2**16),
        lambda app: (app / "config" / "config_fed_client.conf").write_text("{}"),
        lambda app: (app / "config" / "environment.json").write_text("{}"),
    ],
)
def test_any_other_job_is_refused(app: Path, kit: Path, spoil: Callable[[Path], object]) -> None:
    spoil(app)
    sent = zip_directory_to_bytes(str(app), "")
    before = files(kit)
    assert reply(JobAdmission(), kit, sent) == REFUSED
    assert files(kit) == before
    assert reply(DeployProcessor(), kit, sent) == DONE


def test_unusual_archive_is_refused(kit: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zipped(our_job(), our_job())
    large = zipped(our_job(), (".__nvfl_submitter.crt", "-" * 10**6), compression=ZIP_DEFLATED)
    assert len(large) < 2000  # and takes a megabyte when unpacked
    assert [reply(JobAdmission(), kit, sent) for sent in (twice, large)] == [REFUSED, REFUSED]
    assert [reply(DeployProcessor(), kit, sent) for sent in (twice, large)] == [DONE, DONE]


def test_unreadable_job_is_refused(kit: Path) -> None:
    foreign = zipped((CONFIG, json.dumps(AT_SITES).encode("utf-16")))
    for sent in (b"", b"no archive", None, "text", zipped(our_job())[:-1], zipped((CONFIG, "[" * 9999)), foreign):
        assert reply(JobAdmission(), kit, sent) == REFUSED


@pytest.mark.parametrize("name", ["startup", "local"])
def test_replayed_job_cannot_delete_the_kit(tmp_path: Path, kit: Path, name: str) -> None:
    before = files(kit)
    shutil.copytree(kit, tmp_path / "mutant")
    assert reply(JobAdmission(), kit, zipped(our_job()), name) == REFUSED
    assert files(kit) == before
    assert reply(DeployProcessor(), tmp_path / "mutant", zipped(our_job()), name) == DONE
    assert not before <= files(tmp_path / "mutant")


@pytest.mark.parametrize("name", ["x", NAME.upper(), NAME.replace("-", ""), f"{NAME}\n", f"{NAME}.x"])
def test_job_folder_must_have_an_nvflare_name(kit: Path, name: str) -> None:
    assert reply(JobAdmission(), kit, zipped(our_job()), name) == REFUSED
    assert reply(DeployProcessor(), kit, zipped(our_job()), name) == DONE


@pytest.mark.parametrize("name", ["../x", "", ".", f"{NAME}/../startup", f"../{NAME}", 7, ["x"]])
def test_job_folder_outside_the_kit_is_refused(tmp_path: Path, kit: Path, name: object) -> None:
    before = files(tmp_path)
    assert reply(JobAdmission(), kit, zipped(our_job()), name) == REFUSED
    assert files(tmp_path) == before


def test_existing_job_folder_is_left_unchanged(kit: Path) -> None:
    (kit / NAME).mkdir()
    (kit / NAME / "of a running job").touch()
    assert reply(JobAdmission(), kit, zipped(our_job())) == REFUSED
    assert files(kit / NAME) == {"of a running job"}
    assert reply(DeployProcessor(), kit, zipped(our_job())) == DONE
    assert "of a running job" not in files(kit / NAME)


@pytest.mark.parametrize(("command", "held_code"), [(DeployProcessor(), [True]), (JobAdmission(), [])])
def test_code_is_not_admitted_in_a_race_with_our_job(
    kit: Path, monkeypatch: pytest.MonkeyPatch, command: DeployProcessor, held_code: list[bool]
) -> None:
    """The race: code is being unpacked, its sender not allowed to ship any, while our job is admitted."""
    evil = zipped(our_job(), ("custom/sitecustomize.py", "print('hello')"))
    begun, go_on = Event(), Event()
    seen = []

    def slowly(sent: bytes, folder: str) -> None:
        if sent == evil:
            begun.set()
            go_on.wait(10)
        unzip_all_from_bytes(sent, folder)
        if sent == evil:  # whether the server could now have it started
            seen.append((Path(folder) / "custom").exists() and (kit / NAME / "meta.json").exists())

    monkeypatch.setattr(UNPACKS, slowly)
    said = []

    def send_evil() -> None:
        said.append(reply(command, kit, evil, role="lead"))
        begun.set()

    other = Thread(target=send_evil)
    other.start()
    begun.wait(10)
    assert reply(command, kit, zipped(our_job())) == DONE
    go_on.set()
    other.join()
    assert seen == held_code
    assert said != [DONE]


@pytest.mark.parametrize(("command", "together"), [(DeployProcessor(), 2), (JobAdmission(), 0)])
def test_jobs_are_admitted_one_at_a_time(
    kit: Path, monkeypatch: pytest.MonkeyPatch, command: DeployProcessor, together: int
) -> None:
    barrier = Barrier(2, timeout=20 if together else 1)  # those that never meet wait in vain
    met = []

    def meet(*_: object) -> None:
        with contextlib.suppress(BrokenBarrierError):
            met.append(barrier.wait())
        raise OSError("enough seen")

    monkeypatch.setattr(STAGES, meet)
    both = [Thread(target=reply, args=(command, kit, zipped(our_job()))) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(met) == together
