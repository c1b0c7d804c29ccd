"""Every lie is caught and named, and the other sites' answers stand.

Each lie has a mutant: a coordinator without checks takes it for an answer.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal import Study
from dpcausal.errors import RefusedError
from dpcausal.federation.coordinator.responses import why_invalid
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.protocol.messages import Message, Request
from dpcausal.federation.protocol.question import Question
from dpcausal.federation.protocol.signatures import Key, claimed_body
from dpcausal.results.effect import Estimator
from dpcausal.schema.schema import Protects
from dpcausal.source import RecordingSource
from dpcausal.testing import hostile_tables, standard_schema, synthetic_table
from dpcausal.utils.hash_chain import digest_of_text
from tests.federation.conftest import Federation, always, message_in
from tests.support.slow import marked

Body = dict[str, Any]
Change = Callable[[Body], object]


@dataclass(frozen=True)
class Responses:
    """The true responses of three sites to a study's request."""

    federation: Federation
    study: Study
    sealed: dict[str, str]

    def with_lie(self, text: str) -> dict[str, str]:
        """What each site did where south says something else, by the effect of all."""
        self.federation.sites |= {name: always(sent) for name, sent in self.sealed.items()}
        self.federation.sites["south"] = always(text)
        found = self.federation.coordinator(self.study, attempts=1).run()
        return {share.site: share.status for share in found.sites}

    def lie(self, change: Change) -> str:
        """What south signs when it changes something in its message."""
        body = json.loads(claimed_body(self.sealed["south"]))
        change(body)
        return self.federation.key("south").seal(json.dumps(body, sort_keys=True))


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    schema = standard_schema()
    tables = {name: synthetic_table(schema, 200, seed) for seed, name in enumerate(("north", "south", "west"))}
    return Federation(tmp_path_factory.mktemp("federation"), tables, schema)


def truth(federation: Federation, pooling: str) -> Responses:
    study = federation.study(pooling=pooling)
    request = federation.anna.seal(federation.coordinator(study).request.to_json())
    return Responses(federation, study, {name: federation.honest(name)(request) for name in federation.tables})


@pytest.fixture(scope="module")
def sums(federation: Federation) -> Responses:
    return truth(federation, "sums")


@pytest.fixture(scope="module")
def effects(federation: Federation) -> Responses:
    return truth(federation, "minimum_variance")


def put(value: object, *path: str | int) -> Change:
    """Another value at a place in a message."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


def times(factor: float, *path: str | int) -> Change:
    """So many times the value at a place in a message."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] *= factor

    return change


def twice_the_price(body: Body) -> None:
    """As if the site had been asked for twice the epsilon, all of it consistent."""
    release = body["answer"]["releases"][0]
    release["guarantee"]["epsilon"] = release["receipt"]["epsilon"] = 2.0
    release["scales"] = [scale / 2 for scale in release["scales"]]


