"""What a vault adds to a secure sum: paid first, masked, once for each session."""

import itertools
import json

import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.spy import SpyVault
from dpcausal.errors import BudgetExceededError, DpcausalError, EngineError, LedgerError, QueryError
from dpcausal.federation.coordinator.aggregate import summed_release
from dpcausal.queries import ArmMoments, ArmTotals, EffectMoments, MatchedContrast, Query, RegressionMoments
from dpcausal.queries.calibration import Asked, NoiseShare, calibrate
from dpcausal.release import Contribution, session_request
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.vault.noise import Sampler
from tests.support.engines import fresh_noise

ONE = dpc.Guarantee(epsilon=1.0)
SESSION, MEMBERS = "a" * 64, "b" * 64
MASK = [2**64 - 1, 2**40 + 1, 2**63, 2**50 + 12_345, 2**45, 2**61 + 99]


class NoShare(Sampler):
    """A sampler without noise, to see the sums themselves."""

    def add_noise_share(self, ticks: tuple[int, ...], share: NoiseShare) -> list[int]:  # type: ignore[override]
        del share
        return list(ticks)


def contribute(
    vault: dpc.Vault, query: Query | None = None, guarantee: dpc.Guarantee = ONE, **given: object
) -> Contribution:
    named = {"session": SESSION, "members": MEMBERS, "honest": 2, "mask": MASK} | given
    return vault.contribute([Asked(query or ArmMoments(), guarantee)], **named)  # type: ignore[arg-type]


@pytest.fixture
def vault() -> SpyVault:
    return SpyVault(synthetic_table(standard_schema(), 50), standard_schema())


def test_masked_numbers_are_all_that_leaves(vault: SpyVault) -> None:
    exact = fresh_noise(synthetic_table(standard_schema(), 50), standard_schema())
    vault._sampler = NoShare()
    found = contribute(vault)
    noise = calibrate(ArmMoments(), vault.schema, ONE)
    ticks = exact.many(ArmMoments(), dpc.Guarantee(epsilon=100.0), 200).mean(axis=0)
    opened = [(each - mask + 2**63) % 2**64 - 2**63 for each, mask in zip(found.masked, MASK, strict=True)]
    scales = [scale / 100 for scale in noise.scales if scale]
    assert all(abs(one - other) < 5 * scale + 1 for one, other, scale in zip(opened, ticks, scales, strict=True))
    release = next(entry for entry in vault.ledger.entries() if entry.kind == "release")
    assert tuple(release.content["release"]["masked"]) == found.masked
    assert not set(map(str, opened)) & set(json.dumps(release.content).replace(",", " ").split())
    assert Contribution.from_json(found.to_json()) == found


def test_full_price_is_paid_before_the_table_is_read(vault: SpyVault) -> None:
    found = contribute(vault)
    assert [kinds[-1] for _, kinds in vault.readings] == ["debit"]
    assert vault.ledger.spent.epsilon == 1.0
    assert vault.ledger.is_debited(session_request(SESSION))
    debit = next(entry for entry in vault.ledger.entries() if entry.kind == "debit")
    assert (found.receipt.entry, found.receipt.digest) == (debit.number, debit.digest)
    assert vault.ledger.check_receipts([found.receipt]) == ()


def test_repeated_session_gives_the_stored_numbers_for_nothing(vault: SpyVault) -> None:
    assert len({contribute(vault).masked for _ in range(5)}) == 1
    assert len(vault.readings) == 1
    assert vault.ledger.spent.epsilon == 1.0


@pytest.mark.parametrize(
    "other",
    [
        {"members": "c" * 64},
        {"honest": 3},
        {"query": ArmTotals(), "mask": MASK[:4]},
        {"guarantee": dpc.Guarantee(epsilon=0.5)},
    ],
    ids=str,
)
def test_session_is_asked_nothing_else(vault: SpyVault, other: dict[str, object]) -> None:
    contribute(vault)
    with pytest.raises((QueryError, LedgerError)):
        contribute(vault, **other)  # type: ignore[arg-type]
    assert len(vault.readings) == 1
    assert vault.ledger.spent.epsilon == 1.0


def test_another_session_has_its_own_price_and_noise(vault: SpyVault) -> None:
    assert contribute(vault).masked != contribute(vault, session="d" * 64).masked
    assert vault.ledger.spent.epsilon == 2.0


