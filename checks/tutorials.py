"""The tutorials, run afresh and written back with their outputs: `python -m checks.tutorials`, or with some names.

A notebook is committed with what it printed and drew, and without what differs from one machine or run to the next for
no reader's good: counts, times, kernels, paths.
"""

import os
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
TIMEOUT = 120
"""Seconds for a cell, and in the tests for a whole notebook."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:home|opt|private|root|srv|tmp|usr|var|work|Users)/|\b[A-Z]:\\")
"""Where a text names a folder of the machine that it was made on."""

_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?=\n)")
"""What commands tell a terminal: bold, colours, and its ends of lines."""


def notebooks() -> list[Path]:
    """Return the path of every tutorial."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:  # noqa: ANN401 (a notebook is made of plain values)
    """Read a notebook from its file."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def executed(notebook: Any, folder: Path, programs: Path | None = None) -> Any:  # noqa: ANN401
    """Run a notebook from the first cell to the last with this interpreter, in an empty folder, and return it.

    Args:
        notebook: What to run.
        folder: Where.
        programs: The folder of a fork server's programs, for commands after a `!`; without it they are the real ones.

    Raises:
        CellExecutionError: If a cell fails, or a command in it.
    """
    if find_spec("matplotlib"):
        import matplotlib.font_manager  # noqa: F401, PLC0415 (a first import on a machine looks for fonts, and says so)
    # No kernels but the native one: the interpreter that runs this.
    kernels = KernelSpecManager(kernel_dirs=[])
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=kernels)
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=TIMEOUT,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=[
            "--InteractiveShell.system_raise_on_error=True",  # of commands after a !
            "--IPKernelApp.log_level=ERROR",  # it warns of other users of this machine
        ],
    )
    here = {
        "PATH": os.pathsep.join(
            [*([str(programs)] if programs else []), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
        "IPYTHONDIR": str(folder / ".ipython"),  # nobody's own settings
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "COLUMNS": "100",
    }
    client.execute(env=os.environ | here, cleanup_kc=True)
    return notebook


def stripped(notebook: Any) -> Any:  # noqa: ANN401
    """Return the same notebook without what differs from one machine or run to the next for no reader's good."""
    notebook.metadata = nbformat.from_dict(METADATA)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        alt = {"alt": cell.metadata.alt} if "alt" in cell.metadata else {}  # of the picture that the cell draws
        cell.metadata = nbformat.from_dict(alt)  # type: ignore[no-untyped-call]
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = _stripped(cell.outputs)
    return notebook


def _stripped(outputs: Any) -> list[Any]:  # noqa: ANN401
    kept: list[Any] = []
    for output in outputs:
        if "execution_count" in output:
            output.execution_count = None
        if "data" in output:
            output.metadata = nbformat.from_dict({})  # type: ignore[no-untyped-call]
            if len(output.data) > 1:  # a table or a picture says all that its plain text does
                output.data.pop("text/plain", None)
        if "text" in output:
            output.text = _STEERING.sub("", output.text)
            if kept and kept[-1].get("name") == output.name:
                kept[-1].text += output.text
                continue
        kept.append(output)
    return kept


def said(notebook: Any) -> list[str]:  # noqa: ANN401
    """Return every text in a notebook's outputs, pictures left out."""
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            texts += [output.get("text", ""), *(text for kind, text in data.items() if kind.startswith("text/"))]
    return [text for text in texts if text]


def complaints(notebook: Any) -> list[str]:  # noqa: ANN401
    """Return what a reader should not have to see of a run: errors, warnings, and folders of this machine."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    errors = [str(output) for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    return errors + [text for text in said(notebook) if "Traceback" in text or MACHINE_PATH.search(text)]


def main() -> None:
    """Run the tutorials that are named, or all of them, and write them back."""
    chosen = [path for path in notebooks() if path.stem in sys.argv[1:] or not sys.argv[1:]]
    for path in chosen:
        begun = time.monotonic()
        with TemporaryDirectory() as folder:
            notebook = stripped(executed(read(path), Path(folder)))
        for complaint in complaints(notebook):
            sys.exit(f"{path.name}: {complaint}")
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
        print(f"{path.name}: {time.monotonic() - begun:.1f} seconds, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
