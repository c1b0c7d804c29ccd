"""Published results are replaced only where that was asked for."""

import argparse
from pathlib import Path
from typing import Any

import pytest

import benchmarks.federation.__main__ as federation
import benchmarks.scale.__main__ as scale
from benchmarks.parts import PUBLISHED, add_result_options, result_file


def chosen(*words: str) -> Path:
    parser = argparse.ArgumentParser()
    add_result_options(parser)
    return result_file(parser, parser.parse_args(words), "scale")


def test_the_published_file_is_written_only_on_request(tmp_path: Path) -> None:
    assert chosen("--publish") == PUBLISHED / "scale.json"
    assert chosen() == Path("scale.unpublished.json")
    assert chosen("--result", str(tmp_path / "mine.json")) == tmp_path / "mine.json"


@pytest.mark.parametrize("words", [["--result", str(PUBLISHED / "scale.json")], ["--publish", "--result", "mine.json"]])
def test_published_file_cannot_be_named_as_result(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        chosen(*words)


@pytest.mark.parametrize(
    ("suite", "words"),
    [
        (scale, ["--part", "sums", "--rows", "1000"]),
        (federation, ["--part", "sums", "--runs", "1"]),
    ],
)
def test_a_small_run_leaves_published_results_alone(
    suite: Any, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def done(_: str, __: object, file: Path) -> bool:
        written.append(file.resolve())
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(suite, "done", done)
    suite.main(words)
    assert written
    assert not any(file.is_relative_to(PUBLISHED) for file in written)
