"""What noise, ridge and clipping of a private propensity score do to a weighted estimate, and what can be undone.

All of it is to first order in the error of the score's coefficients, which simulations find to hold to within a few
per cent. Let x be the score's features, e the propensity, W the sum of e (1 - e) over units. Objective perturbation
leaves the weighted sums of features unbalanced between the arms by exactly penalty times coefficients plus tilt. An
outcome with slopes g on x is then off by g times that, over W. Where the score's own equations weight units, a feature
is off by that over the share that weights leave of its sum of squares. The penalty is public and its part is undone in
the coefficients. The tilt is noise of known size. The slopes have a posterior: prior, covariates explain about a
quarter of the outcome's variance; likelihood, released moments with their known noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from dpcausal.estimators.influence_weights import InfluenceWeights
from dpcausal.estimators.interval_policy import MIN_SPREAD_RESOLUTION
from dpcausal.estimators.plausibility import Measured
from dpcausal.estimators.propensity import expected_imbalance, perturbation_of, score_query
from dpcausal.estimators.scale_ends import left_at_ends
from dpcausal.estimators.scaled_features import SCALED_VARIANCE, with_known_variance
from dpcausal.queries import CovariateMoments
from dpcausal.queries.covariate_moments import explained
from dpcausal.queries.features import Estimand, arm_weights, covariates_named, largest_weight
from dpcausal.release import Release
from dpcausal.schema.columns import Category
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, units_compared
from dpcausal.utils.arrays import Array

_LEAST_SPREAD = 0.0005
"""The least variance that a feature counts as."""

_LEAST_SHARE = 0.005
"""The least share of units that a value of a category counts as."""

_MOST_EXPLAINED = 0.95
"""The largest share of the outcome's variance that covariates may explain."""

_SPREADS: Array = np.exp(np.linspace(math.log(_LEAST_SPREAD), 0.0, 90))
_PRIOR: Array = np.exp(-((np.log(_SPREADS * 9) / 1.5) ** 2) / 2)
"""Variances of a number without a scale, in half ranges, and their prior: about 1/9, to within a factor of 4. Bounds
are often far wider than values, so that it hardly counts beside what is released."""

_MOST_ENLARGED = 3.0
"""The most that undoing the ridge multiplies a slope by: where it would be more, the score says too little."""

MOMENTS_SHARE = 0.1
"""The share of epsilon for moments of the covariates: they need to be known to within a quarter only."""

_OVERLAP_CLIP = 0.01
"""The clip of overlap weights, which have no larger noise for it."""

_CLIPS = (1.0, 0.7, 0.5, 0.4, 0.3, 0.2)
"""The clips to choose from, as shares of the largest."""

_LEAST_LOGIT_VARIANCE = 0.5
"""The variance of the score's predictor that a clip is chosen for where it is smaller, or not known yet."""

_PLACES: Array = np.linspace(-8, 8, 241)
_HEIGHTS: Array = np.cosh(_PLACES * math.pi / math.sqrt(12)) ** -2.0
_DENSITY: Array = _HEIGHTS / _HEIGHTS.sum()
"""A logistic law of standard deviation 1 for the predictor: heavier tails than normal, as skewed covariates have."""

_FARTHEST = 700.0
"""Beyond this, exp is not a finite number. Scores are 0 or 1 long before it."""

_NORMAL: Array = np.exp(-(_PLACES**2) / 2) / np.exp(-(_PLACES**2) / 2).sum()
"""A normal law, which shows best in simulations how much a ridge shrinks."""

_STEPS = 4
"""What a ridge has shrunk depends on slopes without it: so many steps are enough to agree on both."""


@dataclass(frozen=True)
class Slopes:
    """The posterior of the outcome's slopes on the features of a score, in half ranges of the outcome."""

    mean: Array
    variance: Array


