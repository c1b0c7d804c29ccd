"""Three sites answer sums that a study describes, by files, under policies of their own."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tomli_w

import dpcausal as dpc
from dpcausal.errors import RefusedError, StudyError
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.protocol.transport import FileTransport
from dpcausal.federation.site.policy import FILE, Policy
from dpcausal.federation.site.review import objections
from dpcausal.queries import from_dict
from dpcausal.queries.calibration import calibrate
from tests.estimators.test_formula_estimator import SCHEMA, SLOPE, cells
from tests.federation.conftest import Federation
from tests.support.site_folders import record_state

ALLOWED = {"columns": ["score", "dose"], "coordinates": 6, "epsilon": 1.0}


def allow(federation: Federation, name: str, table: Mapping[str, object] = ALLOWED) -> Policy:
    """Let a site answer described sums, and return its policy."""
    folder = federation.folder / name
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write("\n" + tomli_w.dumps({"custom_sums": dict(table)}))
    record_state(folder)
    federation.sites[name] = federation.honest(name)
    return Policy.read(folder)


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    tables = {name: pa.table(cells(1_500, seed)) for seed, name in enumerate(("north", "south", "west"))}
    return Federation(tmp_path, tables, SCHEMA)


def carried(federation: Federation, study: dpc.Study) -> dpc.Coordinator:
    """Return a coordinator whose request people carried to the sites, and whose messages they carried back."""
    exchange = federation.folder / "exchange"
    coordinator = federation.coordinator(study, transport=FileTransport(exchange))
    with pytest.raises(RefusedError, match="did not answer"):
        coordinator.run()
    (request,) = (exchange / "out").iterdir()
    for name in federation.tables:
        (exchange / "in" / f"{name}.message.json").write_text(federation.sites[name](request.read_text()))
    return coordinator


@pytest.mark.parametrize("pooling", ["sums", "minimum_variance"])
def test_three_sites_answer_by_files(federation: Federation, pooling: str) -> None:
    for name in federation.tables:
        allow(federation, name)
    study = federation.study(estimator=SLOPE, pooling=pooling, design="trial")
    effect = carried(federation, study).run()
    every = [cells(1_500, seed) for seed in range(3)]
    dose, score = (np.concatenate([each[name] for each in every]) for name in ("dose", "score"))
    assert effect.estimate == pytest.approx(np.polyfit(dose, score, 1)[0], abs=5 * effect.privacy_sd)
    assert effect.privacy_sd < 0.1
    assert {receipt.query for receipt in effect.receipts} == {"custom_sums"}
    # Sites are asked with the weights that the study's text holds, and compute the same bound.
    assert isinstance(study.estimator, dpc.FormulaEstimator)
    assert study.estimator.weights.keys() == SLOPE.query(SCHEMA).texts.keys()
    noise = calibrate(study.estimator.query(SCHEMA), SCHEMA, dpc.Guarantee(epsilon=1.0))
    for name in federation.tables:
        message = (federation.folder / "exchange" / "in" / f"{name}.message.json").read_text()
        (release,) = json.loads(claimed_body(message))["answer"]["releases"]
        assert from_dict(release["query"]) == study.estimator.query(SCHEMA)
        coordinates = zip(noise.scales, noise.sensitivity.coordinates, strict=True)
        assert release["scales"] == [(scale or 0.0) * at.tick for scale, at in coordinates]


def test_a_policy_without_the_table_refuses_and_nothing_is_spent(federation: Federation) -> None:
    north = federation.folder / "north"
    silent = (north / FILE).read_text()
    for name in federation.tables:
        allow(federation, name)
    study = federation.study(estimator=SLOPE)
    (north / FILE).write_text(silent)
    record_state(north)
    federation.sites["north"] = federation.honest("north")
    assert objections(Policy.read(north), study) == (
        "sums that a study describes are not allowed: the policy has no table [custom_sums]",
    )
    effect = federation.coordinator(study, min_sites=2).run()
    assert {share.site: share.status for share in effect.sites} == {
        "north": "does not allow the study under its policy",
        "south": "answered",
        "west": "answered",
    }
    spent = {name: dpc.Site(federation.folder / name).ledger().spent.epsilon for name in federation.tables}
    assert spent == {"north": 0.0, "south": 1.0, "west": 1.0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ()),
        ({"columns": ["score"]}, ("sums may not be made of: dose",)),
        ({"coordinates": 5}, ("a query has 6 sums, the policy allows 5",)),
        ({"epsilon": 0.5}, ("a query of sums has epsilon 1, the policy allows 0.5",)),
    ],
)
def test_a_policy_admits_by_columns_number_and_price(
    federation: Federation, changes: dict[str, object], words: tuple[str, ...]
) -> None:
    policy = allow(federation, "north", ALLOWED | changes)
    study = dpc.Study(name="?", question="?", requester="anna", schema=SCHEMA, estimator=SLOPE, epsilon=1.0)
    assert objections(policy, study) == words
    unlisted = replace(policy, estimators=("difference_in_means",))
    assert objections(unlisted, study)[0] == "the estimator formula_estimator is not allowed"


@pytest.mark.parametrize("changes", [{"columns": "score"}, {"coordinates": 0}, {"epsilon": "1"}, {"more": 1}])
def test_a_wrong_table_is_refused(federation: Federation, changes: dict[str, object]) -> None:
    with pytest.raises(StudyError, match="custom_sums"):
        allow(federation, "north", ALLOWED | changes)
