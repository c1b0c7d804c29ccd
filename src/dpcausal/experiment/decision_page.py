"""What the page of a scorecard shows of its decisions. All text is treated as untrusted and escaped."""

import math
from collections.abc import Sequence

from dpcausal.experiment.decision import ArmDecision, MetricCheck
from dpcausal.experiment.line import NONE, ScorecardLine
from dpcausal.page.html_page import html_text
from dpcausal.page.numbers import number

STYLE = """
p.action { font-weight: 700; }
table.decided { width: auto; }
table.decided th, table.decided td { padding-right: 1.6rem; }
@media (max-width: 46rem) { table.decided { width: 100%; } table.decided thead { display: none; } }
p.action.ship { color: var(--good); } p.action.stop { color: var(--bad); }
div.verdict p.reason { font-size: 1rem; margin: 0.1rem 0 0.6rem; }
"""

APART = (
    "A decision has error rates of its own, and asks in one direction. Verdicts ask in both, adjusted for all "
    "comparisons, so a goal can be better where its verdict is not clear."
)
"""Why the two parts of a page may differ."""

_ACTIONS = {"ship": "✓ Ship", "stop": "✕ Stop", "wait": "… Wait", "not decided": "Not decided"}
"""Colours have words and signs beside them."""

_CLASSES = {"within its margin": "better", "beyond its margin": "worse", "better": "better", "worse": "worse"}


def decision_box(decisions: Sequence[ArmDecision]) -> str:
    """Return the decision for each arm, with its reasons."""
    parts: list[str] = []
    for each in decisions:
        arm = f": {each.arm}" if len(decisions) > 1 else ""
        words = html_text(f"{_ACTIONS[each.action]}{arm}")
        # A stop for want of evidence is no warning.
        kind = "ship" if each.action == "ship" else "stop" if each.harm else "wait"
        reasons = "; ".join(each.reasons)
        parts.append(f'<p class="action {kind}">{words}</p>')
        parts.append(f'<p class="reason">{html_text(reasons[:1].upper() + reasons[1:])}.</p>')
    return f'<div class="verdict"><strong>Decision</strong>{"".join(parts)}</div>' if parts else ""


def decision_table(
    decisions: Sequence[ArmDecision], lines: Sequence[ScorecardLine], error_rates: str, *, rehearsed: bool
) -> str:
    """Return the metrics that were decided on, with their limits, and the error rates of the rule."""
    if not decisions:
        return ""
    several = len(decisions) > 1
    heads = ["Decided on", "", "Limit", *(["Detectable"] if rehearsed else ["At worst", "At best"])]
    head = "".join(f'<th scope="col"{_left(place)}>{html_text(each)}</th>' for place, each in enumerate(heads))
    units = {line.metric: "pp" if line.kind == "proportion" else line.unit for line in lines}
    body = "\n".join(
        _line(check, units[check.metric], decision.arm if several else "", heads, rehearsed=rehearsed)
        for decision in decisions
        for check in decision.checks
    )
    note = f"Error rates: {error_rates}. {APART}"
    return (
        '<h2>What the decision rests on</h2>\n<div class="wide"><table class="decided">\n'
        f"<thead><tr>{head}</tr></thead>\n"
        f'<tbody>\n{body}\n</tbody>\n</table></div>\n<p class="quiet">{html_text(note)}</p>'
    )


def _left(place: int) -> str:
    return ' class="verdict"' if place == 1 else ""


def _line(check: MetricCheck, unit: str, arm: str, heads: Sequence[str], *, rehearsed: bool) -> str:
    under = f'<span class="arm">{html_text(", ".join([check.role, *([arm] if arm else [])]))}</span>'
    status = f'<span class="{_CLASSES.get(check.status, "none")}">{html_text(check.status)}</span>'
    cells = [f"<td>{html_text(check.metric)}{under}</td>", f'<td class="verdict">{"" if rehearsed else status}</td>']
    # The limit is a share where the margin is one; what could be detected is always in the metric's unit.
    shown: list[tuple[float | None, bool]] = [(check.limit, check.relative)]
    shown += [(check.detectable, False)] if rehearsed else [(end, check.relative) for end in (check.worst, check.best)]
    half = abs(check.best - check.worst) / 2 if check.best is not None and check.worst is not None else check.detectable
    for label, (value, share) in zip(heads[2:], shown, strict=True):
        words = _change(value, "%" if share else unit, half or 0.0)
        cells.append(f'<td data-label="{html_text(label)}">{html_text(words)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _change(value: float | None, unit: str, half: float) -> str:
    """Return a change with its sign and unit, with two digits of the half-width."""
    if value is None:
        return NONE
    times = 100 if unit in {"%", "pp"} else 1
    places = 1 - math.floor(math.log10(times * half)) if 0 < half < math.inf else 2
    words = number(times * value, max(places, 0)) if value else "0"
    return f"{'+' if value > 0 else ''}{words}" + (f"\N{NO-BREAK SPACE}{unit}" if unit and value else "")
