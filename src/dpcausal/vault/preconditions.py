"""What a vault refuses before it reads a table. Every check here is on public things."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dpcausal import queries
from dpcausal.errors import EngineError, GuaranteeError, LedgerError, QueryError, SchemaError, TableError
from dpcausal.guarantee import Guarantee, check_is_guarantee
from dpcausal.ledger import IN_MEMORY, Budget, Ledger
from dpcausal.queries import Query, is_summable
from dpcausal.queries.calibration import Noise, NoiseShare, share_of
from dpcausal.release import Contribution, PublicValue
from dpcausal.schema.real import Real
from dpcausal.schema.schema import PROTECTS, Schema
from dpcausal.vault.context import ANSWERS
from dpcausal.vault.engines.resources import Resources

_MOST_UNITS = 2**41  # so that a sum of ticks, and its noise, fits into 64 bits


def check_arguments(schema: object, ledger: object, budget: object, resources: object) -> None:
    """Raise unless the arguments of a vault are of the right kinds."""
    if not isinstance(schema, Schema):
        raise SchemaError(
            problem="A vault takes a table first and then its Schema, and in place of the Schema there is a "
            f"{type(schema).__name__}",
            hint='write Vault(table, schema, ledger="study.db", as_of="2026-06-30").',
        )
    on_scales = [column.name for column in schema.covariates if isinstance(column, Real) and column.scale]
    if on_scales:
        raise SchemaError(
            expected="covariates as the table holds them, without scales",
            got=f"a scale of {', '.join(on_scales)}",
            hint="declare typical=(low, high) of each instead; Vault.scaled gives scales for single questions.",
        )
    if not isinstance(ledger, str | Path | Ledger):
        raise LedgerError(
            problem=f"The ledger must be a Ledger, the name of its file, or its address, not a {type(ledger).__name__}",
            hint='write for instance ledger="study-ledger.db".',
        )
    if budget is not None and not isinstance(budget, Budget):
        raise GuaranteeError(
            problem=f"The budget must be a Budget, not {repr(budget)[:100]}",
            hint="write budget=Budget(epsilon=3, delta=1e-6).",
        )
    if resources is not None and not isinstance(resources, Resources):
        raise TableError(
            expected="Resources", got=type(resources).__name__, hint='write resources=Resources(memory="1 GB").'
        )


def opened_ledger(ledger: str | Path | Ledger, budget: Budget | None, as_of: str | None) -> Ledger:
    """Return the ledger that was named. One in memory is new by definition, and no other is created here."""
    if isinstance(ledger, Ledger):
        return ledger
    if ledger != IN_MEMORY:
        return Ledger(ledger)
    if budget is None:
        raise LedgerError(
            problem="A ledger in memory is new each time, so it needs a budget",
            hint="write budget=Budget(epsilon=3), or name a ledger that remembers.",
        )
    return Ledger.create(ledger, budget, as_of=as_of)


def claimed(schema: Schema, ledger: Ledger) -> Schema:
    """Return a schema whose units are those that the ledger's experiment has: in buckets of a layer, or all."""
    if schema.claim not in (None, ledger.claim):
        raise SchemaError(
            expected=f"the units that the ledger is for: {ledger.claim or 'all'}",
            got=str(schema.claim),
            hint="leave claim out of the schema; Population.allocate gives an experiment its buckets.",
        )
    return replace(schema, claim=ledger.claim)


def check_size(n: int) -> None:
    """Raise, before a ledger is tied to a table, unless the table has a size that the proofs are about."""
    if not 2 <= n < _MOST_UNITS:
        raise TableError(
            problem=f"A table must have 2 to 2^41 units, and this one has {n}",
            hint="the number of units is public; check that this is the table you meant.",
        )


def check_request(query: Query, guarantee: Guarantee, schema: Schema, n: int) -> None:
    """Raise unless a query may be asked of this table under this guarantee."""
    check_is_guarantee(guarantee)
    if type(query) not in ANSWERS:
        raise QueryError(
            expected=f"a query out of {', '.join(queries.QUERIES)}",
            got=type(query).__name__,
            hint="only these questions may be asked of a table. For sums of your own write "
            "CustomSums({'n': '1', 'total': 'centred(score)'}), or a FormulaEstimator.",
        )
    if n > query.most_units:
        raise TableError(
            expected=f"at most {query.most_units:,} units for {query.name}",
            got=f"{n:,}",
            hint="ask a question that can be added up, such as a stratification.",
        )
    if PROTECTS.index(guarantee.protects) > PROTECTS.index(schema.protects):
        raise GuaranteeError(
            expected=f"a guarantee that protects {schema.protects}, as the schema declares",
            got=f"one that protects {guarantee.protects}",
            hint="a weaker release would void the promise of every other release from this data set.",
        )


def check_contribution(
    asked: Sequence[Query], noises: Sequence[Noise], honest: int, mask: Sequence[int]
) -> list[NoiseShare]:
    """Return each query's share of noise for a secure sum; raise unless all answers add up and the mask fits."""
    other = [query.name for query in asked if not is_summable(query)]
    if not asked or other:
        raise QueryError(
            expected="queries whose answers add up over sites",
            got=", ".join(other) or "none",
            hint="use difference_in_means, regression_adjustment or stratification with a cap for secure sums.",
        )
    if not isinstance(honest, int) or honest < 2:
        raise QueryError(
            expected="at least 2 honest sites for a secure sum",
            got=repr(honest),
            hint='with fewer, leave out aggregation = "secure": each site then adds all of the noise.',
        )
    count = sum(len(noise.scales) for noise in noises)
    if len(mask) != count or not all(isinstance(each, int) and 0 <= each < 2**64 for each in mask):
        raise QueryError(
            expected=f"a mask of {count} integers from 0 to 2^64 - 1, one for each number",
            got="another mask",
            hint="draw the mask for these queries.",
        )
    return [share_of(noise, honest) for noise in noises]


def check_answered_once(contribution: Contribution, question: str) -> None:
    """Raise if the contribution of a session answers another question than the one that is asked now."""
    if contribution.question != question:
        raise QueryError(
            expected="the question that this session of secure sums was answered",
            got="another one",
            hint="a session is answered once; a new study, with its own price, begins another session.",
        )


def check_declared(query: Query, values: Sequence[PublicValue]) -> None:
    """Raise where an answer holds a value without noise that its query does not declare. No table can cause it."""
    if tuple(value.name for value in values) != tuple(query.public_values):
        raise EngineError(
            expected=f"the public values that {query.name} declares: {', '.join(query.public_values) or 'none'}",
            got=", ".join(value.name for value in values) or "none",
            hint="this is a defect in dpcausal: please report it. The budget is spent; nothing was released.",
        )
