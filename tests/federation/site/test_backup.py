"""Backups of a site: complete, checked, restorable elsewhere, and no second budget."""

import io
import json
import shutil
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dpcausal import Study
from dpcausal.cli import app
from dpcausal.errors import LedgerError, StudyError
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site import backup
from dpcausal.federation.site.backup import backup_site, restore_site
from dpcausal.federation.site.policy import FILE
from dpcausal.federation.site.site import Site
from dpcausal.ledger import Ledger
from tests.support.site_folders import approve_study, confirm_settings

_ANSWERING = """
import fcntl, os, sys, time
fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)
print(1, flush=True)
time.sleep(float(sys.argv[2]))
"""


def run(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def code_of(folder: Path, requester: Key, study: Study) -> str:
    sealed = requester.seal(Request(study=study.to_toml(), ask="releases").to_json())
    return Message.from_json(claimed_body(Site(folder).answer(sealed))).code


def renew(place: Path, study: Study, keys: Path) -> None:
    """Confirm a restored site, and approve a study again with the keys of its people."""
    shutil.copytree(keys, place.with_name(f"{place.name}-people"))
    confirm_settings(place)
    approve_study(place, study)


@pytest.fixture
def answered(folder: Path, study: Study, requester: Key) -> Path:
    """A site that has answered one study."""
    approve_study(folder, study)
    assert code_of(folder, requester, study) == "answered"
    return folder


def names(file: Path) -> set[str]:
    with tarfile.open(file) as archive:
        return set(archive.getnames())


def test_backup_holds_what_a_site_needs_and_neither_table_nor_keys(answered: Path, tmp_path: Path) -> None:
    (answered / "copy of the table.csv").write_text("4711")
    done = run("site", "backup", answered, "--out", tmp_path / "b")
    assert done.exit_code == 0
    assert "Not in it: the table." in done.output
    assert "Not in it: private keys" in done.output
    found = names(tmp_path / "b")
    assert {"manifest.json", FILE, "people.toml", "audit_log.jsonl", "ledger.db"} <= found
    assert not [name for name in found if name.endswith((".key", ".parquet", ".csv"))]
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    assert run("site", "backup", answered, "--out", tmp_path / "b").exit_code == 2
    inside = run("site", "backup", answered, "--out", answered / "b")
    assert inside.exit_code == 2
    assert "in the site's folder" in inside.output


def test_restored_site_stops_until_the_loss_is_recorded(
    answered: Path, tmp_path: Path, study: Study, requester: Key
) -> None:
    backup_site(answered, tmp_path / "b", with_keys=True)
    place = tmp_path / "elsewhere" / "north"
    done = run("site", "restore", tmp_path / "b", place)
    assert done.exit_code == 1
    assert "does not answer" in done.output
    assert "dpcausal ledger" in done.output
    shutil.copy(answered / "table.parquet", place)
    assert code_of(place, requester, study) == "failed"
    assert run("site", "status", place).exit_code == 2
    words = ("--by", "Ann", "--reason", "disk lost", "--lost-epsilon", 0.5)
    assert run("ledger", "restore", place / "ledger.db", *words).exit_code == 0
    renew(place, study, tmp_path / "north-people")
    assert code_of(place, requester, study) == "answered"
    assert Site(place).ledger().spent.epsilon == pytest.approx(1.5)


def test_study_answered_after_the_backup_is_not_paid_from_a_second_budget(
    answered: Path, tmp_path: Path, study: Study, requester: Key
) -> None:
    backup_site(answered, tmp_path / "b", with_keys=True)
    later = replace(study, epsilon=2.0)
    approve_study(answered, later)
    assert code_of(answered, requester, later) == "answered"
    place = tmp_path / "place"
    restore_site(tmp_path / "b", place)
    shutil.copy(answered / "table.parquet", place)
    assert code_of(place, requester, study) == "failed"
    Ledger.restore(f"sqlite:///{place / 'ledger.db'}", by="Ann", reason="lost", lost_epsilon=2.0)
    renew(place, later, tmp_path / "north-people")
    assert code_of(place, requester, later) == "no_budget"


def test_messages_that_the_restored_ledger_lacks_stop_it(
    folder: Path, tmp_path: Path, study: Study, requester: Key
) -> None:
    approve_study(folder, study)
    backup_site(folder, tmp_path / "b", with_keys=True)
    assert code_of(folder, requester, study) == "answered"
    restore_site(tmp_path / "b", tmp_path / "older")
    shutil.copy(tmp_path / "older" / "ledger.db", folder / "ledger.db")
    with pytest.raises(LedgerError, match="lacks the receipts"):
        Site(folder).ledger()


@pytest.fixture
def witnessed(folder: Path, tmp_path: Path) -> Path:
    (folder / "ledger.db").unlink()
    text = (folder / FILE).read_text(encoding="utf-8")
    (folder / FILE).write_text(f'witness = "{tmp_path}/witness.log"\n{text}', encoding="utf-8")
    Site(folder).changes.create_ledger()
    return folder


def test_witness_tells_whether_anything_is_missing(
    witnessed: Path, tmp_path: Path, study: Study, requester: Key
) -> None:
    manifest = backup_site(witnessed, tmp_path / "b", with_keys=True)
    assert any("witness" in words for words in manifest.left_out)
    assert not restore_site(tmp_path / "b", tmp_path / "whole").stopped
    approve_study(witnessed, study)
    assert code_of(witnessed, requester, study) == "answered"
    behind = restore_site(tmp_path / "b", tmp_path / "behind")
    assert "witness" in behind.stopped


def test_changed_or_foreign_archive_is_refused_and_leaves_nothing(answered: Path, tmp_path: Path) -> None:
    backup_site(answered, tmp_path / "b")
    with tarfile.open(tmp_path / "b") as archive:
        members = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]

    def written(**changes: bytes) -> Path:
        file = tmp_path / "changed"
        with tarfile.open(file, "w:gz") as archive:
            for name, content in {**members, **changes}.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return file

    manifest = json.loads(members["manifest.json"])
    assert restore_site(written(), tmp_path / "unchanged").manifest.name == "north"
    for changes in (
        {FILE: b"x"},
        {"more.toml": b""},
        {"../outside": b""},
        {"manifest.json": json.dumps(manifest | {"kind": "federation"}).encode()},
        {"manifest.json": json.dumps(manifest | {"format": 2}).encode()},
        {"manifest.json": b"[]"},
    ):
        with pytest.raises(StudyError):
            restore_site(written(**changes), tmp_path / "new")
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(StudyError):
        restore_site(tmp_path / "junk", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "outside").exists()
    assert not list(tmp_path.glob(".restore*"))


