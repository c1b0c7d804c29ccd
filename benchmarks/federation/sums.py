"""Regression adjustment over four sites against the same at one vault that holds all of their units.

Each site adds noise of its own, so that nobody need be trusted with the sums. That should cost the square root of the
number of sites in noise, and nothing else: with the noise taken away both release the same, bit for bit, and estimate
the same once they are told that there is none.
"""

import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import dpcausal as dpc
from benchmarks.progress import progress
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.protocol.transport import LocalTransport
from dpcausal.federation.site.site import Site
from dpcausal.queries import Query
from dpcausal.release import Noisy
from dpcausal.source import WrappedSource
from dpcausal.vault.noise import Sampler
from tests.support.site_folders import approve_study, make_site_folder

UNITS = 20_000
TRUTH = 4.0


def patients(n: int, seed: int) -> pa.Table:
    """Return a made-up table: older patients are treated more often, and have higher scores."""
    draw = np.random.default_rng(seed)
    age, severity = draw.uniform(18, 90, n), draw.uniform(0, 1, n)
    treated = draw.random(n) < 1 / (1 + np.exp(-(age - 54) / 36 - severity + 0.5))
    score = 40 + 0.2 * (age - 54) + 10 * severity + TRUTH * treated + draw.normal(0, 8, n)
    return pa.table({"treated": treated.astype(int), "score": score, "age": age, "severity": severity})


def study_of(estimator: Any, epsilon: float, delta: float) -> dpc.Study:  # noqa: ANN401 (an estimator)
    """Return the study that all sites approve."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("treated", undeclared=0),
        outcome=dpc.Real("score", 0, 100),
        covariates=[dpc.Real("age", 18, 90), dpc.Real("severity", 0, 1)],
    )
    return dpc.Study(
        name="scores",
        question="Does the treatment raise the score?",
        requester="anna",
        schema=schema,
        estimator=estimator,
        epsilon=epsilon,
        delta=delta,
        pooling="sums",
    )


@dataclass(frozen=True)
class Federation:
    """Some sites in this process, whose ledgers and answers can be thrown away, so that they draw noise anew."""

    folder: Path
    study: dpc.Study
    roster: Roster
    key: Key
    transport: LocalTransport

    @classmethod
    def of(cls, folder: Path, tables: list[pa.Table], study: dpc.Study) -> "Federation":
        """Sites with these tables, each of which has approved the study."""
        key = Key.make("anna", folder / "anna.key")
        members, answers = {}, {}
        for place, table in enumerate(tables):
            name = f"site{place}"
            public = make_site_folder(folder / name, name, table, study.schema, {"anna": key.public})
            approve_study(folder / name, study)
            members[name], answers[name] = Member(public), Site(folder / name).answer
        return cls(folder, study, Roster(members), key, LocalTransport(answers))

    def coordinator(self) -> dpc.Coordinator:
        """All sites together, asked anew: with fresh noise."""
        for site in self.folder.glob("site*"):
            (site / "ledger.db").unlink(missing_ok=True)
            shutil.rmtree(site / "messages", ignore_errors=True)
        return dpc.Coordinator(self.study.to_toml(), self.roster, self.key, self.transport, store=":memory:")


def pooled(table: pa.Table, study: dpc.Study) -> dpc.Vault:
    """One vault with all units."""
    budget = dpc.Budget(epsilon=study.epsilon, delta=study.delta)
    return dpc.Vault(table, study.schema, ledger="sqlite://", budget=budget)


class Noiseless(WrappedSource):
    """A source whose releases state no noise, for one whose noise is off."""

    def release(self, query: Query, guarantee: dpc.Guarantee) -> dpc.Release:
        """Return the other source's answer, stated to be without noise."""
        release = super().release(query, guarantee)
        return replace(release, scales=(0.0,) * len(release.scales), parts=1)


@contextmanager
def noise_off() -> Iterator[None]:
    """No noise in any vault of this process. Nothing that comes out meanwhile is private."""
    with mock.patch.object(Sampler, "add_noise", lambda _sampler, ticks, _noise: Noisy(tuple(ticks))):
        yield


def measure(folder: Path, runs: int, sites: int = 4) -> dict[str, Any]:
    """Error of both against the same without noise and against the truth, over tables drawn anew each time."""
    found: dict[str, Any] = {"sites": sites, "units": UNITS, "runs": runs, "theory": math.sqrt(sites)}
    for name, delta in (("laplace", 0.0), ("gaussian", 1e-6)):
        study = study_of(dpc.RegressionAdjustment(covariates=("age", "severity")), 1.0, delta)
        tried = [
            _run(folder / f"{name}{run}", patients(UNITS, run), study, sites)
            for run in progress(range(runs), runs, f"sums, {name}")
        ]
        found[name] = {who: _summary([run[place] for run in tried]) for place, who in enumerate(("sites", "pooled"))}
        found[name]["ratio"] = found[name]["sites"]["privacy_error"] / found[name]["pooled"]["privacy_error"]
        found[name]["equal_releases_without_noise"] = sum(run[0].values == run[1].values for run in tried)
        found[name]["equal_estimates_without_noise"] = sum(run[0].exact == run[1].exact for run in tried)
    return found


@dataclass(frozen=True)
class _Tried:
    """One estimate, and the release and the estimate without noise."""

    effect: dpc.Effect
    values: tuple[float, ...]
    exact: tuple[float, float | None]


def _run(folder: Path, table: pa.Table, study: dpc.Study, sites: int) -> tuple[_Tried, _Tried]:
    folder.mkdir()
    size = len(table) // sites
    federation = Federation.of(folder, [table.slice(part * size, size) for part in range(sites)], study)
    return _tried(federation.coordinator, study), _tried(lambda: pooled(table, study), study)


def _tried(opened: Callable[[], dpc.Source], study: dpc.Study) -> _Tried:
    with noise_off():
        source = opened()
        values = source.release(*study.questions()[0][:2]).values
        exact = study.estimator.estimate(Noiseless(source), epsilon=study.epsilon, delta=study.delta)
    effect = study.estimator.estimate(opened(), epsilon=study.epsilon, delta=study.delta)
    return _Tried(effect, values, (exact.estimate, exact.sampling_sd))


def _summary(tried: list[_Tried]) -> dict[str, float]:
    effects = [each.effect for each in tried]
    intervals = [effect.interval() for effect in effects]
    return {
        "privacy_error": _root_mean_square([each.effect.estimate - each.exact[0] for each in tried]),
        "privacy_sd_told": float(np.mean([effect.privacy_sd for effect in effects])),
        "error_to_truth": _root_mean_square([effect.estimate - TRUTH for effect in effects]),
        "covered": float(np.mean([low <= TRUTH <= high for low, high in intervals])),
        "width": float(np.mean([high - low for low, high in intervals])),
    }


def _root_mean_square(errors: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
