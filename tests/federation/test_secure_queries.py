"""Several queries in one secure sum: diagnostics, the effect, curves and metrics, paid for with one debit."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.diagnostics import BalanceTable, OverlapTable
from dpcausal.errors import RefusedError, StudyError
from dpcausal.experiment import Scorecard
from dpcausal.federation.coordinator import secure_release
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.review import objections
from dpcausal.federation.site.site import Site
from dpcausal.queries.calibration import NoiseShare, calibrate, share_of
from dpcausal.results.curve import EffectCurve
from dpcausal.study.prepared import StudyResult
from dpcausal.vault.noise import Sampler
from tests.federation.conftest import Federation

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm"),
    outcome=dpc.Real("score", 0, 1),
    covariates=[
        dpc.Real("age", 20, 80, typical=(23, 77)),
        dpc.Category("ward", ["a", "b"]),
        dpc.Binary("bought", missing=0),
    ],
)
REQUIRES: dict[str, Any] = {
    "balance": {"epsilon": 1.0, "covariates": ["age"], "most": 0.5},
    "overlap": {"epsilon": 1.0, "by": ["ward"]},
}
SECONDARY: dict[str, Any] = {
    "by_age": {
        "name": "r_learner",
        "covariates": ["age"],
        "basis": {"kind": "polynomial", "covariates": ["age"]},
        "propensity": 0.5,
        "outcome_models": False,
        "epsilon": 2.0,
        "delta": 1e-6,
    },
    "by_ward": {"name": "subgroup_effects", "by": ["ward"], "epsilon": 2.0},
    "metrics": {
        "name": "experiment",
        "metrics": [{"column": "score"}, {"column": "bought", "weight": 2.0}],
        "epsilon": 2.0,
    },
}
QUERIES = ["covariate_sums", "stratum_counts", "arm_moments", "effect_moments", "subgroup_moments", "metric_moments"]


def trial(n: int, seed: int) -> pa.Table:
    """Return a trial in which the effect grows with age."""
    random = np.random.default_rng(seed)
    arm, age = random.integers(0, 2, n), random.uniform(20, 80, n)
    score = 0.4 + 0.2 * arm * (age - 20) / 60 + random.uniform(-0.2, 0.2, n)
    ward, bought = random.choice(["a", "b"], n), random.random(n) < 0.3 + 0.2 * arm
    return pa.table({"arm": arm, "score": score, "age": age, "ward": ward, "bought": bought.astype(int)})


def federation_of(folder: Path, sites: int, n: int = 200) -> Federation:
    return Federation(folder, {f"site{place:02}": trial(n, place) for place in range(sites)}, SCHEMA)


def whole_study(federation: Federation, **changes: Any) -> dpc.Study:
    """Return a study that asks six queries, which all sites have approved."""
    count = len(federation.tables)
    terms: dict[str, Any] = {
        "aggregation": "secure",
        "secure": {"honest": -(-2 * count // 3), "colluding": 0},
        "sites": federation.roster.keys,
        "epsilon": 2.0,
        "design": "trial",
        "requires": REQUIRES,
        "secondary": SECONDARY,
    }
    return federation.study(**terms | changes)


def one_table(federation: Federation, study: dpc.Study) -> StudyResult:
    """Return what the study finds in a vault with the units of all sites."""
    table = pa.concat_tables(federation.tables.values())
    return study.evaluate(dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=100, delta=1e-3)))


def numbers(result: StudyResult) -> list[float]:
    """Return the estimates of every part of a study."""
    curve, wards, metrics = result.secondary["by_age"], result.secondary["by_ward"], result.secondary["metrics"]
    balance, overlap = result.diagnoses["balance"], result.diagnoses["overlap"]
    assert isinstance(curve, EffectCurve)
    assert isinstance(wards, EffectCurve)
    assert isinstance(metrics, Scorecard)
    assert isinstance(balance, BalanceTable)
    assert isinstance(overlap, OverlapTable)
    assert result.effect is not None
    assert balance.lines[0].before is not None
    return [
        result.effect.estimate,
        *curve.effect({"age": [30.0, 50.0, 70.0]}),
        *wards.effect({"ward": ["a", "b"]}),
        *(each.estimate for each in metrics.effects),
        balance.lines[0].before.value,
        *(each.treated.value for each in overlap.bins),
    ]


@pytest.mark.usefixtures("_no_noise")
def test_all_parts_over_six_sites_are_those_of_one_table(tmp_path: Path) -> None:
    federation = federation_of(tmp_path, 6)
    study = whole_study(federation)
    asked = study.site_questions()
    assert [each.query.name for each in asked] == QUERIES
    assert [each.query.name for each in asked if each.scales] == ["effect_moments"]  # by its declared typical values
    found = federation.coordinator(study).result()
    assert [release.parts for release in found.releases] == pytest.approx([6 / 4] * len(QUERIES))
    alone = one_table(federation, study)
    released = {release.query.name: release for release in alone.releases}
    for release in found.releases:
        other = released[release.query.name]
        ticks = [at.tick for at in calibrate(other.query, SCHEMA, other.guarantee).sensitivity.coordinates]
        apart = np.abs(np.subtract(release.values, other.values))
        assert (apart <= 6 * np.array(ticks)).all(), release.query.name  # each table rounds its sums to a tick
        assert release.guarantee == other.guarantee
    fixed = [
        0,
        *range(4, 11),
    ]  # all but the curve, which is shrunk by the noise that is declared: there is less in one table
    assert np.array(numbers(found))[fixed] == pytest.approx(np.array(numbers(alone))[fixed], abs=1e-6)
    assert numbers(found)[1:4] == pytest.approx(numbers(alone)[1:4], abs=0.02)


@pytest.mark.usefixtures("_no_noise")
def test_check_of_places_has_teeth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that divides the sum among the queries in another order gives other numbers."""
    federation = federation_of(tmp_path, 3)
    study = whole_study(federation, secondary={}, requires={"overlap": REQUIRES["overlap"]})
    right = federation.coordinator(study).result()
    divided = secure_release._divided

    def swapped(study: dpc.Study, ticks: Sequence[int]) -> Any:
        first = len(next(divided(study, ticks))[1])
        return divided(study, [*ticks[first:], *ticks[:first]])

    monkeypatch.setattr(secure_release, "_divided", swapped)
    with pytest.raises(RefusedError, match="cannot have this sum"):
        federation.coordinator(study).result()
    monkeypatch.setattr("dpcausal.federation.coordinator.coordinator.check_range", lambda *_: None)
    wrong = federation.coordinator(study)
    wrong._asked()
    assert [each.values for each in wrong._opened()] != [each.values for each in right.releases]


