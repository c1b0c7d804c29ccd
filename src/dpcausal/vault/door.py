"""The one door. Read this file first: everything that leaves a table leaves through `Vault.release`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from dpcausal import queries
from dpcausal.calibration import Noise, calibrate
from dpcausal.errors import CopyRefusedError, GuaranteeError, LedgerError, QueryError, TableError
from dpcausal.guarantee import Guarantee
from dpcausal.hash_chain import digest_of
from dpcausal.ledger import IN_MEMORY, Budget, DataSet, Ledger
from dpcausal.queries import BlockEffects, InfluenceEffects, Query
from dpcausal.release import Receipt, Release
from dpcausal.schema import PROTECTS, Schema
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.engines.resources import Resources
from dpcausal.vault.noise import add_noise
from dpcausal.vault.numerics.learners import Learner, check_scikit_learn, find_learner, own_learners
from dpcausal.vault.table import open_table

if TYPE_CHECKING:
    from dpcausal.vault.engines import Engine

_MOST_UNITS = 2**41  # so that a sum of ticks, and its noise, fits into 64 bits


class Vault:
    """A table behind one door.

    The number of units is public, and so are the arms' sizes where the schema declares arms public; both are read when
    the vault is opened. Everything else leaves only as the noisy answer to a query that was debited first.

    Args:
        table: A pandas, polars or pyarrow table; a Spark frame; a DuckDB relation; or a string that says where the
            table lies: a .parquet or .csv file, a folder of .parquet files, a glob such as `visits/*.csv`, a table or
            view of a DuckDB file, `warehouse.duckdb#visits`, or of a PostgreSQL server,
            `postgresql://user@host/database#schema.table`. It is read there, pass by pass. In PostgreSQL one
            transaction stays open for as long as the vault lives, so that all passes see the same.
        schema: What is public about the table.
        ledger: Where spending is kept: a `Ledger` or the address of one that was created, for instance
            `sqlite:///study-ledger.db`; or `sqlite://` for a new one in memory that forgets.
        budget: The most that may ever be spent on this data set. Needed in memory; any other ledger remembers.
        as_of: Which version of the data this is, as its ledger knows it: a public date or name. It is part of every
            question, so that a stored answer belongs to its version. May be left out only in memory.
        allow_unproved: Names of queries without a proof that may be asked all the same; none unless named. Part of what
            the ledger remembers.
        learners: Learners of your own that may be put to work on this table, by name, each a `Learner` with its
            version. They run inside the vault: allow what you trust.
        resources: How much memory and how many cores reading may take, and whether it shows how far it is.

    Example:
        >>> import pyarrow as pa
        >>> from dpcausal import Budget, Real, Schema, Treatment
        >>> table = pa.table({"t": [0, 1] * 50, "y": [0.2, 0.7] * 50})
        >>> schema = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1))
        >>> Vault(table, schema, ledger="sqlite://", budget=Budget(epsilon=3))
        Vault(100 units; treatment t, outcome y, 0 covariates; protects record)
    """

    __slots__ = ("_arm_sizes", "_as_of", "_engine", "_allow_unproved", "_learners", "_ledger", "_n", "_schema")

    def __init__(  # noqa: PLR0913
        self,
        table: object,
        schema: Schema,
        *,
        ledger: str | Ledger,
        budget: Budget | None = None,
        as_of: str | None = None,
        allow_unproved: Sequence[str] = (),
        learners: Mapping[str, Learner] | None = None,
        resources: Resources | None = None,
    ) -> None:
        _check_opening(ledger, budget, allow_unproved, resources)
        self._schema, self._as_of = schema, as_of
        self._allow_unproved, self._learners = tuple(allow_unproved), own_learners(learners)
        data_set = DataSet.of(schema, allow_unproved)
        # Everything public is compared before the table is opened: whoever is refused learns nothing about it.
        self._ledger = _opened(ledger, budget, as_of)
        self._ledger.check_budget(budget)
        self._ledger.check_data_set(as_of, data_set)
        self._engine: Engine = open_table(table, schema, resources)
        self._count()
        if self._ledger.versions[as_of] is None:
            self._check_size()
        self._ledger.bind(as_of, data_set, self._n)

    def _check_size(self) -> None:
        """Raise, before a ledger is tied to a table, unless the table has a size that the proofs are about."""
        if not 2 <= self._n < _MOST_UNITS:
            raise TableError(
                expected="a table of 2 to 2^41 units",
                got=f"{self._n} units",
                hint="the number of units is public; check that this is the table you meant.",
            )

    def _count(self) -> None:
        arms = self._engine.aggregate({"treatment": 3}, ["1"], whole=True)
        self._n = int(arms.sum())
        self._arm_sizes = None if self._schema.protects == "record" else (int(arms[0, 0]), int(arms[1, 0]))

    @property
    def schema(self) -> Schema:
        """What is public about the table."""
        return self._schema

    @property
    def n(self) -> int:
        """The number of units, which is public."""
        return self._n

    @property
    def as_of(self) -> str | None:
        """Which version of the data this is."""
        return self._as_of

    @property
    def arm_sizes(self) -> tuple[int, int] | None:
        """The number of units in each compared arm where the schema declares arms public; otherwise None."""
        return self._arm_sizes

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader of its effects should know: nothing, all of the table is always used."""
        return ()

    @property
    def ledger(self) -> Ledger:
        """What was spent on this data set."""
        return self._ledger

    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """The noisy answer to a query: debited first, then read, then noised, then stored, then returned.

        The same query of the same columns under the same guarantee gives the stored answer and spends nothing.

        Raises:
            BudgetExceededError: If the budget does not have this much left. Nothing was read.
        """
        self._check(query, guarantee)
        noise = calibrate(query, self._schema, guarantee)
        question = self.question(query, guarantee)
        request = digest_of(question)
        kept = self._ledger.stored(request)
        if kept is None:
            self._ledger.grant(request, noise.event, question)
            debit = self._ledger.debit(request)
            receipt = Receipt(
                query.name,
                guarantee.epsilon,
                guarantee.delta,
                debit.number,
                debit.digest,
                on=debit.content["at"],
                as_of=self._as_of,
            )
            kept = self._ledger.store(request, self._answer(query, guarantee, noise, receipt).to_json())
        return Release.from_json(kept)

    def question(self, query: Query, guarantee: Guarantee) -> dict[str, Any]:
        """Return what makes two requests to this vault the same; of a learner, which version it is."""
        question = queries.question(query, guarantee, self._schema, self._as_of)
        if isinstance(query, BlockEffects | InfluenceEffects):
            question["learner"] = find_learner(query.learner, self._learners).version
        return question

    def _answer(self, query: Query, guarantee: Guarantee, noise: Noise, receipt: Receipt) -> Release:
        """Rows are read here, and only here, and noise is added."""
        answer = ANSWERS[type(query)](query, self._schema, self._engine, guarantee, **self._tools(query))
        ticks = self._noised(answer.in_order(noise), answer.sized(noise))
        return Release.of(query, guarantee, noise, ticks, answer.public_values, receipt)

    def _tools(self, query: Query) -> dict[str, Learner]:
        """What an answer needs besides the table."""
        if isinstance(query, InfluenceEffects):
            check_scikit_learn(query.learner)
        return {"learner": find_learner(query.learner, self._learners)} if isinstance(query, BlockEffects) else {}

    @staticmethod
    def _noised(ticks: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        """The one place where noise is added; the audit draws from it too."""
        return add_noise(ticks, noise)

    def _check(self, query: Query, guarantee: Guarantee) -> None:
        if type(query) not in ANSWERS:
            raise QueryError(
                expected=f"a query out of {', '.join(queries.QUERIES)}",
                got=type(query).__name__,
                hint="only these questions may be asked of a table.",
            )
        if self._n > query.most_units:
            raise TableError(
                expected=f"at most {query.most_units:,} units for {query.name}",
                got=f"{self._n:,}",
                hint="ask a question that can be added up, such as a stratification.",
            )
        if PROTECTS.index(guarantee.protects) > PROTECTS.index(self._schema.protects):
            raise GuaranteeError(
                expected=f"a guarantee that protects {self._schema.protects}, as the schema declares",
                got=f"one that protects {guarantee.protects}",
                hint="a weaker release would void the promise of every other release from this data set.",
            )
        self._check_standing(query, guarantee)
        self._tools(query)

    def _check_standing(self, query: Query, guarantee: Guarantee) -> None:
        if guarantee.proof_status != query.proof_status:
            raise GuaranteeError(
                expected=f"a {query.proof_status} guarantee, which is what {query.name} has",
                got=f"a {guarantee.proof_status} one",
                hint="write proof_status='heuristic' for a query without a proof, and only for such.",
            )
        if query.proof_status == "heuristic" and query.name not in self._allow_unproved:
            raise GuaranteeError(
                expected=f"a query that is proved, or one that this data set allows without: {self._allowed}",
                got=query.name,
                hint=f"it has no proof; the table's owner may allow it all the same: allow_unproved=[{query.name!r}].",
            )

    @property
    def _allowed(self) -> str:
        return ", ".join(self._allow_unproved) or "none"

    def __repr__(self) -> str:
        return (
            f"Vault({self._n:,} units; treatment {self._schema.treatment.name}, outcome {self._schema.outcome.name}, "
            f"{len(self._schema.covariates)} covariates; protects {self._schema.protects})"
        )

    def __reduce__(self) -> NoReturn:
        raise CopyRefusedError(
            expected="a vault that stays in its process",
            got="an attempt to pickle or copy it",
            hint="a vault cannot be pickled or copied, because its table stays where it is; open another on the same "
            "ledger where you need it, or send the effect.",
        )


def _opened(ledger: str | Ledger, budget: Budget | None, as_of: str | None) -> Ledger:
    """The ledger that was named; one in memory is new by definition, and no other is made here."""
    if isinstance(ledger, Ledger):
        return ledger
    if ledger != IN_MEMORY:
        return Ledger(ledger)
    if budget is None:
        raise LedgerError(
            expected="a budget for a ledger in memory, which is new each time",
            got="none",
            hint="write budget=Budget(epsilon=3), or name a ledger that remembers.",
        )
    return Ledger.create(ledger, budget, as_of=as_of)


def _check_opening(ledger: object, budget: object, allow_unproved: Sequence[str], resources: object) -> None:
    known = [name for name, query in queries.QUERIES.items() if query.proof_status == "heuristic"]
    if isinstance(allow_unproved, str) or not set(allow_unproved) <= set(known):
        raise GuaranteeError(
            expected=f"a list of queries without proof out of {', '.join(known)}",
            got=repr(allow_unproved),
            hint="leave it out unless you know why nothing proved will do.",
        )
    if not isinstance(ledger, str | Ledger):
        raise LedgerError(
            expected="a Ledger or its address",
            got=type(ledger).__name__,
            hint='for a file write its address as a string: "sqlite:///study-ledger.db".',
        )
    if budget is not None and not isinstance(budget, Budget):
        raise GuaranteeError(
            expected="a Budget", got=type(budget).__name__, hint="write budget=Budget(epsilon=3, delta=1e-6)."
        )
    if resources is not None and not isinstance(resources, Resources):
        raise TableError(
            expected="Resources", got=type(resources).__name__, hint='write resources=Resources(memory="1 GB").'
        )
