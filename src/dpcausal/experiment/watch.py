"""All experiments of a folder side by side: what each decides, and what is left of its budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from dpcausal.experiment.line import NONE, Verdict
from dpcausal.page.html_page import html_page, html_text
from dpcausal.page.numbers import percent, short
from dpcausal.page.style import page_header, page_style

FORMAT = 1
"""The version of the JSON format."""

_STYLE = """
body { max-width: 70rem; }
th, td { text-align: left; padding: 0.5rem 0.8rem 0.5rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
thead th { border-bottom: 1px solid var(--ink); }
td b { display: block; }
td .small { display: block; color: var(--quiet); font-size: 0.88rem; }
.bad { overflow-wrap: anywhere; }
.ship { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.gauge { display: block; width: 7rem; height: 0.5rem; background: var(--rule); margin-top: 0.35rem; }
.gauge i { display: block; height: 100%; background: var(--accent); print-color-adjust: exact; }
@media (max-width: 46rem) {
  table, tbody, td { display: block; }
  thead { display: none; }
  tbody tr { display: block; border-bottom: 1px solid var(--rule); padding: 0.7rem 0; }
  td { border: 0; padding: 0.12rem 0; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--quiet); }
  .gauge { width: 100%; }
}
"""

_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'"
_SIGNS = {"ship": "✓ ship", "stop": "✕ stop", "wait": "… wait"}


@dataclass(frozen=True, kw_only=True)
class Watched:
    """One experiment of a folder.

    Attributes:
        looks: How many looks it has; None for one.
        scorecard: Its last scorecard, as JSON has it; None where it has not run.
        page: The file of the page of that scorecard; empty where there is none.
        problem: Why it cannot be shown; empty where it can.
    """

    file: str
    name: str
    question: str = ""
    looks: int | None = None
    metrics: int = 0
    spent: float = 0.0
    budget: float = 0.0
    delta: float = 0.0
    scorecard: dict[str, Any] | None = None
    page: str = ""
    problem: str = ""

    @property
    def look(self) -> int:
        """How many looks were read."""
        if self.scorecard is None:
            return 0
        return int((self.scorecard["looks"] or {"look": 1})["look"])

    @property
    def status(self) -> str:
        """How far it is, in words."""
        if self.problem:
            return "not shown"
        if self.scorecard is None:
            return "not started"
        return "done" if self.look == (self.looks or 1) else f"look {self.look} of {self.looks}"

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The decision for each arm: what to do, whether harm was shown, and the reasons."""
        decided = (self.scorecard or {}).get("decisions", ())
        return [{key: each[key] for key in ("arm", "action", "harm", "reasons")} for each in decided]

    @property
    def counts(self) -> dict[str, int]:
        """How many comparisons have each verdict."""
        verdicts = [each["verdict"] for each in (self.scorecard or {}).get("comparisons", ())]
        order = dict.fromkeys((*get_args(Verdict), *verdicts))
        return {verdict: verdicts.count(verdict) for verdict in order if verdict in verdicts}

    @property
    def mismatch(self) -> bool:
        """Whether the arms' sizes do not fit the allocation."""
        return bool(self.scorecard and self.scorecard["sample_ratio"]["mismatch"])

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        card = self.scorecard or {}
        return {
            "file": self.file,
            "name": self.name,
            "status": self.status,
            "look": self.look,
            "looks": self.looks or 1,
            "as_of": card.get("as_of"),
            "n": card.get("n"),
            "decisions": self.decisions,
            "verdicts": self.counts,
            "sample_ratio_mismatch": self.mismatch if self.scorecard else None,
            "spent_epsilon": None if self.problem else self.spent,
            "budget_epsilon": None if self.problem else self.budget,
            "budget_delta": None if self.problem else self.delta,
            "catalogue": card.get("catalogue"),
            "page": self.page or None,
            "problem": self.problem or None,
        }


def watch_document(experiments: Sequence[Watched]) -> dict[str, Any]:
    """Return all experiments as plain values."""
    return {"format": FORMAT, "experiments": [each.to_dict() for each in experiments]}


def shown_name(one: Watched, experiments: Sequence[Watched]) -> str:
    """Return an experiment's name, with its file where another has the same name."""
    return one.name if sum(each.name == one.name for each in experiments) == 1 else f"{one.name} ({one.file})"


def watch_text(experiments: Sequence[Watched]) -> str:
    """Return all experiments as a table of text."""
    cells = [["experiment", "status", "units", "decision", "better", "worse", "spent", "budget"]]
    notes = []
    for each in experiments:
        several = len(each.decisions) > 1
        decided = ", ".join(f"{one['arm']}: {one['action']}" if several else one["action"] for one in each.decisions)
        decided = "sample ratio mismatch" if each.mismatch and not decided else decided
        n = each.scorecard["n"] if each.scorecard else None
        counts = [str(each.counts.get(verdict, 0)) if each.scorecard else NONE for verdict in ("better", "worse")]
        budget = [NONE, NONE] if each.problem else [f"{each.spent:g}", f"{each.budget:g}"]
        name = shown_name(each, experiments)
        cells.append([name, each.status, f"{n:,}" if n else NONE, decided or NONE, *counts, *budget])
        notes += [f"{name}: {each.problem}"] if each.problem else []
        notes += [f"{name}, {one['arm']}: {one['action']}, {'; '.join(one['reasons'])}" for one in each.decisions]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, each, widths)).rstrip() for each in cells]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def watch_page(experiments: Sequence[Watched]) -> str:
    """Return all experiments as one HTML page, in the design of the reports."""
    running = sum(each.scorecard is not None and each.look != (each.looks or 1) for each in experiments)
    size = f"{len(experiments)} experiments, {running} between looks."
    heads = ("Experiment", "Status", "Decision", "Verdicts", "Budget")
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    body = "\n".join(_line(each, shown_name(each, experiments)) for each in experiments)
    note = (
        "Read from ledgers and scorecards; no table was opened. Every number contains privacy noise. Epsilon is what "
        "each ledger has spent of its budget."
    )
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    title = "Experiments"
    parts = f'{page_header(title, size)}\n<main>\n{table}\n<p class="quiet">{html_text(note)}</p>\n</main>'
    return html_page(title, parts, style=page_style(_STYLE), allowed=_ALLOWED)


