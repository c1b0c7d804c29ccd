"""A request together with what its answers are checked against."""

from dataclasses import dataclass

from dpcausal.federation.protocol.messages import Request
from dpcausal.study.study import Study


@dataclass(frozen=True)
class Question:
    """A request to sites, with its study.

    Attributes:
        study: The study.
        request: The request that carries it.
        members: In the last round of a secure sum, the sites that masked together.
        summed: In that round, the sites whose sum is opened.
    """

    study: Study
    request: Request
    members: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()
