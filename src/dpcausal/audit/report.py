"""An audit, as a person reads it."""

import json
import platform
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version

from dpcausal.audit.finding import Finding
from dpcausal.audit.targets import TARGETS
from dpcausal.audit.tasks import CHECKS, NOT_AUDITED

_LIBRARIES = ("dpcausal", "opendp", "duckdb", "numpy", "scipy", "hypothesis")
_EXACT_LOSS = (
    "exact loss: the privacy loss itself where noise is added to an exact answer; for smooth exact matching a share of",
    "what its proof allows; where an answer draws noise itself, only the part that is known without sampling",
)


@dataclass(frozen=True)
class AuditReport:
    """What an audit found.

    Attributes:
        effort: How hard it tried: `smoke`, `quick` or `full`.
    """

    findings: tuple[Finding, ...]
    effort: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every check was made and passed."""
        return all(finding.passed for finding in self.findings) and all(self.of(name) for name in CHECKS)

    def of(self, check: str) -> tuple[Finding, ...]:
        """Return the findings of one check."""
        return tuple(finding for finding in self.findings if finding.check == check)

    @property
    def attacks(self) -> tuple[Finding, ...]:
        """The findings of attacks, in the order of what was attacked."""
        names = [target.name for target in TARGETS]
        return tuple(sorted(self.of("epsilon"), key=lambda finding: names.index(finding.target)))

    @property
    def hostile_tables(self) -> int:
        """How many hostile tables were tried."""
        return int(sum(finding.numbers.get("tables", 0) for finding in self.findings))

    @property
    def estimators(self) -> list[dict[str, object]]:
        """For each target: what is claimed, what is known exactly, what an attack showed, and how hard it tried."""
        lines: list[dict[str, object]] = []
        for name in dict.fromkeys(finding.target for finding in self.attacks):
            found = [finding for finding in self.attacks if finding.target == name]
            most = max(found, key=lambda finding: finding.numbers["bound"])
            lines.append(
                {
                    "estimator": name,
                    "claimed_epsilon": most.numbers["epsilon"],
                    "delta": most.numbers["delta"],
                    "exact_loss": round(max(finding.numbers["exact"] for finding in found), 4),
                    "audited_epsilon": round(most.numbers["bound"], 4),
                    "confidence": most.numbers["confidence"],
                    "pairs": len(found),
                    "runs": int(sum(2 * finding.numbers["runs"] for finding in found)),
                    "worst_pair": most.detail.partition(":")[0],
                }
            )
        return lines

    def to_json(self) -> str:
        """Return the report as JSON."""
        document = {
            "passed": self.passed,
            "effort": self.effort,
            "seconds": round(self.seconds, 1),
            "versions": {name: version(name) for name in _LIBRARIES} | {"python": platform.python_version()},
            "estimators": self.estimators,
            "hostile_tables": self.hostile_tables,
            "checks": {
                name: {"shows": shows, "passed": sum(each.passed for each in self.of(name)), "of": len(self.of(name))}
                for name, shows in CHECKS.items()
            },
            "not_audited": NOT_AUDITED,
            "findings": [asdict(finding) for finding in self.findings],
        }
        return json.dumps(document, indent=1, ensure_ascii=False)

    def __str__(self) -> str:
        failed = [finding for finding in self.findings if not finding.passed]
        title = f"Audit ({self.effort}): {len(self.findings)} checks, {len(failed)} failed"
        lines = [title, "─" * len(title), *_table(self.estimators), ""]
        for name, shows in CHECKS.items():
            found = self.of(name)
            lines.append(f"{name:<20}{sum(each.passed for each in found):>4} of {len(found):<4} {shows}")
        lines.append(
            f"\n{self.hostile_tables:,} hostile tables were tried. An audit finds faults; it proves no absence."
        )
        for finding in failed:
            text = f"FAILED {finding.check}, {finding.target}: {finding.detail}"
            lines += textwrap.wrap(text, 110, subsequent_indent="  ")
        lines.append("Not audited:")
        lines += [f"- {each}" for each in NOT_AUDITED]
        return "\n".join(lines)


def _table(estimators: Sequence[dict[str, object]]) -> list[str]:
    head = f"{'':<32}{'claimed':>9}{'delta':>8}{'exact':>8}{'attack':>9}{'pairs':>7}{'runs':>10}"
    under = f"{'':<32}{'epsilon':>9}{'':>8}{'loss':>8}{'shows ≥':>9}{'tried':>7}{'':>10}"
    lines = [
        f"{line['estimator']:<32}{line['claimed_epsilon']:>9g}{line['delta']:>8g}{line['exact_loss']:>8.3f}"
        f"{line['audited_epsilon']:>9.3f}{line['pairs']:>7}{line['runs']:>10,}"
        for line in estimators
    ]
    confidence = estimators[0]["confidence"] if estimators else 0.0
    return [head, under, *lines, f"each lower bound holds with a confidence of {confidence:.1%}", *_EXACT_LOSS]
