"""Treatment effects from sensitive records, published with a differential-privacy guarantee that an expert can check.

The public names, in the order of a study:

- Declare what is public: a `Schema` with a `Treatment` and all of its arms, with `Real`, `Binary` and `Category`
  columns, and with a `Unit` where people have several records.
- See the price first: run any estimator on a `Rehearsal`. It reads nothing and spends nothing.
- Plan: `plan` gives the price, the expected width and the detectable effect; `rank_estimators` ranks those that
  adjust by expected error.
- Put the table behind its door: a `Vault`, with a `Ledger` that enforces a `Budget`, and `Resources` if it is large.
- Diagnose, for a price: `Overlap` and `Balance`. `covariate_quantiles` says where the values of covariates are, which
  estimators then use for nothing. `PropensityModel` releases a `PropensityScore`, which these and
  `InverseWeighting` use again for nothing.
- Estimate an average effect: `DifferenceInMeans` for a trial; `ArmContrasts` for a trial with several arms, and
  `FactorialEffects` for one with two crossed factors; `Stratification` for a few discrete confounders;
  `RegressionAdjustment` and `DoublyRobust` for up to about ten of any kind; `InverseWeighting` for a few in a small
  table; `PropensityMatching` where covariates and arms are public; `ExactMatching` as a baseline. `QuantileEffects`
  compares medians and other quantiles in a trial; `ClusterTrial` is for one that randomised clusters; `Survival` for
  the time to an event;
  `ComplierEffect` where not everybody follows the assignment; `DifferenceInDifferences` for changes from before to
  after; `RegressionDiscontinuity` where a cutoff decides on the treatment; `ScheduledDifference` for weekly looks at a
  growing table that are paid for once. Every estimator has
  `estimate(source, epsilon=…, delta=…)` and returns an `Effect`. `estimate` does all of this in one call, for a table
  that is queried once. `Winsorised` runs any of them where public bounds of the outcome are far too wide.
- Estimate heterogeneous treatment effects: `SubgroupEffects` for a public partition; `RLearner` and `DRLearner` on a
  public basis (`Polynomial`, `Spline`, `Fourier`, `Cells`); `KernelLearner`. They return an `EffectCurve`, which costs
  nothing to evaluate.
- Federated analysis: a `Study` is one file that every site approves; a `Site` answers under its own policy, vault and
  ledger; a `Coordinator` queries all sites, and is a source too. `pool` pools their effects.
- Judge several results together: `estimate_family` divides one budget over outcomes and returns an `EffectFamily`;
  `adjusted_p_values`, `sequential_looks` for interim looks, `anytime_interval` for looks without a plan.
- Run an experiment with many metrics: an `Experiment` with its `Metric`s asks for all of them in one query, and
  returns a `Scorecard`.
- Publish: a `Report` is one page about an effect; `tidy` makes a data frame of results.
- Try it: `datasets` has a published trial that ships with the package.
- Use the command line: `dpcausal --help`.
- Write your own estimator: a `FormulaEstimator` of sums that you describe, or a class. Check it:
  `dpcausal.testing.check_estimator`.

One rule inside: only `dpcausal.vault` touches rows, and what leaves it is a `Release` that was debited first.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcausal.diagnostics import Balance as Balance
    from dpcausal.diagnostics import Overlap as Overlap
    from dpcausal.diagnostics.covariate_quantiles import CovariateQuantiles as CovariateQuantiles
    from dpcausal.diagnostics.covariate_quantiles import covariate_quantiles as covariate_quantiles
    from dpcausal.errors import DpcausalError as DpcausalError
    from dpcausal.estimators.average.arm_contrasts import ArmContrasts as ArmContrasts
    from dpcausal.estimators.average.cluster_trial import ClusterTrial as ClusterTrial
    from dpcausal.estimators.average.complier_effect import ComplierEffect as ComplierEffect
    from dpcausal.estimators.average.difference_in_differences import DifferenceInDifferences as DifferenceInDifferences
    from dpcausal.estimators.average.difference_in_means import DifferenceInMeans as DifferenceInMeans
    from dpcausal.estimators.average.doubly_robust import DoublyRobust as DoublyRobust
    from dpcausal.estimators.average.exact_matching import ExactMatching as ExactMatching
    from dpcausal.estimators.average.factorial_effects import FactorialEffects as FactorialEffects
    from dpcausal.estimators.average.formula_estimator import FormulaEstimator as FormulaEstimator
    from dpcausal.estimators.average.inverse_weighting import InverseWeighting as InverseWeighting
    from dpcausal.estimators.average.propensity_matching import PropensityMatching as PropensityMatching
    from dpcausal.estimators.average.quantile_effects import QuantileEffects as QuantileEffects
    from dpcausal.estimators.average.regression_adjustment import RegressionAdjustment as RegressionAdjustment
    from dpcausal.estimators.average.regression_discontinuity import RegressionDiscontinuity as RegressionDiscontinuity
    from dpcausal.estimators.average.scheduled_difference import ScheduledDifference as ScheduledDifference
    from dpcausal.estimators.average.stratification import Stratification as Stratification
    from dpcausal.estimators.average.survival import Survival as Survival
    from dpcausal.estimators.average.winsorised import Winsorised as Winsorised
    from dpcausal.estimators.conditional.kernel_learner import KernelLearner as KernelLearner
    from dpcausal.estimators.conditional.meta_learners import DRLearner as DRLearner
    from dpcausal.estimators.conditional.meta_learners import RLearner as RLearner
    from dpcausal.estimators.conditional.subgroups import SubgroupEffects as SubgroupEffects
    from dpcausal.estimators.propensity_model import PropensityModel as PropensityModel
    from dpcausal.experiment import ArmDecision as ArmDecision
    from dpcausal.experiment import DecisionRule as DecisionRule
    from dpcausal.experiment import Earlier as Earlier
    from dpcausal.experiment import Experiment as Experiment
    from dpcausal.experiment import Guardrail as Guardrail
    from dpcausal.experiment import Metric as Metric
    from dpcausal.experiment import MetricCatalogue as MetricCatalogue
    from dpcausal.experiment import Scorecard as Scorecard
    from dpcausal.federation.coordinator.coordinator import Coordinator as Coordinator
    from dpcausal.federation.site.site import Site as Site
    from dpcausal.guarantee import Guarantee as Guarantee
    from dpcausal.inference import EffectFamily as EffectFamily
    from dpcausal.inference import Look as Look
    from dpcausal.inference import adjusted_p_values as adjusted_p_values
    from dpcausal.inference import anytime_interval as anytime_interval
    from dpcausal.inference import estimate_family as estimate_family
    from dpcausal.inference import sequential_looks as sequential_looks
    from dpcausal.ledger import Budget as Budget
    from dpcausal.ledger import Ledger as Ledger
    from dpcausal.ledger import Population as Population
    from dpcausal.planning.plan import Plan as Plan
    from dpcausal.planning.plan import plan as plan
    from dpcausal.planning.ranking import Ranking as Ranking
    from dpcausal.planning.ranking import rank_estimators as rank_estimators
    from dpcausal.pooling import pool as pool
    from dpcausal.queries import Cells as Cells
    from dpcausal.queries import Cut as Cut
    from dpcausal.queries import Fourier as Fourier
    from dpcausal.queries import Polynomial as Polynomial
    from dpcausal.queries import Spline as Spline
    from dpcausal.quick import estimate as estimate
    from dpcausal.rehearsal.rehearsal import Rehearsal as Rehearsal
    from dpcausal.release import Release as Release
    from dpcausal.report.report import Report as Report
    from dpcausal.report.tidy import tidy as tidy
    from dpcausal.results.curve import EffectCurve as EffectCurve
    from dpcausal.results.effect import Effect as Effect
    from dpcausal.results.propensity_score import PropensityScore as PropensityScore
    from dpcausal.schema.columns import Binary as Binary
    from dpcausal.schema.columns import Category as Category
    from dpcausal.schema.columns import Unit as Unit
    from dpcausal.schema.layer import Layer as Layer
    from dpcausal.schema.real import Real as Real
    from dpcausal.schema.schema import Schema as Schema
    from dpcausal.schema.treatment import Treatment as Treatment
    from dpcausal.source import Source as Source
    from dpcausal.study.study import Study as Study
    from dpcausal.vault import Vault as Vault
    from dpcausal.vault.engines.resources import Resources as Resources

__version__ = "0.3.0"

_NAMES = {
    "diagnostics": "Balance Overlap",
    "diagnostics.covariate_quantiles": "CovariateQuantiles covariate_quantiles",
    "errors": "DpcausalError",
    "estimators.average.arm_contrasts": "ArmContrasts",
    "estimators.average.cluster_trial": "ClusterTrial",
    "estimators.average.complier_effect": "ComplierEffect",
    "estimators.average.difference_in_differences": "DifferenceInDifferences",
    "estimators.average.difference_in_means": "DifferenceInMeans",
    "estimators.average.doubly_robust": "DoublyRobust",
    "estimators.average.exact_matching": "ExactMatching",
    "estimators.average.factorial_effects": "FactorialEffects",
    "estimators.average.formula_estimator": "FormulaEstimator",
    "estimators.average.inverse_weighting": "InverseWeighting",
    "estimators.average.propensity_matching": "PropensityMatching",
    "estimators.average.quantile_effects": "QuantileEffects",
    "estimators.average.regression_adjustment": "RegressionAdjustment",
    "estimators.average.regression_discontinuity": "RegressionDiscontinuity",
    "estimators.average.scheduled_difference": "ScheduledDifference",
    "estimators.average.stratification": "Stratification",
    "estimators.average.survival": "Survival",
    "estimators.average.winsorised": "Winsorised",
    "estimators.conditional.kernel_learner": "KernelLearner",
    "estimators.conditional.meta_learners": "DRLearner RLearner",
    "estimators.conditional.subgroups": "SubgroupEffects",
    "estimators.propensity_model": "PropensityModel",
    "experiment": "ArmDecision DecisionRule Earlier Experiment Guardrail Metric MetricCatalogue Scorecard",
    "federation.coordinator.coordinator": "Coordinator",
    "federation.site.site": "Site",
    "guarantee": "Guarantee",
    "inference": "EffectFamily Look adjusted_p_values anytime_interval estimate_family sequential_looks",
    "ledger": "Budget Ledger Population",
    "planning.plan": "Plan plan",
    "planning.ranking": "Ranking rank_estimators",
    "pooling": "pool",
    "queries": "Cells Cut Fourier Polynomial Spline",
    "quick": "estimate",
    "rehearsal.rehearsal": "Rehearsal",
    "release": "Release",
    "report.report": "Report",
    "report.tidy": "tidy",
    "results.curve": "EffectCurve",
    "results.effect": "Effect",
    "results.propensity_score": "PropensityScore",
    "schema.columns": "Binary Category Unit",
    "schema.layer": "Layer",
    "schema.real": "Real",
    "schema.schema": "Schema",
    "schema.treatment": "Treatment",
    "source": "Source",
    "study.study": "Study",
    "vault": "Vault",
    "vault.engines.resources": "Resources",
}
"""The public names of each module. A name is imported when first used, so that small processes load only their part."""

_HOMES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}

_PACKAGES = ("datasets", "testing")
"""Packages that `import dpcausal` alone makes reachable: `dpcausal.datasets.stroke_trial()`."""

_NEED_FEDERATION = ("Coordinator", "Site")
"""Names that an installation without the extra `federation` does not have, and does not announce."""

_FEDERATED = find_spec("cryptography") is not None

__all__ = [name for name in _HOMES if _FEDERATED or name not in _NEED_FEDERATION]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (the name's own type)
    from dpcausal.errors import MissingExtraError, NoSuchAttributeError  # noqa: PLC0415

    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"dpcausal has no {name!r}; {_instead_of(name)}".rstrip("; "))
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except MissingExtraError as error:
        if sys._getframe(1).f_code.co_name == "_handle_fromlist":  # noqa: SLF001
            raise  # `from dpcausal import …` hides the reason in an AttributeError, and shows that in an ImportError
        raise NoSuchAttributeError(problem=error.problem, hint=error.hint) from None
    return value


_COLUMNS = {
    **dict.fromkeys(("Categorical", "Factor", "Discrete", "Nominal", "Ordinal"), "Category"),
    **dict.fromkeys(("Continuous", "Numeric", "Number", "Float", "Integer"), "Real"),
    **dict.fromkeys(("Boolean", "Bool", "Indicator"), "Binary"),
}
"""What other libraries call the kinds of columns."""


def _instead_of(name: str) -> str:
    """Return what to write instead of a name that dpcausal does not have; empty where nothing is near."""
    from dpcausal.utils.validation import did_you_mean  # noqa: PLC0415 (only after a typing mistake)

    other = _COLUMNS.get(name, "")
    is_word = name.isidentifier() and not name.startswith("_")
    if is_word and not other and find_spec(f"{__name__}.{name}") is None:  # an import of a module looks here first
        from dpcausal.estimators.average import class_also_called  # noqa: PLC0415

        other = class_also_called(name)
    near = did_you_mean(name, __all__)
    return f"here that is {other!r}" if other else near or "the names are in dir(dpcausal), and estimators in its docs"


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES, "__version__"]
