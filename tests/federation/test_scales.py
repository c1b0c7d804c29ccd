"""Each site finds scales of covariates for itself; sites whose answers are added up find none."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.federation.coordinator.responses import releases_of
from tests.federation.conftest import Federation

SCHEMA = dpc.Schema(
    dpc.Treatment("arm"),
    dpc.Real("y", 0, 10),
    [dpc.Real("creatinine", 0, 15), dpc.Binary("smoker")],
)
ESTIMATOR = dpc.RegressionAdjustment(covariates=["creatinine", "smoker"])


def table(seed: int, median: float) -> pa.Table:
    random, n = np.random.default_rng(seed), 3_000
    creatinine = median * random.lognormal(0, 0.4, n)
    arm = (random.random(n) < 1 / (1 + np.exp(-np.log(creatinine / median)))).astype(int)
    y = np.clip(3 + arm + np.log(creatinine / median) + random.normal(0, 1, n), 0, 10)
    gone = random.random(n) < 0.2
    columns = {"arm": arm, "y": y, "creatinine": np.where(gone, np.nan, creatinine), "smoker": random.integers(0, 2, n)}
    return pa.table(columns)


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    return Federation(tmp_path, {"north": table(1, 1.0), "south": table(2, 3.0)}, SCHEMA)


def asked(coordinator: dpc.Coordinator) -> dict[str, list[str]]:
    answers = coordinator._answers(coordinator._asked())
    return {site: [release.query.name for release in releases_of(message)] for site, message in answers.items()}


def test_each_site_pays_for_its_own_scales_within_its_price(federation: Federation) -> None:
    study = federation.study(estimator=ESTIMATOR, epsilon=8.0, pooling="minimum_variance")
    coordinator = federation.coordinator(study)
    assert set(map(tuple, asked(coordinator).values())) == {
        ("covariate_counts", "missing_covariates", "regression_moments", "missing_outcomes")
    }
    for effect in coordinator.effects().values():
        assert sum(receipt.epsilon for receipt in effect.receipts) == pytest.approx(8)
        assert any("creatinine is missing" in text for text in effect.assumptions)
    assert coordinator.run().estimate == pytest.approx(1, abs=0.4)
    assert sum(receipt.epsilon for receipt in coordinator.run().receipts) == pytest.approx(16)


def test_site_with_other_counts_than_its_guarantee_needs_is_refused(federation: Federation) -> None:
    study = federation.study(estimator=ESTIMATOR, epsilon=8.0, pooling="minimum_variance")

    def quieter(body: dict[str, Any]) -> None:
        body["answer"]["releases"][0]["scales"] /= 2

    federation.lie("north", quieter)
    answered = federation.coordinator(study, min_sites=1).effects()
    assert list(answered) == ["south"]


def test_sites_whose_answers_are_added_up_see_covariates_alike(federation: Federation) -> None:
    study = federation.study(estimator=ESTIMATOR, epsilon=8.0, pooling="sums")
    coordinator = federation.coordinator(study)
    assert set(map(tuple, asked(coordinator).values())) == {("regression_moments",)}
    assert any("declared bounds" in note for note in coordinator.run().notes)


@pytest.mark.parametrize("typical", [(0.5, 2.0), None])
def test_sums_of_three_sites_use_declared_scales_or_give_no_interval(
    typical: tuple[float, float] | None, tmp_path: Path
) -> None:
    """Creatinine confounds by 0.5, and fills a small part of its bounds: only typical values show how it varies."""
    wide = dpc.Real("creatinine", 0.05, 50, typical=typical, transform="log" if typical else None, missing=1.0)
    schema = dpc.Schema(SCHEMA.treatment, SCHEMA.outcome, [wide, SCHEMA.covariates[1]])
    sites = {name: table(seed, 1.0) for seed, name in enumerate(("north", "south", "west"))}
    federation = Federation(tmp_path, sites, schema)
    effect = federation.coordinator(federation.study(estimator=ESTIMATOR, epsilon=4.0, pooling="sums")).run()
    if typical is None:
        assert "hides how creatinine varies" in effect.no_interval
        assert any("declare typical values" in note for note in effect.notes)
        return
    low, high = effect.interval()
    assert low < 1 < high
    assert high - low < 1
    assert not any("declared bounds" in note for note in effect.notes)