def _line(each: Watched, called: str) -> str:
    name = html_text(called)
    name = f'<a href="{html_text(each.page)}">{name}</a>' if each.page else name
    if each.problem:
        words = f'<td data-label="Not shown" colspan="4"><span class="bad">{html_text(each.problem)}</span></td>'
        return f"<tr><td><b>{name}</b></td>{words}</tr>"
    share = min(each.spent / each.budget, 1.0) if each.budget else 0.0
    card = each.scorecard or {}
    size = [f"{card['n']:,} units"] if card else []
    size += [f"as of {card['as_of']}"] if card.get("as_of") else []
    spent = f"epsilon {short(each.spent)} of {short(each.budget)}".replace(" ", "\N{NO-BREAK SPACE}")
    gauge = (
        f'<span class="gauge" role="img" aria-label="{percent(share)} of the budget is spent">'
        f'<i style="width:{100 * share:.0f}%"></i></span>'
    )
    cells = [
        ("", f"<b>{name}</b>{_small(each.question)}"),
        ("Status", f"{html_text(each.status)}{_small(', '.join(size))}"),
        ("Decision", _decided(each)),
        ("Verdicts", html_text(", ".join(f"{count} {verdict}" for verdict, count in each.counts.items()) or NONE)),
        ("Budget", html_text(spent) + gauge),
    ]
    return "<tr>" + "".join(f"<td{_label(label)}>{words}</td>" for label, words in cells) + "</tr>"


def _label(label: str) -> str:
    return f' data-label="{label}"' if label else ""


def _small(words: str) -> str:
    return f'<span class="small">{html_text(words)}</span>' if words else ""


def _decided(each: Watched) -> str:
    if not each.decisions:
        return '<span class="bad">sample ratio mismatch</span>' if each.mismatch else NONE
    several = len(each.decisions) > 1
    parts = []
    for one in each.decisions:
        # A stop for want of evidence is no warning.
        kind = "ship" if one["action"] == "ship" else "bad" if one["harm"] or each.mismatch else "wait"
        words = _SIGNS[one["action"]] + (f": {one['arm']}" if several else "")
        parts.append(f'<b class="{kind}">{html_text(words)}</b>{_small("; ".join(one["reasons"]))}')
    return "".join(parts)
