import shutil
from pathlib import Path

import pytest

from dpcausal import Study
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.site import Site
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.site_folders import example_study, make_site_folder

SCHEMA = standard_schema()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A requester and a site, to be copied for each test."""
    folder = tmp_path_factory.mktemp("site")
    make_site_folder(
        folder / "north",
        "north",
        synthetic_table(SCHEMA, 400),
        SCHEMA,
        {"anna": Key.make("anna", folder / "anna.key").public},
        epsilon_per_study=2.0,
        budget={"epsilon": 3.0},
        minimum_units=100,
    )
    return folder


@pytest.fixture
def requester(made: Path, tmp_path: Path) -> Key:
    return Key.read("anna", Path(shutil.copy(made / "anna.key", tmp_path)))


@pytest.fixture
def folder(made: Path, tmp_path: Path, requester: Key) -> Path:
    return Path(shutil.copytree(made / "north", tmp_path / "north"))


@pytest.fixture
def north(folder: Path) -> Site:
    return Site(folder)


@pytest.fixture
def study() -> Study:
    return example_study(SCHEMA)
