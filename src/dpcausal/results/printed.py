"""What all results have in common: receipts, the version of the data, and how they are printed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpcausal.release import Receipt, as_of, format_receipt
from dpcausal.utils.text import html_table, table_rows, text_table


class PrintedResult:
    """A result that is public and was paid for. Subclasses say what its table holds."""

    if TYPE_CHECKING:

        @property
        def receipts(self) -> tuple[Receipt, ...]:
            """The queries and their prices."""

        @property
        def notes(self) -> tuple[str, ...]:
            """Further notes for the reader."""

    @property
    def as_of(self) -> str | None:
        """The version of the data, where it has a name; where sites differ, each one's."""
        return as_of(self.receipts)

    @property
    def rehearsed(self) -> bool:
        """Whether this came from a rehearsal: the errors are expectations, the numbers are placeholders."""
        return all(receipt.digest is None for receipt in self.receipts)

    def __str__(self) -> str:
        return text_table(self._title(), self._table())

    def _repr_html_(self) -> str:
        """Return the same table as HTML for a notebook."""
        return html_table(self._title(), self._table(), self._figure())

    def _title(self) -> str:
        return f"Rehearsal (no data read, nothing spent): {self._name()}" if self.rehearsed else self._name()

    def _name(self) -> str:
        """Return what the result is of, as a title."""
        raise NotImplementedError

    def _figure(self) -> str:
        """Return a figure for a notebook, as HTML; empty where there is none."""
        return ""

    def _table(self) -> Sequence[tuple[str, str]]:
        """Return labels with their texts."""
        raise NotImplementedError

    def _last_lines(self) -> list[tuple[str, str]]:
        """Return the notes, and the price of every query."""
        paid = "price" if self.rehearsed else "paid"
        return [*table_rows("note", self.notes), *table_rows(paid, tuple(map(format_receipt, self.receipts)))]
