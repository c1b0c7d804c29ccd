"""The protocol between a coordinator and its sites: one kind of request and one kind of message, as JSON.

Each has one spelling only: a text that differs from what `to_json` writes is refused.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, Self, get_args

from dpcausal.errors import TransportError, redact_errors
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.validation import is_version

VERSION = 5
"""The version of the protocol."""

BEFORE = 4
"""The version before, without deadlines and withdrawals. A site answers in the version of the request, and a
coordinator uses this one for sites that know no later one."""

Step = Literal["keys", "shares", "masked", "confirm", "unmask"]
"""The rounds of a secure sum, in their order. Only `masked` reads the table, and only it has a price."""

STEPS: tuple[Step, ...] = get_args(Step)

Ask = Literal["facts", "releases", "withdraw"] | Step
"""`facts`: the number of units, at no cost. `releases`: the noisy answers to all queries of the study's estimator.
`withdraw`: no more answers to this study. The others are the rounds of a secure sum."""

ASKS: tuple[str, ...] = ("facts", "releases", "withdraw", *STEPS)

Code = Literal[
    "answered",
    "unreadable",
    "unknown_requester",
    "undecided",
    "rejected",
    "not_allowed",
    "too_few_units",
    "no_budget",
    "failed",
    "stopped",
    "refused_step",
    "expired",
    "withdrawn",
]

MEANINGS: dict[Code, str] = {
    "answered": "answered",
    "unreadable": "could not read the request",
    "unknown_requester": "does not know the requester",
    "undecided": "has not decided on the study yet",
    "rejected": "rejected the study",
    "not_allowed": "does not allow the study under its policy",
    "too_few_units": "has too few units to answer",
    "no_budget": "has too little budget left",
    "failed": "could not compute its answer",
    "stopped": "exceeded its limits of time or memory",
    "refused_step": "refused this round of the secure sum: it answers each round once, for sites that it verified",
    "expired": "received the request after its deadline, and pays nothing more",
    "withdrawn": "knows the study as withdrawn by its requester",
}
"""Each code in words. A site sends no other reason for not answering."""

_SINCE_DEADLINES = ("expired", "withdrawn")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A coordinator's request to every site. The same question always has the same id, whatever its deadline.

    A request has no parameter that could change a site's decision: the study determines the queries and their price.

    Attributes:
        study: The whole study file, as text: sites approve it by its digest.
        carries: In a secure sum, the signed texts of sites from the round before.
        deadline: The time after which a site that has not answered refuses, in seconds since 1970; None for none.
        version: The version of the protocol.
    """

    study: str
    ask: Ask
    carries: tuple[str, ...] = ()
    deadline: int | None = None
    version: int = VERSION

    @cached_property
    def id(self) -> str:
        """The digest that answers refer to: of everything but the deadline."""
        return digest_of_text(_written(self, "deadline"))

    def to_json(self) -> str:
        """Return the request as JSON."""
        return _written(self) if self.version > BEFORE else _written(self, "deadline")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a request that `to_json` wrote.

        Raises:
            TransportError: If it is anything else.
        """
        document = _read(cls, text)
        carried = document["carries"]
        if not isinstance(carried, list) or not all(isinstance(each, str) for each in carried):
            raise _unreadable()
        request = cls(**document | {"carries": tuple(carried)})
        known = request.ask in ASKS and (request.version > BEFORE or request.ask != "withdraw")
        ends = request.deadline is None or _is_count(request.deadline)
        if isinstance(request.study, str) and known and ends and (not carried or request.ask in STEPS[1:]):
            return request
        raise _unreadable()


@dataclass(frozen=True, kw_only=True)
class Message:
    """A site's response to a request.

    Attributes:
        study: The digest of the study.
        n: The number of units, with an answer; None in rounds of a secure sum that read no table.
        arm_sizes: The number of units in each arm, where the schema declares arms public.
        as_of: The version of the site's data, wherever there is a number of units.
        answer: The releases, or the answer to a round of a secure sum, as plain values; None for `facts`.
        version: The version of the protocol.
    """

    request: str
    study: str
    site: str
    code: Code
    n: int | None = None
    arm_sizes: tuple[int, int] | None = None
    as_of: str | None = None
    answer: Mapping[str, Any] | None = None
    version: int = VERSION

    def to_json(self) -> str:
        """Return the message as JSON."""
        return _written(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a message that `to_json` wrote.

        Raises:
            TransportError: If it is anything else.
        """
        document = _read(cls, text)
        arms = tuple(document["arm_sizes"]) if isinstance(document["arm_sizes"], list) else document["arm_sizes"]
        message = cls(**document | {"arm_sizes": arms})
        answered = message.code == "answered"
        unread = message.n is None and message.answer is not None
        counted = answered and not unread
        if (
            all(isinstance(each, str) for each in (message.request, message.study, message.site))
            and isinstance(message.code, str)
            and message.code in MEANINGS
            and (message.version > BEFORE or message.code not in _SINCE_DEADLINES)
            and (_is_count(message.n) if counted else message.n is None)
            and (is_version(message.as_of) if counted else message.as_of is None)
            and (arms is None or (counted and _are_arms(arms, message.n)))
            and (message.answer is None or (answered and isinstance(message.answer, dict)))
        ):
            return message
        raise _unreadable()


def _is_count(value: object) -> bool:
    """Return whether this is a whole number that may be a number of units, or a time in seconds."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**41


def _are_arms(sizes: object, n: Any) -> bool:  # noqa: ANN401 (checked by the caller)
    return isinstance(sizes, tuple) and len(sizes) == 2 and all(map(_is_count, sizes)) and sum(sizes) <= n


def request_id(body: str) -> str:
    """Return the id of the request in a text; the digest of the text where it is no request of a known version."""
    try:
        return Request.from_json(body).id
    except TransportError:
        return digest_of_text(body)


def withdrawal(study: str) -> str:
    """Return the id of the request that withdraws a study."""
    return Request(study=study, ask="withdraw").id


def _written(parts: Request | Message, without: str = "") -> str:
    document = {name: value for name, value in asdict(parts).items() if name != without}
    return json.dumps(document, sort_keys=True, allow_nan=False)


def _read(kind: type[Request | Message], text: str) -> dict[str, Any]:
    with redact_errors(ValueError, RecursionError, instead=lambda _: _unreadable()):
        document = json.loads(text)
        as_written = json.dumps(document, sort_keys=True, allow_nan=False) == text
    if not as_written or not isinstance(document, dict) or type(document.get("version")) is not int:
        raise _unreadable()
    if document["version"] not in (BEFORE, VERSION):
        raise TransportError(
            expected=f"version {VERSION} of the protocol, or {BEFORE}",
            got=f"version {document['version']}",
            hint="upgrade the older side. dpcausal site status and dpcausal federation status print the version that "
            "each side speaks.",
        )
    since = {"deadline"} if document["version"] == BEFORE else set[str]()
    if set(document) != {part.name for part in fields(kind)} - since:
        raise _unreadable()
    return document


def _unreadable() -> TransportError:
    return TransportError(
        problem="This is not a request or a message as this version of dpcausal writes it",
        hint="run the same version of dpcausal at all sites and at the coordinator.",
    )
