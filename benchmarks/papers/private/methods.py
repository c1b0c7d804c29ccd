"""Who is compared in Figure 2: both levels as printed and as they are here, the paper's competitors, plain baselines.

As printed, competitors see all covariates and bounds of the table's own, as in the paper. Those of this library, and
those that were put right, see public bounds and a short list of covariates, each of which costs them accuracy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from benchmarks.accuracy.references import features_as_in_library
from benchmarks.datasets import DataSet, load
from benchmarks.papers.private import ours, printed
from benchmarks.papers.private.grid import DELTA, MANY, OWN_COEFFICIENT, PAPER_COEFFICIENT, USUAL, Level, Setting
from benchmarks.papers.private.printed import Floats, Units
from benchmarks.peers import PEERS, Study
from dpcausal.results.effect import Estimator
from tests.support.engines import CachedEngine


@dataclass(frozen=True)
class Ask:
    """A question to a method: which data, at which epsilon, how often, with which numbers."""

    data: str
    folder: str | None
    epsilon: float
    repeats: int
    generator: Generator


@dataclass(frozen=True)
class Method:
    """A line of Figure 2.

    Attributes:
        label: What to call it.
        level: What is protected.
        estimates: What it gives.
        private: Whether it protects what it promises.
        free: Whether repeats cost next to nothing, so that there are many.
        paper: What the paper's tables call it; empty where it has no such line.
    """

    label: str
    level: Level
    estimates: Callable[[Ask], Floats]
    private: bool = True
    free: bool = False
    paper: str = ""

    def repeats(self, usual: int) -> int:
        """Return how often to ask."""
        return max(usual, MANY) if self.free else usual


@cache
def units(name: str, folder: str | None) -> Units:
    """Return a data set as the paper's algorithm sees it."""
    return Units.of(load(name, folder))


def _coefficient(level: Level, *, paper: bool) -> Setting:
    return None, (PAPER_COEFFICIENT if paper else OWN_COEFFICIENT)[level]


def _printed_label(ask: Ask) -> Floats:
    setting = _coefficient("label", paper=True)
    return printed.label(units(ask.data, ask.folder), ask.epsilon, USUAL, setting, ask.repeats, ask.generator)


def _printed_sample(ask: Ask) -> Floats:
    of, setting = units(ask.data, ask.folder), _coefficient("sample", paper=True)
    return np.array([printed.sample(of, ask.epsilon, USUAL, setting, ask.generator) for _ in range(ask.repeats)])


def _label(ask: Ask, *, private: bool, paper: bool) -> Floats:
    at = ours.scene(ask.data, ask.folder, "label", private=private)
    return ours.label(at, ask.epsilon, USUAL, _coefficient("label", paper=paper), ask.repeats)


def _sample(ask: Ask) -> Floats:
    at = ours.scene(ask.data, ask.folder, "sample")
    return ours.sample(at, ask.epsilon, ours.matching(at, USUAL, _coefficient("sample", paper=False)), ask.repeats)


def _by(
    make: Callable[[DataSet], Estimator], reads: Callable[[DataSet], Sequence[str]], delta: float = 0.0
) -> Callable[[Ask], Floats]:
    """Return an estimator of this library at sample level, with the covariates that it needs."""

    def estimates(ask: Ask) -> Floats:
        data = only(load(ask.data, ask.folder), reads(load(ask.data, ask.folder)))
        schema = data.schema("record")
        at = ours.Scene(data, schema, CachedEngine(data.relation(), schema))
        return np.array(
            [make(data).estimate(at.source, epsilon=ask.epsilon, delta=delta).estimate for _ in range(ask.repeats)]
        )

    return estimates


def _peer(name: str, *, short: bool) -> Callable[[Ask], Floats]:
    """Return an estimator of other authors, with all covariates or with a short list."""

    def estimates(ask: Ask) -> Floats:
        study = study_of(ask.data, ask.folder, short=short)
        ask_peer = PEERS[name].estimate
        return np.array([ask_peer(study, ask.epsilon, DELTA, ask.generator).estimate for _ in range(ask.repeats)])

    return estimates


def only(data: DataSet, names: Sequence[str]) -> DataSet:
    """Return a data set with some of its covariates."""
    return replace(data, covariates=tuple(column for column in data.covariates if column.name in names))


@cache
def study_of(name: str, folder: str | None, *, short: bool) -> Study:
    """Return a data set as peers see it, with public bounds applied."""
    data = load(name, folder)
    kept = only(data, data.short) if short else data
    low, high = kept.schema("record").outcome_bounds
    arms = kept.column(kept.treatment.name).astype(np.int64)
    outcomes = np.clip(kept.column(kept.outcome.name).astype(float), low, high)
    return Study(arms, features_as_in_library(kept), outcomes, low, high)


def _short(data: DataSet) -> Sequence[str]:
    return data.short


def _strata(data: DataSet) -> Sequence[str]:
    return [cut if isinstance(cut, str) else cut.name for cut in data.strata]


METHODS: dict[str, Method] = {
    "label": Method(
        "PrivATE label, here",
        "label",
        lambda ask: _label(ask, private=True, paper=False),
        free=True,
        paper="PrivATE (label)",
    ),
    "label_own_bounds": Method(
        "PrivATE label, here, with the table's own bounds",
        "label",
        lambda ask: _label(ask, private=False, paper=False),
        private=False,
        free=True,
    ),
    "label_printed": Method(
        "PrivATE label, as printed", "label", _printed_label, private=False, free=True, paper="PrivATE (label)"
    ),
    "sample": Method("PrivATE sample, here", "sample", _sample, paper="PrivATE (sample)"),
    "sample_printed": Method(
        "PrivATE sample, as printed", "sample", _printed_sample, private=False, paper="PrivATE (sample)"
    ),
    "ipw_printed": Method(
        "IPW-PP, as printed", "sample", _peer("weighting_printed", short=False), private=False, paper="IPW-PP"
    ),
    "ipw": Method(
        "IPW-PP, corrected, here",
        "sample",
        _by(lambda data: dpc.InverseWeighting(covariates=data.short, scores="output"), _short, DELTA),
        paper="IPW-PP",
    ),
    "smooth": Method(
        "SmoothDPM, corrected, here",
        "sample",
        _by(lambda data: dpc.ExactMatching(by=data.strata), _strata, DELTA),
        paper="SmoothDPM",
    ),
    "dpci_printed": Method(
        "DPCI, models as if public", "sample", _peer("output_printed", short=False), private=False, paper="DPCI"
    ),
    "dpci_constant": Method(
        "DPCI, models as if public, its authors' constant",
        "sample",
        _peer("output_printed_constant", short=False),
        private=False,
        paper="DPCI",
    ),
    "dpci": Method("DPCI, models paid for", "sample", _peer("output_corrected", short=True), paper="DPCI"),
    "difference": Method("difference in means, here", "sample", _by(lambda _: dpc.DifferenceInMeans(), lambda _: ())),
    "stratification": Method(
        "stratification, here", "sample", _by(lambda data: dpc.Stratification(by=data.strata), _strata)
    ),
    "weighting": Method(
        "weighting, here", "sample", _by(lambda data: dpc.InverseWeighting(covariates=data.short), _short)
    ),
}
"""Every method by a short name."""
