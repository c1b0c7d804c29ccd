"""Private intervals as others publish them, for a difference in means or for the coefficient of a linear regression.

Noise is NumPy's: these are comparisons, not releases. All protect one unit's whole record against replacement by any
other at epsilon 1, with delta 0 or 1e-6; n is public. What each guarantee rests on, `PEERS` says.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.bakeoff.tables import Drawn, Setting
from dpcausal.utils.arrays import Array

EPSILON, DELTA = 1.0, 1e-6
Z = 1.96

_SIMULATIONS = 500
_RESAMPLES = 100
_HISTOGRAM = 0.25
"""The epsilon of each of two histograms."""

_NORMAL = NormalDist()


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the mu of Gaussian differential privacy that is (epsilon, delta), by bisection of the exact curve."""
    low, high = 1e-3, 10.0
    for _ in range(60):
        mu = (low + high) / 2
        spent = _NORMAL.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * _NORMAL.cdf(-mu / 2 - epsilon / mu)
        low, high = (mu, high) if spent < delta else (low, mu)
    return low


MU = gaussian_mu(EPSILON, DELTA)

Bounds = tuple[float, float]
Method = Callable[[Drawn, Setting, Generator], Bounds]


def without_privacy(drawn: Drawn, _: Setting, __: Generator) -> Bounds:
    """Return the interval without privacy."""
    (estimate,), (variance,) = _estimates(drawn.t[None], drawn.y[None], drawn.x[:, None])
    return estimate - Z * math.sqrt(variance), estimate + Z * math.sqrt(variance)


def parametric_bootstrap(drawn: Drawn, setting: Setting, random: Generator) -> Bounds:
    """Return an interval by simulation from a model fitted to noisy moments (Ferrando, Wang and Sheldon 2022)."""
    if len(drawn.x):
        return _bootstrapped_regression(drawn, setting, random)
    n, t = len(drawn.t), drawn.t
    if setting.binary:  # four counts: replacing a unit moves two of them by 1
        exact = np.array([np.sum(drawn.y[t == 1]), np.sum(1 - drawn.y[t == 1]), np.sum(drawn.y[t == 0])])
        exact = np.append(exact, n - exact.sum())
        noisy = np.maximum(exact + random.laplace(0, 2 / EPSILON, 4), 1.0)
        drawn_counts = random.multinomial(n, noisy / noisy.sum(), _SIMULATIONS).astype(float)
        again = np.maximum(drawn_counts + random.laplace(0, 2 / EPSILON, drawn_counts.shape), 1.0)
        estimate, simulated = (
            each[..., 0] / (each[..., 0] + each[..., 1]) - each[..., 2] / (each[..., 2] + each[..., 3])
            for each in (noisy, again)
        )
        return _basic(float(estimate), simulated)
    u = (drawn.y - setting.middle) / setting.half
    # In sizes 1, 1, 1/2 and 1/2: replacing a unit moves both sums by 2 in all, the count by 1 and the deficit by 1.
    scales = np.array([3.0, 3.0, 6.0, 6.0]) / EPSILON
    exact = np.array([np.sum(u * t), np.sum(u * (1 - t)), np.sum(t), np.sum(1 - u**2)])
    treated, control, count, deficit = exact + random.laplace(0, scales)
    sizes = np.array([np.clip(count, 2, n - 2), n - np.clip(count, 2, n - 2)])
    means = np.array([treated, control]) / sizes
    variance = max(1 - deficit / n - float(sizes @ means**2) / n, 6 / n)
    arms = random.binomial(n, sizes[0] / n, _SIMULATIONS).astype(float)
    both = np.stack([arms, n - arms])
    sums = both * means[:, None] + np.sqrt(both * variance) * random.normal(size=both.shape)
    sums += random.laplace(0, scales[0], sums.shape)
    noisy_arms = np.clip(arms + random.laplace(0, scales[2], arms.shape), 2, n - 2)
    simulated = setting.half * (sums[0] / noisy_arms - sums[1] / (n - noisy_arms))
    return _basic(setting.half * float(means[0] - means[1]), simulated)


