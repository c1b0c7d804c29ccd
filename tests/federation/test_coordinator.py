"""A coordinator asks, asks again, remembers, and names everyone who is not in its effect."""

from dataclasses import replace
from pathlib import Path

import pytest

import dpcausal as dpc
from dpcausal import Coordinator, Effect
from dpcausal.errors import LedgerError, RefusedError, RoadError, StudyError
from dpcausal.estimators.pooling import pool
from dpcausal.federation.protocol import MEANINGS
from dpcausal.federation.requests import Requests
from dpcausal.federation.roads import FileRoad, LocalRoad
from dpcausal.federation.roster import Roster
from dpcausal.federation.signatures import Key
from dpcausal.ledger import Ledger
from dpcausal.release import Source
from tests.federation.conftest import Town


def spent(town: Town) -> list[float]:
    return [Ledger(f"sqlite:///{town.folder / name / 'ledger.db'}").spent.epsilon for name in town.tables]


def statuses(effect: Effect) -> dict[str, str]:
    return {share.site: share.status for share in effect.sites}


def test_sums_of_three_sites(town: Town) -> None:
    coordinator = town.coordinator(town.study())
    effect = coordinator.run()
    assert effect.n == 600
    assert [(share.site, share.status, share.n, share.weight) for share in effect.sites] == [
        ("north", "answered", 300, None),
        ("south", "answered", 200, None),
        ("west", "answered", 100, None),
    ]
    assert [(receipt.site, receipt.epsilon) for receipt in effect.receipts] == [("north", 1), ("south", 1), ("west", 1)]
    assert effect.guarantee == town.study().guarantee()
    assert "3 of 3 sites" in effect.method
    assert {term.parts for term in effect.noise} == {3}
    for words in ("noise of its own", "epsilons add up", "not adjusted for"):
        assert words in str(effect.notes)
    assert spent(town) == [1.0, 1.0, 1.0]
    assert town.asked == ["north", "south", "west"]


def test_effects_of_three_sites(town: Town) -> None:
    coordinator = town.coordinator(town.study(pooling="sample_size", epsilons={"west": 0.5}))
    effect = coordinator.run()
    effects = coordinator.effects()
    assert effect == pool(effects, "sample_size")
    assert [effects[site].guarantee.epsilon for site in town.tables] == [1.0, 1.0, 0.5]
    assert effect.n == 600
    assert spent(town) == [1.0, 1.0, 0.5]


@pytest.mark.parametrize("pooling", ["sums", "sample_size"])
def test_the_version_of_each_sites_data_is_told(town: Town, pooling: str) -> None:
    study = town.study(pooling=pooling)
    assert town.coordinator(study).run().as_of == "2026-06-30"
    policy = town.folder / "south" / "policy.toml"
    policy.write_text(policy.read_text().replace("2026-06-30", "2026-09-30"))
    Ledger(f"sqlite:///{town.folder / 'south' / 'ledger.db'}").add_version("2026-09-30")
    later = town.study(pooling=pooling, question="And again?")
    town.sites = {name: town.honest(name) for name in town.tables}
    effect = town.coordinator(later).run()
    assert effect.as_of == "2026-06-30 (north), 2026-09-30 (south), 2026-06-30 (west)"
    assert "data as of        2026-06-30 (north), 2026-09-30 (south)" in str(effect)


def test_any_estimator_may_ask_it(town: Town) -> None:
    coordinator = town.coordinator(town.study())
    assert isinstance(coordinator, Source)
    effect = dpc.DifferenceInMeans().estimate(coordinator, epsilon=1.0)
    assert effect.estimate == coordinator.run().estimate
    with pytest.raises(RefusedError, match="the question of a study"):
        dpc.DifferenceInMeans().estimate(coordinator, epsilon=0.5)
    with pytest.raises(RefusedError, match="pooling"):
        town.coordinator(town.study(pooling="largest")).release(*town.study().questions()[0])
    assert spent(town) == [1.0, 1.0, 1.0]


def test_the_number_of_units_is_free(town: Town) -> None:
    coordinator = town.coordinator(town.study())
    assert (coordinator.n, coordinator.arm_sizes, coordinator.caveats) == (600, None, ())
    assert spent(town) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("pooling", ["sums", "minimum_variance"])
def test_a_restart_gives_the_same_and_asks_nobody(town: Town, pooling: str, tmp_path: Path) -> None:
    store, study = tmp_path / "requests.db", town.study(pooling=pooling)
    effect = town.coordinator(study, store=store).run()
    town.asked.clear()
    assert town.coordinator(study, store=store).run() == effect
    assert town.asked == []


def test_what_is_believed_is_kept_before_it_is_used(town: Town, tmp_path: Path) -> None:
    """A coordinator that dies between two sites asks only the second one when it is back."""

    class PowerCutError(Exception):
        pass

    def dying(site: str, words: str) -> None:
        if site == "south":
            raise PowerCutError(words)

    store, study = tmp_path / "requests.db", town.study()
    with pytest.raises(PowerCutError):
        town.coordinator(study, store=store, heard=dying).run()
    assert town.asked == ["north", "south"]
    town.asked.clear()
    assert town.coordinator(study, store=store).run().n == 600
    assert town.asked == ["west"]
    assert spent(town) == [1.0, 1.0, 1.0]


def test_a_site_that_never_answers(town: Town) -> None:
    del town.sites["south"]
    effect = town.coordinator(town.study()).run()
    assert statuses(effect) == {"north": "answered", "south": "did not answer", "west": "answered"}
    assert effect.n == 400
    assert "without south (did not answer): the effect is of units of the sites that answered" in effect.notes
    pooled = town.coordinator(town.study(pooling="sample_size")).run()
    assert statuses(pooled) == statuses(effect)
    assert pooled.n == 400


