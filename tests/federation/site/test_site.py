import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpcausal import (
    DifferenceInMeans,
    DoublyRobust,
    Real,
    Release,
    Schema,
    Stratification,
    Study,
    Treatment,
    Unit,
    Winsorised,
)
from dpcausal.errors import LedgerError, StudyError
from dpcausal.federation.protocol.messages import Ask, Message, Request, request_id
from dpcausal.federation.protocol.signatures import Key, opened
from dpcausal.federation.site import stores
from dpcausal.federation.site.review import ReceivedStudy
from dpcausal.federation.site.site import Site
from dpcausal.ledger import Ledger
from dpcausal.release import receipts_in
from dpcausal.report.ledger_summary import LedgerSummary
from dpcausal.testing import synthetic_table
from dpcausal.utils.hash_chain import digest_of_text
from tests.federation.site.conftest import SCHEMA
from tests.support.site_folders import approve_study, confirm_settings, make_site_folder, signed


def answer_of(site: Site, requester: Key, request: Request) -> Message:
    text = site.answer(requester.seal(request.to_json()))
    signer, body = opened(text, {"north": site.public_key})
    message = Message.from_json(body)
    assert (signer, message.site, message.request) == ("north", "north", request.id)
    return message


def spent(folder: Path) -> float:
    return Ledger(f"sqlite:///{folder / 'ledger.db'}").spent.epsilon


def is_untouched(folder: Path) -> bool:
    """Whether nothing was ever tied to the site's ledger."""
    return Ledger(f"sqlite:///{folder / 'ledger.db'}").data_set is None


def asked_of(study: Study, ask: Ask = "releases") -> Request:
    return Request(study=study.to_toml(), ask=ask)


def releases(message: Message) -> list[Release]:
    assert message.answer is not None
    return [Release.from_json(json.dumps(release)) for release in message.answer["releases"]]


def test_approved_study_always_gets_the_same_answer_and_is_paid_once(
    north: Site, folder: Path, requester: Key, study: Study
) -> None:
    approve_study(folder, study)
    message = answer_of(north, requester, asked_of(study))
    assert (message.code, message.n, message.study) == ("answered", 400, digest_of_text(study.to_toml()))
    [release] = releases(message)
    assert [(release.query, release.guarantee, ())] == list(study.questions(400))
    assert spent(folder) == 1.0
    assert answer_of(Site(folder), requester, asked_of(study)) == message
    assert spent(folder) == 1.0


def test_ledger_names_the_study_of_each_debit(north: Site, folder: Path, requester: Key, study: Study) -> None:
    later = replace(study, question="And again?", epsilon=0.5)
    for each in (study, later):
        approve_study(folder, each)
        assert answer_of(north, requester, asked_of(each)).code == "answered"
    payments = LedgerSummary.of(Site(folder).ledger()).payments
    assert [(payment.study, payment.epsilon) for payment in payments] == [
        (digest_of_text(study.to_toml()), 1.0),
        (digest_of_text(later.to_toml()), 0.5),
    ]


def test_number_of_units_costs_nothing(north: Site, folder: Path, requester: Key, study: Study) -> None:
    approve_study(folder, study)
    message = answer_of(north, requester, Request(study=study.to_toml(), ask="facts"))
    assert (message.code, message.n, message.answer) == ("answered", 400, None)
    assert spent(folder) == 0.0


def test_nothing_is_read_before_a_decision(north: Site, folder: Path, requester: Key, study: Study) -> None:
    assert answer_of(north, requester, asked_of(study)).code == "undecided"
    assert is_untouched(folder)
    digest = digest_of_text(study.to_toml())
    assert north.studies() == [ReceivedStudy(digest, "scores", "anna", study.price("north"), "undecided")]
    north.decide(signed(folder, digest, "approve", "bob"))
    assert answer_of(north, requester, asked_of(study)).code == "answered"


