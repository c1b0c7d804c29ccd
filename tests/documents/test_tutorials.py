"""The tutorials run as they stand, and are committed as they ran."""

import json
from pathlib import Path

import pytest

from checks.tutorials import FOLDER, complaints, executed, notebooks, read, said, stripped
from tests.support.slow import marked

LONG = {"hospitals", "varying"}  # the gate runs the pages docs/federation-quickstart.md and docs/conditional.md
TUTORIALS = pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)


@pytest.mark.costly("src", "docs/tutorials")
@pytest.mark.parametrize(
    "path", [marked(path) if path.stem in LONG else path for path in notebooks()], ids=lambda path: path.stem
)
def test_tutorial_runs_without_errors_or_warnings(path: Path, programs: Path, tmp_path: Path) -> None:
    assert complaints(executed(read(path), tmp_path, programs)) == []


@TUTORIALS
def test_tutorial_is_committed_as_it_ran(path: Path) -> None:
    committed = json.loads(path.read_text(encoding="utf-8"))
    assert json.loads(json.dumps(stripped(read(path)))) == json.loads(json.dumps(read(path)))
    assert set(committed["metadata"]) == {"kernelspec", "language_info"}
    assert any(cell.get("outputs") for cell in committed["cells"])
    assert complaints(read(path)) == []
    assert not any(word in str(committed) for word in ("filterwarnings", "simplefilter", "%%capture"))
    assert path.stat().st_size < 400_000


@TUTORIALS
def test_tutorial_figures_are_images(path: Path) -> None:
    outputs = [output for cell in read(path).cells for output in cell.get("outputs", ())]
    kinds = {kind for output in outputs for kind in output.get("data", ())}
    assert kinds <= {"image/png", "text/html", "text/plain"}
    assert not any("<Figure size" in text for text in said(read(path)))


@TUTORIALS
def test_tutorial_states_goal_needs_and_limitations(path: Path) -> None:
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    assert texts[0].startswith("# ")
    for words in ("**At the end you have**", "**Time**", "**Needs**"):
        assert words in texts[0]
    assert "## Limitations" in texts[-1]
    assert "## Next" in texts[-1]


def test_index_lists_every_tutorial() -> None:
    listed = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert notebooks()
    for path in notebooks():
        assert f"]({path.name})" in listed
        assert f'href="{path.stem}/{path.name}"' in listed


@pytest.mark.parametrize(
    ("source", "said_in_vain"),
    [
        ("import warnings\nwarnings.warn('old', DeprecationWarning)", "DeprecationWarning"),
        ("import sys\nprint('hm', file=sys.stderr)", "hm"),
        ("print('/home/somebody/table.parquet')", "/home/somebody"),
    ],
)
def test_warning_stderr_or_machine_path_is_caught(source: str, said_in_vain: str, tmp_path: Path) -> None:
    heard = complaints(executed(_notebook(source), tmp_path))
    assert heard
    assert said_in_vain in heard[0]


@pytest.mark.parametrize("source", ["1 / 0", "!dpcausal no-such-command", "!exit 1"])
def test_failing_cell_is_caught(source: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="An error occurred while executing"):
        executed(_notebook(source), tmp_path)


def test_stripped_notebook_has_nothing_that_differs_between_runs(tmp_path: Path) -> None:
    made = executed(_notebook("for word in ('a', 'b'):\n    !echo {word}\n1"), tmp_path)
    text = json.dumps(made)
    assert "execution_count" in text
    assert '"execution": {' in text  # times
    (cell,) = stripped(made).cells
    assert cell.execution_count is None
    assert cell.metadata == {}
    assert [output.get("text", output.get("data")) for output in cell.outputs] == ["a\nb\n", {"text/plain": "1"}]


def _notebook(source: str):  # type: ignore[no-untyped-def]  # noqa: ANN202 (nbformat has no types)
    from nbformat.v4 import new_code_cell, new_notebook  # noqa: PLC0415

    return new_notebook(cells=[new_code_cell(source)])  # type: ignore[no-untyped-call]
