"""Names that people know from other libraries, answered with what to write here."""

from collections.abc import Callable, Container, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import lru_cache, wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from dpcausal.errors import ArgumentError, OtherNameError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_SAME_ARGUMENT = {
    "low": "min minimum lower lower_bound",
    "high": "max maximum upper upper_bound",
    "low= and high": "bounds range",
    "values": "levels categories choices",
    "epsilon": "eps",
    "outcome": "outcomes y Y",
    "treatment": "treatments t T",
    "arms": "control treated groups values levels",
    "by": "covariates strata",
    "covariates": "by of x X confounders features adjust",
    "requester": "asker",
    "n": "size units",
    "guarantee": "epsilon delta",
    "budget": "epsilon delta",
    "level": "alpha conf_level confidence",
    "grid": "horizon times tau",
    "pieces": "knots n_knots df",
}
"""What arguments are called elsewhere, by their names here."""


def called_as(example: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorate a function so that other arguments than it has raise an error with a right example."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        known = signature(function)

        @wraps(function)
        def checked(*given: Parameters.args, **named: Parameters.kwargs) -> Result:
            check_fit(known, example, example, given, named)
            return function(*given, **named)

        return checked

    return decorate


def check_fit(
    known: Signature, what: str, example: str, given: tuple[object, ...], named: Mapping[str, object]
) -> None:
    """Raise unless a call has the arguments that it needs and no others; values are not looked at."""
    try:
        known.bind(*given, **named)
    except TypeError:
        parts = {name: part for name, part in known.parameters.items() if name not in ("self", "cls")}
        given = given[len(known.parameters) - len(parts) :]
        called = what.split("(", maxsplit=1)[0].lstrip(".")
        strange = next((name for name in named if name not in parts), None)
        places = [name for name, part in parts.items() if part.kind is not Parameter.KEYWORD_ONLY]
        absent = [
            name
            for name, part in parts.items()
            if part.default is Parameter.empty and name not in named and name not in places[: len(given)]
        ]
        if strange is not None:
            problem = f"{called} has no argument {strange!r}"
        elif len(given) > len(places):
            most = f"at most {len(places)} without a name" if places else "all arguments by their names"
            most += f", and {len(given)} {'was' if len(given) == 1 else 'were'} given without"
            problem = f"{called} takes {most if parts else 'no argument'}"
        elif absent:
            problem = f"{called} needs {', '.join(absent)}"
        else:
            problem = f"{called} was given an argument twice"
        raise ArgumentError(problem=problem, hint=f"{_meant(strange, parts)}write {example}.") from None


def same_argument(strange: str | None, parts: Container[str]) -> str | None:
    """Return what is called here as an argument of this name is called elsewhere; None if it is not among the parts."""
    others = (own for own, names in _SAME_ARGUMENT.items() if strange in names.split())
    return next((own for own in others if own.split("=")[0] in parts), None)


def _meant(strange: str | None, parts: Mapping[str, object]) -> str:
    """Return which argument an unknown one may mean, as a question; empty if none is near."""
    near = same_argument(strange, parts)
    near = near or next(iter(get_close_matches(strange or "", parts, n=1)), None)
    return f"did you mean {near}=? " if near else ""


class Constructor(type):
    """The type of classes that answer wrong arguments with a sentence, and an example.

    `_example` is a right call. Left out, it is the class with the arguments that have no default.
    """

    if not TYPE_CHECKING:  # type checkers know the arguments by themselves

        @property
        def __signature__(cls) -> Signature:
            known = signature(cls.__init__)
            return known.replace(parameters=list(known.parameters.values())[1:])

        def __call__(cls, *given: object, **named: object) -> object:
            """Return a new object, or say which argument it lacks or does not have."""
            try:
                made = super().__call__(*given, **named)
            except TypeError:
                known = cls.__signature__
                needed = [name for name, part in known.parameters.items() if part.default is Parameter.empty]
                example = getattr(cls, "_example", f"{cls.__name__}({', '.join(f'{name}=…' for name in needed)})")
                check_fit(known, cls.__name__, example, given, named)
                raise
            for name in _switches(cls):
                if type(getattr(made, name)).__name__ not in _BOOLEANS:
                    raise ArgumentError(
                        problem=f"{name} of {cls.__name__} must be True or False, not {getattr(made, name)!r}"[:300],
                        hint=f"write {name}=True or {name}=False, without quotation marks.",
                    )
            return made


_BOOLEANS = ("bool", "bool_")
"""The types of True and False in Python and numpy."""


@lru_cache(1_000)
def _switches(kind: type) -> tuple[str, ...]:
    """Return the attributes of a dataclass that are on or off: a text, or another argument's value, would be on."""
    parts = fields(kind) if is_dataclass(kind) else ()
    return tuple(part.name for part in parts if part.init and isinstance(part.default, bool))


class OtherNames(metaclass=Constructor):
    """A class whose objects answer a name that they do not have with the one that does it.

    The error is an AttributeError, so `hasattr` says no as always. A method that takes the level of an interval, or
    nothing, answers other arguments, such as `alpha`, with an example.
    """

    __slots__ = ()

    def __init_subclass__(cls, **more: Any) -> None:  # noqa: ANN401 (as the parent has it)
        super().__init_subclass__(**more)
        for name, method in list(vars(cls).items()):
            if (
                callable(method)
                and not name.startswith("_")
                and (parameters := list(signature(method).parameters)) in (["self"], ["self", "level"])
            ):
                setattr(cls, name, called_as(f".{name}({'0.95' if 'level' in parameters else ''})")(method))

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
