"""The scorecard as one self-contained HTML page. All text is treated as untrusted and escaped."""

import math
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

from dpcausal.experiment.scorecard import NONE, Scorecard, ScorecardLine, limits, percent
from dpcausal.html_page import html_page, html_text
from dpcausal.release import format_receipt
from dpcausal.text import format_number

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --quiet: #555; --rule: #ccc; --good: #0b5cad;
  --bad: #a63c06; --none: #767676; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --paper: #16181b; --quiet: #b0b0b0; --rule: #444; --good: #7fbaf5; --bad: #f2a06b;
    --none: #9a9a9a; }
}
body { font: 1rem/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 66rem;
  margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0.5rem 0 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.4rem; }
p { margin: 0.4rem 0; }
.quiet { color: var(--quiet); font-size: 0.9rem; }
.alarm { border: 2px solid var(--bad); padding: 0.6rem 0.8rem; font-weight: 600; }
ul.counts { display: flex; flex-wrap: wrap; gap: 0.4rem 1.6rem; list-style: none; padding: 0; margin: 1rem 0; }
ul.counts b { font-size: 1.5rem; margin-right: 0.3rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 0.35rem 0.5rem; border-bottom: 1px solid var(--rule); vertical-align: middle;
  white-space: nowrap; }
td:first-child { white-space: normal; min-width: 8rem; }
.wide { overflow-x: auto; }
th:first-child, td:first-child, td.verdict, th.verdict { text-align: left; }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; }
button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-align: inherit; }
button:focus-visible { outline: 2px solid var(--good); outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: " \\25B2"; }
th[aria-sort=descending] button::after { content: " \\25BC"; }
.better { color: var(--good); font-weight: 600; }
.worse { color: var(--bad); font-weight: 600; }
td .arm { display: block; color: var(--quiet); font-size: 0.85rem; }
svg { display: block; width: 9rem; height: 1.2rem; }
svg line { stroke: var(--none); stroke-width: 2; vector-effect: non-scaling-stroke; }
svg .zero { stroke: var(--rule); }
svg .better { stroke: var(--good); } svg .worse { stroke: var(--bad); }
.dot { fill: var(--none); } .dot.better { fill: var(--good); } .dot.worse { fill: var(--bad); }
@media (max-width: 46rem) {
  table, thead, tbody, th, td { display: block; }
  thead tr { display: flex; flex-wrap: wrap; gap: 0 1rem; border-bottom: 1px solid var(--ink); }
  thead tr::before { content: "Sort by"; color: var(--quiet); padding: 0.5rem 0; }
  thead th { border: 0; padding: 0; }
  thead button { padding: 0.5rem 0; }
  tbody tr { display: grid; grid-template-columns: 1fr 1fr; border-bottom: 1px solid var(--rule); padding: 0.5rem 0; }
  td:first-child, td.bar { grid-column: 1 / 3; }
  td, td:first-child { border: 0; padding: 0.1rem 0; text-align: left; }
  td:first-child { font-weight: 600; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--quiet); }
  svg { width: 100%; }
}
@media print { body { max-width: none; font-size: 10pt; } }
"""

_SCRIPT = """
document.querySelectorAll("th button").forEach(function (button) {
  button.addEventListener("click", function () {
    var head = button.closest("th"), place = head.cellIndex, body = head.closest("table").tBodies[0];
    var down = head.getAttribute("aria-sort") === "ascending";
    head.parentNode.querySelectorAll("th").forEach(function (each) { each.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    Array.from(body.children).sort(function (one, other) {
      var a = one.children[place].dataset.sort, b = other.children[place].dataset.sort;
      var order = isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
      return down ? -order : order;
    }).forEach(function (line) { body.appendChild(line); });
  });
});
"""
"""Sorts the table; the page reads the same without it."""

_DIGEST = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
# Defence in depth: even with an escape missing, nothing else could run and nothing could be fetched.
_ALLOWED = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_DIGEST}'"

_MARKS = {"better": "✓ better", "worse": "✕ worse", "not shown": "not shown", "no interval": "no interval"}
"""Colours have words and signs beside them."""

_SMALLEST_P = 0.001
"""Smaller p-values are not written out."""

_ORDER = {"worse": 0, "better": 1, "not shown": 2, "no interval": 3}


def scorecard_page(scorecard: Scorecard) -> str:
    """Return a scorecard as an HTML page."""
    first, ratio = scorecard.effects[0], scorecard.sample_ratio
    version = f" Data as of {first.as_of}." if first.as_of else ""
    counts = {each: sum(line.verdict == each for line in scorecard.lines) for each in ("better", "worse", "not shown")}
    counted = "".join(
        f'<li class="{verdict.replace(" ", "-")}"><b>{count}</b>{_MARKS[verdict]}</li>'
        for verdict, count in counts.items()
    )
    alarm = f'<p class="alarm">{html_text(f"Sample ratio {ratio}.")}</p>' if ratio.mismatch else ""
    checks = [f"Sample ratio: {ratio}.", f"{scorecard.interval_words}.", f"Privacy: {first.guarantee}."]
    checks += [*first.guarantee.warnings, f"Paid: {format_receipt(first.receipts[0])}."]
    question = f"<p>{html_text(scorecard.question)}</p>" if scorecard.question else ""
    status = '<p class="alarm">Rehearsal: no data was read. Only the errors and what can be detected mean anything.</p>'
    size = f"{first.n:,} units, {len(scorecard.lines)} comparisons with {first.arms[0]}.{version}"
    body = f"""<main>
<h1>{html_text(scorecard.name)}</h1>
{question}{status if scorecard.rehearsed else ""}{alarm}
<p class="quiet">{html_text(size)}</p>
<ul class="counts">{counted}</ul>
{_table(scorecard.lines)}
<p class="quiet">Detectable: the smallest true difference that is found with 80 % power. Every number holds privacy
noise, which the intervals count.</p>
<h2>Checks</h2>
{"".join(f'<p class="quiet">{html_text(each)}</p>' for each in checks)}
</main>
<script>{_SCRIPT}</script>"""
    return html_page(scorecard.name, body, style=_STYLE, allowed=_ALLOWED)


def _table(lines: Sequence[ScorecardLine]) -> str:
    several = len({line.treated for line in lines}) > 1
    heads = ("Metric", "Control", "Treated", "Difference", "Lift", "Interval of the lift", "p", "Detectable", "Verdict")
    head = "".join(
        f'<th scope="col"{" class=verdict" if each == "Verdict" else ""}><button type="button">{each}</button></th>'
        for each in heads
    )
    widest = max((abs(_or_zero(end)) for line in lines for end in (line.lift_low, line.lift_high)), default=0.0)
    body = "\n".join(_line(line, widest or 1.0, several=several) for line in lines)
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _known(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def _line(line: ScorecardLine, widest: float, *, several: bool) -> str:
    arm = f'<span class="arm">{html_text(line.treated)}</span>' if several else ""
    shown = line.verdict if line.verdict in ("better", "worse") else "none"
    p_value = line.adjusted_p_value
    words = NONE if p_value is None else f"{p_value:.3f}" if p_value >= _SMALLEST_P else "&lt; 0.001"
    cells: list[tuple[str, str | float, str, str]] = [
        ("", f"{line.metric} {line.treated}", f"{html_text(line.metric)}{arm}", ""),
        ("control", line.control_mean, format_number(line.control_mean), ""),
        ("treated", line.treated_mean, format_number(line.treated_mean), ""),
        ("difference", line.difference, _with_limits(format_number(line.difference), limits(line.low, line.high)), ""),
        ("lift", _or_zero(line.lift), _lift(line), ""),
        ("", _or_zero(line.lift), _bar(line, widest, shown), ' class="bar"'),
        ("p", 2.0 if p_value is None else p_value, words, ""),
        ("detectable", line.detectable, format_number(line.detectable), ""),
        ("", _ORDER[line.verdict], f'<span class="{shown}">{_MARKS[line.verdict]}</span>', ' class="verdict"'),
    ]
    return "<tr>" + "".join(_cell(*each) for each in cells) + "</tr>"


def _cell(label: str, order: str | float, words: str, kind: str) -> str:
    named = f' data-label="{label}"' if label else ""
    return f'<td{named} data-sort="{html_text(str(order))}"{kind}>{words}</td>'


def _or_zero(number: float | None) -> float:
    return number if number is not None and math.isfinite(number) else 0.0


def _with_limits(number: str, words: str) -> str:
    return f'{html_text(number)}<span class="arm">{html_text(words)}</span>'


def _lift(line: ScorecardLine) -> str:
    if not _known(line.lift):
        return NONE
    return _with_limits(percent(line.lift), f"{percent(line.lift_low).removesuffix(' %')} to {percent(line.lift_high)}")


def _bar(line: ScorecardLine, widest: float, shown: str) -> str:
    """Return the interval of a lift as a line beside 0, on a scale that all lines share."""
    if not (_known(line.lift) and _known(line.lift_low) and _known(line.lift_high)):
        return ""
    low, middle, high = (50 + 48 * _or_zero(each) / widest for each in (line.lift_low, line.lift, line.lift_high))
    label = f"lift {percent(line.lift)}, {percent(line.lift_low)} to {percent(line.lift_high)}"
    return (
        f'<svg viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label="{html_text(label)}">'
        f'<line class="zero" x1="50" x2="50" y1="0" y2="12"/>'
        f'<line class="{shown}" x1="{low:.2f}" x2="{high:.2f}" y1="6" y2="6"/>'
        f'<ellipse class="dot {shown}" cx="{middle:.2f}" cy="6" rx="1.2" ry="3"/></svg>'
    )
