"""Both arms' counts, weighted by the inverse of a private propensity score, with their joint error.

Survival and quantiles are functions of counts. Here are the counts, the covariance of their sampling errors and all
noise in them: that of the release, and that of the score. Functions follow to first order by their slopes.

`score_noise` says how far an error of the score moves the mean outcome of an arm. Counts need to know where in the
distribution that happens. A covariate moves the share p of a cell in proportion to p m, m a residual of the outcome
that is on average 0: the outcome less its mean, where covariates shift outcomes (exactly for a normal outcome), or the
martingale residual, where they multiply hazards (exactly for proportional hazards). Scaled to a mean outcome that
moves by 1, this is the direction in which counts are corrected, have further noise, and have variance explained.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.interval_policy import arm_below_noise
from dpcausal.estimators.narrower import narrower
from dpcausal.estimators.propensity import score_query
from dpcausal.estimators.score_noise import MOMENTS_SHARE, CovariateSpread, PrivateScore, best_clip, score_share
from dpcausal.guarantee import Guarantee
from dpcausal.queries import CovariateMoments, WeightedCounts
from dpcausal.queries.features import Estimand, feature_names, name_tuple
from dpcausal.release import Receipt, Release
from dpcausal.source import Source
from dpcausal.uncertainty.joint_estimate import JointNoise
from dpcausal.utils.arrays import Array

_MIN_ARM_SHARE = 0.1
"""The least share of the sum of weights that an arm counts as; with weights that balance the arms it is a half."""

_MOST_EXPLAINED = 0.9
"""The largest share of the variance of residuals that covariates may explain."""

_LEAST_CORRELATION = 0.2
"""The least correlation of residuals and outcomes, so that no direction explodes."""

_FILLED = 3.0
"""About how many times as much outcomes vary here as `score_share` takes for granted: public edges follow where they
are, and so noise in the score, which is in proportion to their spread, matters more beside that in the sums."""

_MUCH = 0.05
"""The share of clipped units from which an effect prints it."""

POPULATIONS: dict[Estimand, str] = {
    "ATE": "",
    "ATT": ", among the treated",
    "ATC": ", among the controls",
    "ATO": ", in the overlap population, a unit counting as e (1 - e), e its propensity score",
}
"""Whose distributions are compared, as the end of a sentence."""

FOR_THE_INTERVAL = "for the interval: covariates move the outcome about linearly, and alike in both arms"

_SIGNS: Array = np.array([-1.0, 1.0])

Residuals = Callable[[Array], Array]
"""The residual of each cell, given both arms' shares of all cells."""


@dataclass(frozen=True)
class Weighting:
    """How counts are weighted."""

    covariates: tuple[str, ...]
    estimand: Estimand
    clip: float

    def release(
        self, source: Source, allowed: Guarantee, edges: Sequence[float], event: str, residuals: Residuals
    ) -> "WeightedHistogram":
        """Release moments, a score and counts weighted by it, for a total of `allowed`.

        Args:
            event: The covariate that says what ended follow-up; empty for none.
            residuals: The direction in which covariates move the distribution.
        """
        schema = source.schema
        nothing = [0.0] * len(feature_names(self.covariates, schema))
        plain = WeightedCounts(self.covariates, nothing, self.estimand, self.clip, edges, event)
        plain.sensitivity(schema, "record", "l1")  # raises before anything is spent
        moments = CovariateMoments(self.covariates)
        first, rest = allowed.split(MOMENTS_SHARE)
        first = narrower(moments, source, first, f"outcome * {moments.features(schema)[0]}")
        profile = source.release(moments, first)
        spread = CovariateSpread.of(moments, profile, source)
        # Two arms of so many counts, with outcomes spread evenly over the range.
        noise = 2.25 * math.sqrt(2 * len(plain.counts(schema)) / 3)
        share = score_share(self.covariates, schema, self.estimand, self.clip, noise / _FILLED)
        for_score, last = rest.split(share, pure_first=True)
        fitted = source.release(score_query(self.covariates, schema), for_score)
        score = PrivateScore.of(fitted, schema, spread, source.n)
        clip = best_clip(score, self.estimand, self.clip, noise / last.epsilon)
        query = replace(plain, coefficients=score.scaled(math.sqrt(len(self.covariates) + 1)), clip=clip)
        last = narrower(query, source, last, "beyond_1")
        release = source.release(query, last)
        return replace(
            WeightedHistogram.of(query, release, source, score, residuals),
            guarantee=allowed if first.delta or last.delta else replace(allowed, delta=0.0),
            receipts=(profile.receipt, fitted.receipt, release.receipt),
        )


def check_weighting(covariates: Sequence[str], by: object) -> tuple[str, ...]:
    """Return the covariates of a score; raise where strata are named too."""
    if by:
        raise QueryError(
            expected="strata in by, or covariates of a propensity score, and not both",
            got=f"by={by!r}, covariates={list(covariates)!r}",
            hint="put all into covariates; a listed one may be among them.",
        )
    return name_tuple(covariates)


