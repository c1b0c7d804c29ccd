"""A plan as one self-contained HTML page: sliders for epsilon and the number of units, over rehearsals on a grid.

Every number is that of a rehearsal, written into a table; the script only points at its cells, and the page reads the
same without it. All text is treated as untrusted and escaped.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol

from dpcausal.errors import DpcausalError
from dpcausal.page.html_page import html_page, html_text
from dpcausal.page.numbers import number, short
from dpcausal.page.style import page_header, page_style
from dpcausal.planning.left_in import LeavingIn
from dpcausal.planning.precision import half_width, smallest_detectable
from dpcausal.price import Amount, Price
from dpcausal.rehearsal import Rehearsal
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.columns import Binary

_EPSILONS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_TIMES = (0.25, 0.5, 2.0, 4.0, 10.0)
"""The numbers of units beside the planned one, in times of it."""

_LARGEST = 100.0
"""Without privacy, an estimator asks what it asks at this epsilon, and gets answers without noise."""

_DIGITS = 3
_POINTS = " percentage points"
_FULL = 3
"""A full bar is so many times as wide as the plan."""

_STYLE = """
.sliders, dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(13rem, 100%), 1fr));
  gap: 0.6rem 2rem; }
label { display: block; font-weight: 600; }
input { width: 100%; height: 1.8rem; margin: 0 0 0.8rem; accent-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
dl { margin: 0.4rem 0 0; }
dt { color: var(--quiet); font-size: 0.92em; }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.bar { background: var(--card); margin: 0.3rem 0; height: 1rem; }
.bar div { border: 2px solid var(--accent); height: 100%; min-width: 4px; }
#with-bar { background: var(--accent); }
caption { text-align: left; font-weight: 600; padding: 1.4rem 0 0.3rem; }
th, td { text-align: right; padding: 0.3rem 0.5rem; border-bottom: 1px solid var(--rule); }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; }
th:first-child { text-align: left; }
tbody th { font-weight: 400; }
td.chosen { outline: 2px solid var(--accent); outline-offset: -2px; font-weight: 600; }
@media (max-width: 46rem) {
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody, caption, th, td { display: block; }
  tbody tr { display: grid; grid-template-columns: repeat(3, 1fr); border-bottom: 1px solid var(--rule);
    padding: 0.3rem 0; }
  tbody th { grid-column: 1 / -1; font-weight: 600; }
  th, td { border: 0; padding: 0.1rem 0.2rem; text-align: left; }
  td::before { content: attr(data-label); display: block; color: var(--quiet); font-size: 0.85em; font-weight: 400; }
}
@page { size: A4; margin: 14mm 15mm; }
@media print { .sliders { display: none; } }
"""

_SCRIPT = """
var epsilon = document.getElementById("epsilon"), units = document.getElementById("units");
var controls = document.getElementById("controls");
var tables = ["widths", "effects"].map(function (name) { return document.querySelectorAll("#" + name + " tbody tr"); });
function put(name, text) { if (document.getElementById(name)) document.getElementById(name).textContent = text; }
function show() {
  var at = +epsilon.value, column = +units.value + 1, line = tables[0][at], name = line.cells[0].textContent;
  var lines = [line, tables[0][tables[0].length - 1], tables[1][at]];
  var cells = lines.map(function (each) { return each.cells[column]; });
  document.querySelectorAll(".chosen").forEach(function (each) { each.classList.remove("chosen"); });
  ["with", "without", "detected"].forEach(function (name, place) {
    var words = cells[place].textContent;
    cells[place].classList.add("chosen");
    put(name, words === "no interval" ? words : (place < 2 ? "± " : "") + words + controls.dataset.unit);
  });
  epsilon.setAttribute("aria-valuetext", name);
  units.setAttribute("aria-valuetext", cells[0].dataset.label);
  put("setting", "With " + name + " and " + cells[0].dataset.label);
  put("price", line.dataset.price);
  put("left", line.dataset.left);
  document.getElementById("with-bar").style.width = cells[0].dataset.share + "%";
  document.getElementById("without-bar").style.width = cells[1].dataset.share + "%";
}
[epsilon, units].forEach(function (each) { each.addEventListener("input", show); });
controls.hidden = false;
show();
"""
"""Points at cells of the tables; the page reads the same without it."""

_DIGEST = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
# Defence in depth: even with an escape missing, nothing else could run and nothing could be fetched.
_ALLOWED = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_DIGEST}'"


class _Planned(Protocol):
    """What the page needs of a plan."""

    @property
    def estimator(self) -> Estimator: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def left_in(self) -> float: ...
    @property
    def rehearsal(self) -> Rehearsal: ...
    @property
    def half_width(self) -> float: ...
    @property
    def price(self) -> Price | None: ...
    @property
    def assumed(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class _Line:
    """The rehearsals at one epsilon, one for each number of units; None where the estimator cannot be asked."""

    label: str
    effects: tuple[Effect | None, ...]
    price: str = ""
    left: str = ""

    def numbers(self, of: Callable[[Effect], float]) -> tuple[float, ...]:
        return tuple(math.inf if each is None else of(each) for each in self.effects)


def plan_page(plan: _Planned, remaining: Amount | None) -> str:
    """Return a plan as one self-contained HTML page.

    Args:
        remaining: What a budget whose epsilons add up has left.
    """
    effect, n = plan.effect, plan.rehearsal.n
    counts = sorted({n, *(int(float(f"{times * n:.2g}")) for times in _TIMES)} - {0, 1})
    epsilons = sorted({*_EPSILONS, effect.guarantee.epsilon})
    lines = [_line(plan, epsilon, counts, remaining) for epsilon in epsilons]
    exact = (each and replace(each, noise=()) for each in _rehearse(plan, _LARGEST, counts))
    lines.append(_Line("without privacy", tuple(exact)))
    at, place = epsilons.index(effect.guarantee.epsilon), counts.index(n)
    widths = _table(plan, "widths", "Half width of the 95 % interval", lines, counts, half_width)
    detected = _table(plan, "effects", "Smallest effect detected with 80 % power", lines, counts, smallest_detectable)
    facts = [("Half width", "with"), ("Without privacy", "without"), ("Detects with 80 % power", "detected")]
    facts += [("Price", "price"), *([("Left of the budget", "left")] if remaining else [])]
    assumed = "".join(f"<li>{html_text(each)}</li>" for each in plan.assumed)
    title = f"Plan: {effect.arms[1]} against {effect.arms[0]}, {effect.outcome}"
    body = f"""{page_header(title, f"{effect.method}. No data was read, and nothing was spent.")}