def test_changed_file_is_listed_as_changed_and_the_others_as_usual(north: Site, folder: Path, study: Study) -> None:
    approve_study(folder, study)
    digest = digest_of_text(study.to_toml())
    others = [north.receive(replace(study, question=f"{number}?").to_toml()) for number in range(2)]
    (folder / "studies" / f"{others[0]}.toml").write_bytes(b"\xff")
    (folder / "studies" / "\x1b[2J.toml").write_text("not a study")
    assert {(each.digest, each.status) for each in north.studies()} == {
        (digest, "approved"),
        (others[0], "changed"),
        (others[1], "undecided"),
    }
    (folder / "studies" / f"{digest}.toml").write_text("name = 'other'\nrequester = 'carl'")
    assert north.status(digest) == "undecided"
    with pytest.raises(StudyError, match="was changed since"):
        north.review(digest)


def test_rejected_study_is_not_answered(north: Site, folder: Path, requester: Key, study: Study) -> None:
    approve_study(folder, study)
    north.decide(signed(folder, digest_of_text(study.to_toml()), "reject", "carol"))
    assert answer_of(north, requester, asked_of(study)).code == "rejected"
    north.decide(signed(folder, digest_of_text(study.to_toml()), "approve", "carol"))
    assert answer_of(north, requester, asked_of(study)).code == "answered"


def test_policy_can_require_two_approvals(folder: Path, requester: Key, study: Study) -> None:
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("approvals = 1", "approvals = 2"))
    confirm_settings(folder)
    site = Site(folder)
    digest = site.receive(study.to_toml())
    for _ in range(2):
        site.decide(signed(folder, digest, "approve", "bob"))
        assert answer_of(site, requester, asked_of(study)).code == "undecided"
    site.decide(signed(folder, digest, "approve", "carol"))
    assert answer_of(site, requester, asked_of(study)).code == "answered"


def test_approval_holds_for_one_text_only(north: Site, folder: Path, requester: Key, study: Study) -> None:
    approve_study(folder, study)
    for changed in (
        replace(study, epsilon=1.5),
        replace(study, question="Something else?"),
        replace(study, estimator=Stratification(by=["ward"])),
        replace(study, epsilons={"north": 2.0}),
    ):
        assert answer_of(north, requester, asked_of(changed)).code == "undecided"
    assert spent(folder) == 0.0


BEYOND_POLICY: dict[str, dict[str, Any]] = {
    "more epsilon": {"epsilon": 2.5},
    "more epsilon for this site": {"epsilons": {"north": 2.5}},
    "delta": {"delta": 1e-2},
    "other columns": {"schema": Schema(treatment=Treatment("treat", undeclared=0), outcome=Real("salary", 0, 10))},
    "weaker protection": {"schema": replace(SCHEMA, protects="outcome")},
    "public arms": {"schema": replace(SCHEMA, protects="record_within_arm")},
    "diagnostics besides": {"requires": {"balance": {"epsilon": 0.1, "covariates": ["age"]}}},
    "other units": {"schema": replace(SCHEMA, unit=Unit("patient", by="visit"))},
}


@pytest.mark.parametrize("change", BEYOND_POLICY)
def test_approval_does_not_override_the_policy(
    north: Site, folder: Path, requester: Key, study: Study, change: str
) -> None:
    greedy = replace(study, **BEYOND_POLICY[change])
    digest = north.receive(greedy.to_toml())
    with pytest.raises(StudyError, match="policy does not allow"):
        north.decide(signed(folder, digest, "approve", "bob"))
    north.audit_log.record(signed(folder, digest, "approve", "bob", "around the check"))
    assert answer_of(north, requester, asked_of(greedy)).code == "not_allowed"
    assert is_untouched(folder)


def test_review_of_a_forbidden_study_leaves_the_ledger_unchanged(north: Site, folder: Path, study: Study) -> None:
    digest = north.receive(replace(study, schema=replace(SCHEMA, protects="outcome")).to_toml())
    assert "protects is outcome, the policy has record" in str(north.review(digest))
    assert is_untouched(folder)


