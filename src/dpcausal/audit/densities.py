"""The density of objective perturbation, which has a closed form: how much a neighbour can change it."""

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import stats

from dpcausal.audit.finding import Finding
from dpcausal.audit.losses import OUTSIDE, small_kinds
from dpcausal.audit.noise_distribution import RARE
from dpcausal.audit.tables import Unmetered, catalogue_of
from dpcausal.guarantee import Guarantee
from dpcausal.queries import ObjectivePerturbedLogistic
from dpcausal.testing import standard_schema
from dpcausal.utils.arrays import Array
from dpcausal.vault.answers.logistic import loss_sums
from dpcausal.vault.engines import Batch
from dpcausal.vault.numerics.exact_gradients import as_floats
from dpcausal.vault.numerics.features import Features

_OF = ("age", "smoker")
_FEATURES = len(_OF) + 1


def log_density(at: Array, batch: Batch, features: Features, penalty: float, scale: float) -> float:
    """Return the log density of coefficients, up to a constant: that of the tilt, and of the change of variables."""
    totals = as_floats(loss_sums(at, batch, features))
    tilt = -(totals[0] + penalty * at)
    curvature = totals[1:] + penalty * np.eye(len(at))
    return float(-np.abs(tilt).max() / scale + np.linalg.slogdet(curvature)[1])


def largest_ratio(epsilon: float, penalty: float, scale: float, sizes: Sequence[int] = (1, 2, 3)) -> tuple[float, int]:
    """Return the largest log ratio of densities between neighbours, over all small tables and many coefficients."""
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
    ]
    most, tried = 0.0, 0
    for size in sizes:
        for rest in itertools.combinations_with_replacement(kinds, size - 1):
            batches = [catalogue.assemble([*rest, kind]).collect(columns, size) for kind in (*kinds, OUTSIDE)]
            for at in ats:
                logs = [log_density(at, batch, features, penalty, scale) for batch in batches]
                most, tried = max(most, max(logs) - min(logs)), tried + len(logs)
    return most, tried


def check_density(epsilon: float, runs: int, sizes: Sequence[int] = (1, 2, 3)) -> Finding:
    """Check that the ratio of densities stays within what tilt and ridge are paid for, and that this density is drawn.

    Released coefficients show the tilt they came from, but for the little noise that the solver is paid for: it is
    minus the gradient there. Its largest entry must have the law of the proof. That is one test at the level `RARE`, so
    draws as claimed fail it with a probability of 1e-9. The ratio is exact.
    """
    query = ObjectivePerturbedLogistic
    penalty, scale = query.penalty(epsilon), query.tilt_scale(epsilon, _FEATURES)
    most, tried = largest_ratio(epsilon, penalty, scale, sizes)
    allowed = epsilon * float(query.shares["curvature"] + query.shares["gradient"])
    chance = float(stats.kstest(_tilts(epsilon, penalty, runs) / scale, stats.gamma(_FEATURES).cdf).pvalue)
    detail = (
        f"largest log ratio of densities {most:.4f}, allowed {allowed:.4f}; {runs:,} tilts, chance of such {chance:.2g}"
    )
    numbers = {"loss": most / allowed, "evaluations": tried, "runs": runs}
    passed = most <= allowed * (1 + 1e-9) and chance > RARE
    return Finding("density", f"{query.name}, epsilon {epsilon:g}", passed, detail, numbers)


def _tilts(epsilon: float, penalty: float, runs: int) -> Array:
    """Return the largest entries of the tilts that releases came from."""
    schema = standard_schema()
    features = Features(_OF, schema)
    engine = catalogue_of(schema).assemble(small_kinds())
    vault, batch = Unmetered(engine, schema), engine.collect(("treatment", *features.columns), 1_000)
    sizes = []
    for _ in range(runs):
        at = np.array(vault.release(ObjectivePerturbedLogistic(_OF), Guarantee(epsilon=epsilon)).values)
        sizes.append(float(np.abs(as_floats(loss_sums(at, batch, features))[0] + penalty * at).max()))
    return np.array(sizes)
