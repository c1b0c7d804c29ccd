"""The density of objective perturbation, which has a closed form: how much a neighbour can change it."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from scipy import special, stats

from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import OUTSIDE, small_kinds
from dpcausal.audit.noise_distribution import RARE
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.guarantee import Guarantee
from dpcausal.queries import BoundedInfluenceLogistic, ObjectivePerturbedLogistic
from dpcausal.testing import standard_schema
from dpcausal.utils.arrays import Array
from dpcausal.vault.answers.logistic import loss_sums, weighted_loss_sums
from dpcausal.vault.engines import Batch, ExactInts
from dpcausal.vault.numerics.exact_gradients import as_floats
from dpcausal.vault.numerics.features import Features

_OF = ("age", "smoker")
_FEATURES = len(_OF) + 1

_FAR, _MANY = 10.0, 100
"""Coefficients by which propensities are near 0 and 1, and how many times the ridge a table of one kind has units."""


@dataclass(frozen=True)
class Law:
    """Objective perturbation of the audited covariates: all that the density of its coefficients depends on.

    Attributes:
        query: The query.
        losses: The sums of the derivatives of losses of units, at some coefficients.
        penalty: The ridge.
        scale: The scale of the random term.
        log_noise: The log density of the random term over its scale, up to a constant.
        size: The size of the random term, of which `sizes` is the distribution function over the scale.
        terms: What the coefficients of the loss are multiplied by where they are released.
    """

    query: ObjectivePerturbedLogistic | BoundedInfluenceLogistic
    losses: Callable[[Array, Batch], ExactInts]
    penalty: float
    scale: float
    log_noise: Callable[[Array], float]
    size: Callable[[Array], float]
    sizes: Callable[[Array], Array]
    terms: Array

    @classmethod
    def cube(cls, epsilon: float) -> Self:
        """Return the law of noise whose largest entry is bounded."""
        query, features = ObjectivePerturbedLogistic(_OF), Features(_OF, standard_schema())
        return cls(
            query,
            partial(loss_sums, features=features),
            query.penalty(epsilon),
            query.tilt_scale(epsilon, _FEATURES),
            lambda tilt: -float(np.abs(tilt).max()),
            lambda tilt: float(np.abs(tilt).max()),
            stats.gamma(_FEATURES).cdf,
            np.ones(_FEATURES),
        )

    @classmethod
    def ball(cls, epsilon: float) -> Self:
        """Return the law of three entries of a vector in four dimensions with density exp(-length / scale).

        Of their length r they have a density in proportion to r K(r), K the modified Bessel function of order 1.
        """
        schema = standard_schema()
        query, features = BoundedInfluenceLogistic(_OF), Features(_OF, schema)
        sizes = query.sizes(schema)

        def log_noise(tilt: Array) -> float:
            length = max(float(np.linalg.norm(tilt)), 1e-12)
            return math.log(length * float(special.k1e(length))) - length

        return cls(
            query,
            partial(weighted_loss_sums, features=features, sizes=sizes),
            query.penalty(epsilon, schema),
            query.tilt_scale(epsilon),
            log_noise,
            lambda tilt: float(np.linalg.norm(tilt)),
            _lengths_of_three,
            sizes * features.root,
        )

    def log_density(self, at: Array, batch: Batch) -> float:
        """Return the log density of coefficients, up to a constant: that of the tilt, and the change of variables."""
        totals = as_floats(self.losses(at, batch))
        tilt = -(totals[0] + self.penalty * at)
        curvature = totals[1:] + self.penalty * np.eye(len(at))
        return self.log_noise(tilt / self.scale) + float(np.linalg.slogdet(curvature)[1])


def _lengths_of_three(at: Array) -> Array:
    """Return the distribution function of the length of these entries, which has a density like r^3 K(r)."""
    step = 1e-3
    places = step * np.arange(60_000) + step / 2
    sums = np.cumsum(places**3 * special.k1(places))
    return np.asarray(np.interp(at, places, sums / sums[-1]))


def largest_ratio(law: Law, epsilon: float, sizes: Sequence[int] = (1, 2, 3)) -> tuple[float, int]:
    """Return the largest log ratio of densities between neighbours, over small tables and many coefficients.

    Beside all tables of these sizes there are some with many units of one kind: these pull at coefficients so far that
    the random term points where a neighbour moves it.
    """
    schema = standard_schema()
    features, catalogue = Features(_OF, schema), catalogue_of(schema)
    kinds = [kind for kind in small_kinds() if kind["score"] == 0] + [
        dict(kind) | {"smoker": "no" if kind["smoker"] == "yes" else "yes"}
        for kind in small_kinds()
        if kind["score"] == 0
    ]
    columns = ("treatment", *features.columns)
    random = np.random.default_rng(1)  # places to look at; noise is never drawn here
    ats = [
        np.zeros(features.size),
        *random.normal(0, 1, (10, features.size)),
        *random.normal(0, 20, (10, features.size)) / epsilon,
        *(sign * _FAR * each for each in np.eye(features.size) for sign in (-1, 1)),
    ]
    alike = [(kind,) * math.ceil(_MANY * law.penalty) for kind in kinds]
    rests = itertools.chain(*(itertools.combinations_with_replacement(kinds, size - 1) for size in sizes), alike)
    most, tried = 0.0, 0
    for rest in rests:
        batches = [catalogue.assemble([*rest, kind]).collect(columns, len(rest) + 1) for kind in (*kinds, OUTSIDE)]
        for at in ats:
            logs = [law.log_density(at, batch) for batch in batches]
            most, tried = max(most, max(logs) - min(logs)), tried + len(logs)
    return most, tried


def check_density(of: Callable[[float], Law], epsilon: float, runs: int, sizes: Sequence[int] = (1, 2, 3)) -> Finding:
    """Check that the ratio of densities stays within what tilt and ridge are paid for, and that this density is drawn.

    Released coefficients show the tilt they came from, but for the little noise that the solver is paid for: it is
    minus the gradient there. Its size must have the law of the proof. That is one test at the level `RARE`, so draws as
    claimed fail it with a probability of 1e-9. The ratio is exact.
    """
    law = of(epsilon)
    most, tried = largest_ratio(law, epsilon, sizes)
    allowed = epsilon * float(law.query.shares["curvature"] + law.query.shares["gradient"])
    chance = float(stats.kstest(law.sizes(_tilts(law, epsilon, runs) / law.scale), "uniform").pvalue)
    detail = (
        f"largest log ratio of densities {most:.4f}, allowed {allowed:.4f}; {runs:,} tilts, chance of such {chance:.2g}"
    )
    numbers = {"loss": most / allowed, "evaluations": tried, "runs": runs}
    passed = most <= allowed * (1 + 1e-9) and chance > RARE
    return Finding("density", f"{law.query.name}, epsilon {epsilon:g}", passed, detail, numbers)


def _tilts(law: Law, epsilon: float, runs: int) -> Array:
    """Return the sizes of the tilts that releases came from."""
    schema = standard_schema()
    engine = catalogue_of(schema).assemble(small_kinds())
    columns = ("treatment", *Features(_OF, schema).columns)
    vault, batch = Unmetered(engine, schema), engine.collect(columns, 1_000)
    sizes = []
    for _ in range(runs):
        at = np.array(vault.release(law.query, Guarantee(epsilon=epsilon)).values) / law.terms
        sizes.append(law.size(as_floats(law.losses(at, batch))[0] + law.penalty * at))
    return np.array(sizes)
