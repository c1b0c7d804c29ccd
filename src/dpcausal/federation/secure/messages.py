"""The signed texts of a secure sum: verification of what a request carries, and of what sites answer."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dpcausal.errors import TransportError, redact_errors
from dpcausal.federation.protocol.messages import Message, Request, Step
from dpcausal.federation.protocol.question import Question, is_paid
from dpcausal.federation.protocol.signatures import Key, claimed_signer, opened
from dpcausal.federation.secure import masks
from dpcausal.release import Receipt, joint_price
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.validation import is_public_key

Body = dict[str, Any]
"""What a site answers in a round, as plain values."""

CARRIED: Mapping[Step, Step] = {"shares": "keys", "masked": "shares", "confirm": "masked", "unmask": "confirm"}
"""For each round, the round whose answers its request carries."""


_PARTS: Mapping[str, tuple[str, ...]] = {
    "keys": ("channel", "mask", "seed_digest"),
    "shares": ("ciphertexts",),
    "confirm": ("summed_digest",),
    "unmask": ("seeds", "mask_keys"),
}
_WRONG = "its answer is not one to this round"


def seal_header(key: Key, study: str, members_digest: str) -> str:
    """Return a site's signed statement of the members with which it masked its numbers.

    It is signed apart from the numbers, which no other site needs to see.
    """
    return key.seal(_written({"study": study, "site": key.owner, "members_digest": members_digest}))


def verified_bodies(request: Request, sites: Mapping[str, str]) -> dict[str, Body]:
    """Return what sites answered in the round before, by name, from the texts that a request carries.

    Args:
        sites: The public keys of the study's sites, as people approved them.

    Raises:
        TransportError: If a text is not signed by one of these sites, for this study and that round, or a site has two.
    """
    step, study = CARRIED[request.ask], digest_of_text(request.study)  # type: ignore[index]
    found: dict[str, Body] = {}
    for text in request.carries:
        site, body = opened(text, sites)
        if site in found:
            raise _not_carried(step)
        with redact_errors(ValueError, KeyError, TypeError, RecursionError, instead=lambda _: _not_carried(step)):
            found[site] = _header(body, site, study) if step == "masked" else _answer(body, site, study, step)
    return found


def carried_sites(request: Request) -> tuple[str, ...]:
    """Return the sites whose texts a request of one's own carries, in order."""
    return tuple(sorted(map(claimed_signer, request.carries)))


def why_step_invalid(message: Message, site: str, question: Question) -> str:
    """Return why a site's answer to a round is invalid; empty if it is valid.

    Args:
        message: The message, signed by this site and about this request.
    """
    request, answer = question.request, message.answer or {}
    if request.ask == "masked":
        return _why_masked_invalid(message, site, question.study)
    body = answer.get(request.ask)
    if set(answer) != {request.ask} or not isinstance(body, dict) or body.get("study") != message.study:
        return _WRONG
    parts = {name: body.get(name) for name in _PARTS[request.ask]}
    expected: dict[str, set[str]] = {
        "ciphertexts": set(carried_sites(request)) - {site},
        "seeds": set(question.summed),
        "mask_keys": set(question.members) - set(question.summed),
    }
    whole = set(body) == {"study", *parts}
    texts = all(
        _are_texts(part, expected[name]) if name in expected else is_public_key(part) for name, part in parts.items()
    )
    # Every other site would refuse a key that is none; without this site the round goes on.
    usable = request.ask != "keys" or (texts and masks.is_usable(body["channel"]) and masks.is_usable(body["mask"]))
    return "" if whole and texts and usable else _WRONG


def masked_answer(masked: Sequence[int], receipt: Receipt, header: str) -> Body:
    """Return the answer to the round `masked`."""
    return {"masked": list(masked), "receipt": asdict(receipt), "header": header}


def members_digest_in(header: str) -> str:
    """Return the digest of the members in a header that was verified."""
    return str(json.loads(json.loads(header)["body"])["members_digest"])


def _why_masked_invalid(message: Message, site: str, study: Study) -> str:
    answer = message.answer or {}
    asked = study.site_questions()
    count = sum(len(each.noise(study.schema).scales) for each in asked)
    receipt, numbers = Receipt(**answer["receipt"]), answer["masked"]
    if set(answer) != {"masked", "receipt", "header"} or asdict(receipt) != answer["receipt"]:
        return _WRONG
    if len(numbers) != count or not all(type(each) is int and 0 <= each < 2**64 for each in numbers):
        return "its numbers are not those that the study asks for"
    if not is_paid(receipt, joint_price(asked)) or receipt.as_of != message.as_of:
        return "it has no receipt for the price"
    signer, body = opened(answer["header"], {site: study.sites[site]})
    return "" if is_public_key(_header(body, signer, message.study)["members_digest"]) else _WRONG


def _header(body: str, site: str, study: str) -> Body:
    header = json.loads(body)
    if set(header) != {"study", "site", "members_digest"} or (header["site"], header["study"]) != (site, study):
        raise _not_carried("masked")
    return dict(header)


def _answer(body: str, site: str, study: str, step: Step) -> Body:
    message = Message.from_json(body)
    answer = message.answer or {}
    if (message.site, message.study, message.code) != (site, study, "answered") or not isinstance(
        answer.get(step), dict
    ):
        raise _not_carried(step)
    return dict(answer[step])


def _are_texts(table: object, names: set[str]) -> bool:
    """Return whether these names, and no others, have hexadecimal digits each, all of one length."""
    if not isinstance(table, dict) or set(table) != names:
        return False
    texts = all(isinstance(text, str) and re.fullmatch(r"([0-9a-f]{2})+", text) for text in table.values())
    return texts and len(set(map(len, table.values()))) <= 1


def _written(document: Body) -> str:
    return json.dumps(document, sort_keys=True)


def _not_carried(step: str) -> TransportError:
    return TransportError(
        expected=f"answers of the study's sites to the round {step}, each signed by its own site",
        got="something else",
        hint="run the study again; the coordinator carries only what sites signed.",
    )
