"""A secure sum of real sites over a real NVFlare network."""

from pathlib import Path

import pytest

from dpcausal import Coordinator, DifferenceInMeans, Study
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.site import Site
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.federation_processes import Federation
from tests.support.site_folders import allow_secure_sums, approve_study, make_site_folder

# In the gate secure sums travel by files and between threads, and plain answers over NVFlare.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("federation")]

SITES = ("north", "south", "west")


def test_secure_sum_over_nvflare_is_opened_and_paid_once(tmp_path: Path) -> None:
    schema, anna = standard_schema(), Key.make("anna", tmp_path / "anna.key")
    folders = {name: tmp_path / name for name in SITES}
    keys = {
        name: make_site_folder(
            folder, name, synthetic_table(schema, 200, seed), schema, {"anna": anna.public}, witness="witness.log"
        )
        for seed, (name, folder) in enumerate(folders.items())
    }
    allow_secure_sums(folders, colluding=1)
    study = Study(
        name="scores",
        question="Does treatment raise the score?",
        requester="anna",
        schema=schema,
        estimator=DifferenceInMeans(),
        epsilon=1.0,
        pooling="sums",
        aggregation="secure",
        secure={"honest": 2, "colluding": 1},
        sites=keys,
    )
    for folder in folders.values():
        approve_study(folder, study)
    roster = Roster({name: Member(key, units=200) for name, key in keys.items()})
    with Federation(tmp_path / "kits", folders) as federation:
        store = tmp_path / "requests.db"
        coordinator = Coordinator(study.to_toml(), roster, anna, federation.transport, store=store, timeout=240.0)
        effect = coordinator.run()
    assert effect.n == 600
    assert "secure sums of 3 of 3 sites" in effect.method
    for folder in folders.values():
        entries = Site(folder).ledger().entries()
        assert [entry.kind for entry in entries].count("debit") == 1
