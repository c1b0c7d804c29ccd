"""The gate runs every part, and fails if one does."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from checks import gate, passed
from checks.documents import ROOT

MAKEFILE = "".join(f"{name}:\n\t@echo {name}ing; {{}}\n" for name in gate.BESIDE)


def outcome(folder: Path, monkeypatch: pytest.MonkeyPatch, *failing: str) -> str | int | None:
    lines = MAKEFILE.format(*("false" if name in failing else "true" for name in gate.BESIDE))
    told = {"tests": {"tests/vault/test_a.py": 2.0, "collection": 1.0}, "costly": {"tests/vault/test_a.py": 100.0}}
    lines += f"test:\n\t@echo '{json.dumps(told)}' > $$DPCAUSAL_SECONDS\n"
    (folder / "Makefile").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(passed, "SECONDS", folder / "stored.json")
    with pytest.raises(SystemExit) as ended:
        gate.main()
    return ended.value.code


def test_gate_passes_where_every_part_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(tmp_path, monkeypatch) is None
    printed = capsys.readouterr().out
    parts = re.findall(r"^(\w+) +\d+ s +\d+ CPU s  passed$", printed, re.MULTILINE)
    assert set(parts) == {*gate.BESIDE, "test"}
    assert re.search(r"^ +2 +100  tests/vault$", printed, re.MULTILINE)


def test_seconds_are_stored_without_those_of_costly_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(tmp_path, monkeypatch) is None
    stored = json.loads(passed.SECONDS.read_text(encoding="utf-8"))
    assert stored["tests"] == {"tests/vault/test_a.py": 2.0, "collection": 1.0}
    assert stored["parts"].keys() == {*gate.BESIDE, "test"}
    assert stored["parts"]["test"] < 0  # all of it was costly


def test_gate_is_within_its_budget() -> None:
    if not passed.SECONDS.is_file():
        pytest.skip("no stored seconds: a gate of which all parts pass writes them")
    parts = json.loads(passed.SECONDS.read_text(encoding="utf-8"))["parts"]
    assert gate.whole(parts) <= gate.BUDGET, "make a test cheaper, or mark it costly: see CONTRIBUTING.md"


def test_seconds_of_costly_tests_are_those_of_files_of_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(passed, "FILE", tmp_path / "passed.json")
    for name in ("formal", "tests/vault/test_a.py", "tests/vault/test_b.py"):
        passed.record_pass(name, "digest", 10.0)
    assert passed.seconds_of_tests() == 20.0


@pytest.mark.parametrize("failing", gate.BESIDE)
def test_gate_fails_where_one_part_does(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(tmp_path, monkeypatch, failing) == f"gate: FAILED: {failing}"
    assert f"{failing} FAILED:\n{failing}ing\n" in capsys.readouterr().out
    assert not passed.SECONDS.exists()


def test_every_part_is_a_target_of_the_makefile() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*gate.BESIDE, "test"} <= set(targets)


def test_passes_that_are_written_at_once_are_all_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(passed, "FILE", tmp_path / "passed.json")
    names = [f"check {number}" for number in range(40)]
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda name: passed.record_pass(name, "digest", 1.0), names))
    assert all(passed.has_passed(name, "digest") for name in names)
    assert [path.name for path in tmp_path.iterdir()] == ["passed.json"]
