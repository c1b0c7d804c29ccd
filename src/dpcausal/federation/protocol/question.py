"""A request together with what its answers are checked against: the study, and what a paid receipt is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpcausal.federation.protocol.messages import Request
from dpcausal.release import Receipt
from dpcausal.study.study import Study


@dataclass(frozen=True)
class Question:
    """A request to sites, with its study.

    Attributes:
        members: In the last round of a secure sum, the sites that masked together.
        summed: In that round, the sites whose sum is opened.
        enclosed: What each site gets with the request for itself alone, unsigned: in the round `masked` of a secure
            sum, the ciphertexts of its shares.
    """

    study: Study
    request: Request
    members: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()
    enclosed: Mapping[str, str] = field(default_factory=dict)


def is_paid(receipt: Receipt, price: Receipt) -> bool:
    """Return whether a receipt shows that a price was debited from a ledger."""
    return (
        (receipt.query, receipt.epsilon, receipt.delta) == (price.query, price.epsilon, price.delta)
        and type(receipt.entry) is int
        and receipt.entry >= 0
        and receipt.site is None
        and _is_digest(receipt.digest)
        and _is_day(receipt.on)
        and type(receipt.stored) is bool
    )


def _is_day(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is not None


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[0-9a-f]{64}", text) is not None