LIES: dict[str, tuple[Change, str]] = {
    "another's name": (put("north", "site"), "the name of another site"),
    "another request": (put("ab" * 32, "request"), "another request"),
    "another study": (put("ab" * 32, "study"), "another study"),
    "a single unit": (put(1, "n"), "fewer than two units"),
    "no answer": (put(None, "answer"), "answer is empty"),
    "arms that are not public": (put([100, 100], "arm_sizes"), "against the schema"),
    "an empty answer": (put({}, "answer"), "cannot be read"),
    "a list in place of an answer": (put({"answer": []}, "answer"), "cannot be read"),
}
ABOUT_RELEASES: dict[str, tuple[Change, str]] = {
    "another query": (put({"query": "arm_totals"}, "answer", "releases", 0, "query"), "noise is not of the size"),
    "a query that is none": (put({"query": "everything"}, "answer", "releases", 0, "query"), "cannot be read"),
    "another guarantee": (put(2.0, "answer", "releases", 0, "guarantee", "epsilon"), "noise is not of the size"),
    "a weaker guarantee": (
        put("outcome", "answer", "releases", 0, "guarantee", "protects"),
        "under another guarantee",
    ),
    "a fact": (put({"mean": 1.0}, "answer", "releases", 0, "public_values"), "not those that the query asks for"),
    "smaller noise": (times(0.5, "answer", "releases", 0, "scales", 0), "noise is not of the size"),
    "no noise": (put([], "answer", "releases", 0, "scales"), "noise is not of the size"),
    "normal noise": (put("gaussian", "answer", "releases", 0, "family"), "noise is not of the size"),
    "noise in parts": (put(7, "answer", "releases", 0, "parts"), "noise is not of the size"),
    "other names": (put("total", "answer", "releases", 0, "names", 0), "not those that the query asks for"),
    "a number too few": (lambda body: body["answer"]["releases"][0]["values"].pop(), "cannot be read"),
    "a word for a number": (put("5", "answer", "releases", 0, "values", 0), "not those that the query asks for"),
    "a yes for a number": (put(True, "answer", "releases", 0, "values", 0), "not those that the query asks for"),  # noqa: FBT003
    "nothing for a number": (put(None, "answer", "releases", 0, "values", 0), "not those that the query asks for"),
    "a number beyond floats": (put(10**400, "answer", "releases", 0, "values", 0), "not those that the query asks for"),
    "half a step": (times(1 + 1e-9, "answer", "releases", 0, "values", 0), "not whole ticks"),
    "a huge sum": (put(1e9, "answer", "releases", 0, "values", 4), "larger than so many units"),
    "nearly the largest float": (put(1e308, "answer", "releases", 0, "values", 0), "cannot be read"),
    "no receipt": (put(None, "answer", "releases", 0, "receipt"), "cannot be read"),
    "a receipt for less": (put(0.1, "answer", "releases", 0, "receipt", "epsilon"), "no receipt"),
    "a receipt without an entry": (put(None, "answer", "releases", 0, "receipt", "digest"), "no receipt"),
    "another guarantee, and the noise for it": (twice_the_price, "under another guarantee"),
    "a release too many": (
        lambda body: body["answer"]["releases"].append(body["answer"]["releases"][0]),
        "other queries",
    ),
    "no release": (put([], "answer", "releases"), "other queries"),
    "an extra effect": (put({"estimate": 9.0}, "answer", "effect"), "cannot be read"),
    "another version of the data": (put("2020-01-01", "as_of"), "another version of its data"),
    "a receipt with a poem for a day": (put("roses", "answer", "releases", 0, "receipt", "on"), "no receipt"),
    "a receipt of another version": (put("2020", "answer", "releases", 0, "receipt", "as_of"), "another version"),
    "a receipt with a poem": (put("roses are red " * 5, "answer", "releases", 0, "receipt", "digest"), "no receipt"),
}


@pytest.mark.parametrize("kind", ["sums", "effects"])
@pytest.mark.parametrize(("change", "words"), (LIES | ABOUT_RELEASES).values(), ids=(LIES | ABOUT_RELEASES).keys())
def test_false_message_is_invalid_and_named(
    kind: str, request: pytest.FixtureRequest, change: Change, words: str
) -> None:
    _check_caught(request.getfixturevalue(kind), change, words)


def _check_caught(truthful: Responses, change: Change, words: str) -> None:
    statuses = truthful.with_lie(truthful.lie(change))
    assert statuses["south"].startswith("sent an invalid response: ")
    assert words in statuses["south"]
    assert (statuses["north"], statuses["west"]) == ("answered", "answered")


@pytest.mark.parametrize("kind", ["sums", "effects"])
def test_true_message_is_valid(kind: str, request: pytest.FixtureRequest) -> None:
    truthful: Responses = request.getfixturevalue(kind)
    assert truthful.with_lie(truthful.lie(lambda _: None)) == dict.fromkeys(truthful.sealed, "answered")