@dataclass(frozen=True)
class CovariateSpread:
    """Means and variances of a score's features, and their covariances with the outcome, from noisy sums.

    Covariances between covariates are taken to be 0; those between values of one category are known.

    Attributes:
        centre: The mean outcome in half ranges from the middle of its range.
        variances: What a covariance is divided by to be a slope: a variance; for a value of a category, its share.
        with_outcome: The features' covariances with the outcome, in half ranges.
        noise: The variance of the noise in these last, sampling error included.
        parts: The share of the outcome's variance that each feature explains, before anything is known.
        uncertain: The standard deviation of each variance's error, as a share of it.
        hidden: Numbers without a scale of which noise hides how they vary.
        unscaled: The variances of numbers without a scale as they were found, by name.
        ends: The share of a number's confounding that the ends of its scale leave in, where typical values misfit.
    """

    units: float
    centre: float
    means: Array
    variances: Array
    covariance: Array
    with_outcome: Array
    noise: Array
    parts: Array
    uncertain: Array
    hidden: tuple[str, ...] = ()
    unscaled: Mapping[str, Measured] = field(default_factory=dict)
    ends: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, query: CovariateMoments, release: Release, source: Source) -> Self:
        """Return what the released sums say."""
        schema, units = source.schema, units_compared(source, release)
        half = (schema.outcome_bounds[1] - schema.outcome_bounds[0]) / 2
        names = query.features(schema)

        def mean(label: str, size: float = 1.0) -> tuple[float, float]:
            return release.value(label) / units / size, release.variance(label) / (units * size) ** 2

        centre, centre_noise = mean("outcome", half)
        centre = min(max(centre, -1.0), 1.0)
        totals, products = (
            np.array([mean(f"{kind} {name}", size) for name in names])
            for kind, size in (("total of", 1.0), ("outcome *", half))
        )
        means = np.clip(totals[:, 0], -1, 1)
        variances, parts, uncertain = np.ones(len(names)), np.ones(len(names)), np.zeros(len(names))
        hidden, unscaled = [], {}
        covariance = np.zeros((len(names), len(names)))
        place = 0
        for column in covariates_named(query.covariates, schema):
            if isinstance(column, Real):
                lacks, lacks_noise = mean(f"deficit of {column.name}")
                noise = lacks_noise + 4 * means[place] ** 2 * totals[place, 1]
                found = 1 - lacks - totals[place, 0] ** 2 + totals[place, 1]
                made, sd = _scaled_variance(found, noise) if column.scale else _variance(found, noise)
                covariance[place, place] = variances[place] = made
                uncertain[place] = sd / made
                if not column.scale:
                    unscaled[column.name] = Measured(found, math.sqrt(noise))
                    if found < MIN_SPREAD_RESOLUTION * math.sqrt(noise):
                        hidden.append(column.name)
            elif len(column.values) == 2:
                found = 1 - totals[place, 0] ** 2 + totals[place, 1]
                covariance[place, place] = variances[place] = min(max(found, 10 * _LEAST_SHARE), 1.0)
            else:
                block = slice(place, place + len(column.values))
                shares = np.clip(totals[block, 0], _LEAST_SHARE, 1.0)
                means[block] = variances[block] = shares = shares / shares.sum()
                covariance[block, block] = np.diag(shares) - np.outer(shares, shares)
                parts[block] = 1 / len(column.values)
            place += len(column.values) if isinstance(column, Category) and len(column.values) > 2 else 1
        noise_of = products[:, 1] + centre**2 * totals[:, 1] + means**2 * centre_noise + variances / 4 / units
        return cls(
            units=units,
            centre=centre,
            means=means,
            variances=variances,
            covariance=covariance,
            with_outcome=products[:, 0] - centre * means,
            noise=noise_of,
            parts=parts * explained(schema, centre) / len(query.covariates),
            uncertain=uncertain,
            hidden=tuple(hidden),
            unscaled=unscaled,
            ends=left_at_ends(release, source),
        )

    def slopes(self, outcome_sd: float, due_to_effect: Array | float = 0.0) -> Slopes:
        """Return the posterior of the outcome's slopes within arms.

        Args:
            outcome_sd: The outcome's standard deviation, in half ranges.
            due_to_effect: The part of the covariances that the effect of treatment makes.
        """
        outcome_sd = max(outcome_sd, 1e-3)
        within = self.with_outcome - due_to_effect
        seen = within**2 - self.noise
        noise = 2 * self.noise**2 + 4 * np.maximum(seen, 0.0) * self.noise
        explained = float((seen / self.variances).sum() - math.sqrt((noise / self.variances**2).sum())) / outcome_sd**2
        # The prior is widened where covariates explain more beyond doubt: by more than a standard error.
        wider = max(min(explained, _MOST_EXPLAINED) / float(self.parts.sum()), 1.0)
        prior = wider * outcome_sd**2 * self.parts / self.variances
        precision = self.variances**2 / self.noise + 1 / np.maximum(prior, 1e-12)
        return Slopes(self.variances * within / self.noise / precision, 1 / precision)


