"""The one door. Read this file first: everything that leaves a table leaves through `Vault.release`.

Or it leaves masked, as a part of a secure sum over sites, through `Vault.contribute`.

The door owns the sampler, and is the only file that imports it. An answer draws through the sampler that the door hands
to it; the noise on the answer is added here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from dpcausal import queries
from dpcausal.errors import ArgumentError, CopyRefusedError
from dpcausal.guarantee import Guarantee, Rule
from dpcausal.ledger import Budget, DataSet, Ledger, refusals
from dpcausal.queries import Query
from dpcausal.queries.calibration import Asked, Noise, calibrate
from dpcausal.release import Contribution, Receipt, Release, joint_price, session_request
from dpcausal.schema.mapping import ColumnMapping
from dpcausal.schema.scale import Scale
from dpcausal.schema.schema import Schema
from dpcausal.utils.hash_chain import digest_of
from dpcausal.utils.other_names import OtherNames, called_as
from dpcausal.utils.text import html_table
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.context import AnswerContext, runs_kernel, seen_through
from dpcausal.vault.engines import MappedEngine, check_workers, with_schema
from dpcausal.vault.engines.resources import Resources
from dpcausal.vault.noise import Sampler
from dpcausal.vault.preconditions import (
    check_answered_once,
    check_arguments,
    check_contribution,
    check_declared,
    check_request,
    check_size,
    claimed,
    opened_ledger,
)
from dpcausal.vault.table import names_persons, open_table

if TYPE_CHECKING:
    from dpcausal.vault.engines import Engine

__all__ = ["Sampler", "Vault"]

_NO_UNIT = (
    "no Unit is declared, though a column of the table seems to name persons: each record counts as a person of its "
    "own. Where the table is, run: dpcausal check STUDY --table TABLE"
)


class Vault(OtherNames):
    """A table behind one door.

    The number of units is public, and so are the arms' sizes where the schema declares arms public and no unit can lack
    its outcome; both are read when the vault is opened. Everything else leaves only as the noisy answer to a query that
    was debited first.

    Args:
        table: A pandas, polars or pyarrow table; a polars lazy frame; a Spark frame; a DuckDB relation; a table of
            Ibis, which its warehouse adds up; or a string that says where the table is: a .parquet or .csv file, a
            folder of .parquet files, a glob such as `visits/*.csv`, the same at `s3://` or `gs://`, a table or view of
            a DuckDB file, `warehouse.duckdb#visits`, or of a PostgreSQL server,
            `postgresql://user@host/database#schema.table`. It is read there, pass by pass. In PostgreSQL one
            transaction stays open for as long as the vault lives, so that all passes see the same.
        schema: What is public about the table.
        ledger: Where spending is recorded: a `Ledger`, or the file or address of one that was created, for instance
            `study-ledger.db`; or `sqlite://` for a new one in memory that forgets.
        budget: The most that may ever be spent on this data set. Needed in memory; any other ledger remembers.
        as_of: Which version of the data this is, as its ledger knows it: a public date or name. It is part of every
            question, so that a stored answer belongs to its version. May be left out only in memory.
        resources: How much memory and how many cores reading may take, and whether it shows how far it is.
        mapping: The columns and codes of the table that the schema calls otherwise, declared before the table is seen.

    Example:
        >>> import pyarrow as pa
        >>> from dpcausal import Budget, Real, Schema, Treatment
        >>> table = pa.table({"t": [0, 1] * 50, "y": [0.2, 0.7] * 50})
        >>> schema = Schema(treatment=Treatment("t"), outcome=Real("y", 0, 1))
        >>> Vault(table, schema, ledger="sqlite://", budget=Budget(epsilon=3))
        Vault(100 units; treatment t, outcome y, 0 covariates; protects record)
    """

    _instead: ClassVar[Mapping[str, str]] = {
        "head tail sample show iloc loc values rows columns dtypes to_pandas to_polars to_arrow to_numpy collect "
        "filter query sql execute select groupby group_by": "a vault shows no cells. Whoever keeps the table may look "
        "at it with: dpcausal check STUDY --table TABLE.",
        "describe info mean std count value_counts hist": "numbers leave a vault with noise, for a price: write "
        "Balance(covariates).estimate(vault, epsilon=0.2).table_one, or ask an estimator.",
        "shape size num_rows height count_rows": "write vault.n for the number of units, which is public.",
        "df data table frame": "a vault shows no cells. Write DifferenceInMeans().estimate(vault, epsilon=1.0).",
        "close": "a vault needs no closing; its ledger is written before each answer.",
        "epsilon budget spent remaining": "write vault.ledger.remaining, or vault.ledger.spent.",
    }

    _example = 'Vault(table, schema, ledger="study.db", as_of="2026-06-30")'

    __slots__ = (
        "_arm_sizes",
        "_as_of",
        "_caveats",
        "_engine",
        "_ledger",
        "_n",
        "_sampler",
        "_schema",
    )

    def __init__(  # noqa: PLR0913
        self,
        table: object,
        schema: Schema,
        *,
        ledger: str | Path | Ledger,
        budget: Budget | None = None,
        as_of: str | None = None,
        resources: Resources | None = None,
        mapping: ColumnMapping | None = None,
    ) -> None:
        check_arguments(schema, ledger, budget, resources)
        self._as_of, self._sampler = as_of, Sampler()
        data_set = DataSet.of(schema)
        # Everything public is compared before the table is opened: whoever is refused learns nothing about it.
        self._ledger = opened_ledger(ledger, budget, as_of)
        self._ledger.check_budget(budget)
        self._schema = schema = claimed(schema, self._ledger)
        self._ledger.check_data_set(as_of, data_set)
        local = mapping.local(schema) if mapping else schema
        self._engine: Engine = open_table(table, local, resources)
        if mapping:
            self._engine = MappedEngine(self._engine, mapping)
        self._caveats = (_NO_UNIT,) if schema.unit is None and names_persons(table, local) else ()
        self._count()
        if self._ledger.versions[as_of] is None:
            check_size(self._n)
        self._ledger.bind(as_of, data_set, self._n)

    def __getitem__(self, name: object) -> NoReturn:
        """Refuse to be read like a frame."""
        raise ArgumentError(
            problem="A vault shows no cells, and has no columns or records to take out",
            hint="write DifferenceInMeans().estimate(vault, epsilon=1.0), or ask another estimator.",
        )

    def _count(self) -> None:
        """Count the units, and each arm's where that is public: without arms, a file's own row count is enough."""
        if not self._schema.sizes_are_public:
            self._n, self._arm_sizes = int(self._engine.aggregate({}, ["1"], whole=True)[0]), None
            return
        arms = self._engine.aggregate({"treatment": 3}, ["1"], whole=True)
        self._n, self._arm_sizes = int(arms.sum()), (int(arms[0, 0]), int(arms[1, 0]))

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
        """The number of units in each compared arm where the schema makes that public; otherwise None."""
        return self._arm_sizes

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader of its effects should know: that its columns call for a unit which the schema does not have."""
        return self._caveats

    @property
    def rule(self) -> Rule:
        """How its ledger adds up prices."""
        return self._ledger.budget.rule

    @property
    def ledger(self) -> Ledger:
        """What was spent on this data set."""
        return self._ledger

    @called_as("vault.release(query, Guarantee(epsilon=1.0))")
    def release(self, query: Query, guarantee: Guarantee) -> Release:
        """Return the noisy answer to a query: debited first, then read, then noised, then stored.

        The same query of the same columns under the same guarantee gives the stored answer, whose receipt says so, and
        spends nothing; the table is not read, whatever became of its cells. The first look of a prepaid schedule pays
        for all of its looks.

        Raises:
            BudgetExceededError: If the budget does not have this much left. Nothing was read.
            EngineError: If the machines where the table is lack what the answer needs there. Nothing was debited.
        """
        self._check(query, guarantee)
        noise = calibrate(query, self._schema, guarantee, self.rule)
        question = self.question(query, guarantee)
        request = digest_of(question)
        stored = self._ledger.stored(request)
        if stored is not None:
            return Release.from_json(stored).from_ledger()
        self.check_ready(query)
        previous = self._previous(query, guarantee)
        bought = queries.payment(query, question)
        paid = digest_of(bought)
        receipt = self._paid(paid, [Asked(query, guarantee)], [noise], bought)
        answer = self._answer(query, guarantee, noise, receipt).to_json()
        if query.prepaid:
            return Release.from_json(self._ledger.store_look(paid, request, previous, answer))
        return Release.from_json(self._ledger.store(request, answer))

    def answered(self, query: Query) -> tuple[Guarantee, ...]:
        """Return the guarantees under which the ledger has an answer to a query, the oldest first.

        Under each of these `release` gives that answer again, spends nothing and reads no table.
        """
        found = (each["guarantee"] for each in self._ledger.answered(query.name))
        guarantees = (Guarantee(**each) for each in found)
        return tuple(each for each in guarantees if self._ledger.stored(digest_of(self.question(query, each))))

    def contribute(
        self, asked: Sequence[Asked], *, session: str, members: str, honest: int, mask: Sequence[int]
    ) -> Contribution:
        """Return this table's masked part of a secure sum over sites: debited first, then read, noised and masked.

        The full price of all queries is paid at once. The noise is a share, to each query's own scale: that of `honest`
        sites together is the whole noise. Only the masked integers leave, and only they are stored. The same session
        gives the stored contribution and spends nothing; it is never answered a second question. Proof:
        docs/proofs/noise_shares.md.

        Args:
            asked: Different queries whose answers add up, each with what is promised to each unit if that many sites
                are honest, and the public scales by which it sees covariates. Their numbers stand one after the other,
                in this order.
            session: The digest of the study, which has one session.
            members: The digest of the sites whose masks cancel out.
            honest: How many honest sites' shares are the whole noise.
            mask: For each number, an integer below 2^64 that is used for nothing else. It must stay secret: with it,
                this table's numbers can be seen with a share of the noise only.

        Raises:
            BudgetExceededError: If the budget does not have this much left. Nothing was read.
            QueryError: If the session was asked something else before, or a query does not add up.
        """
        views = [self.scaled(dict(each.scales)) if each.scales else self for each in asked]
        for view, (query, guarantee, _) in zip(views, asked, strict=True):
            view._check(query, guarantee)  # noqa: SLF001 (its own view)
        noises = [each.shared_noise(self._schema) for each in asked]
        shares = check_contribution([each.query for each in asked], noises, honest, mask)
        secure = {"session": session, "members": members, "honest": honest}
        questions = [view.question(*each[:2]) for view, each in zip(views, asked, strict=True)]
        question = {"questions": questions, "secure": secure}
        request = session_request(session)
        stored = self._ledger.stored(request)
        if stored is None:
            for view, each in zip(views, asked, strict=True):
                view.check_ready(each.query)
            receipt = self._paid(request, asked, noises, question)
            shared = []
            for view, (query, guarantee, _), noise, share in zip(views, asked, noises, shares, strict=True):
                answer = ANSWERS[type(query)](view._context(query, guarantee))  # noqa: SLF001 (its own view)
                shared += self._sampler.add_noise_share(answer.in_order(noise), share)
            masked = tuple((tick + each) % 2**64 for tick, each in zip(shared, mask, strict=True))
            stored = self._ledger.store(request, Contribution(masked, digest_of(question), receipt).to_json())
        contribution = Contribution.from_json(stored)
        check_answered_once(contribution, digest_of(question))
        return contribution

    def _paid(self, request: str, asked: Sequence[Asked], noises: Sequence[Noise], question: dict[str, Any]) -> Receipt:
        """Reserve and spend the price of a request, and return the receipt."""
        self._ledger.grant(request, [noise.event for noise in noises], question)
        debit = self._ledger.debit(request)
        number, digest, day = debit.number, debit.digest, debit.content["at"]
        return replace(joint_price(asked), entry=number, digest=digest, on=day, as_of=self._as_of)

    def check_ready(self, query: Query) -> None:
        """Raise if the machines where the table is lack what the answer to a query needs there. No table is read."""
        schema, engine = seen_through(query, self._schema, self._engine)
        if runs_kernel(query, schema, engine):
            check_workers(engine)

    def _previous(self, query: Query, guarantee: Guarantee) -> str | None:
        """Return the request of the look before this one, if there is one; raise where it has no answer yet."""
        before = queries.previous_look(query)
        if before is None:
            return None
        request = digest_of(self.question(before, guarantee))
        if self._ledger.stored(request) is None:
            raise refusals.out_of_order()
        return request

    def narrowed(self, low: float, high: float) -> Self:
        """Return this vault with narrower public bounds of the outcome, on the same table and ledger.

        Outcomes beyond count as the bound. The bounds must be public: a constant, or computed from releases. They are
        part of every question, so that a stored answer belongs to its bounds. Proof: docs/proofs/door.md.
        """
        return self._seen_through(self._schema.narrowed(low, high))

    def scaled(self, scales: Mapping[str, Scale], indicators: Collection[str] = ()) -> Self:
        """Return this vault with covariates by their scores on public scales, on the same table and ledger.

        See `Schema.scaled`. The knots must be public: constants, or computed from releases. They are part of every
        question, so that a stored answer belongs to its scales. Proof: docs/proofs/door.md.
        """
        return self._seen_through(self._schema.scaled(scales, indicators))

    def _seen_through(self, schema: Schema) -> Self:
        other = object.__new__(type(self))
        for name in Vault.__slots__:
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        other._schema, other._engine = schema, with_schema(self._engine, schema)
        return other

    def question(self, query: Query, guarantee: Guarantee) -> dict[str, Any]:
        """Return what makes two requests to this vault the same."""
        return queries.question(query, guarantee, self._schema, self._as_of)

    def _answer(self, query: Query, guarantee: Guarantee, noise: Noise, receipt: Receipt) -> Release:
        """Read the table, here and nowhere else, and return the answer with its noise.

        All randomness comes from the one sampler: what an answer draws on its way, and the noise that is added last.
        """
        answer = ANSWERS[type(query)](self._context(query, guarantee))
        check_declared(query, answer.public_values)
        noisy = self._sampler.add_noise(answer.in_order(noise), answer.sized(noise))
        return Release.of(query, guarantee, noise, noisy=noisy, public_values=answer.public_values, receipt=receipt)

    def _context(self, query: Query, guarantee: Guarantee) -> AnswerContext[Query]:
        schema, engine = seen_through(query, self._schema, self._engine)
        return AnswerContext(query, schema, engine, guarantee, self._sampler)

    def _check(self, query: Query, guarantee: Guarantee) -> None:
        check_request(query, guarantee, self._schema, self._n)

    def __repr__(self) -> str:
        return (
            f"Vault({self._n:,} units; treatment {self._schema.treatment.name}, outcome {self._schema.outcome.name}, "
            f"{len(self._schema.covariates)} covariates; protects {self._schema.protects})"
        )

    def _repr_html_(self) -> str:
        """Return what is public about the vault for a notebook."""
        return html_table(
            "Vault: a table behind its door",
            [
                ("units", f"{self._n:,}"),
                *self._schema.declared_rows,
                *([("data as of", self._as_of)] if self._as_of else []),
                ("ledger", repr(self._ledger).removeprefix("Ledger")[1:-1]),
            ],
        )

    def __reduce__(self) -> NoReturn:
        raise CopyRefusedError(
            problem="A vault cannot be pickled or copied, because its table stays where it is",
            hint="a vault cannot be pickled or copied, because its table stays where it is; open another on the same "
            "ledger where you need it, or send the effect.",
        )
