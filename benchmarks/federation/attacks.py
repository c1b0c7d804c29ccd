"""Attacks on a federation's network: `tests/federation/transports/nvflare`, on real processes, and how each ended."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def measure(folder: Path) -> dict[str, Any]:
    """Every test, whether it passed, and how long it took."""
    record = folder / "tests.xml"
    command = [sys.executable, "-m", "pytest", "-q", "tests/federation/transports/nvflare", f"--junitxml={record}"]
    subprocess.run([*command, "-p", "no:cacheprovider"], cwd=ROOT, stdout=sys.stderr, check=False)  # noqa: S603
    return {
        case.attrib["name"]: {
            "passed": not any(case.iter("failure")) and not any(case.iter("error")),
            "seconds": round(float(case.attrib["time"]), 1),
        }
        for case in ET.parse(record).iter("testcase")  # noqa: S314 (our own)
    }
