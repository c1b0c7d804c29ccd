"""Every Python block in the README and the docs runs, in order, as a reader would run it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fenced(path: Path, language: str) -> list[str]:
    """The blocks of a language in a document."""
    found: list[str] = re.findall(
        rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return found


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if fenced(path, "python")], ids=lambda path: path.name)
def test_the_code_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in fenced(path, "python"):
        exec(compile(block, path.name, "exec"), names)  # noqa: S102 (our own documents)


def test_the_readme_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    test_the_code_runs(DOCUMENTS[0], tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    shown = fenced(DOCUMENTS[0], "text")
    assert shown
    assert all(text in printed for text in shown)
    assert "95 % interval" in printed
    assert "epsilon 1, delta 0 (proved)" in printed


def test_nothing_private_to_a_workplace_is_written_down() -> None:
    for path in DOCUMENTS:
        assert "/root" not in path.read_text(encoding="utf-8")
        assert "shared/" not in path.read_text(encoding="utf-8")
