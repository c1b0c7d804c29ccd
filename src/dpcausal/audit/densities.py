"""The density of objective perturbation, which has a closed form: how much a neighbour can change it."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from scipy import special, stats

from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import OUTSIDE, small_kinds
from dpcausal.audit.neighbours import Record
from dpcausal.audit.noise_distribution import RARE
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.guarantee import Guarantee
from dpcausal.queries import BoundedInfluenceLogistic, ObjectivePerturbedLogistic, ObservedLogistic, seen_by
from dpcausal.schema.schema import Schema
from dpcausal.testing import standard_schema
from dpcausal.utils.arrays import Array
from dpcausal.vault.answers.logistic import loss_sums, weighted_loss_sums
from dpcausal.vault.answers.observed_logistic import observed_sums
from dpcausal.vault.engines import Batch, Engine, ExactInts, with_schema
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
        losses: For each regression behind the answer the sums of the derivatives of losses of units, at its own part of
            the coefficients. Each has a random term of its own.
        log_noise: The log density of the random term over its scale, up to a constant.
        size: The size of the random term, of which `sizes` is the distribution function over the scale.
        terms: What the coefficients of the loss are multiplied by where they are released.
    """

    query: ObjectivePerturbedLogistic | BoundedInfluenceLogistic
    losses: tuple[Callable[[Array, Batch], ExactInts], ...]
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
            (partial(loss_sums, features=features),),
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
            (partial(weighted_loss_sums, features=features, sizes=sizes),),
            query.penalty(epsilon, schema),
            query.tilt_scale(epsilon),
            log_noise,
            lambda tilt: float(np.linalg.norm(tilt)),
            _lengths_of_three,
            sizes * features.root,
        )

    @classmethod
    def of_outcomes(cls, epsilon: float) -> Self:
        """Return the law of the regressions, in each arm, of having an outcome."""
        query, features = ObservedLogistic(_OF), Features(_OF, seen_by(ObservedLogistic(_OF), standard_schema()))
        losses = tuple(partial(observed_sums, features=features, arm=arm) for arm in (0, 1))
        penalty, scale = query.penalty(epsilon), query.tilt_scale(epsilon, _FEATURES)
        return replace(cls.cube(epsilon), query=query, losses=losses, penalty=penalty, scale=scale)

    @property
    def seen(self) -> Schema:
        """The audited schema, as the query sees it."""
        return seen_by(self.query, standard_schema())

    def batch(self, engine: Engine, most: int) -> Batch:
        """Return what the losses need of a table."""
        columns = ("treatment", "outcome", *Features(_OF, self.seen).columns)
        return with_schema(engine, self.seen).collect(columns, most)

    def parts(self, at: Array, batch: Batch) -> list[tuple[Array, Array]]:
        """Return each regression's part of the coefficients, and the derivatives of its losses there."""
        split = np.split(at, len(self.losses))
        return [(own, as_floats(losses(own, batch))) for own, losses in zip(split, self.losses, strict=True)]

    def log_density(self, at: Array, batch: Batch) -> float:
        """Return the log density of coefficients, up to a constant: that of tilts, and of the change of variables."""
        total = 0.0
        for own, totals in self.parts(at, batch):
            tilt = -(totals[0] + self.penalty * own)
            curvature = totals[1:] + self.penalty * np.eye(len(own))
            total += self.log_noise(tilt / self.scale) + float(np.linalg.slogdet(curvature)[1])
        return total


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
    catalogue, kinds = catalogue_of(standard_schema()), _kinds(missing=law.query.counts_missing)
    random = np.random.default_rng(1)  # places to look at; noise is never drawn here
    count = len(law.losses) * _FEATURES
    ats = [
        np.zeros(count),
        *random.normal(0, 1, (10, count)),
        *random.normal(0, 20, (10, count)) / epsilon,
        *(sign * _FAR * each for each in np.eye(count) for sign in (-1, 1)),
    ]
    alike = [(kind,) * math.ceil(_MANY * law.penalty) for kind in kinds]
    rests = itertools.chain(*(itertools.combinations_with_replacement(kinds, size - 1) for size in sizes), alike)
    most, tried = 0.0, 0
    for rest in rests:
        batches = [law.batch(catalogue.assemble([*rest, kind]), len(rest) + 1) for kind in (*kinds, OUTSIDE)]
        for at in ats:
            logs = [law.log_density(at, batch) for batch in batches]
            most, tried = max(most, max(logs) - min(logs)), tried + len(logs)
    return most, tried


def _kinds(*, missing: bool) -> list[Record]:
    """Return units of every corner of the covariates in both arms; without an outcome too where that counts."""
    plain = [kind for kind in small_kinds() if kind["score"] == 0]
    turned = [dict(kind) | {"smoker": "no" if kind["smoker"] == "yes" else "yes"} for kind in plain]
    whole: list[Record] = [*plain, *turned]
    return whole + [dict(kind) | {"score": None} for kind in whole] if missing else whole


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
    engine = catalogue_of(schema).assemble(_kinds(missing=law.query.counts_missing))
    vault, batch = Unmetered(engine, schema), law.batch(engine, 1_000)
    sizes = []
    for _ in range(runs):
        at = np.array(vault.release(law.query, Guarantee(epsilon=epsilon)).values) / np.tile(law.terms, len(law.losses))
        sizes += [law.size(totals[0] + law.penalty * own) for own, totals in law.parts(at, batch)]
    return np.array(sizes)
