"""Suites of several parts: a part's figures are kept as soon as it is done; one that fails does not stop the rest."""

import argparse
import json
import os
import platform
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).parent / "results"


def add_result_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where figures are written."""
    parser.add_argument("--result", type=Path, help="the file that keeps each part as it is done")
    parser.add_argument("--publish", action="store_true", help="write into the results that the documentation reports")


def result_file(parser: argparse.ArgumentParser, chosen: argparse.Namespace, name: str) -> Path:
    """Return the file for the figures of a suite: the published one only where that was asked for."""
    if chosen.publish and chosen.result:
        parser.error("give either --publish or --result")
    if chosen.publish:
        return PUBLISHED / f"{name}.json"
    file: Path = chosen.result or Path(f"{name}.unpublished.json")
    if file.resolve().is_relative_to(PUBLISHED):
        parser.error(f"{file} is published: write elsewhere, or replace it with --publish")
    return file


def done(part: str, measure: Callable[[], dict[str, Any]], path: Path) -> bool:
    """Whether a part was measured; then its figures are in the file."""
    start = time.monotonic()
    try:
        found = measure()
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        return False
    result = kept(path)
    result |= {"machine": _machine(), part: found | {"took": round(time.monotonic() - start)}}
    waiting = path.with_suffix(".tmp")
    waiting.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    waiting.replace(path)
    return True


def kept(path: Path) -> dict[str, Any]:
    """All figures in a file."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return dict(json.loads(text or "{}"))


def shown(result: dict[str, Any], as_json: bool) -> str:
    """All figures, for people or as JSON."""
    return json.dumps(result, indent=1) if as_json else "\n".join(_text(result))


def _machine() -> dict[str, Any]:
    """Return what the seconds belong to."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    libraries = {name: version(name) for name in ("duckdb", "numpy", "pyarrow")}
    return {"cores": os.cpu_count(), "gigabytes": round(memory), "python": platform.python_version()} | libraries


def _text(found: object, name: str = "") -> Iterator[str]:
    """Every figure on a line, with where it stands."""
    if isinstance(found, dict | list):
        for place, each in found.items() if isinstance(found, dict) else enumerate(found):
            yield from _text(each, f"{name} {place}".strip())
    else:
        yield f"{name:90} {found}"
