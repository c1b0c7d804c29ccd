"""Figures are stored compactly, and what they say stays as it was drawn."""

from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.figures import FOLDER, card
from benchmarks.pictures import BLUE, compact, keep


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
