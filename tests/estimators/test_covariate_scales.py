"""Scales of covariates are paid for once in a data set, out of what the estimator promised, and used again."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, SchemaError
from dpcausal.estimators import covariate_scales
from dpcausal.estimators.covariate_scales import ScaledCovariates, with_scales
from dpcausal.price import Price
from dpcausal.queries import ArmMoments, CovariateCounts, Query
from dpcausal.queries.features import design_names
from dpcausal.rehearsal.pricing import outstanding_cost
from dpcausal.release import Release
from dpcausal.results.effect import Estimator
from dpcausal.schema.columns import Column
from dpcausal.source import AdditiveSource, RandomisedSource, RecordingSource, Source, SummedSource, WrappedSource

N = 4_000
RANDOM = np.random.default_rng(5)
CREATININE = RANDOM.lognormal(0, 0.35, N)
AGE = RANDOM.normal(60, 12, N)
TABLE = pa.table(
    {
        "arm": RANDOM.integers(0, 2, N),
        "y": RANDOM.random(N),
        "creatinine": np.where(RANDOM.random(N) < 0.15, np.nan, CREATININE),
        "age": AGE,
        "smoker": RANDOM.integers(0, 2, N),
    }
)
COLUMNS: list[Column] = [dpc.Real("creatinine", 0, 15), dpc.Real("age", 0, 150), dpc.Binary("smoker", missing=0)]
SCHEMA = dpc.Schema(dpc.Treatment("arm"), dpc.Real("y", 0, 1), COLUMNS)
COVARIATES = ("creatinine", "age", "smoker")
EIGHT = dpc.Guarantee(epsilon=8.0)


@pytest.fixture(autouse=True)
def tenth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let counts always take a tenth of epsilon, but where a test is about their share."""
    if "share" not in request.node.name:
        monkeypatch.setattr(covariate_scales, "_SHARES", (0.1,))


def vault(schema: dpc.Schema = SCHEMA, ledger: dpc.Ledger | None = None, as_of: str = "2026") -> dpc.Vault:
    ledger = ledger or dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=50, delta=1e-5), as_of="2026")
    return dpc.Vault(TABLE, schema, ledger=ledger, as_of=as_of)


def spent(source: dpc.Vault) -> float:
    return source.ledger.spent.epsilon


def estimate(source: Source, guarantee: dpc.Guarantee, covariates: tuple[str, ...] = COVARIATES) -> ScaledCovariates:
    """Ask as an estimator does: for scales, and then for models with all that is left."""
    found = with_scales(source, covariates, guarantee)
    found.source.release(ArmMoments(), found.rest)
    return found


def test_covariates_are_seen_by_their_scores_and_missing_values_by_indicators() -> None:
    found = with_scales(vault(), COVARIATES, EIGHT)
    assert found.covariates == (*COVARIATES, "creatinine is missing")
    seen = {column.name: column for column in found.source.schema.covariates}
    creatinine = seen["creatinine"]
    assert isinstance(creatinine, dpc.Real)
    assert creatinine.scale == found.scales["creatinine"].scale
    assert creatinine.missing_value == pytest.approx(np.median(CREATININE), rel=0.15)
    assert found.scales["age"].quantile(0.5) == pytest.approx(np.median(AGE), abs=2)
    assert found.scales["age"].quantile(0.95) == pytest.approx(np.quantile(AGE, 0.95), abs=5)
    assert found.scales["creatinine"].missing_share == pytest.approx(0.15, abs=0.04)
    assert not found.notes


def test_price_is_a_tenth_once_and_total_is_what_was_promised() -> None:
    source = vault()
    first = estimate(source, EIGHT)
    assert (first.receipts[0].epsilon, first.rest.epsilon, first.receipts[0].stored) == (0.8, 7.2, False)
    assert spent(source) == 8
    again = estimate(source, EIGHT)
    assert spent(source) == 8  # the same call gives the same again
    assert again.scales == first.scales
    assert again.receipts[0].stored
    other = estimate(source, replace(EIGHT, epsilon=10.0), COVARIATES[:1])
    assert other.receipts[0].stored
    assert other.rest.epsilon == 10
    assert other.scales["creatinine"] == first.scales["creatinine"]
    assert spent(source) == 18


class Unread(WrappedSource):
    """A vault from which no new counts may be asked."""

    def release(self, query: Query, guarantee: dpc.Guarantee) -> Release:
        release = super().release(query, guarantee)
        assert release.receipt.stored
        return release


