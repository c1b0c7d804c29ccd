"""Names that people know from other libraries, answered with what to write here."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from dpcausal.errors import OtherNameError, RefusedError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def called_as(example: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorate a function so that other arguments than it has raise an error with a right example."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        known = signature(function)

        @wraps(function)
        def checked(*given: Parameters.args, **named: Parameters.kwargs) -> Result:
            try:
                known.bind(*given, **named)
            except TypeError as error:
                raise RefusedError(
                    problem=f"The arguments of this call do not fit: {str(error).removeprefix('got ')}",
                    hint=f"write {example}.",
                ) from None
            return function(*given, **named)

        return checked

    return decorate


class OtherNames:
    """A class whose objects answer a name that they do not have with the one that does it.

    The error is an AttributeError, so `hasattr` says no as always. A method that takes the level of an interval answers
    other arguments, such as `alpha`, with an example.
    """

    __slots__ = ()

    def __init_subclass__(cls, **more: Any) -> None:  # noqa: ANN401 (as the parent has it)
        super().__init_subclass__(**more)
        for name, method in list(vars(cls).items()):
            if (
                callable(method)
                and not name.startswith("_")
                and list(signature(method).parameters) == ["self", "level"]
            ):
                setattr(cls, name, called_as(f".{name}(0.95)")(method))

    _instead: ClassVar[Mapping[str, str]] = {}
    """What to write instead of each name, or of each of several with blanks between them."""

    if not TYPE_CHECKING:  # a type checker should go on to find misspelt names by itself

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            hints = {other: hint for others, hint in self._instead.items() for other in others.split()}
            near = _nearest(type(self), name)
            raise OtherNameError(
                problem=f"{type(self).__name__} has no .{name}",
                hint=hints.get(name, f"did you mean .{near}?" if near else f"see help({type(self).__name__})."),
            )


@lru_cache(1_000)
def _nearest(kind: type, name: str) -> str:
    """Return the public name of a class that is nearest to a name; empty if none is near.

    Sources are often asked for what only some of them have, and searching takes longer than the answer.
    """
    own = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
    return next(iter(get_close_matches(name, [each for each in own if not each.startswith("_")], n=1)), "")
