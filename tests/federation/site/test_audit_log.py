"""The audit log of a site: append-only, verified from its first line, and refused once it was changed."""

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpcausal.errors import LedgerError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.audit_log import AuditLog
from dpcausal.federation.site.decisions import DecisionKind, sign_decision
from dpcausal.utils.hash_chain import ChainEntry, digest_of

Lines = list[str]
FIRST, SECOND = "ab" * 32, "cd" * 32


def record(log: AuditLog, kind: DecisionKind, study: str, by: str, why: str = "") -> None:
    key = Key(by, Ed25519PrivateKey.generate())
    log.record(sign_decision(key, site="north", study=study, kind=kind, by=by, why=why))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A log of four entries."""
    log = AuditLog(tmp_path / "audit_log.jsonl")
    record(log, "approve", FIRST, "anna", "board of 3 May")
    log.write("answer", FIRST, "carl", "request answered")
    record(log, "reject", FIRST, "bob", "not for this purpose")
    record(log, "approve", SECOND, "anna")
    return tmp_path / "audit_log.jsonl"


def test_entries_are_read_as_written(file: Path) -> None:
    entries = AuditLog(file).entries()
    assert [(entry.version, entry.kind, entry.who) for entry in entries] == [
        (3, "approve", "anna"),
        (3, "answer", "carl"),
        (3, "reject", "bob"),
        (3, "approve", "anna"),
    ]
    assert [len(AuditLog(file).decisions(study)) for study in (FIRST, SECOND, "ef" * 32)] == [2, 1, 0]
    assert AuditLog(file).decided() == {FIRST, SECOND}


def put(line: str, **changes: object) -> str:
    return json.dumps(json.loads(line) | changes, sort_keys=True)


def redigested(line: str, **changes: object) -> str:
    """A changed line with the digest that fits it: the next line still holds the old one."""
    content = {name: value for name, value in (json.loads(line) | changes).items() if name != "digest"}
    return put(line, **changes, digest=digest_of(content))


TAMPERED: dict[str, tuple[Callable[[Lines], Lines], int]] = {
    "a changed reason": (lambda lines: [put(lines[0], what="another"), *lines[1:]], 1),
    "a changed decision": (lambda lines: [*lines[:2], put(lines[2], kind="approve"), lines[3]], 3),
    "a changed answer with its digest": (lambda lines: [lines[0], redigested(lines[1], who="carla"), *lines[2:]], 3),
    "a decision without its signature": (lambda lines: [*lines[:3], redigested(lines[3], sealed="")], 4),
    "a decision that differs from what was signed": (lambda lines: [*lines[:3], redigested(lines[3], who="bob")], 4),
    "a removed line": (lambda lines: [*lines[:2], lines[3]], 3),
    "a removed first line": (lambda lines: lines[1:], 1),
    "a repeated line": (lambda lines: [*lines[:2], lines[1], *lines[2:]], 3),
    "two swapped lines": (lambda lines: [lines[0], lines[2], lines[1], lines[3]], 2),
    "a line that is not JSON": (lambda lines: [lines[0], "nonsense", *lines[2:]], 2),
    "a line that is a list": (lambda lines: [lines[0], "[]", *lines[2:]], 2),
    "a field too many": (lambda lines: [put(lines[0], more=1), *lines[1:]], 1),
    "a number in place of text": (lambda lines: [put(lines[0], who=float("nan")), *lines[1:]], 1),
}


@pytest.mark.parametrize(("tamper", "line"), TAMPERED.values(), ids=TAMPERED.keys())
def test_tampering_is_found_at_its_line(file: Path, tamper: Callable[[Lines], Lines], line: int) -> None:
    file.write_text("".join(f"{each}\n" for each in tamper(file.read_text().splitlines())))
    with pytest.raises(LedgerError, match=f"changed at line {line}: the line was changed"):
        AuditLog(file).entries()
    before = file.read_bytes()
    with pytest.raises(LedgerError):
        AuditLog(file).write("answer", FIRST, "anna", "")
    assert file.read_bytes() == before


def test_mutant_that_verifies_nothing_misses_the_tampering(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = file.read_text().splitlines()
    file.write_text("".join(f"{each}\n" for each in (lines[0], put(lines[1], who="karl"), *lines[2:])))
    monkeypatch.setattr(ChainEntry, "follows", lambda *_: True)
    assert AuditLog(file).entries()[1].who == "karl"


@pytest.mark.parametrize("version", [None, 1, 4])
def test_another_version_is_refused_by_name(file: Path, version: int | None) -> None:
    first, *rest = file.read_text().splitlines()
    document = {name: value for name, value in json.loads(first).items() if name != "version"}
    old = document if version is None else document | {"version": version}
    file.write_text("".join(f"{each}\n" for each in (json.dumps(old), *rest)))
    with pytest.raises(
        LedgerError,
        match=rf"version 3 of the audit log at line 1, not version {version or 1}(.|\n)*approve studies again",
    ):
        AuditLog(file).entries()


def chained(lines: Lines) -> Lines:
    """The lines with all digests computed anew, as somebody would who rewrites the log."""
    previous, new = "", []
    for line in lines:
        new.append(redigested(line, previous=previous))
        previous = json.loads(new[-1])["digest"]
    return new


@pytest.mark.parametrize("change", ["cut", "all", "rewritten"])
def test_log_that_was_cut_or_rewritten_is_refused(file: Path, change: str) -> None:
    lines = file.read_text().splitlines()
    kept = {"cut": lines[:2], "all": [], "rewritten": chained([lines[0], *lines[2:], lines[1]])}[change]
    file.write_text("".join(f"{line}\n" for line in kept))
    for read in (lambda log: log.decisions(FIRST), AuditLog.entries, lambda log: log.write("answer", FIRST, "x", "")):
        with pytest.raises(LedgerError, match="cut or rewritten"):
            read(AuditLog(file))


def test_lost_index_is_made_again_only_on_request_and_leaves_a_line(file: Path) -> None:
    file.with_suffix(".index").unlink()
    with pytest.raises(LedgerError, match="--rebuild-index"):
        AuditLog(file).decisions(FIRST)
    AuditLog(file).rebuild_index("operator")
    assert len(AuditLog(file).decisions(FIRST)) == 2
    assert [(entry.kind, entry.who) for entry in AuditLog(file).entries()][-1] == ("index", "operator")


def test_index_that_is_behind_the_log_catches_up(file: Path) -> None:
    index = file.with_suffix(".index")
    before = index.read_bytes()
    record(AuditLog(file), "reject", SECOND, "bob")
    index.write_bytes(before)  # as after a power cut between the two
    assert [entry.kind for entry in AuditLog(file).decisions(SECOND)] == ["approve", "reject"]
    assert len(AuditLog(file).entries()) == 5


def test_index_that_is_not_a_database_raises_a_structured_error(file: Path) -> None:
    file.with_suffix(".index").write_bytes(b"nonsense" * 100)
    with pytest.raises(LedgerError, match="audit log cannot be read or written"):
        AuditLog(file).entries()


def test_appending_does_not_read_the_log_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dpcausal.federation.site.audit_log._verified", lambda *_: pytest.fail("the log was read from its start")
    )
    AuditLog(file).write("answer", FIRST, "carl", "request answered")
    assert len(AuditLog(file).decisions(FIRST)) == 2


def test_forty_forged_requests_leave_ten_lines_and_two_totals(file: Path) -> None:
    log = AuditLog(file)
    for number in range(40):
        log.write_forged("anna", f"{number} unknown_requester")
    lines = [entry.what for entry in log.entries() if entry.kind == "forged"]
    assert lines[:10] == [f"{number} unknown_requester" for number in range(10)]
    assert [line.split()[0] for line in lines[10:]] == ["20", "40"]
    assert list(log.forged().values()) == [40]


def test_full_disk_raises_a_structured_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 0)
    with pytest.raises(LedgerError, match="no space left"):
        AuditLog(file).write("answer", FIRST, "anna", "")


def test_entry_that_cannot_be_indexed_is_not_in_the_log(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("dpcausal.federation.site.audit_index.AuditIndex.extend", full)
        with pytest.raises(LedgerError, match="disk is full"):
            record(AuditLog(file), "approve", FIRST, "dora")
    assert file.read_bytes() == before
    assert len(AuditLog(file).decisions(FIRST)) == 2


def test_unusable_file_raises_a_structured_error(tmp_path: Path) -> None:
    (tmp_path / "audit_log.jsonl").mkdir()
    log = AuditLog(tmp_path / "audit_log.jsonl")
    with pytest.raises(LedgerError, match="audit log cannot be read or written"):
        log.write("answer", FIRST, "anna", "")
    with pytest.raises(LedgerError, match="audit log cannot be read or written"):
        log.entries()
