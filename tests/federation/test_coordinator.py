"""A coordinator asks, asks again, remembers, and names everyone who is not in its effect."""

from dataclasses import replace
from pathlib import Path

import pytest

import dpcausal as dpc
from dpcausal import Coordinator, Effect
from dpcausal.errors import LedgerError, RefusedError, StudyError, TransportError
from dpcausal.federation.coordinator.requests import Requests
from dpcausal.federation.coordinator.responses import SiteResponse
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.coordinator.secure_rounds import summary
from dpcausal.federation.protocol.messages import MEANINGS
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.protocol.transport import FileTransport, LocalTransport
from dpcausal.federation.site.site import Site
from dpcausal.pooling import pool
from dpcausal.queries.calibration import gaussian_sd
from dpcausal.source import Source
from dpcausal.testing import standard_schema, synthetic_table
from tests.federation.conftest import Federation
from tests.support.site_folders import confirm_settings


def spent(federation: Federation) -> list[float]:
    return [Site(federation.folder / name).ledger().spent.epsilon for name in federation.tables]


def statuses(effect: Effect) -> dict[str, str]:
    return {share.site: share.status for share in effect.sites}


def test_sums_of_three_sites_give_one_effect(federation: Federation) -> None:
    coordinator = federation.coordinator(federation.study())
    effect = coordinator.run()
    assert effect.n == 600
    assert [(share.site, share.status, share.n, share.weight) for share in effect.sites] == [
        ("north", "answered", 300, None),
        ("south", "answered", 200, None),
        ("west", "answered", 100, None),
    ]
    assert [(receipt.site, receipt.epsilon) for receipt in effect.receipts] == [("north", 1), ("south", 1), ("west", 1)]
    assert effect.guarantee == federation.study().guarantee()
    assert "3 of 3 sites" in effect.method
    assert {term.parts for term in effect.noise} == {3}
    for words in ("its own noise", "epsilons add up", "not adjusted for"):
        assert words in str(effect.notes)
    assert spent(federation) == [1.0, 1.0, 1.0]
    assert federation.asked == ["north", "south", "west"]


@pytest.mark.parametrize("pooling", ["sums", "sample_size"])
def test_guarantee_is_that_of_the_ledgers_whatever_their_rule(tmp_path: Path, pooling: str) -> None:
    schema = standard_schema()
    tables = {name: synthetic_table(schema, 200, seed) for seed, name in enumerate(("north", "south"))}
    federation = Federation(tmp_path, tables, schema, rule="zcdp")
    effect = federation.coordinator(federation.study(pooling=pooling, delta=1e-6)).run()
    assert effect.guarantee.delta == 0  # Laplace noise is narrower
    for name in tables:
        entries = Site(tmp_path / name).ledger().entries()
        assert [event.family for entry in entries if entry.kind == "grant" for event in entry.events] == ["laplace"]


@pytest.mark.parametrize("rule", ["additive", "zcdp"])
def test_gaussian_noise_of_either_rule_is_accepted(tmp_path: Path, rule: str) -> None:
    schema = standard_schema()
    tables = {name: synthetic_table(schema, 400, seed) for seed, name in enumerate(("north", "south"))}
    federation = Federation(tmp_path, tables, schema, rule=rule)
    estimator = dpc.RegressionAdjustment(covariates=["ward", "age", "smoker"])
    study = federation.study(pooling="sums", estimator=estimator, delta=1e-6)
    assert federation.coordinator(study).run().guarantee.delta == 1e-6
    grants = [entry for entry in Site(tmp_path / "north").ledger().entries() if entry.kind == "grant"]
    mu = max(event.mu for entry in grants for event in entry.events)
    assert (mu > 1 / gaussian_sd(1.0, 1e-6) * (1 + 1e-6)) is (rule == "additive")


def test_a_study_whose_estimand_depends_on_the_table_is_refused_unpaid(federation: Federation) -> None:
    for estimator in (dpc.Stratification(by=["ward"]), dpc.Winsorised()):
        with pytest.raises(StudyError, match="which chooses one for each table"):
            federation.coordinator(federation.study(estimator=estimator, pooling="sample_size"))
    assert federation.asked == []


def test_effects_of_three_sites_are_pooled(federation: Federation) -> None:
    coordinator = federation.coordinator(federation.study(pooling="sample_size", epsilons={"west": 0.5}))
    effect = coordinator.run()
    effects = coordinator.effects()
    pooled = pool(effects, "sample_size")
    assert replace(effect, notes=pooled.notes) == pooled
    assert effect.notes[:-1] == pooled.notes
    assert effect.notes[-1].endswith("rest on the site's word: north, south, west")
    agreed = {
        name: replace(federation.roster.sites[name], units=table.num_rows) for name, table in federation.tables.items()
    }
    study = federation.study(pooling="sample_size", epsilons={"west": 0.5})
    assert federation.coordinator(study, roster=Roster(agreed)).run() == pooled
    assert [effects[site].guarantee.epsilon for site in federation.tables] == [1.0, 1.0, 0.5]
    assert effect.n == 600
    assert spent(federation) == [1.0, 1.0, 0.5]


