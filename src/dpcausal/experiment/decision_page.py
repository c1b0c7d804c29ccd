"""What the page of a scorecard shows of its decisions. All text is treated as untrusted and escaped."""

from collections.abc import Sequence

from dpcausal.experiment.decision import ArmDecision, MetricCheck
from dpcausal.experiment.line import NONE
from dpcausal.page.html_page import html_text
from dpcausal.page.numbers import number

STYLE = """
p.action { font-weight: 700; }
p.action.ship { color: var(--good); } p.action.stop { color: var(--bad); }
div.verdict p.reason { font-size: 1rem; margin: 0.1rem 0 0.6rem; }
.bound { color: var(--quiet); }
"""

_ACTIONS = {"ship": "✓ Ship", "stop": "✕ Stop", "wait": "… Wait", "not decided": "Not decided"}
"""Colours have words and signs beside them."""

_CLASSES = {"within its margin": "better", "beyond its margin": "worse", "better": "better", "worse": "worse"}


def decision_box(decisions: Sequence[ArmDecision]) -> str:
    """Return the decision for each arm, with its reasons."""
    parts = []
    for each in decisions:
        arm = f": {each.arm}" if len(decisions) > 1 else ""
        words = html_text(f"{_ACTIONS[each.action]}{arm}")
        parts.append(f'<p class="action {each.action.replace(" ", "-")}">{words}</p>')
        parts.append(f'<p class="reason">{html_text("; ".join(each.reasons))}.</p>')
    return f'<div class="verdict"><strong>Decision</strong>{"".join(parts)}</div>' if parts else ""


def decision_table(decisions: Sequence[ArmDecision], error_rates: str, *, rehearsed: bool) -> str:
    """Return the metrics that were decided on, with their limits, and the error rates of the rule."""
    if not decisions:
        return ""
    several = len(decisions) > 1
    heads = ["Decided on", "", "Limit", *(["Detectable"] if rehearsed else ["At worst", "At best"])]
    head = "".join(f'<th scope="col"{_left(place)}>{html_text(each)}</th>' for place, each in enumerate(heads))
    body = "\n".join(
        _line(check, decision.arm if several else "", heads, rehearsed=rehearsed)
        for decision in decisions
        for check in decision.checks
    )
    note = f"Error rates: {error_rates}."
    return (
        f'<h2>What the decision rests on</h2>\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f'<tbody>\n{body}\n</tbody>\n</table></div>\n<p class="quiet">{html_text(note)}</p>'
    )


def _left(place: int) -> str:
    return ' class="verdict"' if place == 1 else ""


def _line(check: MetricCheck, arm: str, heads: Sequence[str], *, rehearsed: bool) -> str:
    under = f'<span class="arm">{html_text(", ".join([check.role, *([arm] if arm else [])]))}</span>'
    status = f'<span class="{_CLASSES.get(check.status, "none")}">{html_text(check.status)}</span>'
    shown = [check.detectable] if rehearsed else [check.worst, check.best]
    relative = check.relative and not rehearsed
    cells = [f"<td>{html_text(check.metric)}{under}</td>", f'<td class="verdict">{"" if rehearsed else status}</td>']
    for label, value, share in zip(heads[2:], [check.limit, *shown], [check.relative, *[relative] * 2], strict=False):
        cells.append(f'<td data-label="{html_text(label)}">{html_text(_change(value, relative=share))}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _change(value: float | None, *, relative: bool) -> str:
    if value is None:
        return NONE
    words = f"{number(100 * value, 2)} %" if relative else number(value)
    return words if value <= 0 else f"+{words}"
