"""All estimators pass the one check, and estimators that break a rule do not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.errors import GuaranteeError
from dpcausal.estimators import average
from dpcausal.estimators.base import BaseEstimator
from dpcausal.queries import ArmMoments, ArmTotals
from dpcausal.results.effect import Estimator
from dpcausal.schema.schema import PROTECTS, Protects
from dpcausal.source import guarantee_for
from dpcausal.testing import AnyEstimator, check_estimator, standard_schema, synthetic_table
from dpcausal.utils.discovery import classes_in
from tests.support.slow import marked

LISTED = replace(
    standard_schema(), covariates=[column for column in standard_schema().covariates if column.name != "age"]
)

ESTIMATORS: list[AnyEstimator] = [
    *(average.estimator_for(name, LISTED) for name in average.ESTIMATORS if name != "regression_discontinuity"),
    dpc.RegressionDiscontinuity("age", 54, 18),
    dpc.RegressionDiscontinuity("age", 40, 15, treated_below=True),
    dpc.ComplierEffect("smoker", covariates=["age"]),
    dpc.ComplierEffect("smoker", covariates=["age", "ward"], interaction=False),
    dpc.DifferenceInMeans(with_interval=False),
    dpc.ArmContrasts(contrasts="pairs", by=["ward", dpc.Cut("age", [40])]),
    dpc.ArmContrasts(contrasts="pairs", covariates=["age", "smoker"]),
    dpc.Stratification(by=["ward", dpc.Cut("age", [40, 65]), "smoker"]),
    dpc.Stratification(by=["ward", "age"]),
    dpc.Stratification(by=["ward"], cap=1),
    dpc.PropensityMatching(covariates=["ward", "age", "smoker"]),
    dpc.PropensityMatching(covariates=["age"], neighbours=1),
    dpc.InverseWeighting(covariates=["ward", "age", "smoker"]),
    dpc.InverseWeighting(covariates=["age"], estimand="ATT", scores="output"),
    dpc.InverseWeighting(covariates=["age"], estimand="ATC"),
    dpc.InverseWeighting(covariates=["age"], estimand="ATO"),
    dpc.RegressionAdjustment(covariates=["ward", "age", "smoker"]),
    dpc.RegressionAdjustment(covariates=["age"], interaction=False),
    dpc.DoublyRobust(covariates=["ward", "age", "smoker"]),
    dpc.DoublyRobust(covariates=["age"], estimand="ATT"),
    dpc.DoublyRobust(covariates=["age"], estimand="ATO"),
    dpc.DifferenceInDifferences(before="age"),
    dpc.DifferenceInDifferences(before="age", earlier="smoker", change=(-60, -40)),
    dpc.SubgroupEffects(by=["ward"]),
    dpc.SubgroupEffects(by=["smoker"], covariates=["age", "ward"]),
    dpc.RLearner(covariates=["ward", "age", "smoker"], basis=dpc.Spline(["age", "ward"])),
    dpc.RLearner(covariates=["age"], basis=dpc.Polynomial(["age", "smoker"], 2), propensity=0.5),
    dpc.DRLearner(covariates=["age"], basis=dpc.Fourier(["age"], n_features=3)),
    dpc.KernelLearner(covariates=["age"], n_features=5),
]


ASK_ANOTHER_QUERY = (
    dpc.ArmContrasts,
    dpc.ComplierEffect,
    dpc.InverseWeighting,
    dpc.QuantileEffects,
    dpc.Survival,
)
"""Estimators whose variants ask different queries."""


def spread_over_protections() -> Iterator[Any]:
    """Yield every variant of every estimator once, and every estimator with two protections or more.

    The first variant of each is in the gate, and so are others that ask another query.
    """
    kinds: dict[type, list[AnyEstimator]] = {}
    for estimator in ESTIMATORS:
        kinds.setdefault(type(estimator), []).append(estimator)
    for first, variants in enumerate(kinds.values()):
        for place in range(max(len(variants), 2)):
            case = variants[place % len(variants)], PROTECTS[(first + place) % len(PROTECTS)]
            stays = not place or (place < len(variants) and isinstance(case[0], ASK_ANOTHER_QUERY))
            yield case if stays else marked(case)


@pytest.mark.parametrize(("estimator", "protects"), list(spread_over_protections()), ids=str)
def test_every_estimator_passes(estimator: AnyEstimator, protects: Protects) -> None:
    matching = isinstance(estimator, dpc.ExactMatching | dpc.PropensityMatching)
    schema = standard_schema(protects, undeclared=0 if matching else None)
    if isinstance(estimator, dpc.PropensityMatching) and protects == "record_within_arm":
        with pytest.raises(GuaranteeError):
            check_estimator(estimator, schema)
    else:
        check_estimator(estimator, schema)


def test_no_estimator_is_left_out() -> None:
    curves = classes_in("dpcausal.estimators.conditional", BaseEstimator)
    known = {kind.__name__ for kind in (*average.ESTIMATORS.values(), *curves)}
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == known


@dataclass
class Thawed:
    """Broken: can be changed after it was made."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        return dpc.DifferenceInMeans().estimate(source, epsilon=epsilon, delta=delta)


