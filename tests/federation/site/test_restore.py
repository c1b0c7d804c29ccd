"""A site that was restored, or whose files were put back by hand: nothing that was lost since counts."""

import itertools
import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from dpcausal import DifferenceInMeans, Real, Schema, Study, Treatment
from dpcausal.cli import app
from dpcausal.errors import LedgerError, StudyError
from dpcausal.federation.coordinator.backup import backup_workspace
from dpcausal.federation.operation.settings_secrets import LEFT_OUT
from dpcausal.federation.protocol.messages import Ask, Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site import confirmation
from dpcausal.federation.site.audit_log import AuditLog
from dpcausal.federation.site.backup import backup_site, restore_site
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.people import PEOPLE, Person
from dpcausal.federation.site.policy import FILE
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.status import site_status
from dpcausal.ledger import Ledger
from dpcausal.ledger.store import Store
from tests.support.copies import fill
from tests.support.site_folders import approve_study, confirm_settings, make_site_folder, signed
from tests.support.slow import marked

SCHEMA = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1))
_RANDOM = np.random.default_rng(0)
TABLE = pa.table({"t": _RANDOM.integers(0, 2, 200), "y": _RANDOM.random(200)})


def run(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


class Scene:
    """A site with two studies, one approved by bob and one by carol. Its ledger knows the data set."""

    def __init__(self, folder: Path, *, witness: bool) -> None:
        self.folder, self.witness = folder / "north", str(folder / "witness.log") if witness else None
        first = Study(
            name="first",
            question="?",
            requester="anna",
            schema=SCHEMA,
            estimator=DifferenceInMeans(),
            epsilon=1.0,
            pooling="minimum_variance",
        )
        self.studies: tuple[Study, ...] = (first, replace(first, name="second", epsilon=2.0))
        fill(folder, ("two studies", witness), self._make)
        self.anna = Key.read("anna", folder / "anna.key")

    def _make(self) -> None:
        self.anna = Key.make("anna", self.folder.with_name("anna.key"))
        watched = {"witness": "../witness.log"} if self.witness else {}
        make_site_folder(self.folder, "north", TABLE, SCHEMA, {"anna": self.anna.public}, **watched)
        for study, by in zip(self.studies, ("bob", "carol"), strict=True):
            approve_study(self.folder, study, by)
        assert self.code(self.studies[0], ask="facts") == "answered"

    def code(self, study: Study, folder: Path | None = None, ask: Ask = "releases") -> str:
        sealed = self.anna.seal(Request(study=study.text, ask=ask).to_json())
        return Message.from_json(claimed_body(Site(folder or self.folder).answer(sealed))).code

    def codes(self, folder: Path | None = None) -> list[str]:
        return [self.code(study, folder) for study in self.studies]

    def edit_policy(self, was: str, becomes: str) -> None:
        text = (self.folder / FILE).read_text()
        assert was in text
        (self.folder / FILE).write_text(text.replace(was, becomes))
        confirm_settings(self.folder)

    def log(self) -> AuditLog:
        return Site(self.folder).audit_log

    def ready(self, folder: Path) -> None:
        """Bring to a restored folder what no backup holds: the table, and people's own keys."""
        shutil.copy(self.folder / "table.parquet", folder)
        shutil.copytree(self.folder.with_name("north-people"), folder.with_name(f"{folder.name}-people"))


def change_key(scene: Scene) -> None:
    changes = Changes(scene.folder)
    changes.remove_person("bob")
    changes.add_person(Person("bob", ("approver",), key="ab" * 32))


def spend(scene: Scene) -> None:
    assert scene.code(scene.studies[0]) == "answered"


STATES: dict[str, Callable[[Scene], object]] = {
    "nothing newer": lambda _: None,
    "a decision": lambda scene: Site(scene.folder).decide(
        signed(scene.folder, scene.studies[0].digest, "reject", "bob")
    ),
    "a removal": lambda scene: Changes(scene.folder).remove_person("carol"),
    "a change of a key": change_key,
    "a change of the policy": lambda scene: scene.edit_policy("minimum_units = 2", "minimum_units = 3"),
    "an answer": spend,
}


@pytest.mark.parametrize(
    ("state", "witness"),
    [
        *((state, True) for state in STATES),
        # without a witness nobody knows what is newer, so that all of these are treated alike
        *((state, False) if state in ("nothing newer", "an answer") else marked((state, False)) for state in STATES),
    ],
)
def test_restored_site_answers_once_everything_that_may_be_lost_is_renewed(
    tmp_path: Path, state: str, witness: bool
) -> None:
    scene, new = Scene(tmp_path, witness=witness), tmp_path / "new"
    backup_site(scene.folder, tmp_path / "b", with_keys=True)
    STATES[state](scene)
    done = run("site", "restore", tmp_path / "b", new)
    scene.ready(new)
    for words in ("person bob: approver, with key ", "person carol", f"requester anna: key {scene.anna.public}"):
        assert words in done.output
    for study, by in zip(scene.studies, ("bob", "carol"), strict=True):
        assert f": study {study.digest}" in done.output
        assert f"decision approve by {by}" in done.output
    if witness and state == "nothing newer":
        assert done.exit_code == 0
        assert "Nothing newer was lost" in done.output
        assert scene.codes(new) == ["answered", "answered"]
        return
    assert done.exit_code == 1
    for words in ("does not answer yet", "dpcausal ledger restore", "dpcausal site confirm", "approve studies again"):
        assert words in done.output
    assert scene.codes(new) == ["failed", "failed"]
    refused = run("site", "confirm", new, "--by", "Ann", "--why", "restored", "--yes")
    assert refused.exit_code == 2  # what was spent comes first
    watched = ("--witness", scene.witness) if scene.witness else ()
    lost = ("--by", "Ann", "--reason", "disk lost", "--lost-epsilon", 1)
    assert run("ledger", "restore", new / "ledger.db", *lost, *watched).exit_code == 0
    assert scene.codes(new) == ["undecided", "undecided"]
    assert {check.name: check.level for check in site_status(new).checks}["confirmed"] == 2
    with pytest.raises(StudyError, match="dpcausal site confirm"):
        approve_study(new, scene.studies[0], "bob")
    confirmed = run("site", "confirm", new, "--by", "Ann", "--why", "restored", "--yes")
    assert confirmed.exit_code == 0
    assert "no approval that was made before counts" in confirmed.output
    assert scene.anna.public in confirmed.output
    assert scene.codes(new) == ["undecided", "undecided"]
    approve_study(new, scene.studies[0], "bob")
    assert scene.codes(new) == ["answered", "undecided"]
    assert {check.name: check.level for check in site_status(new).checks}["confirmed"] == 0


def renewed(scene: Scene, folder: Path) -> Path:
    """Restore a site without a witness, record the loss, and confirm its settings."""
    restore_site(folder / "b", folder / "new")
    scene.ready(folder / "new")
    Ledger.restore(f"sqlite:///{folder / 'new' / 'ledger.db'}", by="Ann", reason="lost", lost_epsilon=0.0)
    confirm_settings(folder / "new")
    return folder / "new"


def test_lost_approval_cannot_be_recorded_again_after_the_restore(tmp_path: Path) -> None:
    """Somebody kept the signed approval of a study that was rejected later; both were lost."""
    scene = Scene(tmp_path, witness=False)
    third = replace(scene.studies[0], name="third")
    backup_site(scene.folder, tmp_path / "b", with_keys=True)
    approve_study(scene.folder, third, "bob")
    kept = AuditLog(scene.folder / "audit_log.jsonl").entries()[-1].sealed
    Site(scene.folder).decide(signed(scene.folder, third.digest, "reject", "bob"))
    new = renewed(scene, tmp_path)
    site = Site(new)
    site.receive(third.text)
    with pytest.raises(StudyError, match="made after the site was restored"):
        site.decide(kept)
    site.audit_log.record(kept)  # around the check
    assert scene.code(third, new) == "undecided"


def test_rejections_and_removals_need_no_confirmation(tmp_path: Path) -> None:
    scene = Scene(tmp_path, witness=False)
    text = (scene.folder / FILE).read_text()
    (scene.folder / FILE).write_text(text.replace("minimum_units = 2", "minimum_units = 3"))
    assert scene.codes() == ["undecided", "undecided"]
    Site(scene.folder).decide(signed(scene.folder, scene.studies[0].digest, "reject", "bob"))
    Changes(scene.folder).remove_person("carol")
    changed = "policy.toml is not as it was recorded: - minimum_units = 2, + minimum_units = 3"
    assert str(Changes(scene.folder).unconfirmed()) == changed
    assert scene.codes() == ["rejected", "undecided"]
    with pytest.raises(StudyError, match=r"(?s)- minimum_units = 2, .* dpcausal site confirm"):
        approve_study(scene.folder, scene.studies[1], "bob")
    confirm_settings(scene.folder)
    approve_study(scene.folder, scene.studies[1], "bob")
    assert scene.codes() == ["rejected", "answered"]


def test_edited_policy_counts_after_a_confirmation_and_approvals_stay(tmp_path: Path) -> None:
    scene = Scene(tmp_path, witness=False)
    text = (scene.folder / FILE).read_text()
    (scene.folder / FILE).write_text(f"# a comment does not count\n{text}")
    assert scene.code(scene.studies[0]) == "answered"
    (scene.folder / FILE).write_text(text.replace("minimum_units = 2", "minimum_units = 3"))
    assert scene.codes() == ["undecided", "undecided"]
    shown = run("site", "confirm", scene.folder, "--by", "Ann", "--why", "fewer", "--yes")
    lines = "policy.toml is not as it was recorded: - minimum_units = 2, + minimum_units = 3"
    assert lines in shown.output
    assert "counts any more" not in shown.output
    logged = scene.log().entries()[-1]
    assert (logged.kind, logged.who) == ("confirm", "Ann")
    assert logged.what.startswith(f"fewer: {lines}; policy.toml ")
    assert scene.codes() == ["answered", "answered"]
    assert "nothing to confirm" in run("site", "confirm", scene.folder, "--by", "Ann", "--why", "x").output


def test_audit_log_has_every_line_of_the_policy_that_changed_without_its_secrets(tmp_path: Path) -> None:
    """Also where people were changed between the edits, and where an edit was taken back."""
    scene = Scene(tmp_path, witness=False)
    was = (scene.folder / FILE).read_text()

    def edited(text: str, why: str) -> str:
        (scene.folder / FILE).write_text(text)
        Changes(scene.folder).add_person(Person(f"a person to {why}", ("reader",), login=why))
        assert Changes(scene.folder).unconfirmed()  # recording the people recorded no edit
        Changes(scene.folder).confirm("Ann", why)
        what = scene.log().entries()[-1].what
        return what.removeprefix(f"{why}: policy.toml is not as it was recorded: ").partition("; ")[0]

    fewer = was.replace("minimum_units = 2", "minimum_units = 3")
    anna = next(line for line in was.splitlines() if line.startswith("anna = "))
    server = fewer.replace('table = "table.parquet"', 'table = "postgresql://ann:4711@host/db#visits"')
    assert edited(fewer, "a") == "- minimum_units = 2, + minimum_units = 3"
    assert edited(fewer.replace(anna, f'anna = "{"ab" * 32}"'), "b") == f'- {anna}, + anna = "{"ab" * 32}"'
    assert edited(server.replace(anna, f"{anna}\nben = {anna[7:]}"), "c").count(",") == 4
    assert edited(was, "d").count(",") == 4
    assert "4711" not in scene.log()._file.read_text()
    assert "postgresql://ann:" in scene.log()._file.read_text()
    assert "4711" not in str([entry.content for entry in Site(scene.folder).ledger().entries()])


LOG, INDEX, LEDGER = "audit_log.jsonl", "audit_log.index", "ledger.db"
FILES = (LOG, INDEX, PEOPLE, FILE, LEDGER)
SUBSETS = [frozenset(subset) for size in range(1, len(FILES) + 1) for subset in itertools.combinations(FILES, size)]


def answered_after_putting_back(scene: Scene, older: Path, files: frozenset[str]) -> bool:
    """Put these files back as they were before the changes, and return whether any study is answered."""
    for name in FILES:
        shutil.copy((older if name in files else scene.folder.with_name("newer")) / name, scene.folder / name)
    try:
        return "answered" in [scene.code(each) for each in scene.studies]
    except LedgerError:
        return False


def changed_since(folder: Path, *, witness: bool) -> tuple[Scene, Path]:
    """A site that has changed since its files were copied: none of its three studies is answered any more."""
    scene = Scene(folder, witness=witness)
    third = replace(scene.studies[0], name="third", epsilon=5.0)
    scene.studies = (*scene.studies, third)
    fill(folder, ("changed", witness), lambda: change(scene))
    return scene, folder / "older"


def change(scene: Scene) -> None:
    approve_study(scene.folder, scene.studies[2], "bob")
    shutil.copytree(scene.folder, scene.folder.with_name("older"))
    Site(scene.folder).decide(signed(scene.folder, scene.studies[0].digest, "reject", "bob"))
    Changes(scene.folder).remove_person("carol")
    scene.edit_policy("epsilon_per_study = 100.0", "epsilon_per_study = 4.0")
    shutil.copytree(scene.folder, scene.folder.with_name("newer"))
    assert scene.codes() == ["rejected", "undecided", "not_allowed"]


@pytest.mark.parametrize("witness", [True, False], ids=["witness", "no witness"])
def test_older_copy_of_any_files_revives_nothing(tmp_path: Path, witness: bool) -> None:
    """Without a witness one case is not detected: all files together."""
    scene, older = changed_since(tmp_path, witness=witness)
    found = [files for files in SUBSETS if answered_after_putting_back(scene, older, files)]
    assert found == ([] if witness else [frozenset(FILES)])


MUTANTS: dict[str, tuple[object, str, object, frozenset[str]]] = {
    "nothing is compared": (confirmation, "digests", lambda _: {}, frozenset({PEOPLE})),
    "people are not recorded": (confirmation, "SETTINGS", (FILE,), frozenset({PEOPLE})),
    "the policy is not recorded": (confirmation, "SETTINGS", (PEOPLE,), frozenset({FILE})),
    "changes after the record are not looked for": (
        AuditLog,
        "has_changes_after",
        lambda *_: False,
        frozenset({PEOPLE, FILE, LEDGER}),
    ),
    "the audit log is not compared": (AuditLog, "holds", lambda *_, **__: True, frozenset({LOG, INDEX})),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_that_compares_less_revives_an_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str
) -> None:
    owner, name, replaced, files = MUTANTS[mutant]
    scene, older = changed_since(tmp_path, witness=LEDGER not in files)
    monkeypatch.setattr(owner, name, replaced)
    assert answered_after_putting_back(scene, older, files)


def test_mutants_that_ignore_a_restore_revive_an_approval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, witness=False)
    backup_site(scene.folder, tmp_path / "b", with_keys=True)
    new = renewed(scene, tmp_path)
    assert scene.codes(new) == ["undecided", "undecided"]
    with monkeypatch.context() as mutant:
        mutant.setattr(AuditLog, "counting", AuditLog.decisions)
        assert scene.codes(new) == ["answered", "answered"]
    Ledger.restore(f"sqlite:///{new / 'ledger.db'}", by="Ann", reason="again", lost_epsilon=0.0)
    approvals = signed(new, scene.studies[0].digest, "approve", "bob")
    with pytest.raises(StudyError, match="dpcausal site confirm"):
        Site(new).decide(approvals)
    last = Store.last_of_kinds
    monkeypatch.setattr(Store, "last_of_kinds", lambda self, connection, _: last(self, connection, ["site"]))
    Site(new).decide(approvals)
    assert scene.codes(new)[0] == "answered"


