"""Pages that tests and checks show in a browser: reports of different designs, and a scorecard."""

from datetime import date
from typing import Any

import pyarrow as pa

import dpcausal as dpc
from dpcausal.estimators.base import plain_estimator
from dpcausal.estimators.propensity import ESTIMANDS
from dpcausal.planning.plan import Plan
from dpcausal.release import Receipt
from dpcausal.report import Report
from dpcausal.results.site_share import SiteShare
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.uncertainty.joint_estimate import JointEstimate
from tests.support.metrics import metric_columns

DAY = date(2026, 1, 31)
ARMS = ("usual care", "training")
TREATMENT = dpc.Treatment("treat", labels=ARMS, undeclared=0)
WARD = dpc.Category("ward", ["north", "south"])
AGE = dpc.Real("age", 18, 100)


def make_effect(schema: dpc.Schema, **changes: Any) -> dpc.Effect:
    """Return a released effect with the given numbers."""
    parts: dict[str, Any] = {
        "estimand": "average treatment effect: mean outcome with all treated minus mean outcome with none",
        "arms": ARMS,
        "outcome": schema.outcome.name,
        "n": 4_000,
        "method": "difference in means, noisy arm sizes",
        "guarantee": dpc.Guarantee(epsilon=1.0),
        "assumptions": ("arms are comparable without adjustment, as in a randomised trial", *schema.data_handling),
        "receipts": (Receipt("arm_moments", 1.0, 0.0, 2, "ab" * 32, on="2026-01-20"),),
        "estimator": {"name": "difference_in_means", "with_interval": True},
    }
    return dpc.Effect(**parts | changes)


def make_study(schema: dpc.Schema, **changes: Any) -> dpc.Study:
    """Return a study with every text filled in."""
    parts: dict[str, Any] = {
        "name": "Training after a stroke",
        "question": "Does training after a stroke improve the score at 90 days?",
        "schema": schema,
        "estimator": dpc.DifferenceInMeans(),
        "epsilon": 1.0,
        "design": "trial",
        "eligibility": "adults with a first stroke, admitted in 2024",
        "time_zero": "discharge",
        "bounds": {"by": "A. Author", "on": "2026-01-15", "source": "codebook, section 4"},
    }
    return dpc.Study(**parts | changes)


def trial(**given: Any) -> Report:
    """Return the report of a conclusive trial."""
    schema = dpc.Schema(treatment=TREATMENT, outcome=dpc.Real("score", 0, 10), covariates=[WARD])
    means = JointEstimate(ARMS, (4.02, 5.01), ((0.0011, 0.0), (0.0, 0.0011)), ())
    effect = make_effect(schema, estimate=0.99, sampling_sd=0.047, noise=(NoiseTerm("laplace", 0.02),), arm_means=means)
    return Report.of(effect, make_study(schema), date=DAY, smallest_worthwhile_effect=0.5, **given)


def inconclusive_trial(**given: Any) -> Report:
    """Return the report of a trial in which privacy noise hides the effect."""
    schema = dpc.Schema(treatment=TREATMENT, outcome=dpc.Real("score", 0, 10), covariates=[WARD])
    means = JointEstimate(ARMS, (4.02, 4.43), ((0.005, 0.0), (0.0, 0.005)), ())
    effect = make_effect(
        schema,
        estimate=0.41,
        sampling_sd=0.06,
        noise=(NoiseTerm("laplace", 0.3),),
        arm_means=means,
        n=900,
        guarantee=dpc.Guarantee(epsilon=0.2),
        receipts=(Receipt("arm_moments", 0.2, 0.0, 2, "ab" * 32, on="2026-01-20"),),
    )
    study = make_study(schema, epsilon=0.2)
    return Report.of(effect, study, date=DAY, smallest_worthwhile_effect=0.25, **given)


