"""Whether the parts of a report belong together, as far as public things tell."""

from collections.abc import Callable, Sequence

from dpcausal.diagnostics import BalanceTable, Diagnosis, OverlapTable
from dpcausal.effect import Effect
from dpcausal.errors import StudyError
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.study import Study

_SAME: dict[str, Callable[[Effect | Diagnosis], object]] = {
    "arms": lambda each: each.arms,
    "standing": lambda each: "rehearsed" if each.rehearsed else "released",
}
"""What a diagnosis shares with an effect of the same table, wherever that lies."""

_SAME_TABLE = _SAME | {"number of units": lambda each: each.n}
"""Likewise, where it is one table."""


def check_diagnoses(effect: Effect, diagnoses: Sequence[BalanceTable | OverlapTable]) -> None:
    """Raise unless these are diagnoses, and of what the effect is of."""
    for each in diagnoses:
        if not isinstance(each, Diagnosis):
            raise StudyError(
                expected="as diagnoses what Overlap and Balance found",
                got=f"a {type(each).__name__}",
                hint="write diagnoses=[overlap, balance]; pictures go into figures=[...].",
            )
        for what, told in (_SAME if effect.sites else _SAME_TABLE).items():
            if told(each) != told(effect):
                raise StudyError(
                    expected=f"a diagnosis with the effect's {what}, {told(effect)!r}",
                    got=f"{each.name} with {told(each)!r}",
                    hint="a check of another table, or a rehearsed one, says nothing about this effect.",
                )


def check_study(effect: Effect, study: Study) -> None:
    """Raise unless an effect can be what a study asked for: pooled ones too, with the epsilon of some site."""
    schema, guarantee = study.schema, effect.guarantee
    epsilons = (study.epsilon, *(study.epsilons.values() if effect.sites else ()))
    for what, planned, got in (
        ("arms", (schema.treatment.labels_or_values,), effect.arms),
        ("outcome", (schema.outcome.name,), effect.outcome),
        ("epsilon", epsilons, guarantee.epsilon),
        ("delta", (study.delta,), guarantee.delta),
        ("protects", (schema.protects,), guarantee.protects),
    ):
        if got not in planned:
            raise StudyError(
                expected=f"an effect of this study, with {what} {' or '.join(map(repr, planned))}",
                got=f"one with {got!r}",
                hint="give the study that asked for this effect, or leave the study out.",
            )
    for reading in schema.data_handling:
        if reading not in effect.assumptions:
            raise StudyError(
                expected=f"an effect of this study, which assumes: {reading}",
                got="one that does not",
                hint="the study's bounds or values are others than the effect's, or its version of dpcausal is.",
            )


def check_ledger(effect: Effect, receipts: int, spent: LedgerSummary) -> None:
    """Raise unless a ledger holds all the receipts; of many sites each has its own, and a rehearsal has none."""
    if effect.sites or effect.rehearsed or spent.found == receipts:
        return
    raise StudyError(
        expected=f"the ledger that paid, which holds all receipts: {receipts}",
        got=f"one that holds {spent.found} of them",
        hint="give the ledger of the table that was asked; one that was replaced does not hold them.",
    )
