"""All errors of the package, in one structure.

Every message says in a sentence what is wrong, and then what to do. Both are public: a declaration, a column name,
a data type, a price. No message, and no decision to raise an error, depends on a value in the table.
"""

import importlib.util
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_AFTER_QUESTION = re.compile(r"(?:(?<=\? )|(?<='\. ))[a-z]")


class DpcausalError(Exception):
    """The base class of all errors that this package raises on purpose.

    Args:
        problem: What is wrong, as a sentence without its full stop.
        expected: In place of a problem: what is needed, as a noun with its conditions.
        got: With `expected`: what was found instead; `none`, `both` or `neither` where that says it.
        hint: What to do.
    """

    def __init__(self, problem: str = "", *, hint: str, expected: str = "", got: str = "") -> None:
        self.problem = problem or _sentence(expected, got)
        self.hint = _AFTER_QUESTION.sub(lambda found: found[0].upper(), hint)
        super().__init__(f"{self.problem}.\n\nHint: {self.hint}")


def _sentence(expected: str, got: str) -> str:
    """Return what is wrong where a value is not the one that is needed.

    Example:
        >>> _sentence("a share between 0 and 1", "95")
        'This needs a share between 0 and 1, not 95'
        >>> _sentence("a curve with intervals", "none: the noise hides it")
        'This needs a curve with intervals, and there is none: the noise hides it'
    """
    for word, found in (("none", "there is none"), ("both", "both were given"), ("neither", "neither was given")):
        if got == word or got.startswith(f"{word}: "):
            return f"This needs {expected}, and {found}{got.removeprefix(word)}"
    return f"This needs {expected}, not {got}"


class SchemaError(DpcausalError):
    """A declaration is inconsistent."""


class TableError(DpcausalError):
    """A table cannot be read as its schema declares: a column is absent or of an unusable type."""


class GuaranteeError(DpcausalError):
    """A guarantee does not fit the data set or the query."""


class QueryError(DpcausalError):
    """A query is unknown, or its parameters are invalid."""


class BudgetExceededError(DpcausalError):
    """A query costs more than the remaining budget of the data set. Nothing was read and nothing was spent."""


class LedgerError(DpcausalError):
    """A ledger or an audit log is damaged, or belongs to another data set. Nothing is released until a person acts."""


class EngineError(DpcausalError):
    """The engine that computes aggregates failed. Its own message is withheld, because it may quote the table."""


class StudyError(DpcausalError):
    """A study, a policy or a roster is inconsistent, or does not match the site."""


class DocumentError(StudyError, ValueError):
    """A text is not what `to_json` wrote. Also a ValueError, as that of JSON is."""


class TransportError(DpcausalError):
    """A site or the transport cannot be reached, or does not follow the protocol."""


class CertificateError(TransportError):
    """A certificate has expired, is not valid yet, or cannot be read. Commands end with exit status 3."""


class SessionError(DpcausalError):
    """A request does not fit a site's secure-sum session. The session is unchanged and nothing was revealed."""


class RefusedError(DpcausalError):
    """A result is withheld on purpose, for instance an interval that would not cover."""


class CopyRefusedError(RefusedError, TypeError):
    """A table must not be copied out of its vault. Also a TypeError, which Python's copy and pickle expect."""


class MissingExtraError(DpcausalError, ImportError):
    """A part of the package needs a library that is not installed. Also an ImportError."""


class ArgumentError(DpcausalError, TypeError):
    """A call has an argument too many, too few or of another name. Also a TypeError."""


class NoSuchAttributeError(DpcausalError, AttributeError):
    """An attribute does not exist. Also an AttributeError, so that `hasattr` returns False."""


class OtherNameError(NoSuchAttributeError):
    """A name of another library, or a misspelled one."""


def require_library(library: str, purpose: str, extra: str) -> None:
    """Raise unless a library is installed that an extra brings."""
    if importlib.util.find_spec(library) is None:
        raise MissingExtraError(
            problem=f"The library {library}, which {purpose}, is not installed",
            hint=f'pip install "dpcausal[{extra}]".',
        )


@contextmanager
def redact_errors(*kinds: type[Exception], instead: Callable[[Exception], DpcausalError]) -> Iterator[None]:
    """Replace errors of libraries, whose messages may quote the table, an answer or a password.

    The original error is removed from the context of the new one as well.
    """
    try:
        yield
    except kinds as error:
        replacement = instead(error)
    else:
        return
    try:
        raise replacement
    finally:
        replacement.__context__ = None
