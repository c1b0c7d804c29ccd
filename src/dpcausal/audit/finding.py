"""What a check found."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """The outcome of one check of one thing.

    Attributes:
        check: The check's name; `CHECKS` says what each is for.
    """

    check: str
    target: str
    passed: bool
    detail: str
    numbers: Mapping[str, float] = field(default_factory=dict)