@dataclass(frozen=True)
class Overspends:
    """Broken: asks for more than it was given."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        effect = dpc.DifferenceInMeans().estimate(source, epsilon=2 * epsilon, delta=delta)
        return replace(effect, guarantee=replace(effect.guarantee, epsilon=epsilon))


@dataclass(frozen=True)
class HidesReceipts:
    """Broken: does not say what it paid."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        dpc.DifferenceInMeans(with_interval=False).estimate(source, epsilon=epsilon / 2)
        return dpc.DifferenceInMeans().estimate(source, epsilon=epsilon / 2, delta=delta)


@dataclass(frozen=True)
class Fails:
    """Broken: raises when an arm looks empty."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        guarantee = dpc.Guarantee(epsilon=epsilon, delta=delta, protects=source.schema.protects)
        if source.release(ArmMoments(), guarantee).value("size_1") < 50:
            raise ZeroDivisionError
        return dpc.DifferenceInMeans().estimate(source, epsilon=epsilon, delta=delta)


@dataclass(frozen=True)
class Peeks:
    """Broken: reaches past the source."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        if not isinstance(source, dpc.Rehearsal):
            source._engine.collect(["outcome"], 10**9)  # type: ignore[attr-defined]
        return dpc.DifferenceInMeans().estimate(source, epsilon=epsilon, delta=delta)


def altered(change: Callable[[dpc.Effect], dpc.Effect]) -> Estimator:
    @dataclass(frozen=True)
    class Broken:
        def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
            return change(dpc.DifferenceInMeans().estimate(source, epsilon=epsilon, delta=delta))

    return Broken()


ALTERATIONS: dict[str, Callable[[dpc.Effect], dpc.Effect]] = {
    "states a smaller epsilon": lambda e: replace(e, guarantee=replace(e.guarantee, epsilon=e.guarantee.epsilon / 2)),
    "states another protection": lambda e: replace(e, guarantee=replace(e.guarantee, protects="outcome")),
    "hides its noise": lambda e: replace(e, noise=()),
    "turns the sign": lambda e: replace(e, estimate=-e.estimate),
    "inflates": lambda e: replace(e, estimate=1000 * e.estimate),
    "says not what it assumes": lambda e: replace(e, assumptions=()),
    "gives no receipt": lambda e: replace(e, receipts=()),
    "is not finite": lambda e: replace(e, sampling_sd=float("inf")),
}


