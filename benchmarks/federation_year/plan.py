"""What happens in the year, drawn from a seed: forty studies of all kinds, and what people and machines do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.testing import standard_schema

PROCESSES = ("north",)
"""Sites that are processes of `dpcausal site poll`."""
OLDER = {"east": 110, "west": 230}
"""Sites that are processes of an older version, and the days on which they are upgraded."""
LIGHT = ("south", "lake", "moor", "hill")
"""Sites in the process of the benchmark. They sign, send, decide and pay as others do; only their process is shared."""
SITES = (*PROCESSES, *OLDER, *LIGHT)
SECURE = ("north", "lake", "moor", "hill")
"""Sites that take part in secure sums: those with a witness that speak the present version from the start."""
DAYS = 364
STUDIES = 40


@dataclass(frozen=True)
class Asked:
    """A study of the year.

    Attributes:
        day: The day on which it is asked.
        kind: Its estimator and its pooling, in words.
        fate: What happens to it: `plain`, `rejected` by a site, `withdrawn` before a site that is off could answer,
            `late` at a site that is off until its deadline has passed, or `lapsed`: approvals expired before it was
            asked.
        site: The site to which that happens.
        kill: What is killed while it is asked: `server`, a site, `coordinator`, or nothing.
        place: Its place in the year.
    """

    day: int
    kind: str
    fate: str
    site: str
    kill: str
    place: int

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that are asked.

        A doubly robust study is other queries in the older version: a site of it would pay for what does not count.
        """
        if self.kind.startswith("doubly robust"):
            return tuple(site for site in SITES if OLDER.get(site, 0) <= self.day)
        return SECURE if self.is_secure else SITES

    @property
    def is_secure(self) -> bool:
        """Whether only the sum over sites is opened."""
        return self.kind.startswith("secure")

    def study(self, keys: Mapping[str, str]) -> dpc.Study:
        """Return the study, at a price that no other has, for sites with these public keys."""
        estimator, pooling = KINDS[self.kind]
        terms: dict[str, Any] = {}
        if self.is_secure:
            terms = {"aggregation": "secure", "secure": {"honest": 3, "colluding": 0}}
            terms |= {"sites": {each: keys[each] for each in SECURE}}
            terms |= {"secondary": _SECONDARY} if "experiment" in self.kind else {}
        return dpc.Study(
            name=f"study {self.place + 1}",
            question="Does treatment raise the score?",
            requester="anna",
            schema=standard_schema(),
            estimator=estimator,
            epsilon=round(0.5 + self.place / 1000, 6),
            pooling=pooling,  # type: ignore[arg-type]
            **terms,
        )


_FORMULA = dpc.FormulaEstimator(
    estimand="mean difference in score for one more year of age",
    formula="covariance(age, score) / variance(age)",
    contrast=("an age", "a year more"),
)
KINDS: Mapping[str, tuple[Any, str]] = {
    "difference in means, minimum variance": (dpc.DifferenceInMeans(), "minimum_variance"),
    "difference in means, sums": (dpc.DifferenceInMeans(), "sums"),
    "strata, minimum variance": (dpc.Stratification(by=["ward"], cap=3), "minimum_variance"),
    "regression adjustment, sums": (dpc.RegressionAdjustment(covariates=("age",)), "sums"),
    "inverse weighting, automatic": (dpc.InverseWeighting(covariates=("age",)), "automatic"),
    "doubly robust, random effects": (dpc.DoublyRobust(covariates=("age", "smoker")), "random_effects"),
    "quantiles, minimum variance": (dpc.QuantileEffects(bins=20), "minimum_variance"),
    "own sums": (_FORMULA, "sums"),
    "secure sums": (dpc.DifferenceInMeans(), "sums"),
    "secure sums with a curve and an experiment": (dpc.DifferenceInMeans(), "sums"),
}
_SECONDARY = {
    "by_ward": {"name": "subgroup_effects", "by": ["ward"], "epsilon": 0.1},
    "metrics": {"name": "experiment", "metrics": [{"column": "score"}], "epsilon": 0.1},
}
_FATES = ("plain",) * 4 + ("rejected", "plain", "withdrawn", "plain", "late", "lapsed")
_KILLS = ("", "server", "", "north", "coordinator", "", "east", "server", "", "coordinator")


def studies(seed: int) -> list[Asked]:
    """Return the studies of the year, in their order: of every seed the same ones, with other days and other fates."""
    draw = np.random.default_rng(seed)
    kinds, fates, kills = list(KINDS) * 4, list(_FATES) * 4, list(_KILLS) * 4
    for drawn in (kinds, fates, kills):
        draw.shuffle(drawn)
    days = np.sort(draw.choice(np.arange(4, DAYS - 50), STUDIES, replace=False))
    found = []
    for place, (day, kind, fate, kill) in enumerate(zip(days, kinds, fates, kills, strict=True)):
        among = SECURE if kind.startswith(("secure", "doubly")) or fate == "lapsed" else SITES
        site = str(draw.choice([each for each in among if each != kill]))
        # A secure sum needs its sites at once: none of them is late, and none of its approvals lapses.
        now = "plain" if kind.startswith("secure") and fate in ("late", "lapsed") else fate
        found.append(Asked(int(day), kind, now, site, kill, place))
    return found
