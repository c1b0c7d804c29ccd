"""The scorecard as one self-contained HTML page. All text is treated as untrusted and escaped."""

import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import median
from typing import Protocol, Self

from dpcausal.experiment.decision import ArmDecision
from dpcausal.experiment.decision_page import STYLE, decision_box, decision_table
from dpcausal.experiment.line import NONE, SEGMENTS_NOTE, ScorecardLine, Verdict
from dpcausal.experiment.sample_ratio import SampleRatio
from dpcausal.guarantee import Guarantee
from dpcausal.page.html_page import html_page, html_text
from dpcausal.page.numbers import number, percent, short
from dpcausal.page.style import page_header, page_style
from dpcausal.release import Receipt
from dpcausal.results.effect import Effect
from dpcausal.uncertainty.anytime import LooksSoFar

_STYLE = """
:root { --none: var(--quiet); }
body { max-width: 70rem; }
ul.counts { display: flex; flex-wrap: wrap; gap: 0.4rem 1.6rem; list-style: none; padding: 0; margin: 0.4rem 0 0; }
ul.counts b { font-size: 1.5rem; margin-right: 0.3rem; }
th, td { text-align: right; padding: 0.35rem 0.4rem; border-bottom: 1px solid var(--rule); vertical-align: middle;
  white-space: nowrap; }
th, td:first-child { white-space: normal; }
td:first-child { min-width: 7rem; }
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
td svg { width: 8rem; height: 1.2rem; }
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
  tbody tr { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 0.8rem;
    border-bottom: 1px solid var(--rule); padding: 0.5rem 0; }
  td.bar { grid-column: 1 / 3; }
  td, td:first-child { border: 0; padding: 0.1rem 0; text-align: left; white-space: normal; min-width: 0; }
  td:first-child { font-weight: 600; }
  td:first-child .arm { font-weight: 400; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--quiet); }
  td svg { width: 100%; }
}
@page { size: A4 landscape; margin: 12mm 14mm; }
@media print {
  header { padding-bottom: 0.3rem; margin-bottom: 0.6rem; }
  div.verdict { padding: 0.4rem 0.9rem; margin-bottom: 0.6rem; }
  ul.counts { margin: 0.3rem 0; }
  th, td { padding: 0.15rem 0.5rem; line-height: 1.3; }
  tr { break-inside: avoid; }
  h2 { margin: 0.7rem 0 0.2rem; }
  p.quiet { margin: 0.15rem 0; }
}
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
    "better": "✓ better",
    "worse": "✕ worse",
    "no clear difference": "no clear difference",
    "no interval": "no interval",
    "not judged": "not judged",
}
"""Colours have words and signs beside them."""

_METHODS = {"holm": "Holm", "bonferroni": "Bonferroni", "benjamini_hochberg": "Benjamini-Hochberg"}
_FARTHEST = 4.0
"""The scale of lifts ends at so many times their median end: one that is hardly known would flatten all others."""

_SMALLEST_P = 0.001
"""Smaller p-values are not written out."""

_LEFT = ' class="verdict"'
_ORDER = {"worse": 0, "better": 1, "no clear difference": 2, "no interval": 3, "not judged": 4}


class _Shown(Protocol):
    """What a page shows of a scorecard: `Scorecard` says what each is."""

    @property
    def name(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def effects(self) -> tuple[Effect, ...]: ...
    @property
    def lines(self) -> tuple[ScorecardLine, ...]: ...
    @property
    def segment_lines(self) -> tuple[ScorecardLine, ...]: ...
    @property
    def sample_ratio(self) -> SampleRatio: ...
    @property
    def method(self) -> str: ...
    @property
    def level(self) -> float: ...
    @property
    def simultaneous(self) -> bool: ...
    @property
    def rehearsed(self) -> bool: ...
    @property
    def looks(self) -> LooksSoFar | None: ...
    @property
    def decisions(self) -> tuple[ArmDecision, ...]: ...
    @property
    def error_rates(self) -> str: ...
    @property
    def catalogue(self) -> str: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


def scorecard_page(scorecard: _Shown) -> str:
    """Return a scorecard as an HTML page, in the design of the reports."""
    first, ratio = scorecard.effects[0], scorecard.sample_ratio
    outside = ratio.outside_words[:1].upper() + ratio.outside_words[1:]
    shown: tuple[Verdict, ...] = ("not judged",) if ratio.mismatch else ("better", "worse", "no clear difference")
    counts = {each: sum(line.verdict == each for line in scorecard.lines) for each in shown}
    counted = "".join(
        f'<li class="{verdict.replace(" ", "-")}"><b>{count}</b>{html_text(_MARKS[verdict])}</li>'
        for verdict, count in counts.items()
    )
    ratio_words = _ratio_words(ratio)
    alarms = [ratio_words] if ratio.mismatch else []
    alarms += [f"{outside}."] if ratio.many_outside else []
    alarm = "".join(f'<p class="alarm">{html_text(each)}</p>' for each in alarms)
    checks = [
        ratio_words,
        *([f"{outside}."] if outside else []),
        _interval_words(scorecard),
        _guarantee_words(first.guarantee),
        *scorecard.warnings,
        _receipt_words(first.receipts[0]),
        *([f"Metrics: version {scorecard.catalogue[:12]} of their catalogue."] if scorecard.catalogue else []),
    ]
    status = "Rehearsal: no data was read. Only the errors and what can be detected mean anything."
    status = f'<p class="alarm">{html_text(status)}</p>' if scorecard.rehearsed else ""
    size = f"{number(first.n, 0)} units, {len(scorecard.lines)} comparisons with {first.arms[0]}."
    size += f" Look {scorecard.looks.look} of {scorecard.looks.all}." if scorecard.looks else ""
    size += " " + f"Data as of {first.as_of}." if first.as_of else ""
    note = (
        "Detectable: the smallest true difference that is found with 80 % power. pp: percentage points. Every number "
        "contains privacy noise, and the intervals account for it."
    )
    decided = "" if scorecard.rehearsed else decision_box(scorecard.decisions)
    question = f"<p>{html_text(scorecard.question)}</p>" if scorecard.question else ""
    # The question stands above the first answer.
    above, beside = (question, "") if decided else ("", question)
    body = f"""{page_header(scorecard.name, size)}