def _scaled_variance(found: float, noise: float) -> tuple[float, float]:
    """Return the variance of scores on a scale that was found with noise of this variance, and the sd of its error."""
    (made,), (error,) = with_known_variance(np.array([found]), np.array([noise]), [True])
    return min(max(float(made), SCALED_VARIANCE / 4), 1.0), math.sqrt(error)


def _variance(found: float, noise: float) -> tuple[float, float]:
    """Return the posterior mean and sd of a number's variance that was found with noise of this variance."""
    likelihood = -((_SPREADS - found) ** 2) / 2 / max(noise, 1e-12)
    posterior = _PRIOR * np.exp(likelihood - likelihood.max())
    if posterior.max() > 0.9 * posterior.sum():  # noise is below the steps of the list
        return min(max(found, _LEAST_SPREAD), 1.0), math.sqrt(noise)
    posterior /= posterior.sum()
    mean = float(posterior @ _SPREADS)
    return mean, math.sqrt(max(float(posterior @ _SPREADS**2) - mean**2, 0.0))


@dataclass(frozen=True)
class PrivateScore:
    """A propensity score by objective perturbation, with what is known about its error.

    Attributes:
        coefficients: The coefficients of the features as they are, between -1 and 1, the constant first.
        tilt_sds: The standard deviation of the noise in each feature's imbalance, the constant's first.
        enlarged: What undoing the ridge multiplied each slope of the score by, and its noise with it.
        lost: The share of what balancing each feature takes off the sampling variance that weights put back.
        drowned: Whether the ridge leaves too little of a slope to undo it.
    """

    spread: CovariateSpread
    coefficients: Array
    tilt_sds: Array
    enlarged: Array
    lost: Array
    drowned: bool = False

    @classmethod
    def of(cls, release: Release, schema: Schema, spread: CovariateSpread, units: float) -> Self:
        """Return the score of a release without its ridge."""
        perturbation = perturbation_of(release, schema)
        weights = InfluenceWeights.of(perturbation, spread.means, spread.variances)
        ridges = perturbation.ridges / weights.information
        tilts = perturbation.tilt_sds / weights.information
        tilts *= spread.units / units  # in units of the source that is weighted
        covariates: Sequence[str] = release.query.covariates  # type: ignore[attr-defined]
        coefficients = np.array(release.values) / math.sqrt(len(covariates) + 1)
        raw = cls(spread, coefficients, tilts, np.ones(len(tilts) - 1), weights.loss[1:])
        undone = raw._undone(ridges[1:] / units)
        enlarged = np.minimum(undone, _MOST_ENLARGED)
        slopes = raw.coefficients[1:] * enlarged
        # The constant has a ridge too: it moves the sum of all propensities.
        constant = raw.coefficients[0] * (1 + min(float(ridges[0]) / (raw.information * units), 1.0))
        constant -= (slopes - raw.coefficients[1:]) @ spread.means
        drowned = bool((undone > _MOST_ENLARGED).any())
        return replace(raw, coefficients=np.array([constant, *slopes]), enlarged=enlarged, drowned=drowned)

    def _undone(self, ridges: Array) -> Array:
        """Return what undoing these ridges, for one unit, multiplies each slope by.

        Units whose predictor is far out say little of it, so that there is less information along the predictor than
        across. It is taken for a normal predictor, half way between the slopes with a ridge and without.
        """
        squares, variances = self.coefficients[1:] ** 2, self.spread.variances
        found, own = self.logit_variance, squares * variances
        along, undone = max(float(own.sum()), 1e-12), np.ones(len(squares))
        for _ in range(_STEPS):
            middle = (1 + float(own @ undone) / along) / 2
            score = 1 / (1 + np.exp(-self._logits(found * middle**2)))
            overlap = score * (1 - score) * _NORMAL
            across, lacking = float(overlap.sum()), float(overlap @ (1 - _PLACES**2))
            least = max(across - lacking, across / 10)
            shared = float(squares @ ridges) / along * (1 / least - 1 / across)
            undone = np.maximum(1 + ridges / (across * variances) + shared, 1.0)
        return undone

    @property
    def logit_variance(self) -> float:
        """The variance of the predictor, without what noise adds to it."""
        slopes = self.coefficients[1:]
        found = float(slopes @ self.spread.covariance @ slopes)
        information = max(self._information(found) * self.spread.units, 1.0)
        added = self.enlarged**2 * self.tilt_sds[1:] ** 2 / (information**2 * self.spread.variances)
        return max(found - float(added.sum()), 0.0)

    @property
    def logits(self) -> Array:
        """Values of the predictor with equal steps between them; `_DENSITY` is how frequent each is."""
        return self._logits(self.logit_variance)

    def _logits(self, variance: float) -> Array:
        middle = self.coefficients[0] + self.coefficients[1:] @ self.spread.means
        logits = np.clip(middle, -20, 20) + math.sqrt(variance) * _PLACES
        clipped: Array = np.clip(logits, -_FARTHEST, _FARTHEST)
        return clipped

    def _information(self, variance: float) -> float:
        score = 1 / (1 + np.exp(-self._logits(variance)))
        return max(float((score * (1 - score)) @ _DENSITY), 1e-6)

    @property
    def information(self) -> float:
        """The mean of e (1 - e)."""
        return self._information(self.logit_variance)

    @property
    def alignment(self) -> Array:
        """The covariances of the features with the predictor."""
        aligned: Array = self.spread.covariance @ self.coefficients[1:]
        return aligned

    def scaled(self, root: float) -> list[float]:
        """Return the coefficients of features divided by a root, as queries take them."""
        return [float(each) for each in self.coefficients * root]

    def arms(self, estimand: Estimand, clip: float, least_variance: float = 0.0) -> "WeightedLogits":
        """Return both arms' weights and mean predictors with clipped scores."""
        logits = self._logits(max(self.logit_variance, least_variance))
        score = 1 / (1 + np.exp(-logits))
        weights = np.array([arm_weights(estimand, float(each), clip) for each in score]).T
        shares = np.array([1 - score, score]) * weights * _DENSITY
        totals = shares.sum(axis=1)
        counted = totals**2 / (shares * weights).sum(axis=1)
        control, treated = (shares @ logits) / totals
        clipped = (score < clip) | (score > 1 - clip)
        steps = {
            "ATE": (score, 1 - score),
            "ATO": (1 - score, score),
            "ATT": (np.ones_like(score), np.zeros_like(score)),
            "ATC": (np.zeros_like(score), np.ones_like(score)),
        }[estimand]
        response = ((shares * steps)[:, ~clipped].sum(axis=1) / totals).sum()
        return WeightedLogits(
            weights=(float(totals[0]), float(totals[1])),
            apart=float(treated - control),
            beyond=float(_DENSITY[clipped].sum()),
            response=float(response),
            counted=(float(counted[0]), float(counted[1])),
        )

    def noise_sd(self, slopes: Slopes) -> float:
        """Return the standard deviation of what noise in the score adds to the effect, in half ranges."""
        mean, variance = slopes.mean * self.enlarged, slopes.variance * self.enlarged**2
        means = self.spread.means
        squares = self.tilt_sds[1:] ** 2 @ (mean**2 + variance)
        squares += self.tilt_sds[0] ** 2 * ((mean @ means) ** 2 + variance @ means**2)
        return math.sqrt(float(squares)) / (self.information * self.spread.units)

    def adjustments(self, slopes: Slopes) -> Array:
        """Return about how much each feature takes off the difference between arms, in half ranges."""
        taken: Array = np.sqrt(slopes.mean**2 + slopes.variance) * self.alignment
        return taken

    def ridge_left(self, slopes: Slopes) -> float:
        """Return what an error in the features' variances may leave of the ridge in the effect, in half ranges."""
        left = (1 - 1 / self.enlarged) * self.spread.uncertain
        return float(np.abs(self.adjustments(slopes)) @ left)

    def explained(self, slopes: Slopes) -> float:
        """Return the largest variance of the outcome that balancing one feature takes off: others only add to it."""
        taken = slopes.mean**2 * self.spread.variances * (1 - self.lost)
        return max(float(taken.max()), 0.0)