def test_sites_that_fail_are_asked_again_with_the_same_text(town: Town, tmp_path: Path) -> None:
    texts: list[str] = []
    town.refuse("south", "failed")
    failed, honest = town.sites["south"], town.honest("south")

    def mending(request: str) -> str:
        texts.append(request)
        if len(texts) == 1:
            raise ConnectionError
        return failed(request) if len(texts) == 2 else honest(request)

    town.sites["south"] = mending
    store = tmp_path / "requests.db"
    coordinator = town.coordinator(town.study(), store=store)
    assert statuses(coordinator.run()) == dict.fromkeys(town.tables, "answered")
    assert len(texts) == 3
    assert len(set(texts)) == 1
    assert Requests(store).attempts(coordinator.request.id) == 3


def test_sites_are_asked_only_so_often(town: Town) -> None:
    town.refuse("south", "failed")
    effect = town.coordinator(town.study(), attempts=2).run()
    assert statuses(effect)["south"] == MEANINGS["failed"]
    assert town.asked == ["north", "south", "west", "south"]


@pytest.mark.parametrize("code", ["denied", "undecided", "no_budget", "not_allowed", "unknown_asker", "too_few_units"])
def test_sites_that_refuse_are_named_and_not_asked_again_at_once(town: Town, code: str, tmp_path: Path) -> None:
    town.refuse("south", code)
    study, store = town.study(), tmp_path / "requests.db"
    effect = town.coordinator(study, store=store).run()
    assert statuses(effect)["south"] == MEANINGS[code]  # type: ignore[index]
    assert f"south ({MEANINGS[code]})" in str(effect.notes)  # type: ignore[index]
    assert town.asked == ["north", "south", "west"]
    town.sites["south"] = town.honest("south")
    town.asked.clear()
    assert statuses(town.coordinator(study, store=store).run())["south"] == "answered"
    assert town.asked == ["south"]


def test_a_site_that_was_revoked_counts_no_more(town: Town, tmp_path: Path) -> None:
    store, study = tmp_path / "requests.db", town.study()
    assert town.coordinator(study, store=store).run().n == 600
    members = town.roster.sites
    without = Roster({**members, "west": replace(members["west"], revoked=True)})
    effect = town.coordinator(study, store=store, roster=without).run()
    assert effect.n == 500
    assert "revoked" in statuses(effect)["west"]


def test_a_closed_road_is_nobody_answering(town: Town) -> None:
    class Closed:
        asked = 0

        def ask(self, *_: object) -> None:
            self.asked += 1
            raise RoadError(expected="a road", got="none", hint="wait.")

    road = Closed()
    with pytest.raises(RefusedError, match=r"north, south, west could not be asked \(expected a road, got none\)"):
        town.coordinator(town.study(), road=road).run()
    assert road.asked == 3


def test_too_few_sites_give_no_effect(town: Town) -> None:
    town.refuse("south", "denied")
    study = town.study()
    with pytest.raises(RefusedError, match=r"at least 3 of 3 sites.*south denied the study") as told:
        town.coordinator(study, at_least=3).run()
    assert "not paid for twice" in told.value.hint
    assert town.coordinator(study, at_least=2).run().n == 400


def test_effects_without_an_interval_count_all_the_same(town: Town) -> None:
    study = town.study(pooling="inverse_variance", estimator=dpc.DifferenceInMeans(with_interval=False))
    effect = town.coordinator(study).run()
    assert effect.n == 600
    assert set(statuses(effect).values()) == {"answered"}
    assert "there is none from north, south, west" in effect.no_interval


def test_files_carried_by_hand(town: Town, tmp_path: Path) -> None:
    road, study = tmp_path / "road", town.study()
    coordinator = town.coordinator(study, road=FileRoad(road))
    with pytest.raises(RefusedError, match="did not answer"):
        coordinator.run()
    (request,) = (road / "out").iterdir()
    for name in town.tables:
        (road / "in" / f"{name}.message.json").write_text(town.sites[name](request.read_text()))
    assert coordinator.run().n == 600


def test_the_order_of_sites_does_not_matter(town: Town) -> None:
    study = town.study(pooling="inverse_variance")
    effect = town.coordinator(study).run()
    turned = Roster(dict(reversed(list(town.roster.sites.items()))))
    assert town.coordinator(study, roster=turned).run() == effect


def test_words_are_told_as_they_come(town: Town) -> None:
    town.refuse("south", "denied")
    heard: list[tuple[str, str]] = []
    town.coordinator(town.study(), heard=lambda *told: heard.append(told)).run()
    assert heard == [("north", "answered"), ("south", "denied the study"), ("west", "answered")]


def test_a_coordinator_that_cannot_be(town: Town, tmp_path: Path) -> None:
    study = town.study()
    for text in (tmp_path / "absent.toml", "no study"):
        with pytest.raises(StudyError, match="Hint"):
            Coordinator(text, town.roster, town.anna, LocalRoad({}), store=":memory:")
    with pytest.raises(StudyError, match="the key of anna, who asks by the study, got that of bob"):
        Coordinator(
            study.to_toml(), town.roster, Key.make("bob", tmp_path / "bob.key"), LocalRoad({}), store=":memory:"
        )
    for changes in ({"roster": Roster({})}, {"attempts": 0}, {"patience": -1.0}, {"patience": None}, {"at_least": 4}):
        with pytest.raises(StudyError, match="Hint"):
            town.coordinator(study, **changes)
    with pytest.raises(StudyError, match="nroth"):
        town.coordinator(town.study(pooling="largest", epsilons={"nroth": 0.5}))
    with pytest.raises(LedgerError, match="Hint"):
        town.coordinator(study, store=tmp_path)