def _bootstrapped_regression(drawn: Drawn, setting: Setting, random: Generator) -> Bounds:
    u = (drawn.y - setting.middle) / setting.half
    design = np.vstack([np.ones_like(u), 2 * drawn.t - 1, drawn.x])
    rows = np.vstack([design, u])
    size = len(rows)
    scale = math.sqrt(2) * size / MU  # no unit's products, as a matrix, are longer than the number of rows

    def noise(count: int) -> Array:
        made = np.triu(random.normal(0, scale / math.sqrt(2), (count, size, size)), 1)
        made += made.transpose(0, 2, 1)
        made[:, np.arange(size), np.arange(size)] = random.normal(0, scale, (count, size))
        made[:, 0, 0] = 0.0
        return made

    def positive(matrices: Array) -> Array:
        values, vectors = np.linalg.eigh(matrices)
        raised: Array = (vectors * np.maximum(values, scale)[..., None, :]) @ vectors.swapaxes(-1, -2)
        return raised

    noisy = positive((rows @ rows.T)[None] + noise(1))[0]
    gram, along = noisy[:-1, :-1], noisy[:-1, -1]
    weights = np.linalg.solve(gram, along)
    variance = max((noisy[-1, -1] - float(along @ weights)) / len(u), 1 / len(u))
    # The noisy design stands for the design; the regression's error and all noise are drawn again.
    root = np.linalg.cholesky(gram)
    again = np.repeat(noisy[None], _SIMULATIONS, axis=0) + noise(_SIMULATIONS)
    again[:, :-1, -1] += math.sqrt(variance) * random.normal(size=(_SIMULATIONS, size - 1)) @ root.T
    simulated = np.linalg.solve(positive(again[:, :-1, :-1]), again[:, :-1, -1][..., None])[:, 1, 0]
    return _basic(2 * setting.half * float(weights[1]), np.asarray(2 * setting.half * simulated, dtype=np.float64))


def _basic(estimate: float, simulated: Array) -> Bounds:
    """Return the basic bootstrap interval: simulated estimates are as far from the estimate as it is from the truth."""
    low, high = np.quantile(simulated, (0.025, 0.975))
    return 2 * estimate - float(high), 2 * estimate - float(low)


def gdp_bootstrap(drawn: Drawn, setting: Setting, random: Generator) -> Bounds:
    """Return an interval from noisy resamples, the noise taken out of their spread (Wang, Cheng and Awan 2022)."""
    n, root2 = len(drawn.t), math.sqrt(2)
    u = (drawn.y - setting.middle) / setting.half
    # Replacing a unit moves both sums by 2 in the same arm; by 1 each, and the count by the root of 2, in another.
    vectors = np.stack([drawn.t * u, (1 - drawn.t) * u, root2 * drawn.t])
    each = MU / math.sqrt((2 - 2 / math.e) * _RESAMPLES)
    scale = 2 / each
    drawn_counts = (np.bincount(random.integers(0, n, n), minlength=n) for _ in range(_RESAMPLES))
    sums = np.array([vectors @ counts for counts in drawn_counts])
    noisy = sums + random.normal(0, scale, sums.shape)

    def ratios(at: Array) -> Array:
        treated = np.clip(at[..., 2] / root2, 2, n - 2)
        found: Array = at[..., 0] / treated - at[..., 1] / (n - treated)
        return found

    mean = noisy.mean(axis=0)
    treated = float(np.clip(mean[2] / root2, 2, n - 2))
    slopes = np.array([1 / treated, -1 / (n - treated), -(mean[0] / treated**2 + mean[1] / (n - treated) ** 2) / root2])
    noise = scale**2 * float(slopes @ slopes)
    spread = float(ratios(noisy).var(ddof=1))
    sampling = max(spread - noise, 0.0)
    half = Z * math.sqrt(sampling + (sampling + noise) / _RESAMPLES)
    estimate = float(ratios(mean))
    return setting.half * (estimate - half), setting.half * (estimate + half)


def _partition(drawn: Drawn, setting: Setting, random: Generator) -> tuple[Array, Array]:
    """Return the estimate of each part, and the variance that each foretells for the estimate from all units."""
    size = setting.part
    parts = len(drawn.t) // size
    places = random.permutation(len(drawn.t))[: parts * size].reshape(parts, size)
    estimates, variances = _estimates(drawn.t[places], drawn.y[places], drawn.x[:, places])
    return estimates, variances / parts


