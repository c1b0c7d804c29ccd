"""What the light install brings: packages, megabytes, and how long the import takes."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.progress import progress
from benchmarks.scale.options import Options

CHECKOUT = Path(__file__).parents[2]
HEAVY = ("pyspark", "numba", "nvflare", "torch", "adbc_driver_postgresql", "adbc_driver_manager")
"""What nobody should get who did not ask for it."""

_OWN = {"pip", "setuptools", "wheel"}


def measure(options: Options) -> dict[str, Any]:
    """Measure a fresh environment and the checkout without extras."""
    repeats = options.repeats or 7
    with tempfile.TemporaryDirectory(prefix="dpcausal-scale-", dir=options.folder) as folder:
        _printed(sys.executable, "-m", "venv", folder)
        python = str(Path(folder, "bin", "python"))
        before = _megabytes(Path(folder))
        _printed(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(CHECKOUT))
        after = _megabytes(Path(folder))
        largest = _largest(next(Path(folder).rglob("site-packages")))
        listed = json.loads(_printed(python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
        imports = _seconds(python, repeats)
        present = _printed(python, "-c", f"import importlib.util as u; print(*filter(u.find_spec, {HEAVY}))").split()
    packages = sorted(each["name"] for each in listed if each["name"] not in _OWN)
    return {
        "packages": len(packages),
        "names": packages,
        "megabytes": round(after - before, 1),
        "largest": largest,
        "import": imports,
        "heavy_packages_present": present,
    }


def _seconds(python: str, repeats: int) -> dict[str, float]:
    """Return the wall time of an import beside that of nothing, in turns; the first of each does not count."""
    found: dict[str, list[float]] = {"": [], "import dpcausal": []}
    rounds = [text for _ in range(repeats + 1) for text in found]
    for text in progress(rounds, len(rounds), "imports"):
        start = time.perf_counter()
        _printed(python, "-c", text)
        found[text].append(time.perf_counter() - start)
    bare, whole = (statistics.median(times[1:]) for times in found.values())
    return {"bare": round(bare, 3), "whole": round(whole, 3), "difference": round(whole - bare, 3)}


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def _largest(packages: Path) -> dict[str, float]:
    """Return the largest folders among the packages, in megabytes."""
    sizes = {path.name: round(_megabytes(path), 1) for path in packages.iterdir() if path.is_dir()}
    return dict(sorted(sizes.items(), key=lambda each: -each[1])[:6])


def _printed(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tempfile.gettempdir())  # noqa: S603
    return done.stdout
