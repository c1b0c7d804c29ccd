"""What a site's policy says about secure sums holds before anything is paid, whatever people approved."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from dpcausal import DifferenceInMeans, Study
from dpcausal.errors import StudyError
from dpcausal.federation.protocol.messages import Message, Request, Step
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.federation.site.policy import FILE
from dpcausal.federation.site.site import Site
from dpcausal.ledger import Ledger
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.site_folders import allow_secure_sums, approve_study, confirm_settings, make_site_folder

NAMES = ("east", "north", "west")
OTHER = "5a" * 32


@pytest.fixture
def anna(tmp_path: Path) -> Key:
    return Key.make("anna", tmp_path / "anna.key")


@pytest.fixture
def study(tmp_path: Path, anna: Key) -> Study:
    """A study of three sites with secure sums, which people at north approved."""
    schema = standard_schema()
    folders = {name: tmp_path / name for name in NAMES}
    keys = {
        name: make_site_folder(
            folder, name, synthetic_table(schema, 100), schema, {"anna": anna.public}, witness="witness.log"
        )
        for name, folder in folders.items()
    }
    allow_secure_sums(folders, colluding=1)
    made = Study(
        name="scores",
        question="?",
        requester="anna",
        schema=schema,
        estimator=DifferenceInMeans(),
        epsilon=1.0,
        pooling="sums",
        aggregation="secure",
        secure={"honest": 2, "colluding": 1},
        sites=keys,
    )
    approve_study(tmp_path / "north", made)
    return made


def changed(folder: Path, **changes: Any) -> Site:
    """Return the site with another policy: None removes a line, and a table is merged."""
    policy = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
    for name, value in changes.items():
        policy[name] = policy[name] | value if isinstance(value, dict) else value
    kept = {name: value for name, value in policy.items() if value is not None}
    (folder / FILE).write_text(tomli_w.dumps(kept), encoding="utf-8")
    return Site(folder)


def answer(site: Site, study: Study, anna: Key, step: Step) -> str:
    """Return the code with which a site answers a round."""
    return Message.from_json(claimed_body(site.answer(anna.seal(Request(study=study.text, ask=step).to_json())))).code


def listed(study: Study, **changes: str | None) -> dict[str, dict[str, str]]:
    sites = {**study.sites, **changes}
    return {"sites": {name: key for name, key in sites.items() if key is not None}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"secure_sums": None}, "secure sums are not allowed: the policy has no table [secure_sums]"),
        ({"witness": None}, "secure sums need a witness of the ledger, and the policy names none"),
        ({"secure_sums": {"honest": 3}}, "honest is 2, the policy requires at least 3"),
        ({"secure_sums": {"colluding": 2}}, "colluding is 1, the policy requires at least 2"),
        (
            {"secure_sums": {"west": None}},
            "colluding is 1, the policy requires at least 2, 1 of them because it does not list west",
        ),
        ({"secure_sums": {"west": OTHER}}, "keys that are not those in the policy: west"),
    ],
)
def test_secure_sum_beyond_the_policy_is_refused_unpaid(
    study: Study, anna: Key, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    terms = changes.get("secure_sums")
    if terms and "west" in terms:
        changes = {"secure_sums": listed(study, **terms)}
    folder = tmp_path / "north"
    site = changed(folder, **changes)
    assert ("policy", words) in site.review(study.digest).lines()
    for step in ("keys", "shares", "masked", "confirm", "unmask"):
        assert answer(site, study, anna, step) == "not_allowed"
    assert not (folder / "sessions").exists()
    assert Ledger(f"sqlite:///{folder / 'ledger.db'}", witness=str(folder / "witness.log")).spent.epsilon == 0


def test_site_that_is_not_listed_counts_as_one_that_colludes(study: Study, anna: Key, tmp_path: Path) -> None:
    assert answer(Site(tmp_path / "north"), study, anna, "keys") == "answered"
    site = changed(tmp_path / "north", secure_sums={"colluding": 0, **listed(study, west=None)})
    confirm_settings(tmp_path / "north")
    assert answer(site, study, anna, "keys") == "answered"


def test_review_shows_whole_keys_and_what_the_policy_says_about_them(study: Study, tmp_path: Path) -> None:
    site = changed(tmp_path / "north", secure_sums=listed(study, west=OTHER, east=None))
    text = str(site.review(study.digest))
    assert f"east: public key {study.sites['east']}, not in the policy" in " ".join(text.split())
    assert f"north: public key {study.sites['north']}, this site" in " ".join(text.split())
    assert f"west: public key {study.sites['west']}, not as in the policy" in " ".join(text.split())


@pytest.mark.parametrize(
    "terms",
    [
        {"honest": 1},
        {"honest": 2.0},
        {"honest": True},
        {"colluding": -1},
        {"sites": {"west": "short"}},
        {"sites": {"../west": OTHER}},
        {"sites": []},
        {"least": 2},
    ],
)
def test_terms_that_are_none_are_refused(study: Study, tmp_path: Path, terms: dict[str, Any]) -> None:
    assert study.secure_settings is not None
    with pytest.raises(StudyError, match="secure_sums"):
        changed(tmp_path / "north", secure_sums=terms)