@pytest.mark.parametrize("pooling", ["sums", "sample_size"])
def test_effect_names_the_version_of_each_sites_data(federation: Federation, pooling: str) -> None:
    study = federation.study(pooling=pooling)
    assert federation.coordinator(study).run().as_of == "2026-06-30"
    policy = federation.folder / "south" / "policy.toml"
    policy.write_text(policy.read_text().replace("2026-06-30", "2026-09-30"))
    confirm_settings(policy.parent)
    Site(policy.parent).ledger().add_version("2026-09-30")
    later = federation.study(pooling=pooling, question="And again?")
    federation.sites = {name: federation.honest(name) for name in federation.tables}
    effect = federation.coordinator(later).run()
    assert effect.as_of == "2026-06-30 (north), 2026-09-30 (south), 2026-06-30 (west)"
    assert "data as of        2026-06-30 (north), 2026-09-30 (south)" in str(effect)


def test_coordinator_is_a_source_for_any_estimator(federation: Federation) -> None:
    coordinator = federation.coordinator(federation.study())
    assert isinstance(coordinator, Source)
    effect = dpc.DifferenceInMeans().estimate(coordinator, epsilon=1.0)
    assert effect.estimate == coordinator.run().estimate
    with pytest.raises(RefusedError, match="a query of a study"):
        dpc.DifferenceInMeans().estimate(coordinator, epsilon=0.5)
    with pytest.raises(RefusedError, match="pooling"):
        federation.coordinator(federation.study(pooling="largest")).release(*federation.study().questions()[0][:2])
    assert spent(federation) == [1.0, 1.0, 1.0]


def test_number_of_units_costs_nothing(federation: Federation) -> None:
    coordinator = federation.coordinator(federation.study())
    assert (coordinator.n, coordinator.arm_sizes, coordinator.caveats) == (600, None, ())
    assert spent(federation) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("pooling", ["sums", "minimum_variance"])
def test_restarted_coordinator_asks_nobody_again(federation: Federation, pooling: str, tmp_path: Path) -> None:
    store, study = tmp_path / "requests.db", federation.study(pooling=pooling)
    effect = federation.coordinator(study, store=store).run()
    federation.asked.clear()
    assert federation.coordinator(study, store=store).run() == effect
    assert federation.asked == []


def test_valid_messages_are_stored_before_use(federation: Federation, tmp_path: Path) -> None:
    """A coordinator that dies between two sites asks only the second one when it is back."""

    class PowerCutError(Exception):
        pass

    def dying(site: str, words: str) -> None:
        if site == "south":
            raise PowerCutError(words)

    store, study = tmp_path / "requests.db", federation.study()
    with pytest.raises(PowerCutError):
        federation.coordinator(study, store=store, on_response=dying).run()
    assert federation.asked == ["north", "south"]
    federation.asked.clear()
    assert federation.coordinator(study, store=store).run().n == 600
    assert federation.asked == ["west"]
    assert spent(federation) == [1.0, 1.0, 1.0]


def test_silent_site_is_named_and_left_out(federation: Federation) -> None:
    del federation.sites["south"]
    effect = federation.coordinator(federation.study()).run()
    assert statuses(effect) == {"north": "answered", "south": "did not answer", "west": "answered"}
    assert effect.n == 400
    assert "without south (did not answer): the effect is that of the units at the sites that answered" in effect.notes
    pooled = federation.coordinator(federation.study(pooling="sample_size")).run()
    assert statuses(pooled) == statuses(effect)
    assert pooled.n == 400


def test_failed_sites_are_asked_again_with_the_same_text(federation: Federation, tmp_path: Path) -> None:
    texts: list[str] = []
    federation.refuse("south", "failed")
    failed, honest = federation.sites["south"], federation.honest("south")

    def mending(request: str) -> str:
        texts.append(request)
        if len(texts) == 1:
            raise ConnectionError
        return failed(request) if len(texts) == 2 else honest(request)

    federation.sites["south"] = mending
    store = tmp_path / "requests.db"
    coordinator = federation.coordinator(federation.study(), store=store)
    assert statuses(coordinator.run()) == dict.fromkeys(federation.tables, "answered")
    assert len(texts) == 3
    assert len(set(texts)) == 1
    assert Requests(store).attempts(coordinator.request.id) == 3


def test_number_of_attempts_is_limited(federation: Federation) -> None:
    federation.refuse("south", "failed")
    effect = federation.coordinator(federation.study(), attempts=2).run()
    assert statuses(effect)["south"] == MEANINGS["failed"]
    assert federation.asked == ["north", "south", "west", "south"]