@pytest.mark.parametrize("change", ALTERATIONS.values(), ids=ALTERATIONS.keys())
def test_an_altered_effect_is_caught(change: Callable[[dpc.Effect], dpc.Effect]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check_estimator(altered(change))


@dataclass(frozen=True)
class AsksMoreWithDelta:
    """Broken: an extra question where delta is positive."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        if delta:
            source.release(ArmTotals(), dpc.Guarantee(epsilon=epsilon, protects=source.schema.protects))
        return dpc.DifferenceInMeans().estimate(source, epsilon=epsilon, delta=delta)


@dataclass(frozen=True)
class SpendsInPart:
    """Broken: asks twice without a look at the budget first."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        effects = [dpc.DifferenceInMeans(each).estimate(source, epsilon=epsilon / 2) for each in (False, True)]
        guarantee = dpc.Guarantee(epsilon=epsilon, delta=delta, protects=source.schema.protects)
        receipts = tuple(receipt for effect in effects for receipt in effect.receipts)
        return replace(effects[1], guarantee=guarantee, receipts=receipts)


@dataclass(frozen=True)
class RehearsesSomethingElse(BaseEstimator):
    """Broken: asks a rehearsal, which is known by its caveats, another query than a vault."""

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        return dpc.DifferenceInMeans(with_interval=not source.caveats).estimate(source, epsilon=epsilon, delta=delta)


@dataclass(frozen=True)
class DividesByAllUnits(BaseEstimator):
    """Broken: takes all units for the units of the two arms that are compared."""

    chance: float = 0.5

    def estimate(self, source: dpc.Source, *, epsilon: float, delta: float = 0.0) -> dpc.Effect:
        guarantee = guarantee_for(source, epsilon, delta)
        release = source.release(ArmTotals(), guarantee)
        totals = [release.value(f"total_{arm}") / (source.n * self.chance) for arm in (0, 1)]
        return dpc.Effect(
            estimand="average treatment effect",
            arms=source.schema.treatment.labels_or_values,
            outcome=source.schema.outcome.name,
            estimate=totals[1] - totals[0],
            sampling_sd=None,
            noise=tuple(release.noise_term(f"total_{arm}", 1 / (source.n * self.chance)) for arm in (0, 1)),
            n=source.n,
            method="difference of totals",
            guarantee=guarantee,
            assumptions=("treatment was randomised with the stated probability",),
            receipts=(release.receipt,),
        )


def test_estimator_that_divides_by_all_units_is_caught_by_the_other_arm_alone() -> None:
    with pytest.raises(AssertionError, match="an arm outside the comparison"):
        check_estimator(DividesByAllUnits())
    check_estimator(DividesByAllUnits(), standard_schema(undeclared=0))  # where every unit is compared it is right


@pytest.mark.parametrize("arms", [("placebo", "drug"), (False, True), (0.5, 1.5)], ids=str)
def test_check_adds_an_arm_to_arms_of_every_kind(arms: tuple[Any, Any]) -> None:
    check_estimator(dpc.DifferenceInMeans(), replace(standard_schema(), treatment=dpc.Treatment("treat", arms=arms)))


@pytest.mark.parametrize(
    ("broken", "rule"),
    [(SpendsInPart(), "extend BaseEstimator"), (RehearsesSomethingElse(), "the queries are those of the rehearsal")],
    ids=lambda broken: type(broken).__name__,
)
def test_estimator_that_breaks_the_look_ahead_is_caught(broken: Estimator, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check_estimator(broken)


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (AsksMoreWithDelta(), AssertionError),
        (Thawed(), AssertionError),
        (Overspends(), AssertionError),
        (HidesReceipts(), AssertionError),
        (Fails(), ZeroDivisionError),
        (Peeks(), AttributeError),
    ],
    ids=lambda broken: getattr(broken, "__name__", type(broken).__name__),
)
def test_a_broken_estimator_is_caught(broken: Estimator, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_estimator(broken)


def test_one_call_from_a_table_to_an_effect() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Category("x", [0, 1])]
    )
    table = synthetic_table(schema, 500)
    for estimator in ("difference_in_means", "stratification", dpc.Stratification(by=["x"], cap=2)):
        effect = dpc.estimate(table, schema, estimator, epsilon=1.0)
        assert effect.guarantee.epsilon == 1.0
        assert "nothing records this spending" in str(effect)
    with pytest.raises(dpc.DpcausalError, match="There is no estimator named"):
        dpc.estimate(table, schema, "ols", epsilon=1.0)