def observational(**given: Any) -> Report:
    """Return the report of an observational study of a binary outcome, with private diagnostics."""
    schema = dpc.Schema(treatment=TREATMENT, outcome=dpc.Binary("DIED"), covariates=[AGE, WARD])
    risks = JointEstimate(ARMS, (0.142, 0.111), ((0.00003, 0.0), (0.0, 0.00003)), ())
    effect = make_effect(
        schema,
        estimate=-0.031,
        sampling_sd=0.0077,
        noise=(NoiseTerm("laplace", 0.003),),
        arm_means=risks,
        n=9_105,
        estimand=ESTIMANDS["ATE"],
        method="ATE by augmented scores with private models of age, ward, propensities clipped to 0.05 and 0.95",
        clip=0.05,
        estimator=plain_estimator(dpc.DoublyRobust(covariates=["age", "ward"])),
        assumptions=("no confounders but age, ward", *schema.data_handling),
        receipts=(
            Receipt("objective_perturbed_logistic", 0.5, 0.0, 2, "ab" * 32, on="2026-01-20"),
            Receipt("augmented_scores", 0.5, 0.0, 3, "cd" * 32, on="2026-01-20"),
        ),
    )
    study = make_study(
        schema,
        name="Right heart catheterisation",
        question="Does training lower the risk of death within 30 days?",
        estimator=dpc.DoublyRobust(covariates=["age", "ward"]),
        design="observational",
        confounders={"age": "older patients are trained less and die more", "ward": "wards differ in both"},
    )
    return Report.of(effect, study, date=DAY, smallest_worthwhile_effect=0.01, **given)


def federated(**given: Any) -> Report:
    """Return the report of a pooled effect of four sites, one of which did not answer."""
    schema = dpc.Schema(treatment=TREATMENT, outcome=dpc.Real("days", 0, 30), covariates=[WARD])
    shares = (
        SiteShare("coast", "its budget is spent", weight=0.0),
        SiteShare("north", "answered", 2_700, -1.9, 0.31, 0.42),
        SiteShare("south", "answered", 2_300, -1.1, 0.35, 0.33),
        SiteShare("university hospital", "answered", 1_800, -1.6, 0.42, 0.25),
    )
    effect = make_effect(
        schema,
        estimate=-1.54,
        sampling_sd=0.18,
        between_sd=0.12,
        noise=(NoiseTerm("laplace", 0.06),),
        n=6_800,
        method="random effects over 3 of 4 sites; at each: difference in means, noisy arm sizes",
        sites=shares,
        receipts=tuple(
            Receipt("arm_moments", 1.0, 0.0, 2, "ab" * 32, site=each.site, on="2026-01-20") for each in shares if each.n
        ),
    )
    return Report.of(effect, make_study(schema), date=DAY, smallest_worthwhile_effect=1.0, **given)


EXAMPLES = {
    "trial": trial,
    "inconclusive-trial": inconclusive_trial,
    "observational": observational,
    "federated": federated,
}


def scorecard() -> dpc.Scorecard:
    """Return the scorecard of an experiment with two treated arms, on a generated table."""
    experiment = dpc.Experiment(
        name="Checkout",
        question="Does a new checkout sell more?",
        treatment=dpc.Treatment("arm", arms=("old", "blue", "green"), compare="blue", labels=("old", "blue", "green")),
        metrics=(
            dpc.Metric(dpc.Real("revenue", 0, 60, missing=0), covariate=dpc.Real("before", 0, 60), weight=2),
            dpc.Metric(dpc.Binary("bought", missing=0)),
            dpc.Metric(dpc.Real("clicks", 0, 30, missing=0), denominator=dpc.Real("views", 0, 40, missing=0)),
            dpc.Metric(dpc.Real("seconds", 0, 20, missing=20), name="seconds to load", lower_is_better=True),
        ),
        epsilon=1.0,
    )
    budget = dpc.Budget(epsilon=1.01)
    return experiment.run(dpc.Vault(pa.table(metric_columns()), experiment.schema, ledger="sqlite://", budget=budget))


def planned() -> Plan:
    """Return the plan of an observational study."""
    schema = dpc.Schema(treatment=TREATMENT, outcome=dpc.Binary("death", label="death at 6 months"), covariates=[WARD])
    expected = dpc.Rehearsal(schema, n=4_000, outcome_mean=0.2)
    return dpc.plan(dpc.Stratification(by=["ward"]), expected, dpc.Guarantee(epsilon=0.7))