def test_witness_that_is_lost_too_proves_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, witness=True)
    backup_site(scene.folder, tmp_path / "b", with_keys=True)
    (tmp_path / "witness.log").unlink()
    done = restore_site(tmp_path / "b", tmp_path / "new")
    assert "has no record of it" in done.stopped
    scene.ready(tmp_path / "new")
    assert scene.codes(tmp_path / "new") == ["failed", "failed"]


def test_backup_restored_twice_is_refused_the_second_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path, witness=True)
    backup_site(scene.folder, tmp_path / "b", with_keys=True)
    assert not restore_site(tmp_path / "b", tmp_path / "new").stopped
    scene.ready(tmp_path / "new")
    Site(tmp_path / "new").decide(signed(tmp_path / "new", scene.studies[0].digest, "reject", "bob"))
    assert restore_site(tmp_path / "b", tmp_path / "again").stopped
    shutil.copy(scene.folder / "table.parquet", tmp_path / "again")
    assert scene.codes(tmp_path / "again") == ["failed", "failed"]
    assert scene.codes() == ["failed", "failed"]  # the first site, which was left behind


PLANTED = [f"planted-{number}" for number in range(9)]
CONSOLE = f"""version = 1
# formerly postgresql://ann:{PLANTED[0]}@old/db, password = {PLANTED[1]}
[provider]
issuer = "https://login.example"
client_id = "console"
client_secret = "{PLANTED[2]}"
"""
OTHER = f"""[smtp]
Password = "{PLANTED[3]}"
address = "smtp://ann:{PLANTED[4]}@with@mail.example"
[[hooks]]
api_key = "{PLANTED[5]}"
url = "https://hooks.example/x?token={PLANTED[6]}&plain=1"
[requesters]
secretary = "kept"
token = "kept too"
"""


