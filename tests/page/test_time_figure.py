import re
from datetime import date

from dpcausal.page.time_figure import growth_svg, months_svg


def boxes(svg: str) -> list[tuple[float, ...]]:
    """The boxes of a figure: left, width, top and height."""
    found = re.findall(r'<rect x="([\d.]+)%" width="([\d.]+)%" y="([\d.]+)" height="([\d.]+)"', svg)
    return [tuple(map(float, each)) for each in found]


def test_a_total_grows_on_its_days_up_to_the_last() -> None:
    days = {date(2026, 3, 11): 1.0, date(2026, 3, 6): 2.0}
    svg = growth_svg(days, limit=4.0, until=date(2026, 3, 14), label="", limit_label="<all>")
    first, second = boxes(svg)
    assert first == (10.0, 50.0, 94.0, 60.0)  # from the day after 5 March, for 5 of 10 days, at a half
    assert second == (60.0, 40.0, 64.0, 90.0)
    assert "&lt;all&gt;" in svg
    assert all(day in svg for day in ("2026-03-05", "2026-03-14"))


def test_nothing_spent_is_a_figure_without_a_total() -> None:
    svg = growth_svg({}, limit=4.0, until=date(2026, 3, 14), label="", limit_label="")
    assert boxes(svg) == []
    assert months_svg({}, label="").startswith("<svg")


def test_a_month_without_an_answer_has_a_place() -> None:
    svg = months_svg({"2026-02": (0, 4), "2025-12": (2, 1)}, label="")
    assert [(box[0], box[3]) for box in boxes(svg)] == [(1.25, 60.0), (1.25, 30.0), (26.25, 120.0)]


def test_the_last_two_years_are_shown() -> None:
    svg = months_svg({"2020-01": (1, 0), "2026-01": (5, 0)}, label="")
    assert len(boxes(svg)) == 1
    assert "2024-02" in svg
