"""A catalogue of metrics, and the commands that go from it to a decision: init, plan, run, watch."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.errors import DpcausalError, StudyError
from dpcausal.experiment.template import experiment_to_fill_in
from dpcausal.experiment.watch import Watched, watch_page, watch_text

CATALOGUE = """
version = 1
name = "shop"

[metrics.revenue]
description = "revenue within 7 days"
owner = "payments"
unit = "EUR"
column = { kind = "real", name = "revenue", low = 0, high = 60, missing = 0 }

[metrics."seconds to load"]
description = "mean time to load"
owner = "performance"
unit = "s"
lower_is_better = true
column = { kind = "real", name = "seconds", low = 0, high = 20, missing = 20 }
margin = { by = 0.5 }

[metrics.bought]
description = "bought anything"
owner = "payments"
column = { kind = "binary", name = "bought", missing = 0 }
margin = { by = 0.1, relative = true }

[metrics.calls]
description = "calls to support"
owner = "support"
column = { kind = "real", name = "calls", low = 0, high = 3, missing = 0 }
"""
EXPERIMENT = """
version = 1
name = "checkout"
epsilon = 1.0
treatment = { name = "arm", arms = ["old", "new"] }
[rule]
goals = ["revenue"]
[[metrics]]
use = "revenue"
weight = 2
[[metrics]]
use = "bought"
[[metrics]]
column = { kind = "real", name = "clicks", low = 0, high = 9, missing = 0 }
"""
FILLED = {
    "name": '"checkout"',
    "question": '"Does it sell more?"',
    "epsilon": "1.0",
    "[treatment] name": '"arm"',
    "[treatment] arms": '["old", "new"]',
    "[treatment] labels": '["old", "new"]',
    "[rule] goals": '["revenue"]',
}


def test_experiment_uses_metrics_by_name_and_records_the_version() -> None:
    catalogue = dpc.MetricCatalogue.from_toml(CATALOGUE)
    experiment = dpc.Experiment.from_toml(EXPERIMENT, catalogue)
    assert [each.label for each in experiment.metrics] == ["revenue", "bought", "clicks"]
    assert experiment.metrics[0].weight == 2
    assert experiment.catalogue == catalogue.digest
    assert dpc.Experiment.from_toml(experiment.to_toml()) == experiment
    card = experiment.rehearsed(1_000)
    assert card.to_dict()["catalogue"] == catalogue.digest
    assert catalogue.digest[:12] in str(card)
    line = card.lines[0]
    assert (line.unit, line.description, line.owner) == ("EUR", "revenue within 7 days", "payments")
    assert "EUR" in card.to_html()
    assert "revenue within 7 days" in card.to_html()


RATIO = """
[metrics."clicks per view"]
description = "clicks per view within 7 days"
owner = "search"
column = { kind = "real", name = "clicks", low = 0, high = 30, missing = 0 }
denominator = { kind = "real", name = "views", low = 0, high = 40, missing = 0 }
earlier = { slope = 0.2, low = -8, high = 9 }
"""


def test_catalogue_holds_what_is_earlier() -> None:
    catalogue = dpc.MetricCatalogue.from_toml(CATALOGUE + RATIO)
    assert dpc.MetricCatalogue.from_toml(catalogue.to_toml()).digest == catalogue.digest
    assert catalogue.metric("clicks per view").earlier == dpc.Earlier(slope=0.2, low=-8, high=9)
    columns = ("arm", "clicks", "views")
    assert catalogue.usable(columns) == ("clicks per view",)
    text = experiment_to_fill_in(catalogue, columns)
    assert 'use = "clicks per view"' in text
    assert "of the columns arm\n" in text
    other = RATIO.replace("clicks per view", "clicks").replace("high = 30", "high = 20")
    with pytest.raises(DpcausalError, match="'clicks' is declared in two ways"):
        dpc.MetricCatalogue.from_toml(CATALOGUE + RATIO + other)


def test_digest_is_of_definitions_and_not_of_the_file() -> None:
    digests = {
        dpc.MetricCatalogue.from_toml(text).digest
        for text in (CATALOGUE, f"# A comment.\n{CATALOGUE}", CATALOGUE.replace("high = 60", "high = 60.0"))
    }
    assert len(digests) == 1
    for change in (("high = 60", "high = 70"), ("7 days", "8 days"), ("by = 0.5", "by = 0.4"), ('"s"', '"ms"')):
        assert dpc.MetricCatalogue.from_toml(CATALOGUE.replace(*change)).digest not in digests
    (digest,) = digests
    written = EXPERIMENT.replace("epsilon", f'catalogue = "{digest}"\nepsilon')
    changed = dpc.MetricCatalogue.from_toml(CATALOGUE.replace("high = 60", "high = 70"))
    with pytest.raises(StudyError, match="The experiment records version"):
        dpc.Experiment.from_toml(written, changed)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("high = 60", "hihg = 60", "Metric 'revenue'"),
        ("low = 0, high = 60", "low = 60, high = 0", "Metric 'revenue'"),
        ('owner = "payments"\nunit', "unit", "Metric 'revenue'"),
        ("margin = { by = 0.5 }", "margin = { by = -1 }", "Metric 'seconds to load'"),
        ("lower_is_better = true", 'direction = "down"', "Metric 'seconds to load'"),
        ('name = "calls", low = 0, high = 3', 'name = "revenue", low = 0, high = 3', "declared in two ways"),
        ("version = 1", "version = 9", "version = 1"),
        ("[metrics.revenue]", "[metrics.revenue", "TOML"),
        ('"bought anything"', '""', "a description"),
    ],
)
def test_catalogue_that_is_inconsistent_is_refused_by_name(before: str, after: str, words: str) -> None:
    assert before in CATALOGUE
    with pytest.raises(DpcausalError, match=words):
        dpc.MetricCatalogue.from_toml(CATALOGUE.replace(before, after))


def test_name_that_is_not_in_the_catalogue_is_refused_with_the_nearest() -> None:
    catalogue = dpc.MetricCatalogue.from_toml(CATALOGUE)
    with pytest.raises(StudyError, match="did you mean 'revenue'"):
        dpc.Experiment.from_toml(EXPERIMENT.replace('use = "revenue"', 'use = "revenues"'), catalogue)
    with pytest.raises(StudyError, match="--catalogue"):
        dpc.Experiment.from_toml(EXPERIMENT)


def filled_in(text: str) -> str:
    """Return a file with its blanks filled in."""
    section, lines = "", []
    for line in text.splitlines():
        section = f"{line} " if line.startswith("[") else section
        key = section + line.partition(" =")[0]
        blank = '"<fill in>"' in line.partition("#")[0]
        lines.append(line.replace('"<fill in>"', FILLED[key]) if blank else line)
    return "\n".join(lines)


def ask(*words: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["experiment", *map(str, words)])
    return done.exit_code, done.output


def malformed_scorecards_are_not_shown(folder: Path) -> None:
    """Check that a scorecard which lacks something is named as none, and that the other experiments are shown."""
    file = folder / "checkout.json"
    card = json.loads(file.read_text(encoding="utf-8"))
    for changed in ({"decisions": [{"arm": "new", "action": "run", "reasons": []}]}, {"n": "many"}, {"looks": 8}):
        file.write_text(json.dumps(card | changed), encoding="utf-8")
        status, words = ask("watch", folder)
        assert status == 1
        assert "checkout.json is not a scorecard" in words
        assert "not started" in words
    file.write_text(json.dumps(card), encoding="utf-8")


def pages_elsewhere_have_links(folder: Path) -> None:
    """Check that a page in another folder links to the scorecards where they are."""
    page = folder / "pages of all" / "all.html"
    page.parent.mkdir()
    assert ask("watch", folder, "--html", page)[0] == 0
    assert '<a href="../checkout.html">checkout</a>' in page.read_text(encoding="utf-8")


def test_commands_go_from_a_catalogue_to_a_page_of_all_experiments(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    n, arm = 4_000, random.choice(["old", "new"], 4_000)
    columns = {
        "arm": arm,
        "revenue": np.minimum(random.gamma(2, 5, n) + 5 * (arm == "new"), 60),
        "seconds": random.gamma(3, 1, n),
        "bought": random.binomial(1, 0.5, n),
        'odd "name"\n[rule]': arm,
    }
    pq.write_table(pa.table(columns), tmp_path / "users.parquet")
    (tmp_path / "metrics.toml").write_text(CATALOGUE, encoding="utf-8")
    file, table, catalogue = (tmp_path / name for name in ("checkout.toml", "users.parquet", "metrics.toml"))

    status, words = ask("init", table, "--catalogue", catalogue, "--out", file, "--json")
    assert status == 0, words
    assert json.loads(words)["not_used"] == ["calls"]
    assert ask("init", table, "--catalogue", catalogue, "--out", file)[0] == 2
    assert ask("init", table, "--catalogue", catalogue, "--metric", "calls", "--out", tmp_path / "x.toml")[0] == 2
    status, words = ask("plan", file, "--n", "4000")
    assert status == 2
    assert "7 left blank" in words
    file.write_text(filled_in(file.read_text(encoding="utf-8")), encoding="utf-8")
    (tmp_path / "later.toml").write_text(
        file.read_text(encoding="utf-8").replace('"checkout"', '"<b>later"'), encoding="utf-8"
    )
    status, words = ask("plan", file, "--n", "4000", "--json")
    assert status == 0, words
    assert json.loads(words)["rule"]["guardrails"][1] == {"metric": "bought", "margin": 0.1, "relative": True}

    budget = dpc.Budget(epsilon=2, delta=1e-6)
    for each in (file, tmp_path / "later.toml"):
        dpc.Ledger.create(f"sqlite:///{each.with_suffix('.db')}", budget, as_of="week 1")
    run = ("run", file, "--table", table, "--as-of", "week 2", "--yes", "--json")
    assert ask(*run)[0] == 2  # a version that nobody declared
    for _ in range(2):
        status, words = ask(*run, "--new-version")
        assert status == 0, words
    assert '"action": "ship"' in words
    (tmp_path / "broken.toml").write_text("treatment = 1\nmetrics = []", encoding="utf-8")
    status, words = ask("watch", tmp_path, "--json", "--html", tmp_path / "all.html")
    assert status == 1
    broken, ran, later = json.loads(words)["experiments"]
    assert "version" in broken["problem"]
    assert (ran["status"], ran["spent_epsilon"], ran["budget_epsilon"]) == ("done", 1.0, 2.0)
    assert (ran["decisions"][0]["action"], ran["page"]) == ("ship", "checkout.html")
    assert (later["status"], later["decisions"]) == ("not started", [])
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert '<a href="checkout.html">checkout</a>' in page
    assert "<b>later" not in page
    assert "✓ ship" in page
    (tmp_path / "broken.toml").unlink()
    pages_elsewhere_have_links(tmp_path)
    status, words = ask("watch", tmp_path)
    assert status == 0
    assert "not started" in words

    malformed_scorecards_are_not_shown(tmp_path)
    # A scorecard that the ledger did not pay for is none of the experiment.
    (tmp_path / "later.json").write_text((tmp_path / "checkout.json").read_text(encoding="utf-8"), encoding="utf-8")
    status, words = ask("watch", tmp_path, "--ledger", f"checkout={tmp_path / 'later.db'}")
    assert status == 1
    assert words.count("not paid for by this experiment's ledger") == 2
    assert ask("watch", tmp_path, "--ledger", "other=x.db")[0] == 2


@pytest.mark.parametrize(
    "slip", ['name = "checkout', "version = 1\n[treatment]\nname = 'arm'\n[[metric]]\nuse = 'revenue'", "\ufeff"]
)
def test_watch_shows_an_experiment_whose_file_has_a_slip(tmp_path: Path, slip: str) -> None:
    (tmp_path / "checkout.toml").write_text(slip, encoding="utf-8")
    (tmp_path / "metrics.toml").write_text(CATALOGUE, encoding="utf-8")
    status, words = ask("watch", tmp_path, "--json")
    assert status == 1
    (shown,) = json.loads(words)["experiments"]
    assert shown["name"] == "checkout"
    assert shown["problem"]


def test_watch_finds_the_ledgers_of_a_population_by_name(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'readers.db'}"
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "metrics.toml").write_text(CATALOGUE, encoding="utf-8")
    readers = dpc.Population.create(place, "readers", dpc.Budget(epsilon=5))
    for at, name in enumerate(("headline", "picture", "colour"), start=1):
        (folder / f"{name}.toml").write_text(EXPERIMENT.replace('"checkout"', f'"{name}"'), encoding="utf-8")
        if name != "colour":
            readers.allocate(name, dpc.Budget(epsilon=at / 2), as_of="week 1")
    status, words = ask("watch", folder, "--ledger", place, "--json")
    assert status == 1
    colour, headline, picture = json.loads(words)["experiments"]
    assert (headline["budget_epsilon"], picture["budget_epsilon"]) == (0.5, 1.0)
    assert colour["problem"].startswith("The populations have no ledger named colour; they have headline, picture")
    alone = f"sqlite:///{folder / 'colour.db'}"
    dpc.Ledger.create(alone, dpc.Budget(epsilon=7), as_of="week 1")  # outside the population, beside its file
    status, words = ask("watch", folder, "--ledger", place, "--ledger", f"picture={alone}", "--json")
    assert status == 0
    assert [each["budget_epsilon"] for each in json.loads(words)["experiments"]] == [7.0, 0.5, 7.0]
    others = dpc.Population.create(place, "others", dpc.Budget(epsilon=5))
    others.allocate("headline", dpc.Budget(epsilon=1), as_of="week 1")
    status, words = ask("watch", folder, "--ledger", place, "--json")
    assert status == 1
    assert "2 ledgers named headline" in json.loads(words)["experiments"][1]["problem"]
    for no_population in (tmp_path / "none.db", folder / "colour.db"):
        status, words = ask("watch", folder, "--ledger", no_population)
        assert (status, "There is no population at" in words) == (2, True)
    assert not (tmp_path / "none.db").exists()
    for no_place in ("=x.db", "checkout=", ""):
        assert ask("watch", folder, "--ledger", no_place)[0] == 2


def test_commands_say_what_a_file_is_and_which_of_two_is_meant(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text('version = 2\nname = "x"\n[estimator]\nname = "difference_in_means"\n', encoding="utf-8")
    _, said = ask("plan", study, "--n", "100")
    assert "is a study" in " ".join(said.split())
    _, said = ask("init", study.with_name("users.parquet"), "--catalogue", tmp_path / "none.toml")
    assert "[metrics.revenue]" in said
    one, other = (Watched(file=f"{name}.toml", name="checkout") for name in ("a", "b"))
    assert "checkout (a.toml)" in watch_text([one, other])
    assert "checkout (b.toml)" in watch_page([one, other])
    assert "toml" not in watch_text([one])