def test_plain_release_is_never_mixed_with_a_session(vault: SpyVault) -> None:
    contribute(vault)
    vault.release(ArmMoments(), ONE)
    assert vault.ledger.spent.epsilon == 2.0


def test_failure_after_the_debit_is_paid_once_and_asked_the_same(
    vault: SpyVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[int]:
        raise EngineError(expected="power", got="none", hint="wait.")

    with monkeypatch.context() as patched:
        patched.setattr(Sampler, "add_noise_share", fail)
        with pytest.raises(EngineError):
            contribute(vault)
    with pytest.raises(LedgerError):  # another set of members, after what may have been a kill
        contribute(vault, members="c" * 64)
    contribute(vault)
    assert vault.ledger.spent.epsilon == 1.0
    assert [entry.kind for entry in vault.ledger.entries()] == ["open", "bind", "grant", "debit", "release"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": MatchedContrast.examples(standard_schema())[0]},
        {"honest": 1},
        {"honest": 2.0},
        {"mask": MASK[:-1]},
        {"mask": [*MASK[:-1], 2**64]},
        {"mask": [*MASK[:-1], -1]},
    ],
    ids=str,
)
def test_what_cannot_be_added_up_is_refused_unread(vault: SpyVault, wrong: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        contribute(vault, **wrong)  # type: ignore[arg-type]
    assert vault.readings == []
    assert vault.ledger.spent.epsilon == 0.0


def test_budget_refuses_before_the_table_is_read(vault: SpyVault) -> None:
    vault.release(ArmMoments(), dpc.Guarantee(epsilon=99.5))
    read = len(vault.readings)
    with pytest.raises(BudgetExceededError):
        contribute(vault)
    assert len(vault.readings) == read


def test_one_unit_moves_masked_numbers_by_no_more_than_the_sensitivity() -> None:
    """All tables of two units out of four, masked and without noise: modulo 2^64, the bound is that of the query."""
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1))
    noise = calibrate(ArmMoments(), schema, ONE)
    masked = {}
    for units in itertools.product([(0, 0.0), (0, 1.0), (1, 0.0), (1, 1.0)], repeat=2):
        table = pa.table({"t": [arm for arm, _ in units], "y": [outcome for _, outcome in units]})
        vault = SpyVault(table, schema)
        vault._sampler = NoShare()
        masked[units] = contribute(vault).masked
    largest = 0.0
    for one, other in itertools.product(masked, repeat=2):
        if one[0] == other[0] or one[1] == other[1]:
            moves = [(a - b + 2**63) % 2**64 - 2**63 for a, b in zip(masked[one], masked[other], strict=True)]
            weights = [float(at.weight or 0) for at in noise.sensitivity.coordinates]
            largest = max(largest, sum(abs(move) / weight for move, weight in zip(moves, weights, strict=True)))
    assert largest <= float(noise.sensitivity.bound)
    assert largest > 0.8 * float(noise.sensitivity.bound)  # and the bound is nearly attained


@pytest.mark.parametrize("kind", [ArmMoments, RegressionMoments, EffectMoments])
def test_sum_over_sites_is_that_of_one_table(kind: type[Query]) -> None:
    schema = standard_schema()
    tables = [synthetic_table(schema, n, seed) for seed, n in enumerate((30, 20, 40))]
    query = kind.examples(schema)[0]
    count = len(calibrate(query, schema, ONE).scales)
    total = [0] * count
    for table in tables:
        vault = SpyVault(table, schema)
        vault._sampler = NoShare()
        found = contribute(vault, query, mask=[7] * count)
        total = [(one + each - 7) % 2**64 for one, each in zip(total, found.masked, strict=True)]
    opened = [(each + 2**63) % 2**64 - 2**63 for each in total]
    whole = SpyVault(pa.concat_tables(tables), schema)
    whole._sampler = NoShare()
    alone = contribute(whole, query, mask=[0] * count)
    assert opened == [(each + 2**63) % 2**64 - 2**63 for each in alone.masked]
    release = summed_release(Asked(query, ONE), schema, opened, sites=3, honest=2, receipt=alone.receipt)
    assert (release.parts, release.sites) == (1.5, 3)
    assert dpc.Release.from_json(release.to_json()) == release


def test_errors_name_no_value(vault: SpyVault) -> None:
    contribute(vault)
    with pytest.raises(DpcausalError) as raised:
        contribute(vault, members="c" * 64)
    assert not any(str(each) in str(raised.value) for each in contribute(vault).masked)
