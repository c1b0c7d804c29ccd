"""Treatment effects from sensitive records, published with a differential-privacy guarantee that an expert can check.

The map, in the order in which a study meets it:

- Declare what is public: `Schema` of a `Treatment` with all of its arms and of `Real`, `Binary` and `Category` columns,
  and a `Unit` where people have several records.
- See the price first: run any estimator on a `Rehearsal`. It reads nothing and spends nothing.
- Put the table behind its door: `Vault`, with a `Ledger` that keeps a `Budget`, and `Resources` if it is large.
- Ask first whether arms can be compared at all, for a price: `Overlap`, `Balance`.
- Plan: `plan` tells price, width and what could be detected; `rank_estimators` ranks estimators by expected error.
- Estimate: `DifferenceInMeans` for a trial; `Stratification` for a few discrete confounders; `RegressionAdjustment` and
  `DoublyRobust` for up to some ten of any kind; `InverseWeighting` for a few in a small table; `PropensityMatching`
  where covariates and arms are public; `ExactMatching` to compare with. Every estimator has
  `estimate(source, epsilon=…, delta=…)` and returns an `Effect`. `estimate` does all of this in one call, for a table
  that is asked one question. `OutcomeRange` finds a narrower range of the outcome, for a price.
- Heterogeneous treatment effects: `SubgroupEffects` for a public partition; `RLearner` and `DRLearner` on a public
  basis (`Polynomial`, `Spline`, `Fourier`, `Cells`); `KernelLearner`; `BlockEnsemble` around any `Learner`;
  `InfluenceLearner`, which is not proved, to compare with. They return an `EffectCurve`, which answers any number of
  questions for nothing.
- Federated analysis: a `Study` is one file that each of them approves; a `Site` answers from behind its own policy, vault
  and ledger; a `Coordinator` asks them all, and is a source too. `pool` joins their effects.
- Tell others: `Report` is one page about an effect; `tidy` makes a frame of results. All of this from the command line:
  `dpcausal --help`. From DoWhy: `dpcausal.dowhy`.
- Make your own estimator, and check it: `dpcausal.testing.check_estimator`.

Inside, one rule: rows are touched in `dpcausal.vault` only, and what leaves it is a `Release` that was debited first.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcausal.columns import Binary, Category, Unit
    from dpcausal.curve import EffectCurve
    from dpcausal.diagnostics import Balance, Overlap
    from dpcausal.effect import Effect
    from dpcausal.errors import DpcausalError
    from dpcausal.estimators.average import (
        DifferenceInMeans,
        DoublyRobust,
        ExactMatching,
        InverseWeighting,
        PropensityMatching,
        RegressionAdjustment,
        Stratification,
    )
    from dpcausal.estimators.conditional import (
        BlockEnsemble,
        DRLearner,
        InfluenceLearner,
        KernelLearner,
        RLearner,
        SubgroupEffects,
    )
    from dpcausal.estimators.outcome_range import OutcomeRange
    from dpcausal.federation.coordinator import Coordinator
    from dpcausal.guarantee import Guarantee
    from dpcausal.ledger import Budget, Ledger
    from dpcausal.planning.plan import Plan, plan
    from dpcausal.planning.ranking import Ranking, rank_estimators
    from dpcausal.pooling import pool
    from dpcausal.queries import Cells, Cut, Fourier, Polynomial, Spline
    from dpcausal.quick import estimate
    from dpcausal.real import Real
    from dpcausal.rehearsal.rehearsal import Rehearsal
    from dpcausal.release import Release
    from dpcausal.report.report import Report
    from dpcausal.report.tidy import tidy
    from dpcausal.schema import Schema
    from dpcausal.site.site import Site
    from dpcausal.source import Source
    from dpcausal.study import Study
    from dpcausal.treatment import Treatment
    from dpcausal.vault import Vault
    from dpcausal.vault.engines.resources import Resources
    from dpcausal.vault.numerics.learners import Learner

__version__ = "0.1.0"

__all__ = [
    "Balance",
    "Binary",
    "BlockEnsemble",
    "Budget",
    "Category",
    "Cells",
    "Coordinator",
    "Cut",
    "DRLearner",
    "DifferenceInMeans",
    "DoublyRobust",
    "DpcausalError",
    "Effect",
    "EffectCurve",
    "ExactMatching",
    "Fourier",
    "Guarantee",
    "InfluenceLearner",
    "InverseWeighting",
    "KernelLearner",
    "Learner",
    "Ledger",
    "OutcomeRange",
    "Overlap",
    "Plan",
    "Polynomial",
    "PropensityMatching",
    "RLearner",
    "Ranking",
    "Real",
    "RegressionAdjustment",
    "Rehearsal",
    "Release",
    "Report",
    "Resources",
    "Schema",
    "Site",
    "Source",
    "Spline",
    "Stratification",
    "Study",
    "SubgroupEffects",
    "Treatment",
    "Unit",
    "Vault",
    "estimate",
    "plan",
    "pool",
    "rank_estimators",
    "tidy",
]

_HOMES = {
    "Balance": "dpcausal.diagnostics",
    "Binary": "dpcausal.columns",
    "BlockEnsemble": "dpcausal.estimators.conditional",
    "Budget": "dpcausal.ledger",
    "Category": "dpcausal.columns",
    "Cells": "dpcausal.queries",
    "Ranking": "dpcausal.planning.ranking",
    "Coordinator": "dpcausal.federation.coordinator",
    "Cut": "dpcausal.queries",
    "DRLearner": "dpcausal.estimators.conditional",
    "DifferenceInMeans": "dpcausal.estimators.average",
    "DoublyRobust": "dpcausal.estimators.average",
    "DpcausalError": "dpcausal.errors",
    "Effect": "dpcausal.effect",
    "EffectCurve": "dpcausal.curve",
    "ExactMatching": "dpcausal.estimators.average",
    "Fourier": "dpcausal.queries",
    "Guarantee": "dpcausal.guarantee",
    "InfluenceLearner": "dpcausal.estimators.conditional",
    "InverseWeighting": "dpcausal.estimators.average",
    "KernelLearner": "dpcausal.estimators.conditional",
    "Learner": "dpcausal.vault.numerics.learners",
    "Ledger": "dpcausal.ledger",
    "OutcomeRange": "dpcausal.estimators.outcome_range",
    "Overlap": "dpcausal.diagnostics",
    "Plan": "dpcausal.planning.plan",
    "Polynomial": "dpcausal.queries",
    "PropensityMatching": "dpcausal.estimators.average",
    "RLearner": "dpcausal.estimators.conditional",
    "Real": "dpcausal.columns",
    "RegressionAdjustment": "dpcausal.estimators.average",
    "Rehearsal": "dpcausal.rehearsal.rehearsal",
    "Release": "dpcausal.release",
    "Report": "dpcausal.report.report",
    "Resources": "dpcausal.vault.engines.resources",
    "Schema": "dpcausal.schema",
    "Site": "dpcausal.site.site",
    "Source": "dpcausal.source",
    "Spline": "dpcausal.queries",
    "Stratification": "dpcausal.estimators.average",
    "Study": "dpcausal.study",
    "SubgroupEffects": "dpcausal.estimators.conditional",
    "Treatment": "dpcausal.treatment",
    "Unit": "dpcausal.columns",
    "Vault": "dpcausal.vault",
    "rank_estimators": "dpcausal.planning.ranking",
    "estimate": "dpcausal.quick",
    "plan": "dpcausal.planning.plan",
    "pool": "dpcausal.pooling",
    "tidy": "dpcausal.report.tidy",
}
"""Where each name lives. It is fetched when first used, so that a site's small processes load only their own part."""

_NEED_FEDERATION = ("Coordinator", "Site")
"""What an installation without the extra `federation` does not have, nor announce."""

if find_spec("cryptography") is None:
    __all__ = [name for name in __all__ if name not in _NEED_FEDERATION]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (whatever lives there)
    from dpcausal.errors import MissingExtraError, NoSuchAttributeError  # noqa: PLC0415

    if name not in _HOMES:
        from dpcausal.validation import did_you_mean  # noqa: PLC0415 (only where somebody mistyped)

        raise AttributeError(f"dpcausal has no {name!r}; {did_you_mean(name, __all__)}".rstrip("; "))
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except MissingExtraError as error:
        if sys._getframe(1).f_code.co_name == "_handle_fromlist":  # noqa: SLF001
            raise  # `from dpcausal import …` hides the reason in an AttributeError, and shows that in an ImportError
        raise NoSuchAttributeError(expected=error.expected, got=error.got, hint=error.hint) from None
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