def test_each_query_has_a_share_of_its_own_noise_and_all_are_paid_with_one_debit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation = federation_of(tmp_path, 3)
    study = whole_study(federation)
    shares: list[NoiseShare] = []
    add = Sampler.add_noise_share

    def recorded(sampler: Sampler, ticks: Sequence[int], share: NoiseShare) -> list[int]:
        shares.append(share)
        return add(sampler, ticks, share)

    monkeypatch.setattr(Sampler, "add_noise_share", recorded)
    store = tmp_path / "requests.db"
    first = federation.coordinator(study, store=store).result()
    expected = [share_of(each.shared_noise(SCHEMA), 2) for each in study.site_questions()]
    assert shares == expected * 3
    for _ in range(2):  # a new coordinator, and one that lost its store: no second noise, no second price
        assert numbers(federation.coordinator(study, store=store).result()) == numbers(first)
        federation.coordinator(study).run()
    assert len(shares) == 3 * len(QUERIES)
    for name in federation.tables:
        ledger = Site(federation.folder / name).ledger()
        kinds = [entry.kind for entry in ledger.entries() if entry.kind != "site"]
        assert kinds == ["open", "bind", "grant", "debit", "release", "confirm"]
        assert (ledger.spent.epsilon, ledger.spent.delta) == (10.0, 1e-6)
    assert first.effect is not None
    for receipt in first.effect.receipts:
        assert (receipt.query, receipt.epsilon, receipt.delta) == (" + ".join(QUERIES), 10.0, 1e-6)
    assert first.releases[0].receipt.epsilon == 1.0


def test_failed_diagnostic_withholds_the_effect(tmp_path: Path) -> None:
    federation = federation_of(tmp_path, 3)
    strict = {"balance": {"epsilon": 50.0, "covariates": ["age"], "most": 1e-6}}
    study = whole_study(federation, requires=strict, secondary={})
    coordinator = federation.coordinator(study)
    result = coordinator.result()
    assert (result.effect, result.failed, dict(result.secondary)) == (None, ("balance",), {})
    with pytest.raises(RefusedError, match="failed: balance"):
        coordinator.run()


def test_review_and_policy_count_everything_that_is_asked(tmp_path: Path) -> None:
    federation = federation_of(tmp_path, 3)
    study, folder = whole_study(federation), federation.folder / "site00"
    policy = Policy.read(folder)
    assert objections(policy, study) == ()
    words = str(Site(folder).review(study.digest))
    assert all(f"{name}, masked, with a share of the noise" in words.replace("\n", " ") for name in QUERIES)
    text = (folder / "policy.toml").read_text(encoding="utf-8")
    (folder / "policy.toml").write_text(text.replace("epsilon_per_study = 100.0", "epsilon_per_study = 9.9"))
    assert objections(Policy.read(folder), study) == ("epsilon is above 9.9",)
    (folder / "policy.toml").write_text(text.replace('"r_learner",', ""))
    assert objections(Policy.read(folder), study) == ("the estimator r_learner is not allowed",)
    assert Site(folder).studies()[0].price.epsilon == 10.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"secondary": {"by_age": SECONDARY["by_age"] | {"outcome_models": True}}}, "depends on an earlier answer"),
        ({"requires": {"overlap": {"epsilon": 1.0, "covariates": ["age"]}}}, "do not add up"),
        ({"secondary": {"other": {"name": "kernel_learner", "epsilon": 1.0}}}, "name out of subgroup_effects"),
        ({"secondary": {"by_ward": {"name": "subgroup_effects", "by": ["ward"]}}}, "their own epsilon"),
        ({"secondary": {"m": {"name": "experiment", "epsilon": 1.0, "metrics": [{"column": "x"}]}}}, "not 'x'"),
        ({"aggregation": "plain", "secure": {}, "sites": {}, "requires": {}}, "secondary analyses with aggregation"),
    ],
    ids=str,
)
def test_queries_that_one_session_cannot_carry_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    federation = federation_of(tmp_path, 3, 10)
    with pytest.raises(StudyError, match=words):
        whole_study(federation, **changes)


def test_study_with_secondary_analyses_is_written_and_read(tmp_path: Path) -> None:
    study = whole_study(federation_of(tmp_path, 3, 10))
    assert dpc.Study.from_toml(study.to_toml()) == study
    assert str(study.price()) == "epsilon 10, delta 1e-06"
    assert json.loads(study.evaluate(study.rehearsal(10_000)).secondary["metrics"].to_json())
