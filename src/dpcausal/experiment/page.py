"""The scorecard as one self-contained HTML page. All text is treated as untrusted and escaped."""

import math
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

from dpcausal.experiment.scorecard import NONE, Scorecard, ScorecardLine
from dpcausal.html_page import html_page, html_text
from dpcausal.page.language import Language, message
from dpcausal.page.style import page_header, page_style
from dpcausal.page.theme import Theme
from dpcausal.release import format_receipt

_STYLE = """
:root { --none: var(--quiet); }
body { max-width: 70rem; }
ul.counts { display: flex; flex-wrap: wrap; gap: 0.4rem 1.6rem; list-style: none; padding: 0; margin: 1rem 0; }
ul.counts b { font-size: 1.5rem; margin-right: 0.3rem; }
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
td svg { width: 9rem; height: 1.2rem; }
svg line { stroke: var(--none); stroke-width: 2; vector-effect: non-scaling-stroke; }
svg .zero { stroke: var(--rule); }
svg .better { stroke: var(--good); } svg .worse { stroke: var(--bad); }
.dot { fill: var(--none); } .dot.better { fill: var(--good); } .dot.worse { fill: var(--bad); }
@media (max-width: 46rem) {
  table, thead, tbody, th, td { display: block; }
  thead tr { display: flex; flex-wrap: wrap; gap: 0 1rem; border-bottom: 1px solid var(--ink); }
  thead tr::before { content: attr(data-label); color: var(--quiet); padding: 0.5rem 0; }
  thead th { border: 0; padding: 0; }
  thead button { padding: 0.5rem 0; }
  tbody tr { display: grid; grid-template-columns: 1fr 1fr; border-bottom: 1px solid var(--rule); padding: 0.5rem 0; }
  td:first-child, td.bar { grid-column: 1 / 3; }
  td, td:first-child { border: 0; padding: 0.1rem 0; text-align: left; }
  td:first-child { font-weight: 600; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--quiet); }
  td svg { width: 100%; }
}
@page { size: A4 landscape; margin: 14mm; }
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
_ALLOWED = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{_DIGEST}'"

_MARKS = {
    "better": message("✓ better"),
    "worse": message("✕ worse"),
    "not shown": message("not shown"),
    "no interval": message("no interval"),
}
"""Colours have words and signs beside them."""

_SMALLEST_P = 0.001
"""Smaller p-values are not written out."""

_ORDER = {"worse": 0, "better": 1, "not shown": 2, "no interval": 3}


def scorecard_page(scorecard: Scorecard, theme: Theme, say: Language) -> str:
    """Return a scorecard as an HTML page, in the design of the reports."""
    first, ratio = scorecard.effects[0], scorecard.sample_ratio
    counts = {each: sum(line.verdict == each for line in scorecard.lines) for each in ("better", "worse", "not shown")}
    counted = "".join(
        f'<li class="{verdict.replace(" ", "-")}"><b>{count}</b>{html_text(say(_MARKS[verdict]))}</li>'
        for verdict, count in counts.items()
    )
    alarm = f'<p class="alarm">{html_text(say("Sample ratio {words}.", words=ratio))}</p>' if ratio.mismatch else ""
    checks = [
        say("Sample ratio: {words}.", words=ratio),
        _interval_words(scorecard, say),
        say("Privacy: {guarantee}.", guarantee=first.guarantee),
        *first.guarantee.warnings,
        say("Paid: {receipt}.", receipt=format_receipt(first.receipts[0])),
    ]
    status = say("Rehearsal: no data was read. Only the errors and what can be detected mean anything.")
    status = f'<p class="alarm">{html_text(status)}</p>' if scorecard.rehearsed else ""
    size = say(
        "{n} units, {count} comparisons with {control}.",
        n=say.number(first.n, 0),
        count=len(scorecard.lines),
        control=first.arms[0],
    )
    size += " " + say("Data as of {date}.", date=first.as_of) if first.as_of else ""
    note = say(
        "Detectable: the smallest true difference that is found with 80 % power. Every number holds privacy noise, "
        "which the intervals count."
    )
    question = f"<p>{html_text(scorecard.question)}</p>" if scorecard.question else ""
    body = f"""{page_header(scorecard.name, size, theme)}