def test_policy_decides_which_columns_are_public(tmp_path: Path, requester: Key, study: Study) -> None:
    schema = replace(SCHEMA, protects="record_within_arm")
    make_site_folder(tmp_path / "west", "west", synthetic_table(schema, 400), schema, {"anna": requester.public})
    west = Site(tmp_path / "west")
    usual = replace(study, schema=schema)
    other = replace(
        study,
        schema=Schema(
            treatment=Treatment("smoker", arms=("no", "yes"), undeclared="no"),
            outcome=SCHEMA.outcome,
            protects=schema.protects,
        ),
    )
    assert "public columns are smoker, the policy has treat" in str(west.review(west.receive(other.to_toml())))
    assert "allows the study" in str(west.review(west.receive(usual.to_toml())))
    assert is_untouched(tmp_path / "west")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"entry": "age"}, "units enter by age, the policy has ward"),
        ({"entry": None}, "units enter by no column, the policy has ward"),
        ({"unit": Unit("smoker", by="age")}, "the policy has records"),
    ],
)
def test_policy_decides_who_a_unit_is_and_when_it_entered(
    north: Site, folder: Path, study: Study, changes: dict[str, Any], words: str
) -> None:
    other = replace(study, schema=replace(study.schema, covariates=(), **changes))
    assert words in str(north.review(north.receive(other.to_toml())))
    assert is_untouched(folder)


def test_review_shows_price_and_expected_error(north: Site, folder: Path, study: Study) -> None:
    text = str(north.review(north.receive(study.to_toml())))
    assert is_untouched(folder)
    assert "arm_moments: epsilon 1, delta 0" in text
    assert "expected with 400 units" in text
    assert "undecided (approvals needed: 1)" in text


def test_review_shows_what_an_approval_leads_to(north: Site, folder: Path, requester: Key, study: Study) -> None:
    first = str(north.review(north.receive(study.to_toml())))
    assert "left after it     epsilon 2, delta 0" in first
    assert "arm_moments, with noise: total_0, deficit_0" in first
    assert "public: n, as_of" in first
    assert "also waiting" not in first
    assert "differs from" not in first
    approve_study(folder, study)
    assert answer_of(north, requester, asked_of(study)).code == "answered"
    again = replace(study, question="The same queries?")
    north.receive(replace(study, name="other", epsilon=1.5).to_toml())
    text = str(north.review(north.receive(again.to_toml())))
    assert "answered before   arm_moments: free" in text
    assert "left after it     epsilon 2, delta 0" in text
    assert "other studies: 1, of epsilon 1.5, delta 0 in total" in text
    assert digest_of_text(study.to_toml()) in text
    assert '- question = "Does treatment raise the score?"' in text
    assert '+ question = "The same queries?"' in text
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("epsilon_per_study = 2.0", "epsilon_per_study = 9.0"))
    dear = Site(folder).review(north.receive(replace(study, epsilon=2.5).to_toml()), open_table=False)
    assert "too little left for this study" in str(dear)


def test_review_begins_in_plain_words(north: Site, folder: Path, study: Study) -> None:
    short = dict(north.review(north.receive(study.to_toml())).in_short())
    assert list(short) == [
        *("who asks", "what", "about whom", "what leaves", "what it costs", "what is left", "for how long")
    ]
    assert "anna, named in this site's policy" in short["who asks"]
    assert "all 400 units" in short["about whom"]
    assert "6 numbers, each with random noise" in short["what leaves"]
    assert "No record leaves" in short["what leaves"]
    assert short["what it costs"].startswith("Epsilon 1, 33% of the epsilon 3 that all studies")
    assert short["what is left"].startswith("Epsilon 2 after it; 3 now.")
    assert "An approval counts without end" in short["for how long"]
    dear = Site(folder).review(north.receive(replace(study, epsilon=50.0, requester="otto").to_toml()))
    short = dict(dear.in_short())
    assert "otto, who is not named" in short["who asks"]
    assert "the policy does not allow it" in short["what it costs"]
    assert str(dear).splitlines()[2].startswith("who asks")


def test_review_of_a_table_that_is_too_small_says_that_there_is_no_answer(folder: Path, study: Study) -> None:
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("minimum_units = 100", "minimum_units = 1000"))
    site = Site(folder)
    text = " ".join(str(site.review(site.receive(study.to_toml()))).split())
    assert "the table has 400 units, and minimum_units is 1,000: no answer" in text
    assert "Nothing: the table has 400 units, fewer than the policy needs (1,000)" in text