def test_second_estimator_reads_no_table() -> None:
    source = vault()
    with_scales(source, ["creatinine"], EIGHT)
    recording = RecordingSource(Unread(source))
    found = with_scales(recording, ["age"], dpc.Guarantee(epsilon=5.0, delta=1e-6))
    assert recording.releases[0].receipt == found.receipts[0]  # so effects list it
    assert [entry.kind for entry in source.ledger.entries()].count("debit") == 1


@pytest.mark.parametrize(("epsilon", "is_used"), [(4.0, True), (1.0, True), (16.0, True), (16.1, False), (40.0, False)])
def test_stored_counts_are_used_if_at_least_half_as_precise(epsilon: float, is_used: bool) -> None:
    source = vault()
    with_scales(source, COVARIATES, EIGHT)
    found = with_scales(source, COVARIATES, dpc.Guarantee(epsilon=epsilon))
    assert found.receipts[0].stored == is_used
    assert found.rest.epsilon == pytest.approx(epsilon if is_used else 0.9 * epsilon)


def test_better_counts_that_came_later_do_not_change_an_earlier_call() -> None:
    source = vault()
    first = estimate(source, replace(EIGHT, epsilon=4.0))
    estimate(source, replace(EIGHT, epsilon=20.0))
    paid = spent(source)
    assert estimate(source, replace(EIGHT, epsilon=4.0)).scales == first.scales
    assert spent(source) == paid


def _later(source: dpc.Vault) -> dpc.Vault:
    source.ledger.add_version("2027")
    return vault(ledger=source.ledger, as_of="2027")


def _wider(source: dpc.Vault) -> dpc.Vault:
    return vault(replace(SCHEMA, covariates=[dpc.Real("creatinine", 0, 20), *COLUMNS[1:]]), source.ledger)


def _other_codes(source: dpc.Vault) -> dpc.Vault:
    coded = dpc.Real("creatinine", 0, 15, missing_codes=[-9])
    return vault(replace(SCHEMA, covariates=[coded, *COLUMNS[1:]]), source.ledger)


@pytest.mark.parametrize("other", [_later, _wider, _other_codes])
def test_another_version_and_other_declarations_are_asked_anew(other: Callable[[dpc.Vault], dpc.Vault]) -> None:
    source = vault()
    with_scales(source, COVARIATES, EIGHT)
    found = with_scales(other(source), COVARIATES, EIGHT)
    assert not found.receipts[0].stored
    assert spent(source) == pytest.approx(1.6)


def test_another_outcome_uses_the_same_counts() -> None:
    source = vault()
    with_scales(source, COVARIATES, EIGHT)
    others = (
        source.narrowed(0.2, 0.7),
        vault(replace(SCHEMA, outcome=dpc.Binary("smoker"), covariates=COLUMNS[:2]), source.ledger),
    )
    for other in others:
        assert with_scales(other, COVARIATES[:2], EIGHT).receipts[0].stored
    assert spent(source) == 0.8


def test_restored_copy_answers_what_it_holds(tmp_path: Path) -> None:
    ledger = dpc.Ledger.create(tmp_path / "ledger.db", dpc.Budget(epsilon=50), as_of="2026")
    empty, full = tmp_path / "empty.db", tmp_path / "full.db"
    vault(ledger=ledger)
    empty.write_bytes((tmp_path / "ledger.db").read_bytes())
    first = with_scales(vault(ledger=ledger), COVARIATES, EIGHT)
    full.write_bytes((tmp_path / "ledger.db").read_bytes())
    for copy, is_stored in ((full, True), (empty, False)):
        (tmp_path / "ledger.db").unlink()
        again = dpc.Ledger.restore(
            tmp_path / "ledger.db",
            copy=f"sqlite:///{copy}",
            by="bob",
            reason="disk",
            receipts=() if is_stored else first.receipts,
            lost_epsilon=0.0,
        )
        found = with_scales(vault(ledger=again), COVARIATES, EIGHT)
        assert found.receipts[0].stored == is_stored
        assert (found.scales == first.scales) == is_stored