def _estimates(t: Array, y: Array, x: Array) -> tuple[Array, Array]:
    """Return estimates and their robust variances, one for each line of arms and outcomes."""
    design = np.concatenate([np.ones_like(t)[None], t[None], x]).transpose(1, 2, 0)
    gram = design.transpose(0, 2, 1) @ design + 1e-6 * np.eye(design.shape[2])
    inverse = np.linalg.inv(gram)
    weights = inverse @ design.transpose(0, 2, 1) @ y[..., None]
    residuals = y - (design @ weights)[..., 0]
    rows = (inverse[:, 1][:, None] @ design.transpose(0, 2, 1))[:, 0]
    units, functions = design.shape[1:]
    variances: Array = ((rows * residuals) ** 2).sum(axis=1) * units / (units - functions)
    return weights[:, 1, 0], variances


def little_bootstraps_mean(drawn: Drawn, setting: Setting, random: Generator) -> Bounds:
    """Return an interval from private means over parts of estimates and variances (Covington et al. 2021)."""
    estimates, variances = _partition(drawn, setting, random)
    parts = len(estimates)
    rest = gaussian_mu(EPSILON - 2 * _HISTOGRAM, DELTA)
    mean_mu, variance_mu = rest * math.sqrt(0.9), rest * math.sqrt(0.1)
    # Scale: the fullest of the powers of 4 below the largest possible variance; then a mean of what is not far above.
    largest = (2 * setting.half) ** 2 * 4 / len(drawn.t)
    places = np.clip(np.floor(np.log(largest / (variances + 1e-300)) / math.log(4)), 0, 9).astype(int)
    top = largest / 4.0 ** (_fullest(places, 10, random) - 1)
    variance = float(np.minimum(variances, top).mean()) + random.normal(0, top / (parts * variance_mu))
    apart = math.sqrt(parts * max(variance, top / 64))
    # Place: the fullest of bins of four standard deviations of a part's estimate.
    bins = math.ceil(4 * setting.half / (4 * apart))
    places = np.clip(np.floor((estimates + 2 * setting.half) / (4 * apart)), 0, bins - 1).astype(int)
    centre = 4 * apart * (_fullest(places, bins, random) + 0.5) - 2 * setting.half
    reach = 5 * apart
    noise = 2 * reach / (parts * mean_mu)
    estimate = float(np.clip(estimates, centre - reach, centre + reach).mean()) + random.normal(0, noise)
    half = Z * math.hypot(apart / math.sqrt(parts), noise)
    return estimate - half, estimate + half


def _fullest(places: NDArray[np.int64], bins: int, random: Generator) -> int:
    """Return the fullest bin of a noisy histogram: replacing a part moves two counts by 1."""
    return int(np.argmax(np.bincount(places, minlength=bins) + random.laplace(0, 2 / _HISTOGRAM, bins)))


def little_bootstraps_median(drawn: Drawn, setting: Setting, random: Generator) -> Bounds:
    """Return an interval from private medians of parts' estimates and errors (Chadha, Duchi and Kuditipudi 2024)."""
    estimates, variances = _partition(drawn, setting, random)
    share, parts = EPSILON / 2, len(estimates)
    estimate = _private_median(estimates, -2 * setting.half, 2 * setting.half, share, random)
    low, high = math.log(1e-6 * setting.half), math.log(4 * setting.half)
    error = math.exp(_private_median(np.log(np.sqrt(variances) + 1e-12), low, high, share, random))
    # The median of parts has a larger sampling error than the mean, and the error of its rank.
    rank = math.sqrt(2) * 2 / share
    own = math.hypot(error * math.sqrt(math.pi / 2), rank * error * math.sqrt(2 * math.pi / parts))
    return estimate - Z * own, estimate + Z * own


def _private_median(values: Array, low: float, high: float, epsilon: float, random: Generator) -> float:
    """Return a median by the exponential mechanism: replacing a value moves a rank by at most 1."""
    points = np.concatenate([[low], np.sort(np.clip(values, low, high)), [high]])
    ranks = np.abs(np.arange(len(points) - 1) - len(values) / 2)
    with np.errstate(divide="ignore"):
        logs = np.log(np.diff(points)) - epsilon * ranks / 2
    place = int(np.argmax(logs + random.gumbel(size=len(logs))))
    return float(random.uniform(points[place], points[place + 1]))