def test_review_without_the_table_needs_no_table(north: Site, folder: Path, study: Study) -> None:
    digest = north.receive(study.to_toml())
    (folder / "table.parquet").unlink()
    review = north.review(digest, open_table=False)
    assert review.n is None
    assert review.consequences is not None
    assert json.loads(review.consequences.message)["releases"][0]["query"] == "arm_moments"


def test_comment_with_invisible_characters_is_refused(north: Site, requester: Key, study: Study) -> None:
    text = f"# approved by all\u202e already\n{study.to_toml()}"
    with pytest.raises(StudyError, match=r"approved by all\\u202e already"):
        north.receive(text)
    assert answer_of(north, requester, Request(study=text, ask="releases")).code == "unreadable"
    assert north.studies() == []


def test_estimator_outside_the_policy_is_refused(folder: Path, requester: Key, study: Study) -> None:
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace('"difference_in_means",', ""))
    site = Site(folder)
    for asked in (study, replace(study, estimator=Winsorised(study.estimator))):
        site.audit_log.record(signed(folder, site.receive(asked.to_toml()), "approve", "bob"))
        assert answer_of(site, requester, asked_of(asked)).code == "not_allowed"
        assert "the estimator difference_in_means is not allowed" in str(site.review(site.receive(asked.to_toml())))


def test_study_beyond_the_budget_is_refused(north: Site, folder: Path, requester: Key, study: Study) -> None:
    codes = []
    for question in ("first?", "second?"):
        other = replace(
            study, question=question, epsilon=2.0, estimator=DifferenceInMeans(with_interval=question == "first?")
        )
        approve_study(folder, other)
        codes.append(answer_of(north, requester, asked_of(other)).code)
    assert codes == ["answered", "no_budget"]
    assert spent(folder) == 2.0


def test_same_query_in_another_study_costs_nothing(north: Site, folder: Path, requester: Key, study: Study) -> None:
    answers = []
    for question in ("first?", "second?"):
        other = replace(study, question=question)
        approve_study(folder, other)
        answers.append(answer_of(north, requester, asked_of(other)).answer)
    receipts = [answer["releases"][0]["receipt"] for answer in answers if answer]
    assert [receipt.pop("stored") for receipt in receipts] == [False, True]
    assert answers[0] == answers[1]
    assert spent(folder) == 1.0


def test_site_with_too_few_units_does_not_answer(folder: Path, requester: Key, study: Study) -> None:
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("minimum_units = 100", "minimum_units = 401"))
    confirm_settings(folder)
    approve_study(folder, study)
    message = answer_of(Site(folder), requester, asked_of(study))
    assert (message.code, message.n) == ("too_few_units", None)


def test_requests_without_a_valid_signature_are_refused(
    north: Site, folder: Path, tmp_path: Path, requester: Key, study: Study
) -> None:
    approve_study(folder, study)
    body = asked_of(study).to_json()
    eve = Key.make("eve", tmp_path / "eve.key")
    pretender = Key("anna", eve.private)
    forged = json.loads(requester.seal(body)) | {"body": asked_of(replace(study, epsilon=2.0)).to_json()}
    half = json.dumps(json.loads(requester.seal(body)) | {"body": "\ud800"})
    for text in (eve.seal(body), pretender.seal(body), json.dumps(forged), half, "", "{}", "[" * 10_000, "nonsense"):
        _, sent = opened(north.answer(text), {"north": north.public_key})
        assert Message.from_json(sent).code == "unknown_requester"
    assert spent(folder) == 0.0


def test_requester_cannot_ask_in_the_name_of_another(north: Site, folder: Path, requester: Key, study: Study) -> None:
    other = replace(study, requester="ben")
    north.receive(other.to_toml())
    assert answer_of(north, requester, asked_of(other)).code == "unknown_requester"


HOSTILE = {
    "no study": {"study": ""},
    "not TOML": {"study": "= ="},
    "deep TOML": {"study": "a = " + "[" * 5_000 + "]" * 5_000},
    "a number": {"study": 7},
    "another version": {"version": 1},
    "another ask": {"ask": "rows"},
    "a query": {"query": {"query": "arm_totals"}},
    "a guarantee": {"guarantee": {"epsilon": 50.0}},
    "a key too many": {"more": 1},
}


