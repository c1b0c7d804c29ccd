"""A study that is priced and ready to run on a vault."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dpcausal.diagnostics import Diagnosis
from dpcausal.errors import RefusedError
from dpcausal.experiment import Scorecard
from dpcausal.guarantee import Event
from dpcausal.price import Price
from dpcausal.rehearsal.pricing import MeteredSource
from dpcausal.release import Release
from dpcausal.results.curve import EffectCurve
from dpcausal.results.effect import Effect
from dpcausal.source import Source


@dataclass(frozen=True)
class StudyResult:
    """What a study found.

    Attributes:
        effect: The effect; None where a required diagnostic failed, and the effect was not asked for.
        diagnoses: The required diagnostics, by name.
        releases: Everything that was released for it, in order.
        secondary: The secondary analyses, by label: effect curves and scorecards.
    """

    effect: Effect | None
    diagnoses: Mapping[str, Diagnosis]
    releases: tuple[Release, ...]
    secondary: Mapping[str, EffectCurve | Scorecard] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the required diagnostics that failed."""
        return tuple(name for name, diagnosis in self.diagnoses.items() if diagnosis.passes is False)

    def checked_effect(self) -> Effect:
        """Return the effect.

        Raises:
            RefusedError: If a required diagnostic failed.
        """
        if self.effect is None:
            failed = {name: self.diagnoses[name] for name in self.failed}
            raise RefusedError(
                problem="A required diagnostic failed: "
                f"{'; '.join(f'{name}, {each.found}' for name, each in failed.items())}",
                hint=" ".join(each.remedy for each in failed.values()),
            )
        return self.effect


@dataclass(frozen=True)
class Prepared:
    """A study on one vault, before it is run: nothing is read or spent. `Study.prepare` makes it.

    Attributes:
        evaluate: Runs the study on a source.
        price: The price of everything that the study asks, answered before or not.
        due: The prices, by request, of the queries that the vault's ledger has no answer to.
    """

    vault: MeteredSource
    evaluate: Callable[[Source], StudyResult]
    price: Price
    due: Mapping[str, Event]

    def check_affords(self) -> None:
        """Raise unless the budget has enough left for everything that is due.

        Raises:
            BudgetExceededError: If it has too little left. Nothing was spent.
        """
        self.vault.ledger.check_affords(self.due)

    def run(self) -> StudyResult:
        """Run the study: first the required diagnostics and, unless one fails, all estimates.

        What the ledger has answered before is not paid for again.

        Raises:
            BudgetExceededError: If the budget has too little left for all of it. Nothing was spent.
        """
        self.check_affords()
        return self.evaluate(self.vault)