def evans_king(drawn: Drawn, setting: Setting, random: Generator) -> Bounds:
    """Return an interval from a censored mean of parts, corrected for the censoring (Evans and King 2023)."""
    estimates, _ = _partition(drawn, setting, random)
    parts = len(estimates)
    limit = 2 * setting.sd / math.sqrt(len(drawn.t) / parts)  # one guessed standard deviation of a part's estimate
    share = MU / math.sqrt(2)
    noises = np.array([2 * limit, 1.0]) / (parts * share)

    def released(values: Array) -> Array:
        kept = np.clip(values, -limit, limit).mean(axis=-1), (values >= limit).mean(axis=-1)
        return np.stack(kept, axis=-1) + random.normal(0, noises, (*values.shape[:-1], 2))

    found = released(estimates)
    estimate, spread = (float(each[0]) for each in _uncensored(found[None], limit))
    simulated = estimate + spread * random.normal(size=(_SIMULATIONS // 2, parts))
    half = Z * float(_uncensored(released(simulated), limit)[0].std(ddof=1))
    return estimate - half, estimate + half


def _uncensored(found: Array, limit: float) -> tuple[Array, Array]:
    """Return the mean and standard deviation of normals with this censored mean and this share beyond the limit."""
    spreads = limit * np.geomspace(0.05, 20, 200)
    z = np.array([_NORMAL.inv_cdf(float(1 - each)) for each in np.clip(found[:, 1], 0.005, 0.6)])
    means = limit - spreads * z[:, None]
    above, below = (limit - means) / spreads, (-limit - means) / spreads
    inside, lower = _cdf(above) - _cdf(below), _cdf(below)
    censored = means * inside + spreads * (_density(below) - _density(above)) + limit * (1 - _cdf(above) - lower)
    best = np.abs(censored - np.clip(found[:, :1], -limit, limit)).argmin(axis=1)
    lines = np.arange(len(found))
    return means[lines, best], spreads[best]


_GRID = np.linspace(-8, 8, 4001)
_CDF = np.array([_NORMAL.cdf(float(each)) for each in _GRID])


def _cdf(at: Array) -> Array:
    share: Array = np.interp(at, _GRID, _CDF)
    return share


def _density(at: Array) -> Array:
    density: Array = np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    return density


@dataclass(frozen=True)
class Peer:
    """A published method.

    Attributes:
        method: What it does.
        label: Its authors and year.
        guarantee: What its privacy rests on.
        simplified: What is simpler here than in print.
        regression: Whether it also answers for a linear regression here.
    """

    method: Method
    label: str
    guarantee: str
    simplified: str
    regression: bool = True


PEERS = {
    "parametric bootstrap": Peer(
        parametric_bootstrap,
        "Ferrando, Wang and Sheldon 2022",
        "epsilon 1, delta 0 (Laplace); for the regression delta 1e-6 (Gaussian). Complete",
        "a normal model of outcomes with one variance for both arms, binomial for events; in the regression the noisy "
        "design stands for the design",
    ),
    "GDP bootstrap": Peer(
        gdp_bootstrap,
        "Wang, Cheng and Awan 2022",
        "epsilon 1, delta 1e-6 only in the limit of many resamples; here there are 100, and their exact price was not "
        "computed",
        "deconvolution by subtracting the known variance of the noise, and normal quantiles",
        regression=False,
    ),
    "little bootstraps, mean": Peer(
        little_bootstraps_mean,
        "Covington, He, Honaker and Kamath 2021",
        "epsilon 1, delta 1e-6. Complete",
        "histograms find scale and place, instead of CoinPress; a robust variance in each part instead of resamples",
    ),
    "little bootstraps, median": Peer(
        little_bootstraps_median,
        "Chadha, Duchi and Kuditipudi 2024",
        "epsilon 1, delta 0. Complete",
        "the estimate is a private median of the parts' too; a robust variance in each part instead of resamples",
    ),
    "Evans and King": Peer(
        evans_king,
        "Evans and King 2023",
        "epsilon 1, delta 1e-6. Complete; the censoring limit needs a guess of the outcome's sd, which we gave well",
        "each part's estimate instead of its mean over resamples",
    ),
}
