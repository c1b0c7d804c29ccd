from pathlib import Path

import pytest

from dpcausal import Study
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.site import Site
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.site_folders import example_study, make_site_folder

SCHEMA = standard_schema()


@pytest.fixture
def requester(tmp_path: Path) -> Key:
    return Key.make("anna", tmp_path / "anna.key")


@pytest.fixture
def folder(tmp_path: Path, requester: Key) -> Path:
    make_site_folder(
        tmp_path / "north",
        "north",
        synthetic_table(SCHEMA, 400),
        SCHEMA,
        {"anna": requester.public},
        epsilon_per_study=2.0,
        budget={"epsilon": 3.0},
        minimum_units=100,
    )
    return tmp_path / "north"


@pytest.fixture
def north(folder: Path) -> Site:
    return Site(folder)


@pytest.fixture
def study() -> Study:
    return example_study(SCHEMA)