@dataclass(frozen=True)
class WeightedHistogram:
    """Weighted counts without what clipping leaves in them, and all error in them.

    Attributes:
        counts: The sums of weights by arm and cell.
        shares: Each arm's shares of the cells, none of them negative.
        direction: By arm and cell, how far counts move where the arm's mean outcome moves by 1 half range.
        score_sd: The standard deviation of the score's error in the effect on the mean outcome, in half ranges.
        explained: The variance of the outcome that covariates explain, in half ranges.
        beyond: The share of units whose score is clipped.
    """

    query: WeightedCounts
    release: Release
    counts: Array
    weights: Array
    squares: Array
    shares: Array
    direction: Array
    score_sd: float
    explained: float
    units: float
    beyond: float
    guarantee: Guarantee
    receipts: tuple[Receipt, ...]

    @classmethod
    def of(
        cls,
        query: WeightedCounts,
        release: Release,
        source: Source,
        score: PrivateScore,
        residuals: Residuals,
    ) -> "WeightedHistogram":
        """Return the counts of a query's answer."""
        released = np.array([release.value(name) for name in query.counts(source.schema)]).reshape(2, -1)
        sums = released.sum(axis=1)
        weights = np.maximum(sums, max(_MIN_ARM_SHARE * float(sums.sum()), 1.0))
        positive = np.maximum(released, 0.0) + 1e-9
        shares = positive / positive.sum(axis=1, keepdims=True)
        outcomes = _centres(query, source)
        means = shares @ outcomes
        variances = (shares * (outcomes - means[:, None]) ** 2).sum(axis=1)
        outcome_sd = math.sqrt(float(variances.mean()))
        slopes = score.spread.slopes(outcome_sd, float(means[1] - means[0]) * score.information * score.alignment)
        residual = residuals(shares)
        residual = residual - (shares * residual).sum(axis=1, keepdims=True)
        spread = np.sqrt((shares * residual**2).sum(axis=1))
        along = (shares * residual) @ outcomes
        least = np.maximum(_LEAST_CORRELATION * spread * np.sqrt(variances), 1e-9)
        along = np.where(np.abs(along) < least, np.where(along < 0, -least, least), along)
        direction = weights[:, None] * shares * residual / along[:, None]
        explained = min(
            score.explained(slopes), _MOST_EXPLAINED * float(np.min((along / np.maximum(spread, 1e-9)) ** 2))
        )
        arms, variance = score.arms(query.estimand, query.clip), score.logit_variance
        per_logit = score.alignment * arms.apart / variance if variance > 0 else np.zeros(len(slopes.mean))
        left_in = float(per_logit @ slopes.mean)
        left_in_sd = math.sqrt(float(per_logit**2 @ slopes.variance))
        units = score.spread.units
        squares = np.array([release.value(f"squares_{arm}") for arm in (0, 1)])
        return cls(
            query=query,
            release=release,
            counts=released - _SIGNS[:, None] * left_in / 2 * direction,
            weights=weights,
            squares=np.clip(squares, weights**2 / units, query.largest * weights),
            shares=shares,
            direction=direction,
            score_sd=math.hypot(arms.response * score.noise_sd(slopes), left_in_sd),
            explained=explained,
            units=units,
            beyond=arms.beyond,
            guarantee=release.guarantee,
            receipts=(release.receipt,),
        )

    @property
    def noise_variance(self) -> float:
        """The variance of the noise in each count."""
        return self.release.variance(self.release.names[0])

    @property
    def refusal(self) -> str:
        """Why there is no interval, because an arm may be nearly empty; empty where there is one."""
        noise_sd = math.sqrt(self.counts.shape[1] * self.noise_variance)
        return arm_below_noise(float(self.counts.sum(axis=1).min()), noise_sd, "weight")

    def sampling(self, slopes: Array) -> Array:
        """Return the sampling covariance of functions that do not change where an arm's counts grow in proportion.

        What covariates explain is balanced between the arms by the score, so that only its spread over all units is
        left, which both arms share.

        Args:
            slopes: For each function, its derivatives by the counts, on axes for arms and cells.
        """
        flat = slopes.reshape(len(slopes), -1)
        covariance = (flat * (self.shares * self.squares[:, None]).ravel()) @ flat.T
        moved = np.einsum("fac,ac->fa", slopes, self.direction)
        within = self.explained * self.squares / self.weights**2
        total = moved.sum(axis=1)
        found: Array = covariance - (moved * within) @ moved.T + self.explained / self.units * np.outer(total, total)
        return found

    def noise(self, slopes: Array) -> tuple[JointNoise, ...]:
        """Return the noise in such functions: that of each count, and that of the score."""
        by_counts = slopes.reshape(len(slopes), -1)
        names = self.release.names[: by_counts.shape[1]]
        return (*self.release.joint_noise(names, by_counts), self.score_noise(slopes))

    def score_noise(self, slopes: Array) -> JointNoise:
        """Return the noise of the score in such functions."""
        moved = np.einsum("fac,ac->fa", slopes, self.direction) @ (_SIGNS * self.score_sd / 2)
        return JointNoise("gaussian", tuple(map(float, moved)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the release showed about the score."""
        return (f"scores of about {self.beyond:.0%} of units are beyond the clip",) * (self.beyond > _MUCH)

    @property
    def method(self) -> str:
        """How counts were weighted, as the end of a sentence."""
        clip = self.query.clip
        return (
            f"weighted for the {self.query.estimand} with a private score of {', '.join(self.query.covariates)}, "
            f"clipped to {clip:g} and {1 - clip:g}"
        )


def _centres(query: WeightedCounts, source: Source) -> Array:
    """Return the middle of each cell's interval, in half ranges from the middle of the outcome's range."""
    low, high = source.schema.outcome_bounds
    edges = (2 * np.array([low, *query.edges, high]) - low - high) / (high - low)
    middles = (edges[1:] + edges[:-1]) / 2
    kinds = query.unweighted.kinds(source.schema)
    return np.array([*np.repeat(middles[:-1], kinds), middles[-1]])