def test_declared_typical_values_need_a_count_of_missing_values_only() -> None:
    typical = dpc.Real("creatinine", 0.1, 15, typical=(0.6, 1.8), transform="log")
    source = vault(replace(SCHEMA, covariates=[typical, *COLUMNS[1:]]))
    found = with_scales(source, ["creatinine", "smoker"], EIGHT)
    paid = spent(source)
    assert 0 < paid <= EIGHT.epsilon / 30
    assert (found.rest.epsilon + paid, [each.query for each in found.receipts]) == (8, ["missing_covariates"])
    again = with_scales(source, ["creatinine", "smoker"], EIGHT)
    assert (spent(source), again.rest, again.scales) == (paid, found.rest, found.scales)
    assert found.lacking == {"creatinine": pytest.approx(0.15, abs=0.03)}
    assert found.covariates == ("creatinine", "smoker", "creatinine is missing")
    assert any(note.startswith("units without a value: creatinine about 1") for note in found.notes)
    for other in (
        RandomisedSource(source),
        SummedSource(source),
    ):  # no bias in the one, alike at all sites in the other
        assert with_scales(other, ["creatinine"], EIGHT).receipts == ()
    hidden = with_scales(source, ["creatinine"], dpc.Guarantee(epsilon=0.1))
    assert (hidden.receipts, hidden.rest.epsilon) == ((), 0.1)
    assert "are not counted" in hidden.notes[0]
    assert found.scales["creatinine"].quantile(0.5) == pytest.approx((0.6 * 1.8) ** 0.5)
    both = RecordingSource(source)
    with_scales(both, COVARIATES, EIGHT)
    assert both.releases[0].query == CovariateCounts(["age"])


def test_values_that_noise_hides_stay_between_their_bounds() -> None:
    found = with_scales(vault(), COVARIATES, dpc.Guarantee(epsilon=1e-3))
    assert not any(fit.found for fit in found.scales.values())
    assert "creatinine, age" in found.notes[0]
    assert all(getattr(column, "scale", None) is None for column in found.source.schema.covariates)
    assert found.covariates == COVARIATES


@pytest.mark.parametrize(
    "column",
    [
        dpc.Real("creatinine", 0, 15, missing=1),
        dpc.Real("creatinine", 0, 15, indicator=True),
    ],
)
def test_what_is_declared_about_missing_values_stands(column: dpc.Real) -> None:
    found = with_scales(vault(replace(SCHEMA, covariates=[column, *COLUMNS[1:]])), COVARIATES, EIGHT)
    assert found.covariates == COVARIATES
    required = vault(replace(SCHEMA, required=["creatinine"]))
    assert with_scales(required, COVARIATES, EIGHT).covariates == COVARIATES


def test_no_more_indicators_are_added_than_moments_can_have() -> None:
    """A vault refuses moments of 70 features; with half of them found in the data, that is after the counts."""
    n, names = 2_000, [f"x{place}" for place in range(35)]
    schema = dpc.Schema(
        treatment=dpc.Treatment("t"),
        outcome=dpc.Real("y", 0, 1),
        covariates=[dpc.Real(name, 0, 10, typical=(2, 8)) for name in names],
    )
    columns = {name: pa.array([None if unit % 4 == 0 else float(unit % 10) for unit in range(n)]) for name in names}
    columns |= {"t": pa.array([unit % 2 for unit in range(n)]), "y": pa.array([0.5] * n)}
    vault = dpc.Vault(pa.table(columns), schema, ledger="sqlite://", budget=dpc.Budget(epsilon=100))
    found = with_scales(vault, names, dpc.Guarantee(epsilon=100.0))
    assert len(design_names(found.covariates, found.source.schema)) == 60
    assert set(found.lacking) == set(names)  # the interval allows for the others


def test_number_whose_indicator_has_the_name_of_a_column_stays_between_its_bounds() -> None:
    table = TABLE.append_column("age is missing", pa.array([0] * N))
    schema = replace(SCHEMA, covariates=[*COLUMNS, dpc.Binary("age is missing")])
    source = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=9))
    found = with_scales(source, COVARIATES, EIGHT)
    assert list(found.scales) == ["creatinine"]
    assert "age" in found.notes[0]


def test_other_numbers_than_an_estimator_uses_are_counted_for_others() -> None:
    assert CovariateCounts(["creatinine", "age"]) == _first_query(with_scales, ["age"])
    assert _first_query(with_scales, ["smoker"]) is None


def _first_query(ask: Callable[..., object], covariates: list[str]) -> Query | None:
    source = RecordingSource(dpc.Rehearsal(SCHEMA, N))
    ask(source, covariates, EIGHT)
    return source.releases[0].query if source.releases else None


def test_answers_that_are_added_up_over_sites_have_no_scales() -> None:
    for source in (SummedSource(vault()), dpc.Rehearsal(SCHEMA, N, sites=3, parts=1.5)):
        found = with_scales(source, COVARIATES, EIGHT)
        assert (found.source, found.rest, found.scales, found.receipts) == (source, EIGHT, {}, ())
        assert "creatinine, age" in found.notes[0]
        assert with_scales(source, ["smoker"], EIGHT).notes == ()


def test_a_site_is_asked_the_same_whatever_it_answered_before() -> None:
    source = vault()
    with_scales(source, COVARIATES, replace(EIGHT, epsilon=10.0))
    found = with_scales(AdditiveSource(source), COVARIATES, EIGHT)
    assert found.rest.epsilon == 7.2
    assert spent(source) == 1.8