@pytest.mark.parametrize("change", HOSTILE)
def test_hostile_requests_are_unreadable(north: Site, requester: Key, study: Study, change: str) -> None:
    body = json.dumps(json.loads(asked_of(study).to_json()) | HOSTILE[change], sort_keys=True)
    _, sent = opened(north.answer(requester.seal(body)), {"north": north.public_key})
    assert Message.from_json(sent).code == "unreadable"
    assert Message.from_json(sent).request == request_id(body)


def test_hostile_studies_are_unreadable(north: Site, folder: Path, requester: Key, study: Study) -> None:
    text = study.to_toml()
    for was, becomes in (
        ("epsilon = 1.0", "epsilon = nan"),
        ("epsilon = 1.0", "epsilon = -1.0"),
        ("epsilon = 1.0", 'epsilon = "1"'),
        ("high = 10.0", "high = inf"),
        ("difference_in_means", "__class__"),
        ("with_interval = true", "with_interval = true\ncommand = 'ls'"),
        ("[estimator]", "[estimators]"),
        ('name = "treat"', "name = 3"),
    ):
        assert was in text
        message = answer_of(north, requester, Request(study=text.replace(was, becomes, 1), ask="releases"))
        assert message.code == "unreadable", becomes
    assert not north.inbox.digests()


def test_requesters_do_not_crowd_out_the_studies_of_others(
    tmp_path: Path, requester: Key, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_MOST", 2)
    ben = Key.make("ben", tmp_path / "ben.key")
    keys = {"anna": requester.public, "ben": ben.public}
    make_site_folder(tmp_path / "south", "north", synthetic_table(study.schema, 100), study.schema, keys)
    south = Site(tmp_path / "south")
    sent = [replace(study, name=f"study {place}") for place in range(4)]
    for each in sent:
        assert answer_of(south, requester, asked_of(each)).code == "undecided"
    assert south.inbox.digests() == [each.digest for each in sent[:2]]
    others = replace(study, requester="ben")
    assert answer_of(south, ben, asked_of(others)).code == "undecided"
    by_hand = south.receive(sent[3].to_toml())
    assert set(south.inbox.digests()) == {sent[0].digest, sent[1].digest, others.digest, by_hand}
    (tmp_path / "south" / "studies" / f"{sent[0].digest}.toml").unlink()  # an operator makes room
    answer_of(south, requester, asked_of(sent[2]))
    assert sent[2].digest in south.inbox.digests()


class MarkedError(Exception):
    """An error whose text must not get out."""


def test_no_error_text_leaves_a_site(
    monkeypatch: pytest.MonkeyPatch, north: Site, folder: Path, requester: Key, study: Study
) -> None:
    approve_study(folder, study)

    def broken(*_: object) -> None:
        raise MarkedError("the patient in bed 7")

    monkeypatch.setattr("dpcausal.vault.door.Vault.release", broken)
    text = north.answer(requester.seal(asked_of(study).to_json()))
    assert Message.from_json(opened(text, {"north": north.public_key})[1]).code == "failed"
    assert "bed 7" not in text
    assert "bed 7" not in (folder / "audit_log.jsonl").read_text()


def test_changed_audit_log_stops_the_site(north: Site, folder: Path, requester: Key, study: Study) -> None:
    approve_study(folder, study)
    assert answer_of(north, requester, asked_of(study)).code == "answered"
    file = folder / "audit_log.jsonl"
    file.write_text(file.read_text().replace("a person", "b person"))
    assert answer_of(north, requester, asked_of(study)).code == "failed"


def test_audit_log_holds_decisions_and_answers(north: Site, folder: Path, requester: Key, study: Study) -> None:
    answer_of(north, requester, asked_of(study))
    north.answer("nonsense")
    approve_study(folder, study)
    answer_of(north, requester, asked_of(study))
    events = [(entry.kind, entry.who, entry.what.split()[-1]) for entry in north.audit_log.entries()]
    assert events == [
        ("answer", "anna", "undecided"),
        ("forged", "", "unknown_requester"),
        ("people", "a person", north.people.people[0].key),
        ("approve", "a person", "this"),
        ("answer", "anna", "answered"),
    ]


def test_partial_last_line_of_the_audit_log_does_not_count(north: Site, folder: Path, study: Study) -> None:
    approve_study(folder, study)
    digest = digest_of_text(study.to_toml())
    with (folder / "audit_log.jsonl").open("a") as file:
        file.write('{"kind": "reject", "stu')
    assert north.status(digest) == "approved"
    north.decide(signed(folder, digest, "reject", "carol"))
    assert north.status(digest) == "rejected"
    assert [entry.kind for entry in north.audit_log.entries()] == ["people", "approve", "people", "reject"]


def test_estimator_with_several_queries_is_answered(north: Site, folder: Path, requester: Key, study: Study) -> None:
    robust = replace(study, estimator=DoublyRobust(covariates=["age"]))
    approve_study(folder, robust)
    message = answer_of(north, requester, asked_of(robust))
    assert message.code == "answered"
    assert answer_of(Site(folder), requester, asked_of(robust)) == message
    assert spent(folder) == pytest.approx(1.0)


def test_study_that_the_budget_cannot_pay_in_full_spends_nothing(folder: Path, requester: Key, study: Study) -> None:
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("epsilon = 3.0", "epsilon = 0.5"))
    (folder / "ledger.db").unlink()
    Site(folder).changes.create_ledger()
    robust = replace(study, estimator=DoublyRobust(covariates=["age"]))
    approve_study(folder, robust)
    assert answer_of(Site(folder), requester, asked_of(robust)).code == "no_budget"
    assert spent(folder) == 0.0