def plant(folder: Path) -> None:
    (folder / "console.toml").write_text(CONSOLE)
    (folder / "notify.toml").write_text(OTHER)
    (folder / "broken.toml").write_text(f"x = {PLANTED[7]}")


def searched(file: Path) -> dict[str, list[str]]:
    """Return the planted secrets in each file of an archive, the manifest included."""
    with tarfile.open(file) as archive:
        contents = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]
    found = {name: [secret for secret in PLANTED if secret.encode() in text] for name, text in contents.items()}
    return {name: secrets for name, secrets in found.items() if secrets}


def test_backup_without_keys_holds_no_secret_and_restore_names_what_is_missing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, witness=True)
    plant(scene.folder)
    scene.edit_policy("table.parquet", f"postgresql://ann:{PLANTED[8]}@host/db?passfile=x#visits")
    manifest = backup_site(scene.folder, tmp_path / "b")
    assert searched(tmp_path / "b") == {}
    assert {"secrets in policy.toml", "secrets in console.toml", "secrets in notify.toml"} <= {*manifest.left_out}
    assert "broken.toml, which cannot be read" in manifest.left_out
    done = run("site", "restore", tmp_path / "b", tmp_path / "new")
    assert done.exit_code == 1
    for words in ("table in policy.toml", "provider.client_secret in console.toml", "smtp.Password in notify.toml"):
        assert f"Missing: the secret of {words}." in done.output
    assert 'secretary = "kept"\ntoken = "kept too"' in (tmp_path / "new" / "notify.toml").read_text()
    for name in (FILE, "console.toml", "notify.toml"):
        text = (tmp_path / "new" / name).read_text()
        assert LEFT_OUT in text
        (tmp_path / "new" / name).write_text(text.replace(LEFT_OUT, "filled in"))
    assert Changes(tmp_path / "new").unconfirmed() is None  # a new secret is not another setting
    backup_site(scene.folder, tmp_path / "with keys", with_keys=True)
    assert {FILE, "console.toml", "notify.toml"} <= {*searched(tmp_path / "with keys")}


