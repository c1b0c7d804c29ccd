"""Sites that send impossible or unlikely numbers: refused, or named first of all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.federation.coordinator.plausibility import suspicions, why_impossible
from tests.federation.conftest import Federation
from tests.support.site_answers import SCHEMA, answer, honest, liar

TRIAL = dpc.Schema(treatment=dpc.Treatment("early"), outcome=dpc.Real("days", 0, 30, missing=15))


def trial(n: int, seed: int) -> pa.Table:
    """Return a trial in which treatment lowers a mean of 12 days by 1.5."""
    random = np.random.default_rng(seed)
    early = random.integers(0, 2, n)
    return pa.table({"early": early, "days": np.clip(random.normal(12 - 1.5 * early, 8), 0, 30)})


def claim_bounds(body: dict[str, Any]) -> None:
    """Claim 30 days for all treated, 0 for all others, and no variance: every number is one that a table may have."""
    if body["answer"] is None:
        return
    (release,) = body["answer"]["releases"]
    sizes = {"size_1": body["n"] / 2, "compared": float(body["n"])}
    totals = {"total_0": -15 * body["n"] / 2, "total_1": 15 * body["n"] / 2}
    claimed = sizes | totals | {"deficit_0": 0.0, "deficit_1": 0.0}
    release["values"] = [claimed[name] for name in release["names"]]


def federation_of(folder: Path, sites: int) -> Federation:
    names = ["west", "north", "south", "east", "coast", "hills"][:sites]
    return Federation(folder, {name: trial(4000, seed) for seed, name in enumerate(names)}, TRIAL)


@pytest.mark.parametrize(("sites", "pooling"), [(3, "minimum_variance"), (3, "sums"), (5, "automatic")])
def test_lying_site_is_named_first(tmp_path: Path, sites: int, pooling: str) -> None:
    federation = federation_of(tmp_path, sites)
    federation.lie("west", claim_bounds)
    effect = federation.coordinator(federation.study(pooling=pooling, epsilon=1.0)).run()
    assert effect.warnings[0].startswith("west has an effect of 30.00, all others together -")
    assert str(effect).splitlines()[2].startswith("WARNING           west has an effect of 30.00")
    assert not any(text.startswith(("north", "south", "east", "coast")) for text in effect.warnings)
    if pooling == "automatic":
        assert effect.method.startswith("robust over 5 of 5 sites")
        low, high = effect.interval()
        assert low < -1.5 < high
        assert abs(effect.estimate + 1.5) < 1.5
    elif pooling == "minimum_variance":
        assert "west alone decides" in effect.no_interval
    else:
        assert "one wrong site moves sums by any amount" in effect.no_interval


def test_lying_site_over_files_is_named_by_the_command(tmp_path: Path) -> None:
    """As an auditor did it: three sites by files, one with a changed message under its own key."""
    (tmp_path / "sites").mkdir()
    federation = federation_of(tmp_path / "sites", 3)
    federation.lie("west", claim_bounds)
    workspace, exchange, study = tmp_path / "workspace", tmp_path / "exchange", tmp_path / "study.toml"
    study.write_text(federation.study(pooling="minimum_variance").to_toml(), encoding="utf-8")

    def run(*words: object) -> str:
        done = CliRunner().invoke(app, ["federation", *map(str, words)])
        assert done.exit_code == 0, done.output
        return done.stdout

    run("init", workspace, "anna")
    (tmp_path / "sites" / "anna.key").replace(workspace / "anna.key")
    for name, member in federation.roster.sites.items():
        run("admit", workspace, name, member.key, "--units", 4000)
    run("ask", workspace, study, "--files", exchange)
    (request,) = (exchange / "out").iterdir()
    for name in federation.tables:
        (exchange / "in" / f"{name}.message.json").write_text(federation.sites[name](request.read_text()))
    effect = dpc.Effect.from_json(json.dumps(json.loads(run("run", workspace, study, "--files", exchange, "--json"))))
    assert effect.warnings[0].startswith("west has an effect of 30.00")
    assert effect.no_interval.startswith("west alone decides")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("total_1", 70_000.0, "mean outcome in the arm early=1 is outside the declared bounds"),
        ("size_1", 5_000.0, "its arm early=0 has fewer than no units"),
        ("compared", 5_000.0, "its arms have more units than it has"),
        ("deficit_0", -60_000.0, "outcomes in the arm early=0 are outside the declared bounds"),
        ("deficit_1", 600_000.0, "variance in the arm early=1 is below 0"),
    ],
)
def test_impossible_numbers_are_refused(tmp_path: Path, name: str, value: float, why: str) -> None:
    federation = federation_of(tmp_path, 2)

    def change(body: dict[str, Any]) -> None:
        if body["answer"] is not None:
            (release,) = body["answer"]["releases"]
            place = release["names"].index(name)
            tick = {"total": 15 / 2**20, "deficit": 15**2 / 2**20}.get(name[:-2], 1.0)
            release["values"][place] = round(value / tick) * tick

    federation.lie("west", change)
    effect = federation.coordinator(federation.study(pooling="sample_size", epsilon=5.0), attempts=1).run()
    (west,) = [share for share in effect.sites if share.site == "west"]
    assert why in west.status
    assert "standard deviations of its noise" in west.status
    assert effect.n == 4000


def test_site_without_variance_is_named_where_noise_shows_it() -> None:
    generator = np.random.default_rng(3)
    answers = {name: honest("normal", 1_000_000, 5.0, generator) for name in ("a", "b", "c")}
    sums = {"size_1": 5e5, "compared": 1e6, "total_0": -1e5, "total_1": -75_000.0}
    flat = sums | {"deficit_0": 5e5 * (0.25 - 0.04), "deficit_1": 5e5 * (0.25 - 0.0225)}
    found = suspicions(answers | {"flat": answer(flat, 1_000_000, 5.0, generator)}, SCHEMA)
    (named,) = [text for text in found if "too precise" in text]
    assert named.startswith("flat's outcomes have a standard deviation of")


@pytest.mark.parametrize(("sites", "epsilon"), [(3, 0.1), (5, 1.0), (10, 5.0)])
def test_honest_sites_are_neither_named_nor_refused(sites: int, epsilon: float) -> None:
    generator = np.random.default_rng(sites)
    for kind in ("normal", "skewed", "binary"):
        sizes = generator.integers(200, 5_000, sites)
        answers = {f"{at}": honest(kind, int(n), epsilon, generator) for at, n in enumerate(sizes)}
        assert suspicions(answers, SCHEMA) == ()
        assert not any(why_impossible(each.releases[0], each.n, None, SCHEMA) for each in answers.values())


def test_unlikely_numbers_give_a_warning() -> None:
    """Beyond the bounds, but not by as much as no noise can explain."""
    generator = np.random.default_rng(4)
    answers = {name: honest("normal", 5_000, 1.0, generator) for name in ("a", "b", "c")}
    sums = {"size_1": 2500.0, "compared": 5000.0, "total_0": -1250.0 - 40, "total_1": -500.0}
    odd = answer(sums | {"deficit_0": 0.0, "deficit_1": 500.0}, 5_000, 1.0, generator)
    assert not why_impossible(odd.releases[0], 5_000, None, SCHEMA)
    found = suspicions(answers | {"odd": odd}, SCHEMA)
    assert found[0].startswith("odd sent numbers that its noise hardly explains: its mean outcome in the arm treat=0")


def test_claim_at_the_bounds_is_possible() -> None:
    """So it is not refused: only the other sites speak against it."""
    claimed = liar(2_000, 1.0, np.random.default_rng(1))
    assert not why_impossible(claimed.releases[0], 2_000, None, SCHEMA)