@pytest.mark.parametrize("kind", ["sums", "effects"])
def test_mutant_without_validation_accepts_every_false_message(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""
    truthful: Responses = request.getfixturevalue(kind)
    monkeypatch.setattr("dpcausal.federation.coordinator.dispatch.why_invalid", lambda *_: "")
    federation = truthful.federation
    for name, (change, _) in (LIES | ABOUT_RELEASES).items():
        text = truthful.lie(change)
        federation.sites["south"] = always(text)
        received: list[tuple[str, str]] = []
        coordinator = federation.coordinator(
            truthful.study, attempts=1, on_response=lambda *response, to=received: to.append(response)
        )
        coordinator._asked()
        assert ("south", "answered") in received, name


def test_false_message_would_change_the_effect(effects: Responses, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the checks are for: with hardly any noise claimed, one site would decide everything."""
    honest = effects.federation.coordinator(effects.study)
    effects.federation.sites |= {name: always(sent) for name, sent in effects.sealed.items()}
    small = honest.run().estimate

    def claim(body: Body) -> None:
        release = body["answer"]["releases"][0]
        release["scales"] = [scale * 1e-6 for scale in release["scales"]]
        release["values"][:4] = [-450.0, 450.0, 1600.0, 1600.0]  # all treated at 9.5, all controls at 0.5, no spread

    text = effects.lie(claim)
    effects.federation.sites["south"] = always(text)
    assert effects.federation.coordinator(effects.study).run().estimate == pytest.approx(small, abs=2.0)
    monkeypatch.setattr("dpcausal.federation.coordinator.dispatch.why_invalid", lambda *_: "")
    assert effects.federation.coordinator(effects.study).run().estimate > 4


def forged(truthful: Responses) -> dict[str, Any]:
    """Texts that south did not sign, or that are no message."""
    key = truthful.federation.key("south")
    honest = truthful.sealed["south"]
    body = claimed_body(honest)
    stranger = Key("south", truthful.federation.anna.private)
    deep = '{"a":' * 5_000 + "1" + "}" * 5_000
    return {
        "nothing": "",
        "no text at all": None,
        "a list": "[]",
        "an unsigned message": body,
        "a message that was changed": honest.replace("answered", "answereD"),
        "a signature of a stranger": stranger.seal(body),
        "a signature of a stranger in his own name": Key("bob", truthful.federation.anna.private).seal(body),
        "letters beyond ASCII": key.seal(body).replace("south", "s\ud800uth"),
        "something that is no message": key.seal("hello"),
        "a message in another spelling": key.seal(body.replace(": ", ":")),
        "a message of an unknown version": key.seal(body.replace('"version": 5', '"version": 6')),
        "a message without end": key.seal(deep),
        "a message with a deep answer": key.seal(body.replace('"answer": {', f'"answer": {{"deep": {deep}, ')),
        "an infinite number": key.seal(body.replace('"values": [', '"values": [1e999, ')),
        "not a number": key.seal(body.replace('"values": [', '"values": [NaN, ')),
        "a text too long": key.seal(body) + " " * 20_000_000,
    }


def test_text_without_the_sites_signature_is_invalid(sums: Responses) -> None:
    for name, text in forged(sums).items():
        statuses = sums.with_lie(text)
        assert statuses["south"] == ("sent an invalid response: it is not a message signed with this site's key"), name
        assert (statuses["north"], statuses["west"]) == ("answered", "answered")


def test_replayed_message_of_another_site_does_not_count(sums: Responses) -> None:
    """South replays north's answer: it stays north's, and south has not answered."""
    statuses = sums.with_lie(sums.sealed["north"])
    assert statuses == {"north": "answered", "south": "did not answer", "west": "answered"}


def test_forged_messages_do_not_hide_the_true_one(sums: Responses) -> None:
    """Whoever puts a forged message before the real one gains nothing."""

    class Noisy:
        def ask(self, *asked: Any) -> None:
            _, sites, _, received, _ = asked
            for site in sites:
                received(site, "forged")
                received("nobody", "forged")
                received(site, sums.sealed[site])
                received(site, sums.lie(put("rejected", "code")))

    effect = sums.federation.coordinator(sums.study, transport=Noisy()).run()
    assert {share.status for share in effect.sites} == {"answered"}


def test_number_of_units_must_match_the_roster(sums: Responses) -> None:
    members = sums.federation.roster.sites
    roster = Roster({**members, "south": replace(members["south"], units=201)})
    sums.federation.sites |= {name: always(sent) for name, sent in sums.sealed.items()}
    effect = sums.federation.coordinator(sums.study, roster=roster).run()
    assert effect.n == 400
    assert "differs from the roster" in effect.sites[1].status
    right = Roster({**members, "south": replace(members["south"], units=200)})
    assert sums.federation.coordinator(sums.study, roster=right).run().n == 600


def test_number_of_units_must_not_change(sums: Responses) -> None:
    federation = sums.federation
    federation.sites |= {name: federation.honest(name) for name in federation.tables}
    coordinator = federation.coordinator(sums.study)
    assert coordinator.n == 600
    text = sums.lie(put(250, "n"))
    federation.sites["south"] = always(text)
    effect = coordinator.run()
    assert effect.n == 400
    assert "differ from those it sent before" in effect.sites[1].status


def test_answer_to_more_than_was_asked_is_invalid(sums: Responses) -> None:
    federation = sums.federation
    facts = Request(study=sums.study.to_toml(), ask="facts")
    honest = federation.honest("south")(federation.anna.seal(facts.to_json()))
    assert message_in(honest).answer is None

    def eager(body: Body) -> None:
        body.update(request=facts.id)

    federation.sites = {name: always(sums.lie(eager)) for name in federation.tables}
    with pytest.raises(RefusedError, match="it answers more than the request asks for"):
        _ = federation.coordinator(sums.study).n


HONEST: dict[str, tuple[Estimator, Protects, float]] = {
    "means": (dpc.DifferenceInMeans(), "record", 0.0),
    "means of public arms": (dpc.DifferenceInMeans(), "record_within_arm", 0.0),
    "strata": (dpc.Stratification(by=["ward"]), "record", 0.0),
    "strata with normal noise": (dpc.Stratification(by=["ward"], cap=1), "outcome", 1e-6),
    "regression": (dpc.RegressionAdjustment(covariates=["age", "ward"]), "record", 1e-6),
    "regression of outcomes": (dpc.RegressionAdjustment(covariates=["age", "ward"]), "outcome", 0.0),
    "propensity matching": (dpc.PropensityMatching(covariates=["age"]), "outcome", 0.0),
    "noisy matching": (dpc.PropensityMatching(covariates=["age"]), "record", 0.0),
    "exact matching": (dpc.ExactMatching(by=["ward"]), "record", 1e-6),
    "inverse weighting": (dpc.InverseWeighting(covariates=["age"]), "record", 0.0),
    "doubly robust": (dpc.DoublyRobust(covariates=["age"]), "record", 1e-6),
}


HONEST_IN_GATE = (
    "means",
    "strata",
    "regression",
    "propensity matching",
    "noisy matching",
    "exact matching",
    "doubly robust",
)


@pytest.mark.parametrize(
    ("estimator", "protects", "delta"),
    [case if name in HONEST_IN_GATE else marked(case) for name, case in HONEST.items()],
    ids=HONEST.keys(),
)
def test_honest_message_is_valid_for_any_table(estimator: Estimator, protects: Protects, delta: float) -> None:
    schema = standard_schema(protects, undeclared=0 if "Matching" in type(estimator).__name__ else None)
    study = Study(
        name="scores",
        question="Does treatment raise the score?",
        requester="anna",
        schema=schema,
        estimator=estimator,
        epsilon=1.0,
        delta=delta,
        pooling="largest",
    )
    request = Request(study=study.to_toml(), ask="releases")
    for table in hostile_tables(schema, 400).values():
        vault = dpc.Vault(
            table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=10, delta=1e-3), as_of="2026-06-30"
        )
        recording = RecordingSource(vault)
        estimator.estimate(recording, epsilon=1.0, delta=delta)
        message = Message(
            request=request.id,
            study=digest_of_text(request.study),
            site="north",
            code="answered",
            n=vault.n,
            arm_sizes=vault.arm_sizes,
            as_of=vault.as_of,
            answer={"releases": [json.loads(release.to_json()) for release in recording.releases]},
        )
        assert why_invalid(message, "north", Question(study, request), 400, []) == ""
