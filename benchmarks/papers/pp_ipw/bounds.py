"""The paper's bounds on wrong conclusions (Theorems 4, 5, 8 to 11, Corollary 7, Lemma 6), and where they fail.

All counterexamples have one covariate vector x of length 1 for everybody, so that the noise z.x is one normal number u
and every probability is exact. With A1 and A0 the mean outcomes of each arm over all units, the partly private estimate
is A1 (1 + exp(-w.x - u)) - A0 (1 + exp(w.x + u)).
"""

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from benchmarks.papers.pp_ipw.algorithm import Floats, Units, gaussian_size, score_sd

POINTS = 20_001
GAMMA = 0.05
"""The probability with which Lemma 6 may fail."""


def hoeffding_printed(mean: float, eta: float) -> float:
    """Return the bound of Theorem 4: Hoeffding's inequality as if the range of [-eta, eta] were eta."""
    return math.exp(-2 * (mean / eta) ** 2)


def hoeffding(mean: float, eta: float) -> float:
    """Return Hoeffding's inequality for a number within -eta and eta; it says nothing where the mean is negative."""
    return math.exp(-((mean / eta) ** 2) / 2) if mean > 0 else 1.0


def lemma_6(units: Units, coefficients: Floats, sd: float) -> float:
    """Return the eta of Lemma 6, with outcomes in size: as printed they may cancel."""
    zeta = sd * math.sqrt(2 * units.x.shape[1] * math.log(2 / GAMMA))
    sizes = np.abs(units.y) * np.exp(-units.sign * (units.x @ coefficients))
    return float(2 * math.sinh(zeta) * sizes.mean())


@dataclass(frozen=True)
class OneGroup:
    """Everybody has the same covariates.

    Attributes:
        treated: A1, the sum of treated outcomes over the number of all units.
        control: A0, the same of control outcomes.
        logit: w.x without noise.
        fitted_on: m.
        epsilon: The privacy loss.
        estimand: Whose effect.
        trim: The largest odds, and inverse odds, that count (Appendices B and F); infinite without trimming.
    """

    treated: float
    control: float
    logit: float
    fitted_on: int
    epsilon: float = 0.2
    estimand: Literal["ATE", "ATT", "ATC"] = "ATE"
    trim: float = math.inf

    @property
    def sd(self) -> float:
        """The standard deviation of u."""
        return score_sd(self.epsilon, self.fitted_on)

    def estimate(self, u: Floats, trim: float | None = None) -> Floats:
        """Return the partly private estimate for each draw of noise."""
        trim = self.trim if trim is None else trim
        odds, inverse = (np.minimum(np.exp(sign * (self.logit + u)), trim) for sign in (1, -1))
        whole = np.ones_like(u)
        weights = {"ATE": (1 + inverse, 1 + odds), "ATT": (whole, odds), "ATC": (inverse, whole)}[self.estimand]
        found: Floats = self.treated * weights[0] - self.control * weights[1]
        return found

    @property
    def plain(self) -> float:
        """The estimate without noise."""
        return float(self.estimate(np.zeros(1))[0])

    def bias(self, *, printed: bool) -> float:
        """Return g of Lemma 3, or of Appendix F, for the estimate without trimming."""
        beta = math.exp(self.sd**2 / 2)
        treated = self.treated * math.exp(-self.logit) * ((1 / beta if printed else beta) - 1)
        control = self.control * math.exp(self.logit) * (beta - 1)
        return {"ATE": treated - control, "ATT": -control, "ATC": treated}[self.estimand]

    @cached_property
    def noise(self) -> Floats:
        """Normal quantiles at even steps: the mean of a function of them is its expectation, to four digits."""
        return np.array([NormalDist(0, self.sd).inv_cdf((place + 0.5) / POINTS) for place in range(POINTS)])

    @property
    def eta(self) -> float:
        """The largest size that the trimmed estimate can have."""
        return float(np.abs(self.estimate(np.linspace(-40, 40, 4001))).max())

    @property
    def wrong(self) -> float:
        """The probability that the partly private estimate is not positive."""
        return float((self.estimate(self.noise) <= 0).mean())

    def both_wrong(self, sd: float) -> float:
        """Return the probability that neither it nor the fully private one, with noise of this sd, is positive."""
        estimates = self.estimate(self.noise)
        return sum(NormalDist(0, sd).cdf(-each) for each in estimates if each <= 0) / POINTS


