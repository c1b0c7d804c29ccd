"""`python -m tests.audit.mutants --json` tries all mutants and says how each was caught."""

import argparse
import json
import sys
from collections.abc import Iterator

from tests.audit.mutants import MUTANTS, found


def tried() -> Iterator[dict[str, object]]:
    """What became of every mutant."""
    for each in MUTANTS:
        finding = found(each, breaking=True)
        yield {"mutant": each.name, "check": finding.check, "caught": not finding.passed, "how": finding.detail}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    results = []
    for line in tried():
        results.append(line)
        sys.stderr.write(
            f"{'caught' if line['caught'] else 'MISSED'}  {line['mutant']}  ({line['check']}: {line['how']})\n"
        )
    if chosen.json:
        sys.stdout.write(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    sys.exit(not all(line["caught"] for line in results))


if __name__ == "__main__":
    main()