<main>
{above}{status}{alarm}
{decided}
<div class="verdict"><strong>Verdicts</strong>{beside}<ul class="counts">{counted}</ul></div>
{_table(scorecard.lines)}
<p class="quiet">{html_text(note)}</p>
{_segment_table(scorecard.segment_lines)}
{decision_table(scorecard.decisions, scorecard.lines, scorecard.error_rates, rehearsed=scorecard.rehearsed)}
<h2>Checks</h2>
{"".join(f'<p class="quiet">{html_text(each)}</p>' for each in checks)}
</main>
<script>{_SCRIPT}</script>"""
    style = page_style(_STYLE + STYLE)
    return html_page(scorecard.name, body, style=style, allowed=_ALLOWED)


def _ratio_words(ratio: SampleRatio) -> str:
    sizes = ", ".join(f"{arm} {number(size, 0)}" for arm, size in zip(ratio.arms, ratio.sizes, strict=True))
    words = {"p": _p_words(ratio.p_value), "sizes": sizes}
    if ratio.mismatch:
        return (
            "Sample ratio MISMATCH (p {p}; {sizes}): find the cause before you read any metric, because the arms may "
            "not be comparable."
        ).format(**words)
    return "Sample ratio as declared (p {p}; noisy sizes: {sizes}).".format(**words)


def _guarantee_words(guarantee: Guarantee) -> str:
    return (
        f"Privacy: epsilon {short(guarantee.epsilon)}, delta {short(guarantee.delta)} for all comparisons "
        f"together; neighbouring tables: {guarantee.neighbours}."
    )


def _receipt_words(receipt: Receipt) -> str:
    if receipt.digest is None:
        return "Paid: nothing, this is a rehearsal."
    on = f" of {receipt.on}" if receipt.on else ""
    return f"Paid: ledger entry {receipt.entry}{on}, digest {receipt.digest[:12]}."


def _p_words(p_value: float) -> str:
    """Return a p-value with its relation sign."""
    return f"< {number(_SMALLEST_P, 3)}" if p_value < _SMALLEST_P else f"= {number(p_value, 3)}"


def _interval_words(scorecard: _Shown) -> str:
    together = "for all comparisons together" if scorecard.simultaneous else "for each comparison by itself"
    looks = f", at all {scorecard.looks.all} looks" if scorecard.looks else ""
    method = _METHODS[scorecard.method]
    return f"{percent(scorecard.level)} intervals hold {together}{looks}; p-values adjusted by {method}."


def _table(lines: Sequence[ScorecardLine]) -> str:
    several = len({line.treated for line in lines}) > 1
    heads = (
        *("Metric", "Verdict", "Control", "Treated", "Difference", "Lift"),
        *("Interval of the lift", "p", "Detectable"),
    )
    head = "".join(
        f'<th scope="col"{_LEFT if place == 1 else ""}><button type="button">{html_text(each)}</button></th>'
        for place, each in enumerate(heads)
    )
    body = "\n".join(_line(line, _widest(lines), several=several) for line in lines)
    return (
        f'<div class="wide"><table>\n<thead><tr data-label="Sort by">{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _segment_table(lines: Sequence[ScorecardLine]) -> str:
    """Return the table of segments under its heading; empty where there are none."""
    if not lines:
        return ""
    return f'<h2>Segments</h2>\n{_table(lines)}\n<p class="quiet">{html_text(SEGMENTS_NOTE)}</p>'


@dataclass(frozen=True)
class _Scale:
    """How the numbers of a line are written: the half-width with two digits, and all others with as many decimals.

    Proportions are percentages, and their differences are in percentage points.
    """

    proportion: bool
    decimals: int
    unit: str

    @classmethod
    def of(cls, line: ScorecardLine) -> Self:
        proportion = line.kind == "proportion"
        half = line.detectable / 2 if line.low is None or line.high is None else (line.high - line.low) / 2
        half *= 100 if proportion else 1
        places = 1 - math.floor(math.log10(half)) if 0 < half < math.inf else 2
        return cls(proportion, max(places, 0), line.unit)

    def number(self, value: float) -> str:
        return number(100 * value if self.proportion else value, self.decimals)

    def level(self, value: float) -> str:
        return percent(value, self.decimals) if self.proportion else self.number(value)

    def size(self, value: float) -> str:
        unit = "pp" if self.proportion else self.unit
        return f"{self.number(value)}\N{NO-BREAK SPACE}{unit}" if unit else self.number(value)


def _known(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def _line(line: ScorecardLine, widest: float, *, several: bool) -> str:
    under = ", ".join(each for each in (line.segment, line.treated if several else "", line.description) if each)
    arm = f'<span class="arm">{html_text(under)}</span>' if under else ""
    shown = line.verdict if line.verdict in ("better", "worse") else "none"
    p_value = line.adjusted_p_value
    least = f"< {number(_SMALLEST_P, 3)}"
    words = NONE if p_value is None else least if p_value < _SMALLEST_P else number(p_value, 3)
    scale = _Scale.of(line)
    limits = NONE
    if line.low is not None and line.high is not None:
        limits = f"{scale.number(line.low)} to {scale.number(line.high)}"
    cells: list[tuple[str, str | float, str, str]] = [
        ("", f"{line.metric} {line.segment} {line.treated}", f"{html_text(line.metric)}{arm}", ""),
        (
            *("", _ORDER[line.verdict]),
            *(f'<span class="{shown}">{html_text(_MARKS[line.verdict])}</span>', _LEFT),
        ),
        ("Control", line.control_mean, html_text(scale.level(line.control_mean)), ""),
        ("Treated", line.treated_mean, html_text(scale.level(line.treated_mean)), ""),
        ("Difference", line.difference, _with_limits(scale.size(line.difference), limits), ""),
        ("Lift", _or_zero(line.lift), _lift(line), ""),
        ("", _or_zero(line.lift), _bar(line, widest, shown), ' class="bar"'),
        ("p", 2.0 if p_value is None else p_value, html_text(words), ""),
        ("Detectable", line.detectable, html_text(scale.size(line.detectable)), ""),
    ]
    return "<tr>" + "".join(_cell(*each) for each in cells) + "</tr>"


def _cell(label: str, order: str | float, words: str, kind: str) -> str:
    named = f' data-label="{html_text(label)}"' if label else ""
    return f'<td{named} data-sort="{html_text(str(order))}"{kind}>{words}</td>'


def _or_zero(number: float | None) -> float:
    return number if number is not None and math.isfinite(number) else 0.0


def _with_limits(number: str, words: str) -> str:
    return f'{html_text(number)}<span class="arm">{html_text(words)}</span>'


def _percent(share: float | None) -> str:
    """Return a lift with its sign."""
    if share is None or not math.isfinite(share):
        return NONE
    return f"{'+' if share > 0 else ''}{percent(share, 1)}"


def _lift(line: ScorecardLine) -> str:
    if not _known(line.lift):
        return html_text(NONE)
    low, high = _percent(line.lift_low).removesuffix(" %"), _percent(line.lift_high)
    return _with_limits(_percent(line.lift), f"{low} to {high}")


def _widest(lines: Sequence[ScorecardLine]) -> float:
    """Return the lift at the end of the scale: the largest, unless a few are far beyond the others, which are cut."""
    ends = [max(abs(_or_zero(line.lift_low)), abs(_or_zero(line.lift_high))) for line in lines if _known(line.lift)]
    return min(max(ends), _FARTHEST * median(ends)) or 1.0 if ends else 1.0


def _bar(line: ScorecardLine, widest: float, shown: str) -> str:
    """Return the interval of a lift as a line beside 0, on a scale that all lines share."""
    if not (_known(line.lift) and _known(line.lift_low) and _known(line.lift_high)):
        return ""
    low, middle, high = (
        50 + max(-50.0, min(48 * _or_zero(each) / widest, 50.0)) for each in (line.lift_low, line.lift, line.lift_high)
    )
    ends = f"{_percent(line.lift_low)} to {_percent(line.lift_high)}"
    label = f"Lift {_percent(line.lift)}, {ends}"
    return (
        f'<svg viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label="{html_text(label)}">'
        f'<line class="zero" x1="50" x2="50" y1="0" y2="12"/>'
        f'<line class="{shown}" x1="{low:.2f}" x2="{high:.2f}" y1="6" y2="6"/>'
        f'<ellipse class="dot {shown}" cx="{middle:.2f}" cy="6" rx="1.2" ry="3"/></svg>'
    )
