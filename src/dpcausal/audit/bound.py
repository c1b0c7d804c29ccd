"""A lower bound on epsilon from transcripts of two neighbouring tables, at a stated confidence."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from dpcausal.audit.distinguisher import Score, learned_scores
from dpcausal.errors import QueryError
from dpcausal.utils.arrays import Array

_LEARNED_FROM, _CHOSEN_BY = 0.1, 0.4
"""The first tenth of transcripts teaches scores, the next three choose an event, the rest is the test."""

_CAUTION = 1e-4
"""By how much surer an event must be to be chosen than to be believed: of many events, the luckiest disappoint."""

Counts = NDArray[np.int64]

_TAIL = np.geomspace(1e-5, 0.005, 24)
_QUANTILES = np.concatenate([_TAIL, np.linspace(0.005, 0.995, 199), 1 - _TAIL[::-1]])
_FEWEST = 50


@dataclass(frozen=True)
class Bound:
    """What an attack showed.

    Attributes:
        epsilon: With this confidence the true epsilon (at `delta`) is no smaller; 0 if nothing was shown.
        delta: The delta at which it was tested.
        confidence: The probability, over the noise, that a bound made in this way holds.
        runs: Transcripts of each table that it was tested on, apart from those that the event was learned from.
        event: What the attacker looked at.
        odds: How often the event happened, on the one table and on the other.
    """

    epsilon: float
    delta: float
    confidence: float
    runs: int
    event: str
    odds: tuple[float, float]


def lower_bound(  # noqa: PLR0913 (the last four have defaults and names)
    one: Array,
    other: Array,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
    gaussian: bool = False,
    known: Score | None = None,
) -> Bound:
    """Return a lower bound on epsilon from what was released about two neighbouring tables.

    Two fifths of the transcripts find an event: a score, a threshold and which table it speaks for. The rest says how
    often the event happens on each table, with Clopper and Pearson's exact limits, each at half of what the confidence
    leaves. If the release is (epsilon, delta)-differentially private then p <= e^epsilon q + delta, so epsilon is at
    least log((p - delta) / q).

    Args:
        one: Independent transcripts of one table, one line each.
        other: The same for the neighbour.
        delta: The delta of the claim.
        confidence: How sure the bound is to be.
        gaussian: Whether all noise is claimed to be Gaussian. Such a release is mu-Gaussian differentially private
            (Dong, Roth and Su 2022), and the same limits bound mu from below, which gives a far larger epsilon at
            small delta than the event alone (Nasr et al. 2023).
        known: A score that is known to be good, such as the likelihood ratio, to try in addition to the learned ones.

    Example:
        >>> import numpy as np
        >>> noise = np.random.default_rng(0).laplace(size=(2, 30_000, 1))  # a made-up release with epsilon 1
        >>> bound = lower_bound(noise[0] + 1, noise[1])
        >>> 0.9 < bound.epsilon <= 1
        True
    """
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    rule = _Rule(delta, confidence, gaussian)
    _check(one, other, rule)
    attacks = [
        (attack, pair)
        for pair, sign in (((one, other), 1.0), ((other, one), -1.0))
        for attack in _attacks(pair, rule, [] if known is None else [("the known score", _signed(known, sign))])
    ]
    best, pair = max(attacks, key=lambda each: each[0].shown)
    tests = [part[_share(part, _CHOSEN_BY) :] for part in pair]
    happened = [np.array([(best.score(part) >= best.threshold).sum()]) for part in tests]
    runs = len(tests[0]), len(tests[1])
    return Bound(
        epsilon=rule.epsilon(happened[0], happened[1], runs),
        delta=delta,
        confidence=confidence,
        runs=min(runs),
        event=f"{best.name}, {best.threshold:.6g} or more",
        odds=(float(happened[0][0] / runs[0]), float(happened[1][0] / runs[1])),
    )


def _share(part: Array, share: float) -> int:
    return int(len(part) * share)


def _signed(score: Score, sign: float) -> Score:
    return lambda transcripts: sign * score(transcripts)


def _check(one: Array, other: Array, rule: "_Rule") -> None:
    shapes = one.ndim == other.ndim == 2 and one.shape[1] == other.shape[1] > 0 and min(len(one), len(other)) >= _FEWEST
    if not shapes or not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise QueryError(
            expected=f"two tables of finite numbers, one line a run, {_FEWEST} runs or more, with the same columns",
            got=f"shapes {one.shape} and {other.shape}",
            hint="reshape a single number a run to (runs, 1), and write what is not finite as a number of its own.",
        )
    if not (0 < rule.confidence < 1 and 0 <= rule.delta < 1) or (rule.gaussian and rule.delta == 0):
        raise QueryError(
            expected="a confidence between 0 and 1, and a delta from 0 to below 1, above 0 for Gaussian noise",
            got=f"confidence={rule.confidence}, delta={rule.delta}, gaussian={rule.gaussian}",
            hint="a confidence of 0.999 is usual.",
        )


@dataclass(frozen=True)
class _Attack:
    """A score and the threshold at which it showed most."""

    name: str
    score: Score
    threshold: float
    shown: float


@dataclass(frozen=True)
class _Rule:
    """How counts become a lower bound."""

    delta: float
    confidence: float
    gaussian: bool

    def limits(self, more: Counts, less: Counts, runs: tuple[int, int]) -> tuple[Array, Array]:
        """Return the least that the first probability, and the most that the second, can be."""
        tail = (1 - self.confidence) / 2
        least = np.where(more > 0, stats.beta.ppf(tail, np.maximum(more, 1), runs[0] - more + 1), 0.0)
        most = np.where(less < runs[1], stats.beta.isf(tail, less + 1, np.maximum(runs[1] - less, 1)), 1.0)
        return least, most

    def shown(self, more: Counts, less: Counts, runs: tuple[int, int]) -> Array:
        """Return lower bounds on epsilon, or for Gaussian noise on mu, from how often events happened on each table."""
        least, most = self.limits(more, less, runs)
        if self.gaussian:
            mu: Array = special.ndtri(least) - special.ndtri(most)
            return mu
        with np.errstate(divide="ignore"):
            epsilon: Array = np.log(np.maximum(least - self.delta, 0.0) / most)
        return epsilon

    def epsilon(self, more: Counts, less: Counts, runs: tuple[int, int]) -> float:
        """Return what one event shows of epsilon: directly and, for Gaussian noise, through mu."""
        bounds = [0.0, float(replace(self, gaussian=False).shown(more, less, runs)[0])]
        if self.gaussian:
            bounds.append(epsilon_of_mu(float(self.shown(more, less, runs)[0]), self.delta))
        return max(bounds)


def _attacks(pair: tuple[Array, Array], rule: _Rule, known: list[tuple[str, Score]]) -> Iterator[_Attack]:
    wary = replace(rule, confidence=1 - (1 - rule.confidence) * _CAUTION)
    learn = [part[: _share(part, _LEARNED_FROM)] for part in pair]
    choose = [part[_share(part, _LEARNED_FROM) : _share(part, _CHOSEN_BY)] for part in pair]
    for name, score in (*known, *learned_scores(learn[0], learn[1])):
        scored = [score(part) for part in choose]
        thresholds = np.unique(np.quantile(np.concatenate(scored), _QUANTILES))
        more, less = (len(part) - np.searchsorted(np.sort(part), thresholds) for part in scored)
        shown = wary.shown(more, less, (len(choose[0]), len(choose[1])))
        place = int(np.argmax(shown))
        yield _Attack(name, score, float(thresholds[place]), float(shown[place]))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return the epsilon at delta of mu-Gaussian differential privacy (Balle and Wang 2018, Theorem 8)."""

    def excess(epsilon: float) -> float:
        here, there = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return float(special.ndtr(here) - np.exp(epsilon + special.log_ndtr(there))) - delta

    if mu <= 0 or excess(0.0) <= 0:
        return 0.0
    return float(optimize.brentq(excess, 0.0, mu * mu / 2 + 40 * mu))