@dataclass(frozen=True)
class Counterexample:
    """A bound of the paper beside the probability that it bounds.

    Attributes:
        where: Which result.
        setting: The numbers, in words.
        bounded: What is bounded.
        bound: The printed bound, with the printed bias.
        corrected_bias_bound: The printed bound with the corrected bias.
        probability: The probability.
    """

    where: str
    setting: str
    bounded: str
    bound: float
    corrected_bias_bound: float
    probability: float


def counterexamples() -> list[dict[str, Any]]:
    """Return a counterexample to each bound."""
    average = OneGroup(1.0, 0.3, 1.0, 200, trim=9.0)
    treated = OneGroup(1.0, 0.3, 1.0, 250, estimand="ATT", trim=9.0)
    controls = OneGroup(0.4, 0.9, -1.0, 250, estimand="ATC", trim=3.0)
    found = [
        _theorem_4("Theorem 4", average),
        _theorem_5("Theorem 5", average),
        _corollary_7(),
        _theorem_4("Theorem 8 (ATT)", treated),
        _theorem_4("Theorem 9 (ATC)", controls),
        _theorem_5("Theorem 10 (ATT)", treated),
        _theorem_5("Theorem 11 (ATC)", controls),
        Counterexample(
            "Lemma 6",
            "A1 = ½, A0 = -½, w·x = 0: the printed sum over outcomes is 0, and so is η",
            "P(noise moves the estimate by more than η)",
            GAMMA,
            GAMMA,
            1.0,
        ),
    ]
    return [_rounded(each) for each in found]


def _words(group: OneGroup) -> str:
    trimmed = "" if math.isinf(group.trim) else f", odds trimmed at {group.trim:g}"
    return (
        f"A1 = {group.treated:g}, A0 = {group.control:g}, w·x = {group.logit:g}, ε = {group.epsilon:g}, "
        f"m = {group.fitted_on}{trimmed}"
    )


def _theorem_4(where: str, group: OneGroup) -> Counterexample:
    bounded = f"P(τ̂n ≤ 0), τ̂ = {group.plain:.3f}"
    return Counterexample(where, _words(group), bounded, *_theorem_4_bounds(group), probability=group.wrong)


def _theorem_4_bounds(group: OneGroup) -> tuple[float, float]:
    """Return the bound with the printed and with the corrected bias."""
    printed, corrected = (group.plain + group.bias(printed=each) for each in (True, False))
    return hoeffding_printed(printed, group.eta), hoeffding_printed(corrected, group.eta)


def _theorem_5(where: str, group: OneGroup, units: int = 10_000) -> Counterexample:
    """Return the same for Theorem 5. The factor ½ [1 + erf] counts as 1, which is the most that it can be."""
    sd = gaussian_size(group.epsilon) * 2 * 2 * (1 + group.trim) / units  # outcomes of at most 2
    setting = f"{_words(group)}, n = {units:,}, C_y = 2"
    bounded = f"P(τ̂εn ≤ 0 and τ̂n ≤ 0), τ̂ = {group.plain:.3f}"
    return Counterexample(where, setting, bounded, *_theorem_4_bounds(group), probability=group.both_wrong(sd))


def _corollary_7(distance: float = 0.3) -> Counterexample:
    group = OneGroup(1.0, math.exp(-1), 0.5, 1000)
    moved = np.abs(group.estimate(group.noise) - group.plain) >= distance
    printed, corrected = (min(abs(group.bias(printed=each)) / distance, 1.0) for each in (True, False))
    words = _words(group).replace("0.367879", "e⁻¹")
    bounded = f"P(|τ̂n - τ̂| ≥ {distance:g})"
    return Counterexample("Corollary 7", words, bounded, printed, corrected, float(moved.mean()))


def _rounded(example: Counterexample) -> dict[str, Any]:
    return {
        name: float(f"{value:.3g}") if isinstance(value, float) else value for name, value in asdict(example).items()
    }