<main>
<section id="controls" aria-label="Settings" data-unit="{html_text(_unit(plan))}" hidden>
<div class="sliders">{_slider("epsilon", "Epsilon", len(epsilons), at)}
{_slider("units", "Number of units", len(counts), place)}</div>
<div class="verdict" aria-live="polite"><strong id="setting"></strong>
<dl>{"".join(f'<div><dt>{words}</dt><dd id="{name}"></dd></div>' for words, name in facts)}</dl></div>
<p class="quiet">Half width with privacy (filled) and without (outlined). A full bar is {_FULL} times that of the
plan, or more.</p>
<div class="bar"><div id="with-bar"></div></div><div class="bar"><div id="without-bar"></div></div>
</section>
{widths}
{detected}
<h2>What this rests on</h2>
<ul>{assumed}</ul>
<p class="quiet">Each number comes from a rehearsal of this estimator on a synthetic population. Without privacy,
answers have no noise.</p>
</main>
<script>{_SCRIPT}</script>"""
    return html_page(title, body, style=page_style(_STYLE), allowed=_ALLOWED)


def _line(plan: _Planned, epsilon: float, counts: Sequence[int], remaining: Amount | None) -> _Line:
    """Return the rehearsals at one epsilon, with the price of the whole study."""
    parts = (plan.price or Price.of([plan.effect.guarantee])).parts
    price = Price(tuple(replace(each, epsilon=epsilon) if each.name in {"", "effect"} else each for each in parts))
    left = ""
    if remaining:
        fits = price.is_within(epsilon=remaining.epsilon, delta=remaining.delta)
        after = f"epsilon {short(round(remaining.epsilon - price.epsilon, 10))}"
        left = after if fits else f"too little: epsilon {short(remaining.epsilon)} is left now"
    return _Line(f"epsilon {short(epsilon)}", _rehearse(plan, epsilon, counts), str(price), left)


def _rehearse(plan: _Planned, epsilon: float, counts: Sequence[int]) -> tuple[Effect | None, ...]:
    """Return the expected effects with these numbers of units."""
    planned, delta = LeavingIn(plan.estimator, plan.left_in), plan.effect.guarantee.delta
    found: list[Effect | None] = []
    for n in counts:
        try:
            found.append(planned.estimate(replace(plan.rehearsal, n=n), epsilon=epsilon, delta=delta))
        except DpcausalError:  # so few units, or so small an epsilon, that it cannot be asked
            found.append(None)
    return tuple(found)


def _slider(name: str, label: str, count: int, value: int) -> str:
    """Return a slider over the lines or the columns of the tables."""
    box = f'<input id="{name}" type="range" min="0" max="{count - 1}" value="{value}">'
    return f'<div><label for="{name}">{label}</label>{box}</div>'


def _table(  # noqa: PLR0913, PLR0917
    plan: _Planned,
    name: str,
    caption: str,
    lines: Sequence[_Line],
    counts: Sequence[int],
    of: Callable[[Effect], float],
) -> str:
    """Return a table of one number for each epsilon and number of units."""
    times, unit = (100, f", in{_POINTS}") if _unit(plan) == _POINTS else (1, "")
    numbers = [[times * each for each in line.numbers(of)] for line in lines]
    full = _FULL * times * plan.half_width
    labels = [f"{n:,} units" for n in counts]
    head = "".join(f'<th scope="col">{label}</th>' for label in ("Setting", *labels))
    body = "".join(
        f'<tr data-price="{html_text(line.price)}" data-left="{html_text(line.left)}">'
        f"<th>{html_text(line.label)}</th>"
        + "".join(
            f'<td data-label="{label}" data-share="{_share(each, full)}">{_words(each)}</td>'
            for label, each in zip(labels, found, strict=True)
        )
        + "</tr>\n"
        for line, found in zip(lines, numbers, strict=True)
    )
    caption = f"<caption>{caption}: {html_text(plan.effect.quantity or plan.effect.outcome)}{unit}</caption>"
    return f'<table id="{name}">{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>'


def _share(width: float, full: float) -> str:
    """Return the length of a bar, in percent."""
    return f"{min(100 * width / full, 100.0):.1f}" if math.isfinite(width) else "0"


def _unit(plan: _Planned) -> str:
    """Return what follows a half width."""
    outcome = plan.rehearsal.schema.outcome
    if plan.effect.quantity:
        return ""
    return _POINTS if isinstance(outcome, Binary) else f" {outcome.unit}" if outcome.unit else ""


def _words(value: float) -> str:
    """Return a number with three digits."""
    if not math.isfinite(value):
        return "no interval"
    return number(value, max(_DIGITS - 1 - math.floor(math.log10(value)), 0) if value else 0)
