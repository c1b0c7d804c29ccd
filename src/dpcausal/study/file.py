"""Reading the parts of a study's file: its estimator, its diagnostics and its texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from dpcausal.errors import StudyError
from dpcausal.estimators.average import ESTIMATORS, suggest_estimator
from dpcausal.queries import Cut
from dpcausal.utils.other_names import same_argument
from dpcausal.utils.validation import check_keys, did_you_mean


def read_estimator(document: object) -> Any:  # noqa: ANN401 (one of ESTIMATORS)
    """Return the estimator that the table [estimator] describes."""
    if not isinstance(document, dict) or document.get("name") not in ESTIMATORS:
        raise StudyError(
            problem=f"[estimator] needs a name out of {', '.join(ESTIMATORS)}, not {document!r}"[:800],
            hint=(suggest_estimator(document.get("name")) if isinstance(document, dict) else "")
            + 'write for instance [estimator] and below it name = "difference_in_means".',
        )
    parameters = {name: value for name, value in document.items() if name != "name"}
    return read_parameters(document["name"], ESTIMATORS[document["name"]], parameters)


def read_parameters(name: str, kind: type[Any], document: Mapping[str, Any], **read: object) -> Any:  # noqa: ANN401 (one of that kind)
    """Return an estimator or a diagnostic with these parameters, some of them read already."""
    tables = getattr(kind, "tables", ())
    parameters = {
        key: read_estimator(value) if key == "estimator" else value if key in tables else _parameter(value)
        for key, value in document.items()
    } | read
    known = {part.name: part.default is MISSING and part.default_factory is MISSING for part in fields(kind)}
    strange = next((key for key in parameters if key not in known), None)
    absent = [key for key, needed in known.items() if needed and key not in parameters]
    if strange is not None or absent:
        near = "" if strange is None else same_argument(strange, known)
        hint = f"here that is {near!r}. " if near else "" if strange is None else did_you_mean(strange, known)
        raise StudyError(
            problem=f"{name} has no parameter {strange!r}" if strange is not None else f"{name} needs {absent[0]}",
            hint=hint + (f"the parameters of {name} are {', '.join(known)}." if known else f"{name} has none."),
        )
    return kind(**parameters)


def _parameter(value: object) -> object:
    """Return a parameter as a dataclass holds it: cuts as cuts, lists as tuples."""
    if isinstance(value, list):
        return tuple(map(_parameter, value))
    if isinstance(value, dict):
        check_keys("cut", value, ("name",), ("edges",))
        return Cut(**value)
    return value


def unknown_key(table: object, known: Sequence[str]) -> str:
    """Return a hint that names the first key of a table that is unknown, and the known one it resembles."""
    unknown = next((name for name in table if name not in known), None) if isinstance(table, Mapping) else None
    return "" if unknown is None else f"{unknown!r} is none of these; {did_you_mean(unknown, known)}"


def texts_in(document: object) -> Iterator[str]:
    """Yield every text in plain values."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, Mapping):
        for name, value in document.items():
            yield from (*texts_in(name), *texts_in(value))
    elif isinstance(document, list | tuple):
        for value in document:
            yield from texts_in(value)
