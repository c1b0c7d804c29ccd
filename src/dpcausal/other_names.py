"""Names that people know from other libraries, answered with what to write here."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar

from dpcausal.errors import OtherNameError


class OtherNames:
    """A class whose objects answer a name that they do not have with the one that does it.

    The error is an AttributeError, so `hasattr` says no as always.
    """

    _instead: ClassVar[Mapping[str, str]] = {}
    """What to write instead of each name, or of each of several with blanks between them."""

    if not TYPE_CHECKING:  # a type checker should go on to find misspelt names by itself

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            hints = {other: hint for others, hint in self._instead.items() for other in others.split()}
            own = {*dir(type(self)), *getattr(type(self), "__dataclass_fields__", ())}
            near = get_close_matches(name, (each for each in own if not each.startswith("_")), n=1)
            raise OtherNameError(
                expected=type(self).__name__,
                got=f".{name}",
                hint=hints.get(name, f"did you mean .{near[0]}?" if near else f"see help({type(self).__name__})."),
            )
