"""What is still to be paid for all that will be asked, before the first question is.

An estimator may ask several questions, and one answer is of no use without the others. A budget that has enough left
for the first and not for the second would be spent for nothing.
"""

from collections.abc import Callable

from dpcausal.calibration import calibrate
from dpcausal.guarantee import Event, Guarantee
from dpcausal.hash_chain import digest_of
from dpcausal.queries import Query
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import Release, Source
from dpcausal.schema import Schema
from dpcausal.vault import Vault


def outstanding_cost(vault: Vault, *asks: Callable[[Source], object]) -> dict[str, Event]:
    """The prices, by request, of all that some functions will ask of a vault and that its ledger has no answer to.

    Each function is run on what the ledger has stored, and on expectations where it has nothing. The table is not read,
    and nothing is spent or reserved. `vault.ledger.check_affords` tells whether there is enough left for all of it.

    Args:
        vault: The table and its ledger.
        asks: Whatever asks: each is given a source, as an estimator's `estimate` is.

    Example:
        >>> import pyarrow as pa
        >>> from dpcausal import Budget, DifferenceInMeans, Real, Schema, Treatment, Vault
        >>> schema = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1))
        >>> table = pa.table({"t": [0, 1], "y": [0.2, 0.7]})
        >>> vault = Vault(table, schema, ledger="sqlite://", budget=Budget(epsilon=3))
        >>> prices = outstanding_cost(vault, lambda source: DifferenceInMeans().estimate(source, epsilon=2.0))
        >>> [event.epsilon for event in prices.values()]
        [2.0]
    """
    pricing = _PricingSource(vault)
    for ask in asks:
        ask(pricing)
    return pricing.prices


class _PricingSource:
    """A source that writes down what a vault would charge."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._rehearsal = vault, Rehearsal(vault.schema, vault.n)
        self.prices: dict[str, Event] = {}

    @property
    def schema(self) -> Schema:
        """What is public about the table."""
        return self._vault.schema

    @property
    def n(self) -> int:
        """The number of units."""
        return self._vault.n

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The number of units in each arm, where that is public."""
        return self._vault.arm_sizes

    @property
    def caveats(self) -> tuple[str, ...]:
        """Nothing: nobody reads an effect from here."""
        return ()

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """The stored answer; where there is none, the expected one, and its price is written down."""
        request = digest_of(self._vault.question(query, guarantee))
        kept = self._vault.ledger.stored(request)
        if kept is not None:
            return Release.from_json(kept)
        self.prices[request] = calibrate(query, self.schema, guarantee).event
        return self._rehearsal.release(query, guarantee)
