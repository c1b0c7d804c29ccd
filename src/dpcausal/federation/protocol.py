"""What travels between a coordinator and its sites: one kind of request, one kind of message, as JSON.

Both are written in one way only: a text that is not exactly as `to_json` would write it is not read.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from dpcausal.errors import TransportError, redact_errors
from dpcausal.validation import is_version

VERSION = 2

Ask = Literal["facts", "releases"]
"""`facts`: the number of units, for nothing. `releases`: the noisy answers to all that the study's estimator asks."""

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
]

MEANINGS: dict[Code, str] = {
    "answered": "answered",
    "unreadable": "could not read the request",
    "unknown_requester": "does not know who asks",
    "undecided": "has not decided about the study yet",
    "rejected": "rejected the study",
    "not_allowed": "does not allow what the study asks for",
    "too_few_units": "has too few units to answer",
    "no_budget": "has no budget left for this",
    "failed": "failed to compute its answer",
    "stopped": "could not finish the computation within its limits of time and memory",
}
"""Each code in words. A site says no more than this about why it does not answer."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a coordinator asks of every site. The same question is always the same text.

    There is nothing in it that a site could be talked into: which queries are answered, and at what price, follows from
    the study.

    Attributes:
        study: The whole study file, as text: sites approve it by its digest.
        ask: What is wanted.
        version: Of this way of writing things down.
    """

    study: str
    ask: Ask
    version: int = VERSION

    @property
    def id(self) -> str:
        """What the answers to this request refer to."""
        return digest_of_text(self.to_json())

    def to_json(self) -> str:
        """The request as JSON."""
        return _written(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The request that `to_json` wrote.

        Raises:
            TransportError: If it is anything else.
        """
        request = cls(**_read(cls, text))
        if request.version == VERSION and isinstance(request.study, str) and request.ask in get_args(Ask):
            return request
        raise _unreadable()


@dataclass(frozen=True, kw_only=True)
class Message:
    """What a site says to a request.

    Attributes:
        request: The id of the request.
        study: The digest of the study.
        site: Who says it.
        code: Whether it is an answer, or why not.
        n: The number of units, with an answer.
        arm_sizes: The number of units in each arm, where the schema declares arms public.
        as_of: The version of the site's data, with an answer.
        answer: The releases as plain values; None for `facts`.
        version: Of this way of writing things down.
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
        """The message as JSON."""
        return _written(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The message that `to_json` wrote.

        Raises:
            TransportError: If it is anything else.
        """
        document = _read(cls, text)
        arms = tuple(document["arm_sizes"]) if isinstance(document["arm_sizes"], list) else document["arm_sizes"]
        message = cls(**document | {"arm_sizes": arms})
        answered = message.code == "answered"
        if (
            message.version == VERSION
            and all(isinstance(each, str) for each in (message.request, message.study, message.site))
            and message.code in MEANINGS
            and (_is_count(message.n) if answered else message.n is None)
            and (is_version(message.as_of) if answered else message.as_of is None)
            and (arms is None or (answered and _are_arms(arms, message.n)))
            and (message.answer is None or (answered and isinstance(message.answer, dict)))
        ):
            return message
        raise _unreadable()


def digest_of_text(text: str) -> str:
    """The SHA-256 of a text: for a file, what `sha256sum` prints."""
    return hashlib.sha256(text.encode()).hexdigest()


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**41


def _are_arms(sizes: object, n: Any) -> bool:  # noqa: ANN401 (checked by the caller)
    return isinstance(sizes, tuple) and len(sizes) == 2 and all(map(_is_count, sizes)) and sum(sizes) <= n


def _written(parts: Request | Message) -> str:
    return json.dumps(asdict(parts), sort_keys=True, allow_nan=False)


def _read(kind: type[Request | Message], text: str) -> dict[str, Any]:
    with redact_errors(ValueError, RecursionError, instead=lambda _: _unreadable()):
        document = json.loads(text)
        as_written = json.dumps(document, sort_keys=True, allow_nan=False) == text
    known = sorted(part.name for part in fields(kind))
    if not as_written or not isinstance(document, dict) or sorted(document) != known:
        raise _unreadable()
    return document


def _unreadable() -> TransportError:
    return TransportError(
        expected="a request or a message as this version of dpcausal writes it",
        got="something else",
        hint="all sites and the coordinator must run versions of dpcausal that speak the same protocol.",
    )