@pytest.mark.parametrize(
    "code", ["rejected", "undecided", "no_budget", "not_allowed", "unknown_requester", "too_few_units"]
)
def test_refusing_sites_are_named_and_not_retried(federation: Federation, code: str, tmp_path: Path) -> None:
    federation.refuse("south", code)
    study, store = federation.study(), tmp_path / "requests.db"
    effect = federation.coordinator(study, store=store).run()
    assert statuses(effect)["south"] == MEANINGS[code]  # type: ignore[index]
    assert f"south ({MEANINGS[code]})" in str(effect.notes)  # type: ignore[index]
    assert federation.asked == ["north", "south", "west"]
    federation.sites["south"] = federation.honest("south")
    federation.asked.clear()
    assert statuses(federation.coordinator(study, store=store).run())["south"] == "answered"
    assert federation.asked == ["south"]


def test_revoked_site_does_not_count(federation: Federation, tmp_path: Path) -> None:
    store, study = tmp_path / "requests.db", federation.study()
    assert federation.coordinator(study, store=store).run().n == 600
    members = federation.roster.sites
    without = Roster({**members, "west": replace(members["west"], revoked=True)})
    effect = federation.coordinator(study, store=store, roster=without).run()
    assert effect.n == 500
    assert "revoked" in statuses(effect)["west"]


def test_unavailable_transport_counts_as_no_answer(federation: Federation) -> None:
    class Closed:
        asked = 0

        def ask(self, *_: object) -> None:
            self.asked += 1
            raise TransportError(expected="a transport", got="none", hint="wait.")

    transport = Closed()
    with pytest.raises(
        RefusedError, match=r"north, south, west could not be asked: This needs a transport, and there is none"
    ):
        federation.coordinator(federation.study(), transport=transport).run()
    assert transport.asked == 3


def test_too_few_sites_give_no_effect(federation: Federation) -> None:
    federation.refuse("south", "rejected")
    study = federation.study()
    with pytest.raises(RefusedError, match=r"at least 3 of 3 sites.*south rejected the study") as refused:
        federation.coordinator(study, min_sites=3).run()
    assert "paid for twice" in refused.value.hint
    assert federation.coordinator(study, min_sites=2).run().n == 400


def test_effects_without_an_interval_are_pooled_too(federation: Federation) -> None:
    study = federation.study(pooling="inverse_variance", estimator=dpc.DifferenceInMeans(with_interval=False))
    effect = federation.coordinator(study).run()
    assert effect.n == 600
    assert set(statuses(effect).values()) == {"answered"}
    assert "there is none from north, south, west" in effect.no_interval


def test_file_transport_gives_an_effect(federation: Federation, tmp_path: Path) -> None:
    transport, study = tmp_path / "exchange", federation.study()
    coordinator = federation.coordinator(study, transport=FileTransport(transport))
    with pytest.raises(RefusedError, match="did not answer"):
        coordinator.run()
    (request,) = (transport / "out").iterdir()
    for name in federation.tables:
        (transport / "in" / f"{name}.message.json").write_text(federation.sites[name](request.read_text()))
    assert coordinator.run().n == 600


def test_the_order_of_sites_does_not_matter(federation: Federation) -> None:
    study = federation.study(pooling="inverse_variance")
    effect = federation.coordinator(study).run()
    turned = Roster(dict(reversed(list(federation.roster.sites.items()))))
    assert federation.coordinator(study, roster=turned).run() == effect


def test_on_response_is_called_for_each_site(federation: Federation) -> None:
    federation.refuse("south", "rejected")
    received: list[tuple[str, str]] = []
    federation.coordinator(federation.study(), on_response=lambda *response: received.append(response)).run()
    assert received == [("north", "answered"), ("south", "rejected the study"), ("west", "answered")]


def test_invalid_coordinator_is_refused(federation: Federation, tmp_path: Path) -> None:
    study = federation.study()
    for text in (tmp_path / "absent.toml", "no study"):
        with pytest.raises(StudyError, match="Hint"):
            Coordinator(text, federation.roster, federation.anna, LocalTransport({}), store=":memory:")
    with pytest.raises(StudyError, match="the key of anna, the study's requester, not the key of bob"):
        Coordinator(
            study.to_toml(),
            federation.roster,
            Key.make("bob", tmp_path / "bob.key"),
            LocalTransport({}),
            store=":memory:",
        )
    for changes in ({"roster": Roster({})}, {"attempts": 0}, {"timeout": -1.0}, {"timeout": None}, {"min_sites": 4}):
        with pytest.raises(StudyError, match="Hint"):
            federation.coordinator(study, **changes)
    with pytest.raises(StudyError, match="nroth"):
        federation.coordinator(federation.study(pooling="largest", epsilons={"nroth": 0.5}))
    with pytest.raises(LedgerError, match="Hint"):
        federation.coordinator(study, store=tmp_path)


def test_sites_that_did_the_same_are_named_together() -> None:
    found = [SiteResponse(name, MEANINGS["undecided"]) for name in ("north", "south")]
    found += [SiteResponse("east", MEANINGS["undecided"]), SiteResponse("west", MEANINGS["not_allowed"])]
    several = "north, south, east have not decided on the study yet"
    assert summary(found) == f"{several}; west does not allow the study under its policy"