def test_repeated_request_gets_the_stored_response(
    monkeypatch: pytest.MonkeyPatch, north: Site, folder: Path, requester: Key, study: Study
) -> None:
    """Later questions hold numbers that another processor rounds differently: asked anew, they would be others."""
    robust = replace(study, estimator=DoublyRobust(covariates=["age"]))
    approve_study(folder, robust)
    message = answer_of(north, requester, asked_of(robust))
    monkeypatch.setattr("dpcausal.federation.site.site.Site._found", lambda *_: pytest.fail("it was worked out again"))
    assert answer_of(north, requester, asked_of(robust)) == message


def test_site_without_its_ledger_does_not_answer(north: Site, folder: Path, requester: Key, study: Study) -> None:
    approve_study(folder, study)
    (folder / "ledger.db").unlink()
    assert answer_of(north, requester, asked_of(study)).code == "failed"
    assert not (folder / "ledger.db").exists()


def restored_after_an_answer(folder: Path, requester: Key, study: Study) -> Study:
    """Answer a study, put yesterday's ledger back, and return a study that the site has not answered yet."""
    later = replace(study, question="And again?", epsilon=1.5)
    approve_study(folder, study)
    approve_study(folder, later)
    assert answer_of(Site(folder), requester, asked_of(study, "facts")).code == "answered"
    yesterday = (folder / "ledger.db").read_bytes()
    assert answer_of(Site(folder), requester, asked_of(study)).code == "answered"
    (folder / "ledger.db").write_bytes(yesterday)
    return later


def test_site_with_a_restored_ledger_does_not_answer(folder: Path, requester: Key, study: Study) -> None:
    """Its own stored answers hold receipts that the ledger must hold too."""
    later = restored_after_an_answer(folder, requester, study)
    for asked in (study, later):
        assert answer_of(Site(folder), requester, asked_of(asked)).code == "failed"
    with pytest.raises(LedgerError, match="lacks the receipt"):
        Site(folder).ledger()
    assert spent(folder) == 0.0


