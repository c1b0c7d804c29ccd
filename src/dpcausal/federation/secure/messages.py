"""The signed texts of a secure sum: verification of what a request carries, and of what sites answer."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from dpcausal.errors import TransportError, redact_errors
from dpcausal.federation.protocol.messages import BEFORE, Message, Request, Step
from dpcausal.federation.protocol.question import Question, is_paid
from dpcausal.federation.protocol.signatures import Key, claimed_body, claimed_signer, opened
from dpcausal.federation.secure import masks
from dpcausal.release import Contribution, Receipt, joint_price
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


def header_part(step: str, version: int) -> str:
    """Return what the header of an answer to a round states; empty where other sites see the whole answer.

    A header is what a site states to all other sites: the name of its sharing, or the digest of its members. It is
    signed apart from the ciphertexts and the masked numbers, which no other site needs to see.
    """
    if step == "masked":
        return "members_digest"
    return "sharing" if step == "shares" and version > BEFORE else ""


def ciphertexts_in(enclosed: str) -> Body:
    """Return the ciphertexts for one site, by sender, that came with a request; what they hold is not verified.

    Raises:
        TransportError: If it is anything else.
    """
    with redact_errors(ValueError, RecursionError, instead=lambda _: _not_carried("shares")):
        found = json.loads(enclosed)
    if not isinstance(found, dict):
        raise _not_carried("shares")
    return found


def verified_bodies(request: Request, sites: Mapping[str, str]) -> dict[str, Body]:
    """Return what sites answered in the round before, by name, from the texts that a request carries.

    Args:
        sites: The public keys of the study's sites, as people approved them.

    Raises:
        TransportError: If a text is not signed by one of these sites, for this study and that round, or a site has two.
    """
    step, study = CARRIED[request.ask], digest_of_text(request.study)  # type: ignore[index]
    part = header_part(step, request.version)
    found: dict[str, Body] = {}
    for text in request.carries:
        site, body = opened(text, sites)
        if site in found:
            raise _not_carried(step)
        with redact_errors(ValueError, KeyError, TypeError, RecursionError, instead=lambda _: _not_carried(step)):
            found[site] = _header(body, site, study, part) if part else _answer(body, site, study, step)
    return found


@lru_cache(maxsize=8)
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
    body, part = answer.get(request.ask), header_part(request.ask, request.version)
    expected_parts = {request.ask, "header"} if part else {request.ask}
    if set(answer) != expected_parts or not isinstance(body, dict) or body.get("study") != message.study:
        return _WRONG
    if part and _stated(message, site, question.study, part) != body.get(part):
        return _WRONG
    parts = {name: body.get(name) for name in (*_PARTS[request.ask], *((part,) if part else ()))}
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


def step_answer(key: Key, request: Request, study: str, body: Body) -> Body:
    """Return the answer to a round that reads no table, with its header if it has one."""
    part = header_part(request.ask, request.version)
    return {request.ask: body, **({"header": _sealed(key, study, part, body[part])} if part else {})}


def masked_answer(key: Key, study: str, members_digest: str, part: Contribution) -> Body:
    """Return the answer to the round `masked`."""
    header = _sealed(key, study, "members_digest", members_digest)
    return {"masked": list(part.masked), "receipt": asdict(part.receipt), "header": header}


def members_digest_in(header: str) -> str:
    """Return the digest of the members in a header that was verified."""
    return str(json.loads(claimed_body(header))["members_digest"])


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
    return "" if is_public_key(_stated(message, site, study, "members_digest")) else _WRONG


def _sealed(key: Key, study: str, part: str, stated: str) -> str:
    return key.seal(_written({"study": study, "site": key.owner, part: stated}))


def _stated(message: Message, site: str, study: Study, part: str) -> object:
    """Return what a site states in the header of its answer."""
    signer, body = opened((message.answer or {})["header"], {site: study.sites[site]})
    return _header(body, signer, message.study, part)[part]


def _header(body: str, site: str, study: str, part: str) -> Body:
    header = json.loads(body)
    if set(header) != {"study", "site", part} or (header["site"], header["study"]) != (site, study):
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