@dataclass(frozen=True)
class WeightedLogits:
    """Both arms after weighting, for predictors with a logistic law.

    Attributes:
        weights: Each arm's sum of weights for one unit of the table.
        apart: The difference of the arms' mean predictors, 0 where nothing is clipped.
        beyond: The share of units whose score is clipped.
        response: How far an error of the predictor separates the arms, in parts of what it does without clipping: the
            mean changes of both arms' log weights, of units that are not clipped.
        counted: As how many units with the same weight each arm counts, for one unit of the table.
    """

    weights: tuple[float, float]
    apart: float
    beyond: float
    response: float
    counted: tuple[float, float]


def score_share(covariates: Sequence[str], schema: Schema, estimand: Estimand, clip: float, noise: float) -> float:
    """Return the score's share of epsilon by which noise in score and weighted sums is expected smallest together.

    For an outcome with a quarter of its half range as standard deviation, and a mean of e (1 - e) of 0.2.

    Args:
        noise: The standard deviation of the noise that the sums add to the effect, in half ranges, where the largest
            weight, each arm's sum of weights and epsilon are 1.
    """
    score = expected_imbalance(score_query(covariates, schema), schema) / 8
    sums = math.sqrt(2) * noise * {"ATO": 1.0, "ATE": 0.2 / clip}.get(estimand, 0.4 / clip)
    share = 1 / (1 + math.exp(math.log(sums / score) * 2 / 3))
    return round(min(max(share, 0.25), 0.75) * 20) / 20  # a round number to print


def best_clip(score: PrivateScore, estimand: Estimand, most: float, noise: float) -> float:
    """Return the clip at which noise in the sums and what clipping leaves in are expected smallest together.

    Args:
        noise: The noise of the sums as in `score_share`, for their own epsilon.
    """
    if estimand == "ATO":
        return min(most, _OVERLAP_CLIP)
    spread = score.spread
    slopes = spread.slopes(math.sqrt(1 - spread.centre**2) / 2)
    slope = math.sqrt(float((slopes.mean**2 + slopes.variance) @ spread.variances))

    def error(clip: float) -> float:
        arms = score.arms(estimand, clip, _LEAST_LOGIT_VARIANCE)
        sums = noise * largest_weight(estimand, clip) / (spread.units * max(min(arms.weights), 1e-6))
        return math.hypot(sums, slope * arms.apart)

    return min((max(share * most, 1e-3) for share in _CLIPS), key=error)