def test_backup_of_a_workspace_without_keys_holds_no_secret(tmp_path: Path) -> None:
    assert run("federation", "init", tmp_path / "workspace", "anna").exit_code == 0
    plant(tmp_path / "workspace")
    backup_workspace(tmp_path / "workspace", tmp_path / "b")
    assert searched(tmp_path / "b") == {}
    backup_workspace(tmp_path / "workspace", tmp_path / "with keys", with_keys=True)
    assert searched(tmp_path / "with keys")


def test_entries_dated_back_are_named_and_a_clock_set_back_over_midnight_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, witness=False)
    days = iter(["2026-05-04", "2026-05-03", "2026-05-01"])

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Clock":  # noqa: ARG003
            return cls.fromisoformat(f"{today}T00:10:00+00:00")

    monkeypatch.setattr("dpcausal.ledger.chain.datetime", Clock)
    monkeypatch.setattr("dpcausal.federation.site.audit_log.datetime", Clock)
    (tmp_path / "days").mkdir()
    log, ledger = AuditLog(tmp_path / "days" / LOG), None
    for today in days:
        log.write("people", "", "bob", "added")
        if ledger is None:
            ledger = Ledger.create(f"sqlite:///{tmp_path}/days.db", Site(scene.folder).ledger().budget, as_of="1")
        ledger.add_version(f"of {today}")
    monkeypatch.undo()
    verified = run("ledger", "verify", tmp_path / "days.db")
    assert verified.exit_code == 0
    assert [line for line in verified.output.splitlines() if "dated" in line] == [
        "Entry 3 is dated more than a day before an entry before it: was the clock wrong?"
    ]
    assert json.loads(run("ledger", "verify", tmp_path / "days.db", "--json").output)["dated_back"] == [3]
    for name in (LOG, INDEX):
        shutil.copy(tmp_path / "days" / name, scene.folder / name)
    assert "Line 3 is dated more than a day before" in run("site", "audit-log", scene.folder).output
    words = {check.name: check.words for check in site_status(scene.folder).checks}["audit_log"]
    assert words == "whole, 3 entries, 1 of them dated back: see dpcausal site audit-log"
