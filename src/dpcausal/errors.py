"""Everything that can go wrong, in one vocabulary.

Every message says what was expected, what was got, and what to do. What was got is always public: a declaration, a
column name, a data type, a price. No message, and no decision to raise one, depends on a value in the table.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class DpcausalError(Exception):
    """The base of every error that this package raises on purpose."""

    def __init__(self, *, expected: str, got: str, hint: str) -> None:
        self.expected = expected
        self.got = got
        self.hint = hint
        super().__init__(f"expected {expected}, got {got}\n\nHint: {hint}")


class SchemaError(DpcausalError):
    """A declaration contradicts itself."""


class TableError(DpcausalError):
    """A table cannot be read as its schema declares: a column is absent or of an unusable type."""


class GuaranteeError(DpcausalError):
    """A guarantee is not one that this data set, or this question, can be given."""


class QueryError(DpcausalError):
    """A question that is not on the list of questions, or not spelled as the list spells it."""


class BudgetExceededError(DpcausalError):
    """The question costs more than the data set's budget has left. Nothing was read and nothing was spent."""


class LedgerError(DpcausalError):
    """A ledger is damaged, or belongs to another data set. Nothing is released until a person has looked."""


class EngineError(DpcausalError):
    """The engine that adds up failed. Its own message is withheld, because it may quote the table."""


class StudyError(DpcausalError):
    """A study, a policy or a roster contradicts itself, or the house it is for."""


class TransportError(DpcausalError):
    """A site, or what stands between it and the coordinator, cannot be reached or did not answer as agreed."""


class RefusedError(DpcausalError):
    """The thing asked for is withheld on purpose, for instance an interval that would not cover."""


class CopyRefusedError(RefusedError, TypeError):
    """A table may not be copied out of its vault. A TypeError too, which is what Python's copiers expect."""


class MissingExtraError(DpcausalError, ImportError):
    """A part of the package needs a library that is not installed. An ImportError too."""


class NoSuchAttributeError(DpcausalError, AttributeError):
    """A name that is not there. An AttributeError too, so that `hasattr` says no and does not raise."""


@contextmanager
def redact_errors(*kinds: type[Exception], instead: Callable[[Exception], DpcausalError]) -> Iterator[None]:
    """Raise something else in place of errors of others, whose messages may quote the table, an answer or a password.

    Python would hand the original on as the new one's context; that goes too.
    """
    try:
        yield
    except kinds as error:
        told = instead(error)
    else:
        return
    try:
        raise told
    finally:
        told.__context__ = None
