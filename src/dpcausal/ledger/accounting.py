"""Tight privacy accounting by privacy loss distributions, for plans fixed in advance and for reports."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from dpcausal.errors import MissingExtraError
from dpcausal.guarantee import Event, exact
from dpcausal.ledger.budget import Total


def tight_epsilon(events: Iterable[Event], delta: float) -> float:
    """Return the epsilon at `delta` of events that were all fixed in advance, by the tighter of two methods.

    Basic composition adds up, and is proved. The other composes privacy loss distributions and treats the discrete
    Gaussian as the continuous one, which is accurate to many digits at the scales used here but not proved. No release
    depends on it.

    Example:
        >>> tight_epsilon([Event(family="laplace", epsilon=0.1, delta=0.0, mu=0.0)] * 3, 0.0)
        0.3
    """
    counts, total = Counter(events), Total()
    for event, times in counts.items():
        total = total.plus(event, times)
    added = float(total.epsilon) if total.delta <= exact(delta) else math.inf
    return min(added, _loss_distribution_epsilon(counts, delta)) if delta > 0 else added


def _loss_distribution_epsilon(counts: Mapping[Event, int], delta: float) -> float:
    # Imported late: it takes a second, and is an extra.
    try:
        from dp_accounting.pld.common import DifferentialPrivacyParameters  # noqa: PLC0415
        from dp_accounting.pld.privacy_loss_distribution import (  # noqa: PLC0415
            from_gaussian_mechanism,
            from_privacy_parameters,
            identity,
        )
    except ImportError:
        raise MissingExtraError(
            problem="The library dp-accounting, which composes privacy loss distributions, is not installed",
            hint="pip install 'dpcausal[accounting]'. `ledger.spent`, the total by the budget's rule, needs no extra.",
        ) from None

    total = identity()
    for event, times in counts.items():
        if event.family != "gaussian":
            # A vector of Laplace noise is charged as any pure mechanism: the curve of one number is not proved for it.
            one = from_privacy_parameters(DifferentialPrivacyParameters(event.epsilon, event.delta))
            total = total.compose(one.self_compose(times))
    together = math.sqrt(math.fsum(times * event.mu**2 for event, times in counts.items()))
    if together > 0:
        total = total.compose(from_gaussian_mechanism(1 / together))
    epsilon: float = total.get_epsilon_for_delta(delta)
    return epsilon
