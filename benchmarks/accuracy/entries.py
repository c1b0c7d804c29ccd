"""What is compared: every estimator of the library, at the levels of privacy where it applies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import dpcausal as dpc
from benchmarks.datasets import DataSet
from dpcausal.effect import Estimator
from dpcausal.schema import Protects

EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
DELTA = 1e-5


@dataclass(frozen=True)
class Entry:
    """An estimator as it is entered into the comparison.

    Attributes:
        label: What to call it.
        protects: The level of privacy.
        make: The estimator for a data set.
        reads: The covariates that it needs, which are all that its schema declares.
        delta: The delta that it is asked with.
        fits: Whether it fits a score to all covariates, which takes long on a wide table.
        not_private: Whether bounds come from the data, which no private estimate may do.
    """

    label: str
    protects: Protects
    make: Callable[[DataSet], Estimator]
    reads: Callable[[DataSet], Sequence[str]]
    delta: float = 0.0
    fits: bool = False
    not_private: bool = False

    @property
    def key(self) -> str:
        """A name that no other entry has."""
        return f"{self.protects}: {self.label}"

    def data(self, data: DataSet) -> DataSet:
        """Return the data set with the columns that this entry needs."""
        names = set(self.reads(data))
        narrow = replace(data, covariates=tuple(column for column in data.covariates if column.name in names))
        return narrow.not_private_bounds() if self.not_private else narrow


def _none(_: DataSet) -> Sequence[str]:
    return ()


def _strata(data: DataSet) -> Sequence[str]:
    return [cut if isinstance(cut, str) else cut.name for cut in data.strata]


def _short(data: DataSet) -> Sequence[str]:
    return data.short


def _all(data: DataSet) -> Sequence[str]:
    return data.names


def _matching(data: DataSet) -> Estimator:
    return dpc.PropensityMatching(covariates=data.names)


NOT_PRIVATE = "range from the data (NOT private)"

ENTRIES: dict[str, Entry] = {
    entry.key: entry
    for entry in (
        Entry("difference in means", "record", lambda _: dpc.DifferenceInMeans(), _none),
        Entry("stratification", "record", lambda data: dpc.Stratification(by=data.strata), _strata),
        Entry("exact matching, smooth", "record", lambda data: dpc.ExactMatching(by=data.strata), _strata, DELTA),
        Entry("exact matching, global", "record", lambda data: dpc.ExactMatching(by=data.strata), _strata),
        Entry("weighting ATE, short list", "record", lambda data: dpc.InverseWeighting(covariates=data.short), _short),
        Entry(
            "weighting ATE, short list, output",
            "record",
            lambda data: dpc.InverseWeighting(covariates=data.short, scores="output"),
            _short,
            DELTA,
        ),
        Entry(
            "weighting ATO, short list",
            "record",
            lambda data: dpc.InverseWeighting(covariates=data.short, estimand="ATO"),
            _short,
        ),
        Entry(
            "weighting ATE, all", "record", lambda data: dpc.InverseWeighting(covariates=data.names), _all, fits=True
        ),
        Entry(
            "weighting ATE, all, output",
            "record",
            lambda data: dpc.InverseWeighting(covariates=data.names, scores="output"),
            _all,
            DELTA,
            fits=True,
        ),
        Entry("propensity matching", "record", _matching, _all, fits=True),
        Entry(f"propensity matching, {NOT_PRIVATE}", "record", _matching, _all, fits=True, not_private=True),
        Entry("difference in means", "outcome", lambda _: dpc.DifferenceInMeans(), _none),
        Entry("stratification", "outcome", lambda data: dpc.Stratification(by=data.strata), _strata),
        Entry("propensity matching", "outcome", _matching, _all, fits=True),
        Entry(f"propensity matching, {NOT_PRIVATE}", "outcome", _matching, _all, fits=True, not_private=True),
    )
}
