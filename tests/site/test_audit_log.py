"""The audit log of a site: append-only, verified from its first line, and refused once it was changed."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dpcausal.errors import LedgerError
from dpcausal.hash_chain import ChainEntry, digest_of
from dpcausal.site.audit_log import AuditLog

Lines = list[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A log of four entries."""
    log = AuditLog(tmp_path / "audit_log.jsonl")
    log.write("approve", "ab12", "anna", "board of 3 May")
    log.write("answer", "ab12", "carl", "request answered")
    log.write("reject", "ab12", "bob", "not for this purpose")
    log.write("approve", "cd34", "anna", "")
    return tmp_path / "audit_log.jsonl"


def test_entries_are_read_as_written(file: Path) -> None:
    entries = AuditLog(file).entries()
    assert [(entry.version, entry.kind, entry.who) for entry in entries] == [
        (2, "approve", "anna"),
        (2, "answer", "carl"),
        (2, "reject", "bob"),
        (2, "approve", "anna"),
    ]
    assert [AuditLog(file).status(study, 1) for study in ("ab12", "cd34", "ef56")] == [
        "rejected",
        "approved",
        "undecided",
    ]


def put(line: str, **changes: object) -> str:
    return json.dumps(json.loads(line) | changes, sort_keys=True)


def redigested(line: str, **changes: object) -> str:
    """A changed line with the digest that fits it: the next line still holds the old one."""
    content = {name: value for name, value in (json.loads(line) | changes).items() if name != "digest"}
    return put(line, **changes, digest=digest_of(content))


TAMPERED: dict[str, tuple[Callable[[Lines], Lines], int]] = {
    "a changed reason": (lambda lines: [put(lines[0], what="another"), *lines[1:]], 1),
    "a changed decision": (lambda lines: [*lines[:2], put(lines[2], kind="approve"), lines[3]], 3),
    "a changed decision with its digest": (
        lambda lines: [*lines[:2], redigested(lines[2], kind="approve"), lines[3]],
        4,
    ),
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
    with pytest.raises(LedgerError, match=f"an intact audit log at line {line}, got a line that was changed"):
        AuditLog(file).entries()
    before = file.read_bytes()
    with pytest.raises(LedgerError):
        AuditLog(file).write("approve", "ab12", "anna", "")
    assert file.read_bytes() == before


def test_mutant_that_verifies_nothing_misses_the_tampering(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = file.read_text().splitlines()
    file.write_text("".join(f"{each}\n" for each in (*lines[:2], put(lines[2], kind="approve"), lines[3])))
    monkeypatch.setattr(ChainEntry, "follows", lambda *_: True)
    assert AuditLog(file).status("ab12", 1) == "approved"


@pytest.mark.parametrize("version", [None, 1, 3])
def test_another_version_is_refused_by_name(file: Path, version: int | None) -> None:
    first, *rest = file.read_text().splitlines()
    document = {name: value for name, value in json.loads(first).items() if name != "version"}
    old = document if version is None else document | {"version": version}
    file.write_text("".join(f"{each}\n" for each in (json.dumps(old), *rest)))
    with pytest.raises(
        LedgerError, match=rf"version 2 of the audit log at line 1, got version {version or 1}(.|\n)*reject"
    ):
        AuditLog(file).entries()


def test_full_disk_raises_a_structured_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda *_: 0)
    with pytest.raises(LedgerError, match="no space left"):
        AuditLog(file).write("approve", "ab12", "anna", "")


def test_unusable_file_raises_a_structured_error(tmp_path: Path) -> None:
    (tmp_path / "audit_log.jsonl").mkdir()
    log = AuditLog(tmp_path / "audit_log.jsonl")
    with pytest.raises(LedgerError, match="a readable and writable audit log"):
        log.write("approve", "ab12", "anna", "")
    with pytest.raises(LedgerError, match="a readable and writable audit log"):
        log.entries()


def test_log_of_an_older_version_is_refused(file: Path) -> None:
    file.with_name("diary.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(LedgerError, match="approvals and rejections do not count any more"):
        AuditLog(file)
