"""Evaluations of two papers, done again: `python -m benchmarks.studies weighting --quick`."""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.studies import exact_matching, figures, weighting
from benchmarks.studies.setup import Setup

STUDIES = {"exact_matching": exact_matching, "weighting": weighting}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--repeats", type=int, help="repeats for each setting, where the study would do its own number")
    parser.add_argument("--quick", action="store_true", help="just enough to see that it works")
    parser.add_argument("--result", type=Path, help="print and draw this result, and measure nothing")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--figures", type=Path, help="a folder to draw figures into")
    chosen = parser.parse_args()
    study = STUDIES[chosen.study]
    result: dict[str, Any]
    if chosen.result:
        result = json.loads(chosen.result.read_text(encoding="utf-8"))
    else:
        result = study.run(Setup(chosen.quick, chosen.repeats))
    print(json.dumps(result, indent=1) if chosen.json else "\n".join(study.text(result)))
    if chosen.figures:
        chosen.figures.mkdir(parents=True, exist_ok=True)
        figures.draw(result, chosen.figures)


if __name__ == "__main__":
    main()
