"""All errors of the package, in one structure.

Every message states what was expected, what was found, and what to do. Both are public: a declaration, a column name,
a data type, a price. No message, and no decision to raise an error, depends on a value in the table.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class DpcausalError(Exception):
    """The base class of all errors that this package raises on purpose."""

    def __init__(self, *, expected: str, got: str, hint: str) -> None:
        self.expected = expected
        self.got = got
        self.hint = hint
        super().__init__(f"expected {expected}, got {got}\n\nHint: {hint}")


class SchemaError(DpcausalError):
    """A declaration is inconsistent."""


class TableError(DpcausalError):
    """A table cannot be read as its schema declares: a column is absent or of an unusable type."""


class GuaranteeError(DpcausalError):
    """A guarantee does not fit the data set or the query."""


class QueryError(DpcausalError):
    """A query is unknown, or its parameters are invalid."""


class BudgetExceededError(DpcausalError):
    """A query costs more than the remaining budget of the data set. Nothing was read and nothing was spent.

    Args:
        expected: What is left of the budget.
        got: The price.
        hint: What to do.
    """

    def __init__(self, *, expected: str, got: str, hint: str) -> None:
        super().__init__(expected=expected, got=got, hint=hint)
        self.args = (f"Budget exceeded: this costs {got}, and {expected} is left\n\nHint: {hint}",)


class LedgerError(DpcausalError):
    """A ledger or an audit log is damaged, or belongs to another data set. Nothing is released until a person acts."""


class EngineError(DpcausalError):
    """The engine that computes aggregates failed. Its own message is withheld, because it may quote the table."""


class StudyError(DpcausalError):
    """A study, a policy or a roster is inconsistent, or does not match the site."""


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


class NoSuchAttributeError(DpcausalError, AttributeError):
    """An attribute does not exist. Also an AttributeError, so that `hasattr` returns False."""


class OtherNameError(NoSuchAttributeError):
    """A name of another library, or a misspelled one: the class in `expected` does not have what was asked for."""

    def __str__(self) -> str:
        return f"{self.expected} has no {self.got}\n\nHint: {self.hint}"


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
