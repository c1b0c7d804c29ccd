"""Sums over the first visits of all units, and the most megabytes that took, in a process of its own.

Run as `python -m tests.vault.first_visits ARGUMENT`: a JSON list of a folder, a limit of memory and a count of threads.
"""

import json
import re
import sys
from pathlib import Path

import dpcausal as dpc
from dpcausal.vault.table import open_table


def main() -> None:
    folder, memory, threads = json.loads(sys.argv[1])
    covariates = [dpc.Real(f"x{place}", 0, 1) for place in range(8)]
    unit = dpc.Unit("who", by="visit")
    arm = dpc.Treatment("t", undeclared=0)
    schema = dpc.Schema(treatment=arm, outcome=dpc.Real("y", 0, 1), covariates=covariates, unit=unit)
    engine = open_table(folder, schema, dpc.Resources(memory=memory, threads=threads, spill=folder))
    sums = engine.aggregate({"treatment": 2}, ["1", "outcome", "covariate_7"]).tolist()
    most = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert most
    print(json.dumps([sums, int(most[1]) // 1024]))  # noqa: T201


if __name__ == "__main__":
    main()
