"""Two versions of the protocol side by side: texts that the older version wrote, and answers in its words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpcausal import Coordinator, Study
from dpcausal.errors import TransportError
from dpcausal.federation.protocol.messages import MEANINGS, VERSION, VERSIONS, Message, Request, version_of
from dpcausal.federation.protocol.signatures import claimed_body, opened
from dpcausal.federation.site.site import Site
from dpcausal.testing import standard_schema, synthetic_table
from tests.federation.conftest import Federation
from tests.support.site_folders import approve_study, make_site_folder

STORED = json.loads((Path(__file__).parent / "stored_messages" / "version_2.json").read_text(encoding="utf-8"))
NOW = {"unknown_asker": "unknown_requester", "denied": "rejected"}


def answered(folder: Path, request: str) -> dict[str, Any]:
    """Return a site's answer, as a text of JSON that an older version would read."""
    document: dict[str, Any] = json.loads(claimed_body(Site(folder).answer(request)))
    return document


def test_stored_messages_hold_every_code_of_version_2() -> None:
    assert {NOW.get(code, code) for code in STORED["messages"]} == set(MEANINGS) - {"refused_step"}


@pytest.mark.parametrize("code", STORED["messages"])
def test_message_of_the_older_version_is_read_and_written_back_as_it_was(code: str) -> None:
    signer, body = opened(STORED["messages"][code], STORED["keys"])
    message = Message.from_json(body)
    assert (signer, message.version, message.code) == ("north", 2, NOW.get(code, code))
    assert message.to_json() == body


@pytest.mark.parametrize("code", sorted(NOW.values()))
def test_codes_of_one_version_are_refused_in_the_other(code: str) -> None:
    message = Message(request="", study="", site="north", code="failed", version=2)
    text = message.to_json().replace("failed", code)
    with pytest.raises(TransportError):
        Message.from_json(text)
    older = {new: old for old, new in NOW.items()}[code]
    with pytest.raises(TransportError):
        Message.from_json(replace(message, version=3).to_json().replace("failed", older))


@pytest.fixture
def north(tmp_path: Path) -> Path:
    schema = replace(standard_schema(), entry=None)  # as the stored study, which is older
    keys = {"anna": STORED["keys"]["anna"]}
    make_site_folder(tmp_path / "north", "north", synthetic_table(schema, 400), schema, keys)
    return tmp_path / "north"


def test_site_answers_a_stored_request_of_the_older_version_in_its_words(north: Path) -> None:
    request = STORED["request"]
    assert answered(north, request)["code"] == "undecided"
    approve_study(north, Study.from_toml(Request.from_json(claimed_body(request)).study))
    answer = answered(north, request)
    assert (answer["version"], answer["code"], answer["n"]) == (2, "answered", 400)
    forged = request.replace('"signer": "anna"', '"signer": "eve"')
    assert forged != request
    assert answered(north, forged)["code"] == "unknown_asker"


def test_request_of_no_known_version_is_answered_in_this_one(north: Path) -> None:
    assert answered(north, "junk")["version"] == VERSION
    assert version_of(claimed_body(STORED["request"])) == 2
    assert max(VERSIONS) == VERSION


def test_study_asked_in_both_versions_is_paid_for_once(
    federation: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = federation.study()
    with monkeypatch.context() as older:
        older.setattr(
            Coordinator, "request", property(lambda self: Request(study=self._text, ask="releases", version=2))
        )
        first = federation.coordinator(study, store=tmp_path / "requests.db").run()
    second = federation.coordinator(study, store=tmp_path / "requests.db").run()
    assert first.estimate == second.estimate
    assert len(federation.asked) == 2 * len(federation.tables)
    for name in federation.tables:
        kinds = [entry.kind for entry in Site(tmp_path / name).ledger().entries()]
        assert kinds.count("debit") == 1


def test_message_in_another_version_than_the_request_is_invalid(federation: Federation) -> None:
    study = federation.study()
    federation.lie("west", lambda body: body.update(version=2))
    found: dict[str, str] = {}
    federation.coordinator(study, attempts=1, on_response=found.__setitem__).run()
    assert "another version of the protocol" in found["west"]
    assert found["north"] == "answered"
