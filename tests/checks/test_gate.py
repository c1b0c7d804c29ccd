"""The gate runs every part, and fails if one does."""

import re
from pathlib import Path

import pytest

from checks import gate
from checks.documents import ROOT

MAKEFILE = "test:\n\t@echo testing\n" + "".join(f"{name}:\n\t@echo {name}ing; {{}}\n" for name in gate.BESIDE)


def outcome(folder: Path, monkeypatch: pytest.MonkeyPatch, *failing: str) -> str | int | None:
    lines = MAKEFILE.format(*("false" if name in failing else "true" for name in gate.BESIDE))
    (folder / "Makefile").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        gate.main()
    return ended.value.code


def test_gate_passes_where_every_part_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(tmp_path, monkeypatch) is None
    printed = capsys.readouterr().out
    passed = re.findall(r"^(\w+) +\d+ s  passed$", printed, re.MULTILINE)
    assert set(passed) == {*gate.BESIDE, "test"}


@pytest.mark.parametrize("failing", gate.BESIDE)
def test_gate_fails_where_one_part_does(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(tmp_path, monkeypatch, failing) == f"gate: FAILED: {failing}"
    assert f"{failing} FAILED:\n{failing}ing\n" in capsys.readouterr().out


def test_every_part_is_a_target_of_the_makefile() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*gate.BESIDE, "test"} <= set(targets)