def test_mutant_that_ignores_stored_receipts_overspends(
    folder: Path, requester: Key, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant answers on from yesterday's ledger, and spends again what it does not remember."""
    later = restored_after_an_answer(folder, requester, study)
    monkeypatch.setattr("dpcausal.federation.site.stores.ResponseStore.receipts", lambda _: ())
    assert answer_of(Site(folder), requester, asked_of(later)).code == "answered"
    assert spent(folder) == 1.5


def test_recorded_restore_lets_the_site_answer_again(folder: Path, requester: Key, study: Study) -> None:
    later = restored_after_an_answer(folder, requester, study)
    url = f"sqlite:///{folder / 'ledger.db'}"
    receipts = [
        receipt for file in (folder / "messages").iterdir() for receipt in receipts_in(json.loads(file.read_text()))
    ]
    Ledger.restore(url, by="bob", reason="the disk failed", receipts=receipts, lost_epsilon=0.0)
    assert spent(folder) == 1.0
    assert answer_of(Site(folder), requester, asked_of(later)).code == "undecided"
    confirm_settings(folder)
    assert answer_of(Site(folder), requester, asked_of(later)).code == "undecided"
    approve_study(folder, later)
    assert answer_of(Site(folder), requester, asked_of(later)).code == "answered"
    assert spent(folder) == 2.5


def test_witness_detects_a_restored_folder(folder: Path, requester: Key, study: Study) -> None:
    policy = folder / "policy.toml"
    policy.write_text('witness = "witness.log"\n' + policy.read_text())
    (folder / "ledger.db").unlink()
    Site(folder).changes.create_ledger()
    yesterday = (folder / "ledger.db").read_bytes()
    approve_study(folder, study)
    assert answer_of(Site(folder), requester, asked_of(study)).code == "answered"
    for stored in (folder / "messages").iterdir():
        stored.unlink()
    (folder / "ledger.db").write_bytes(yesterday)
    assert answer_of(Site(folder), requester, asked_of(study)).code == "failed"


def test_new_version_of_the_data_must_be_declared(folder: Path, requester: Key, study: Study) -> None:
    policy = folder / "policy.toml"
    approve_study(folder, study)
    assert answer_of(Site(folder), requester, asked_of(study)).as_of == "2026-06-30"
    policy.write_text(policy.read_text().replace('as_of = "2026-06-30"', 'as_of = "2026-09-30"'))
    confirm_settings(folder)
    later = replace(study, question="And again?")
    approve_study(folder, later)
    assert answer_of(Site(folder), requester, asked_of(later)).code == "failed"
    Ledger(f"sqlite:///{folder / 'ledger.db'}").add_version("2026-09-30")
    message = answer_of(Site(folder), requester, asked_of(later))
    assert (message.code, message.as_of) == ("answered", "2026-09-30")
    assert spent(folder) == 2.0


def test_audit_log_holds_only_the_day_of_an_answer(north: Site, folder: Path, requester: Key, study: Study) -> None:
    approve_study(folder, study)
    answer_of(north, requester, asked_of(study))
    times = {entry.kind: entry.at for entry in north.audit_log.entries()}
    assert "T" in times["approve"]
    assert ":" not in times["answer"]


BROKEN = {
    "a policy that objects to nothing": ("dpcausal.federation.site.site.objections", lambda *_: (), "not_allowed"),
    "people who approve everything": ("dpcausal.federation.site.site.Site._status", lambda *_: "approved", "undecided"),
    "a site that listens to all": (
        "dpcausal.federation.site.site.opened",
        lambda *_: ("anna", ""),
        "unknown_requester",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_mutants_without_a_guard_answer(
    monkeypatch: pytest.MonkeyPatch, folder: Path, requester: Key, study: Study, broken: str
) -> None:
    """Without one of its guards, a site answers what it refuses with it."""
    north = Site(folder)
    place, instead, code = BROKEN[broken]
    asked = {"not_allowed": replace(study, epsilon=2.5), "undecided": study, "unknown_requester": study}[code]
    digest = north.receive(asked.to_toml())
    if code != "undecided":
        north.audit_log.record(signed(folder, digest, "approve", "bob"))
    body = asked_of(asked).to_json()
    key = Key("eve", requester.private) if code == "unknown_requester" else requester
    codes = []
    for mend in (None, instead):
        if mend:
            name = "dpcausal.federation.site.site.opened"
            monkeypatch.setattr(place, (lambda *_: ("anna", body)) if place == name else mend)
        codes.append(Message.from_json(opened(north.answer(key.seal(body)), {"north": north.public_key})[1]).code)
    assert codes == [code, "answered"]
