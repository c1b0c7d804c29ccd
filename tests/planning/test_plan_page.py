"""The page of a plan: its numbers are those of the planner, it fetches nothing, and it needs no script to be read."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.errors import RefusedError
from dpcausal.planning.page import plan_page
from dpcausal.planning.plan import Plan, plan
from dpcausal.price import Part, Price
from dpcausal.rehearsal import Rehearsal

ROWS = ("epsilon 0.1", "epsilon 0.2", "epsilon 0.3", "epsilon 0.5", "epsilon 0.7", "epsilon 1", "epsilon 2")


class Cells(HTMLParser):
    """The rows of a page's tables: attributes of the row, and the text of its cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[tuple[dict[str, str | None], list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append((dict(attrs), []))
        elif tag in {"td", "th"}:
            self.rows[-1][1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1][1] and data.strip():
            self.rows[-1][1][-1] += data

    def table(self, place: int) -> dict[str, list[str]]:
        each = len(self.rows) // 2
        return {cells[0]: cells[1:] for _, cells in self.rows[each * place : each * (place + 1)]}


SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("treat", labels=("usual <care>", "training")),
    outcome=dpc.Real("pay", 0, 100, label="pay & bonus", unit="dollars"),
)


@pytest.fixture(scope="module")
def made() -> Plan:
    expected = Rehearsal(SCHEMA, n=4_000, outcome_sd=15)
    return plan(dpc.DifferenceInMeans(), expected, dpc.Guarantee(epsilon=0.7), covariates=[])


def test_numbers_are_those_of_plans(made: Plan) -> None:
    cells = Cells(made.to_html())
    widths, detected = cells.table(0), cells.table(1)
    assert tuple(widths)[1:8] == ROWS
    places = [int(each.removesuffix(" units").replace(",", "")) for each in widths["Setting"]]
    assert places == [1_000, 2_000, 4_000, 8_000, 16_000, 40_000]
    for epsilon, n in ((0.1, 1_000), (0.7, 4_000), (2.0, 40_000)):
        expected = replace(made.rehearsal, n=n)
        other = plan(dpc.DifferenceInMeans(), expected, dpc.Guarantee(epsilon=epsilon), covariates=[])
        place = places.index(n)
        assert float(widths[f"epsilon {epsilon:g}"][place]) == pytest.approx(other.half_width, rel=0.01)
        assert float(detected[f"epsilon {epsilon:g}"][place]) == pytest.approx(other.smallest_detectable, rel=0.01)


def test_without_privacy_is_the_sampling_error(made: Plan) -> None:
    alone = Cells(made.to_html()).table(0)["without privacy"]
    assert float(alone[2]) == pytest.approx(1.96 * 2 * 15 / 4_000**0.5, rel=0.01)


def test_price_is_that_of_the_study_and_what_is_left_is_after_it(made: Plan) -> None:
    study = replace(made, price=Price((Part("required balance", 0.2), Part("effect", 0.7, 1e-6))))
    page = plan_page(study, dpc.Guarantee(epsilon=1.5, delta=1e-5))
    rows = {cells[0]: told for told, cells in Cells(page).rows[:12]}
    assert (rows["epsilon 1"]["data-price"], rows["epsilon 1"]["data-left"]) == (
        "epsilon 1.2, delta 1e-06",
        "epsilon 0.3",
    )
    assert rows["epsilon 2"]["data-left"] == "too little: epsilon 1.5 is left now"
    assert 'id="left"' not in made.to_html()


def test_page_runs_and_fetches_nothing_else(made: Plan) -> None:
    page = made.to_html()
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=|url\(|@import", page)
    assert page.count("<script>") == 1
    assert "usual &lt;care&gt;" in page
    assert "pay &amp; bonus (dollars)" in page


def test_settings_that_cannot_be_rehearsed_are_none() -> None:
    schema = replace(SCHEMA, covariates=[dpc.Category("town", list("abcdefgh"))])
    expected = Rehearsal(schema, n=8, outcome_sd=15)
    few = plan(dpc.RegressionAdjustment(covariates=["town"]), expected, dpc.Guarantee(epsilon=0.1))
    assert "no interval" in Cells(few.to_html()).table(0)["epsilon 0.1"]


def test_plan_is_saved_by_its_ending(made: Plan, tmp_path: Path) -> None:
    made.save(tmp_path / "plan.html")
    made.save(str(tmp_path / "plan.json"))
    assert (tmp_path / "plan.html").read_text(encoding="utf-8") == made.to_html()
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == made.to_json()
    with pytest.raises(RefusedError, match="name it plan"):
        made.save("plan.pdf")


def test_command_writes_the_page_with_what_a_ledger_has_left(tmp_path: Path) -> None:
    study = dpc.Study(
        name="pay", question="?", schema=SCHEMA, estimator=dpc.DifferenceInMeans(), epsilon=1.0, design="trial"
    )
    (tmp_path / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    dpc.Ledger.create(tmp_path / "ledger.db", dpc.Budget(epsilon=3), as_of="2026-01-31")
    words = ["plan", tmp_path / "study.toml", "--n", 900, "--html", tmp_path / "plan.html"]
    done = CliRunner().invoke(app, [*map(str, words), "--ledger", str(tmp_path / "ledger.db")])
    assert done.exit_code == 0, done.output
    rows = {cells[0]: told for told, cells in Cells((tmp_path / "plan.html").read_text(encoding="utf-8")).rows[:11]}
    assert rows["epsilon 1"]["data-left"] == "epsilon 2"
    done = CliRunner().invoke(app, [*map(str, words[:4]), "--html", str(tmp_path / "plan.txt")])
    assert done.exit_code == 2
    dpc.Ledger.create(tmp_path / "rho.db", dpc.Budget(epsilon=3, delta=1e-6, rule="zcdp"), as_of="2026-01-31")
    done = CliRunner().invoke(app, [*map(str, words), "--ledger", str(tmp_path / "rho.db")])
    assert (done.exit_code, "must have the rule additive" in done.output) == (2, True)
