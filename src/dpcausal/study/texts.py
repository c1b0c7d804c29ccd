"""Checks of the texts and expectations in a study."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from dpcausal.errors import StudyError
from dpcausal.schema.expectations import Expectations
from dpcausal.study.file import unknown_key
from dpcausal.utils.plain_text import is_plain_text
from dpcausal.utils.validation import is_number

_LONGEST = 10_000


def check_visible(texts: Iterable[str]) -> None:
    """Raise unless every character of a study's texts is printed as itself, in one line."""
    for text in texts:
        if not is_plain_text(text):
            raise StudyError(
                expected="single-line text without control characters and invisible characters",
                got=ascii(text)[:100],
                hint="people approve a study by what they see, so nothing in it may be hidden.",
            )


def check_words(words: Mapping[str, object], design: object) -> None:
    """Raise unless a study's words are texts, its name and question are given, and its design is known."""
    for what, value in words.items():
        empty = what in ("name", "question") and not (isinstance(value, str) and value.strip())
        if not isinstance(value, str) or empty or len(value) > _LONGEST:
            raise StudyError(problem=f"{what} must be a text, not {value!r}"[:150], hint="write it between quotes.")
    if design not in ("trial", "observational"):
        raise StudyError(
            problem=f"design must be trial or observational, not {design!r}"[:150],
            hint="it is a trial only if treatment was randomised.",
        )


def check_reasons(what: str, words: object, known: Sequence[str]) -> None:
    """Raise unless a table has texts for some of the known keys and for no other."""
    if (
        not isinstance(words, Mapping)
        or not set(words) <= set(known)
        or not all(isinstance(word, str) and len(word) <= _LONGEST for word in words.values())
    ):
        raise StudyError(
            problem=f"[{what}] takes texts for {', '.join(known) or 'covariates, of which the schema has none'}, not "
            f"{repr(words)[:100]}",
            hint=f"{unknown_key(words, known)}write a table [{what}] with a line for each.",
        )


def check_confounders(confounders: Mapping[str, str], adjusts_for: Sequence[str], method: str) -> None:
    """Raise unless reasons are given for all covariates that the estimator adjusts for, or for none."""
    if confounders and set(confounders) != set(adjusts_for):
        raise StudyError(
            problem="[confounders] needs a reason for each covariate that the estimator adjusts for, "
            f"{', '.join(adjusts_for) or 'none'}, not reasons for {', '.join(confounders)}",
            hint=f"{method} adjusts for the covariates in its own parameters only; make both lists the same.",
        )


def check_expected(given: object) -> None:
    """Raise unless a table has numbers for some of the expectations."""
    known = [part.name for part in fields(Expectations) if part.name not in ("schema", "n", "typical")]
    if not isinstance(given, Mapping) or not set(given) <= set(known) or not all(map(is_number, given.values())):
        raise StudyError(
            problem=f"[expected] takes numbers for some of {', '.join(known)}, not {given!r}"[:400],
            hint=f"{unknown_key(given, known)}write a table [expected] with a line for each.",
        )