<main>
{status}{alarm}
<div class="verdict"><strong>{html_text(say("Verdicts"))}</strong>{question}<ul class="counts">{counted}</ul></div>
{_table(scorecard.lines, say)}
<p class="quiet">{html_text(note)}</p>
<h2>{html_text(say("Checks"))}</h2>
{"".join(f'<p class="quiet">{html_text(each)}</p>' for each in checks)}
</main>
<script>{_SCRIPT}</script>"""
    style = page_style(theme, _STYLE)
    return html_page(scorecard.name, body, style=style, allowed=_ALLOWED, language=say.code)


def _interval_words(scorecard: Scorecard, say: Language) -> str:
    words = {"level": say.percent(scorecard.level), "method": scorecard.method.replace("_", "-")}
    if scorecard.simultaneous:
        return say("{level} intervals hold for all comparisons together; p-values adjusted by {method}.", **words)
    return say("{level} intervals hold for each comparison by itself; p-values adjusted by {method}.", **words)


def _table(lines: Sequence[ScorecardLine], say: Language) -> str:
    several = len({line.treated for line in lines}) > 1
    heads = (
        *(say("Metric"), say("Control"), say("Treated"), say("Difference"), say("Lift"), say("Interval of the lift")),
        *("p", say("Detectable")),
    )
    head = "".join(f'<th scope="col"><button type="button">{html_text(each)}</button></th>' for each in heads)
    head += f'<th scope="col" class="verdict"><button type="button">{html_text(say("Verdict"))}</button></th>'
    widest = max((abs(_or_zero(end)) for line in lines for end in (line.lift_low, line.lift_high)), default=0.0)
    body = "\n".join(_line(line, widest or 1.0, say, several=several) for line in lines)
    sort = html_text(say("Sort by"))
    return (
        f'<div class="wide"><table>\n<thead><tr data-label="{sort}">{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _known(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def _line(line: ScorecardLine, widest: float, say: Language, *, several: bool) -> str:
    arm = f'<span class="arm">{html_text(line.treated)}</span>' if several else ""
    shown = line.verdict if line.verdict in ("better", "worse") else "none"
    p_value = line.adjusted_p_value
    least = f"< {say.number(_SMALLEST_P, 3)}"
    words = say(NONE) if p_value is None else least if p_value < _SMALLEST_P else say.number(p_value, 3)
    difference = _with_limits(say.number(line.difference), _limits(line, say))
    cells: list[tuple[str, str | float, str, str]] = [
        ("", f"{line.metric} {line.treated}", f"{html_text(line.metric)}{arm}", ""),
        (say("Control"), line.control_mean, say.number(line.control_mean), ""),
        (say("Treated"), line.treated_mean, say.number(line.treated_mean), ""),
        (say("Difference"), line.difference, difference, ""),
        (say("Lift"), _or_zero(line.lift), _lift(line, say), ""),
        ("", _or_zero(line.lift), _bar(line, widest, shown, say), ' class="bar"'),
        ("p", 2.0 if p_value is None else p_value, html_text(words), ""),
        (say("Detectable"), line.detectable, say.number(line.detectable), ""),
        (
            *("", _ORDER[line.verdict]),
            *(f'<span class="{shown}">{html_text(say(_MARKS[line.verdict]))}</span>', ' class="verdict"'),
        ),
    ]
    return "<tr>" + "".join(_cell(*each) for each in cells) + "</tr>"


def _cell(label: str, order: str | float, words: str, kind: str) -> str:
    named = f' data-label="{html_text(label)}"' if label else ""
    return f'<td{named} data-sort="{html_text(str(order))}"{kind}>{words}</td>'


def _or_zero(number: float | None) -> float:
    return number if number is not None and math.isfinite(number) else 0.0


def _with_limits(number: str, words: str) -> str:
    return f'{html_text(number)}<span class="arm">{html_text(words)}</span>'


def _limits(line: ScorecardLine, say: Language) -> str:
    if line.low is None or line.high is None:
        return say(NONE)
    return say("{low} to {high}", low=say.number(line.low), high=say.number(line.high))


def _percent(share: float | None, say: Language) -> str:
    """Return a lift with its sign."""
    if share is None or not math.isfinite(share):
        return say(NONE)
    return f"{'+' if share > 0 else ''}{say.percent(share, 2)}"


def _lift(line: ScorecardLine, say: Language) -> str:
    if not _known(line.lift):
        return html_text(say(NONE))
    low, high = _percent(line.lift_low, say).removesuffix(" %"), _percent(line.lift_high, say)
    return _with_limits(_percent(line.lift, say), say("{low} to {high}", low=low, high=high))


def _bar(line: ScorecardLine, widest: float, shown: str, say: Language) -> str:
    """Return the interval of a lift as a line beside 0, on a scale that all lines share."""
    if not (_known(line.lift) and _known(line.lift_low) and _known(line.lift_high)):
        return ""
    low, middle, high = (50 + 48 * _or_zero(each) / widest for each in (line.lift_low, line.lift, line.lift_high))
    ends = say("{low} to {high}", low=_percent(line.lift_low, say), high=_percent(line.lift_high, say))
    label = f"{say('Lift')} {_percent(line.lift, say)}, {ends}"
    return (
        f'<svg viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label="{html_text(label)}">'
        f'<line class="zero" x1="50" x2="50" y1="0" y2="12"/>'
        f'<line class="{shown}" x1="{low:.2f}" x2="{high:.2f}" y1="6" y2="6"/>'
        f'<ellipse class="dot {shown}" cx="{middle:.2f}" cy="6" rx="1.2" ry="3"/></svg>'
    )