@pytest.mark.parametrize("epsilons", [(2.0, 5.0, 16.5), (16.5, 2.0, 5.0)])
def test_prices_are_known_before_the_first_query(epsilons: tuple[float, ...]) -> None:
    """Whatever the order: the counts are in the price, once, and each estimator debits no more than it promised."""
    asks = [partial(estimate, guarantee=dpc.Guarantee(epsilon=epsilon)) for epsilon in epsilons]
    source = vault()
    due = Price.of(outstanding_cost(source, *asks).values())
    for ask, epsilon in zip(asks, epsilons, strict=True):
        before = spent(source)
        ask(source)
        assert spent(source) - before <= epsilon + 1e-12
    assert spent(source) == pytest.approx(due.epsilon)
    assert not outstanding_cost(source, asks[0])


def test_budget_for_the_promise_is_enough_after_a_stop() -> None:
    """Where a run stopped between its two queries, the next one pays for the second only."""
    ledger = dpc.Ledger.create("sqlite://", dpc.Budget(epsilon=8), as_of="2026")
    source = vault(ledger=ledger)
    with_scales(source, COVARIATES, EIGHT)
    estimate(source, EIGHT)
    with pytest.raises(BudgetExceededError):
        estimate(source, replace(EIGHT, epsilon=7.9))


def test_quantiles_are_released_on_purpose_and_used_by_estimators() -> None:
    source = vault()
    found = dpc.covariate_quantiles(source, epsilon=1.0)
    assert found.quantile("age", 0.5) == pytest.approx(np.median(AGE), abs=2)
    text = str(found)
    assert "creatinine" in text
    assert "missing 1" in text  # 15 %, give or take 2
    assert "covariate_counts: epsilon 1, delta 0" in text
    assert "stored" in str(dpc.covariate_quantiles(source, epsilon=0.5))
    assert with_scales(source, COVARIATES, EIGHT).rest == EIGHT
    assert spent(source) == 1
    with pytest.raises(SchemaError, match="declares no typical"):
        dpc.covariate_quantiles(dpc.Rehearsal(replace(SCHEMA, covariates=COLUMNS[2:]), N), epsilon=1.0)


def test_every_model_may_follow_another_that_found_missing_values() -> None:
    source = vault()
    models = dpc.RegressionAdjustment(COVARIATES), dpc.DoublyRobust(COVARIATES), dpc.InverseWeighting(COVARIATES)
    effects = [model.estimate(source, epsilon=8.0) for model in models]
    assert [effect.receipts[0].stored for effect in effects] == [False, True, True]


@pytest.mark.parametrize(("n", "share"), [(1_500, 0.2), (3_000, 0.1), (10_000, 0.1), (30_000, 0.05), (10**6, 0.025)])
def test_share_of_counts_falls_with_the_number_of_units(n: int, share: float) -> None:
    found = with_scales(dpc.Rehearsal(SCHEMA, n), COVARIATES, dpc.Guarantee(epsilon=1.0))
    assert found.receipts[0].epsilon == pytest.approx(share)
    assert found.rest.epsilon == pytest.approx(1 - share)


def test_counts_that_would_drown_have_no_share_whatever_is_stored_later() -> None:
    few = with_scales(dpc.Rehearsal(SCHEMA, 1_000), COVARIATES, dpc.Guarantee(epsilon=1.0))
    assert (few.receipts, few.rest, few.scales) == ((), dpc.Guarantee(epsilon=1.0), {})
    assert "creatinine, age" in few.notes[0]
    source, little = vault(), dpc.Guarantee(epsilon=1e-3)
    before = with_scales(source, COVARIATES, little)
    with_scales(source, COVARIATES, EIGHT)
    later = with_scales(source, COVARIATES, little)
    assert (before.receipts, before.scales) == (later.receipts, later.scales) == ((), {})


@pytest.mark.parametrize(
    "estimator",
    [
        dpc.RegressionAdjustment(["creatinine", "age"]),
        dpc.ArmContrasts(covariates=["creatinine", "age"]),
        dpc.ComplierEffect(received="smoker", covariates=["creatinine", "age"]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_regressions_of_every_design_have_scales(estimator: Estimator) -> None:
    """Between codebook bounds they gave narrow intervals around the confounded difference."""
    source = vault()
    effect = estimator.estimate(source, epsilon=8.0)
    assert effect.receipts[0].query == "covariate_counts"
    assert sum(receipt.epsilon for receipt in effect.receipts) == pytest.approx(effect.guarantee.epsilon) == 8
    assert spent(source) == pytest.approx(8)
    assert "privacy noise hides" not in effect.no_interval
