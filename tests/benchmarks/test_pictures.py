"""Figures are stored compactly, and what they say stays as it was drawn."""

from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.audit_figure import drawn
from benchmarks.figures import FOLDER, card
from benchmarks.pictures import BLUE, compact, keep
from dpcausal.audit.finding import Finding


def test_text_is_never_rounded() -> None:
    drawn = '<text x="1.23456" y="-0.00012">0.001</text>'
    assert compact(drawn) == '<text x="1.23" y="-0">0.001</text>'


def test_figure_is_stored_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        figure = Figure()
        figure.subplots().plot([0, 1], [0.001, 0.002], color=BLUE, label="a line")
        keep(figure, tmp_path / name)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert "<metadata>" not in text
    assert BLUE in text


def test_card_of_the_start_page_shows_the_effect_that_the_next_page_prints() -> None:
    assert (FOLDER / "card.svg").read_text(encoding="utf-8") == card(), "write the card anew: benchmarks.figures.card"


def test_a_figure_of_an_audit_has_a_line_for_each_pair_of_tables() -> None:
    numbers = {"epsilon": 1.0, "delta": 0.0, "exact": 0.9, "bound": 0.8, "confidence": 0.999, "runs": 10}
    findings = [
        Finding("epsilon", f"target {target}", passed=True, detail=f"{place}: x", numbers=numbers)
        for target in range(5)
        for place in range(4)
    ]
    panels = [panel for panel in drawn(findings).axes if panel.get_visible()]
    assert [len(panel.patches) for panel in panels] == [4] * 5