def test_restore_overwrites_nothing(answered: Path, tmp_path: Path) -> None:
    backup_site(answered, tmp_path / "b")
    before = (answered / FILE).read_bytes()
    with pytest.raises(StudyError, match="holds files"):
        restore_site(tmp_path / "b", answered)
    assert (answered / FILE).read_bytes() == before


def test_damaged_ledger_gives_no_backup(answered: Path, tmp_path: Path) -> None:
    (answered / "ledger.db").write_bytes(b"")
    with pytest.raises(LedgerError):
        backup_site(answered, tmp_path / "b")
    assert not (tmp_path / "b").exists()
    assert not list(tmp_path.glob(".backup*"))


def test_backup_waits_for_an_answer_under_way(answered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", _ANSWERING, str(answered / "answering"), "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as busy:  # noqa: S603
        assert busy.stdout is not None
        busy.stdout.readline()
        done = threading.Event()

        def take() -> None:
            backup_site(answered, tmp_path / "b")
            done.set()

        thread = threading.Thread(target=take)
        thread.start()
        assert not done.wait(1)
        busy.wait()
        assert done.wait(20)
        thread.join()
    monkeypatch.setattr(backup, "_MARGIN", -60.0)
    with subprocess.Popen([*command[:-1], "5"], stdout=subprocess.PIPE) as busy:  # noqa: S603
        assert busy.stdout is not None
        busy.stdout.readline()
        with pytest.raises(StudyError, match="was making answers"):
            backup_site(answered, tmp_path / "c")
        busy.kill()
