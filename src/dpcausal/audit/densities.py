"""The density of objective perturbation, which has a closed form: how much a neighbour can change it."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy import stats

from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import OUTSIDE, small_kinds
from dpcausal.audit.neighbours import Record
from dpcausal.audit.noise_distribution import RARE
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic, ObservedLogistic, seen_by
from dpcausal.testing import standard_schema
from dpcausal.utils.arrays import Array
from dpcausal.vault.answers.logistic import loss_sums
from dpcausal.vault.answers.observed_logistic import observed_sums
from dpcausal.vault.engines import Batch, ExactInts, with_schema
from dpcausal.vault.numerics.exact_gradients import as_floats
from dpcausal.vault.numerics.features import Features

_OF = ("age", "smoker")
_FEATURES = len(_OF) + 1

_LOSSES: dict[type[ObjectivePerturbedLogistic], tuple[Callable[[Array, Batch, Features], ExactInts], ...]] = {
    ObjectivePerturbedLogistic: (loss_sums,),
    ObservedLogistic: (partial(observed_sums, arm=0), partial(observed_sums, arm=1)),
}
"""The losses of the regressions behind a query's answer, each with a tilt of its own."""


def _derivatives(
    query: type[ObjectivePerturbedLogistic], at: Array, batch: Batch, features: Features
) -> list[tuple[Array, Array]]:
    """Return, for each regression, its part of the coefficients and the derivatives of its losses there."""
    losses = _LOSSES[query]
    return [
        (own, as_floats(sums(own, batch, features)))
        for own, sums in zip(np.split(at, len(losses)), losses, strict=True)
    ]


def largest_ratio(
    epsilon: float,
    penalty: float,
    scale: float,
    sizes: Sequence[int] = (1, 2, 3),
    query: type[ObjectivePerturbedLogistic] = ObjectivePerturbedLogistic,
) -> tuple[float, int]:
    """Return the largest log ratio of densities between neighbours, over all small tables and many coefficients."""
    schema = standard_schema()
    seen = seen_by(query(_OF), schema)
    features, catalogue, kinds = Features(_OF, seen), catalogue_of(schema), _kinds(missing=query.counts_missing)
    columns = ("treatment", "outcome", *features.columns)
    random = np.random.default_rng(1)  # places to look at; noise is never drawn here
    count = len(_LOSSES[query]) * features.size
    ats = [np.zeros(count), *random.normal(0, 1, (10, count)), *random.normal(0, 20, (10, count)) / epsilon]

    def log_density(at: Array, batch: Batch) -> float:
        """Return the log density of coefficients, up to a constant: that of tilts, and of the change of variables."""
        total = 0.0
        for own, totals in _derivatives(query, at, batch, features):
            tilt = -(totals[0] + penalty * own)
            curvature = totals[1:] + penalty * np.eye(len(own))
            total += float(-np.abs(tilt).max() / scale + np.linalg.slogdet(curvature)[1])
        return total

    most, tried = 0.0, 0
    for size in sizes:
        for rest in itertools.combinations_with_replacement(kinds, size - 1):
            engines = [with_schema(catalogue.assemble([*rest, kind]), seen) for kind in (*kinds, OUTSIDE)]
            batches = [engine.collect(columns, size) for engine in engines]
            for at in ats:
                logs = [log_density(at, batch) for batch in batches]
                most, tried = max(most, max(logs) - min(logs)), tried + len(logs)
    return most, tried


def _kinds(*, missing: bool) -> list[Record]:
    """Return units of every corner of the covariates in both arms; without an outcome too where that counts."""
    plain = [kind for kind in small_kinds() if kind["score"] == 0]
    turned = [dict(kind) | {"smoker": "no" if kind["smoker"] == "yes" else "yes"} for kind in plain]
    whole: list[Record] = [*plain, *turned]
    return whole + [dict(kind) | {"score": None} for kind in whole] if missing else whole


def check_density(
    epsilon: float,
    runs: int,
    sizes: Sequence[int] = (1, 2, 3),
    query: type[ObjectivePerturbedLogistic] = ObjectivePerturbedLogistic,
) -> Finding:
    """Check that the ratio of densities stays within what tilt and ridge are paid for, and that this density is drawn.

    Released coefficients show the tilt they came from, but for the little noise that the solver is paid for: it is
    minus the gradient there. Its largest entry must have the law of the proof. That is one test at the level `RARE`, so
    draws as claimed fail it with a probability of 1e-9. The ratio is exact.
    """
    penalty, scale = query.penalty(epsilon), query.tilt_scale(epsilon, _FEATURES)
    most, tried = largest_ratio(epsilon, penalty, scale, sizes, query)
    allowed = epsilon * float(query.shares["curvature"] + query.shares["gradient"])
    tilts = _tilts(epsilon, penalty, runs, query) / scale
    chance = float(stats.kstest(tilts, stats.gamma(_FEATURES).cdf).pvalue)
    detail = (
        f"largest log ratio of densities {most:.4f}, allowed {allowed:.4f}; {runs:,} tilts, chance of such {chance:.2g}"
    )
    numbers = {"loss": most / allowed, "evaluations": tried, "runs": runs}
    passed = most <= allowed * (1 + 1e-9) and chance > RARE
    return Finding("density", f"{query.name}, epsilon {epsilon:g}", passed, detail, numbers)


def _tilts(epsilon: float, penalty: float, runs: int, query: type[ObjectivePerturbedLogistic]) -> Array:
    """Return the largest entries of the tilts that releases came from."""
    schema = standard_schema()
    seen = seen_by(query(_OF), schema)
    features, engine = Features(_OF, seen), catalogue_of(schema).assemble(_kinds(missing=query.counts_missing))
    vault = Unmetered(engine, schema)
    batch = with_schema(engine, seen).collect(("treatment", "outcome", *features.columns), 1_000)
    sizes = []
    for _ in range(runs):
        at = np.array(vault.release(query(_OF), Guarantee(epsilon=epsilon)).values)
        parts = _derivatives(query, at, batch, features)
        sizes += [float(np.abs(totals[0] + penalty * own).max()) for own, totals in parts]
    return np.array(sizes)
