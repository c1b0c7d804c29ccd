import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

import dpcausal as dpc
from checks import passed
from checks.closure import Sources
from dpcausal.queries.calibration import Noise, NoiseShare
from dpcausal.release import Noisy
from dpcausal.vault.noise import Sampler
from tests.support.accounts import IMPORTS, Accounts
from tests.support.collecting import Collecting
from tests.support.noise import SeededNoise, made_once, seeded
from tests.support.pooled_databases import pooled_databases
from tests.support.postgres import VARIABLE, fresh_database

# The gate tries the same examples in every run; `make slow` searches for others.
settings.register_profile(
    "gate", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gate")

# Once a test has started Spark, its bridge to Java logs in later tests of the process, when objects are collected.
logging.getLogger("py4j").setLevel(logging.WARNING)

# Commands are made from their functions once, and not at each call.
vars(typer.testing)["_get_command"] = cache(typer.main.get_command)

LONGEST_FIRST = (
    *("group federation", "group audit", "group postgresql", "group spark", "group statistics", "group mailbox"),
    *("federation/transports", "documents", "testing", "benchmarks"),
)
"""Groups of tests, then folders, that wait or take longest; files follow by their stored seconds, the longest first."""

REAL_NOISE = {"audit", "federation/transports", "ledger", "privacy", "vault"}
"""The folders of tests that draw noise as it is in production."""

LONGEST_NAME = 800
"""Characters of a test's name. Names go from worker to worker, and into the environment of each process."""

POOLED_DATABASES = {
    *("diagnostics", "estimators", "experiment", "federation", "inference", "interop", "planning", "pooling"),
    *("privacy", "rehearsal", "report", "study", "testing"),
}
"""The folders of tests that open so many small tables that making databases would take most of their time."""


def pytest_configure(config: pytest.Config) -> None:
    sources = Sources(found=getattr(config, "workerinput", {}).get(IMPORTS))
    config.pluginmanager.register(Accounts(leaves_out="costly" not in config.option.markexpr, sources=sources))
    config.pluginmanager.register(Collecting())


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long text by its beginning and its length."""
    return f"{val[:50]!r} and so on, {len(val):,}" if isinstance(val, str | bytes) and len(val) > 200 else None


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each file on one worker, so that its tests share fixtures and caches, and start with what takes longest."""
    seconds = passed.seconds_of_files()
    for item in items:
        if len(item.nodeid) > LONGEST_NAME:
            raise pytest.UsageError(f"give the cases of a test short ids: {item.nodeid[:200]}…")
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))

    def place(item: pytest.Item) -> tuple[int, float]:
        groups = [f"group {mark.args[0]}" for mark in item.iter_markers("xdist_group")]
        names = [name for name in (*groups, *_within_tests(item.path)) if name in LONGEST_FIRST]
        own = seconds.get(item.nodeid.partition("::")[0], 0.0)
        return (LONGEST_FIRST.index(names[0]), 0.0) if names else (len(LONGEST_FIRST), -own)

    items.sort(key=place)


def _within_tests(path: Path) -> list[str]:
    """Return the folders of a file of tests, and the file, each as a path from here."""
    folder = Path(__file__).parent
    within = path.relative_to(folder) if path.is_relative_to(folder) else Path()
    return [each.as_posix() for each in (*within.parents, within)]


@pytest.fixture(scope="module", autouse=True)
def seeded_noise(request: pytest.FixtureRequest) -> Iterator[SeededNoise | None]:
    """In all other folders noise comes from a seed, also for what a module's tests share."""
    if REAL_NOISE.intersection(_within_tests(request.path)):
        with made_once():
            yield None
        return
    with seeded() as noise:
        yield noise


@pytest.fixture(scope="module", autouse=True)
def used_databases(request: pytest.FixtureRequest) -> Iterator[None]:
    """In some folders a table is opened in the database of one that was closed."""
    with pooled_databases() if POOLED_DATABASES.intersection(_within_tests(request.path)) else nullcontext():
        yield


@pytest.fixture(autouse=True)
def same_noise_in_every_run(seeded_noise: SeededNoise | None) -> None:
    """Let what a test draws not depend on the tests before it."""
    if seeded_noise:
        seeded_noise.reseed()


@pytest.fixture
def schema() -> dpc.Schema:
    return dpc.Schema(
        treatment=dpc.Treatment("treat", labels=("usual care", "training"), undeclared=0),
        outcome=dpc.Real("score", 0, 10),
        covariates=[dpc.Real("age", 16, 60), dpc.Category("race", ["black", "hispanic", "other"])],
    )


@pytest.fixture
def table() -> pa.Table:
    """A made-up trial of 1,000 units with an effect of 2."""
    generator = np.random.default_rng(0)
    treat = generator.integers(0, 2, 1000)
    return pa.table(
        {
            "treat": treat,
            "score": np.clip(generator.normal(4 + 2 * treat, 1.5), 0, 10),
            "age": generator.uniform(10, 70, 1000),
            "race": generator.choice(["black", "hispanic", "other", "unheard of"], 1000),
        }
    )


# One test at a time talks to PostgreSQL: one of them changes the server's settings.
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))


@pytest.fixture(params=["memory", "file", POSTGRESQL])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty ledger of each kind."""
    if request.param == "postgresql":
        if VARIABLE not in os.environ:
            pytest.skip(f"no PostgreSQL server: {VARIABLE} is not set; see CONTRIBUTING.md")
        with fresh_database() as url:
            yield url
    else:
        yield "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def _no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave all noise out."""

    def shared(_: Sampler, ticks: Sequence[int], __: NoiseShare) -> list[int]:
        return list(ticks)

    def added(_: Sampler, ticks: Sequence[int], __: Noise) -> Noisy:
        return Noisy(tuple(ticks))

    monkeypatch.setattr(Sampler, "add_noise_share", shared)
    monkeypatch.setattr(Sampler, "add_noise", added)


@pytest.fixture
def vault(table: pa.Table, schema: dpc.Schema) -> dpc.Vault:
    return dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=10, delta=1e-5))
