"""A hash chain verifies exactly as it was written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from dpcausal.utils.hash_chain import ChainEntry, digest_of, digest_of_text, verify


@dataclass(frozen=True)
class Note(ChainEntry):
    text: str


class BrokenError(Exception):
    pass


def chain(*texts: str) -> list[Note]:
    notes: list[Note] = []
    for text in texts:
        notes.append(Note.append(notes[-1] if notes else None, text=text))
    return notes


NOTES = chain("a", "b", "c", "d")


def verified(notes: Sequence[Note], last: Note | None = None) -> list[Note]:
    return list(verify(notes, BrokenError, last=last))


def test_chain_verifies_as_written() -> None:
    assert verified(NOTES) == NOTES
    assert verified(NOTES[2:], last=NOTES[1]) == NOTES[2:]
    assert verified([]) == []


@pytest.mark.parametrize(
    ("notes", "place"),
    [
        ([*NOTES[:2], replace(NOTES[2], text="x"), NOTES[3]], 2),
        ([*NOTES[:2], Note.append(NOTES[1], text="x"), NOTES[3]], 3),
        ([NOTES[0], *NOTES[2:]], 1),
        (NOTES[1:], 0),
        ([*NOTES[:2], NOTES[1], *NOTES[2:]], 2),
        ([NOTES[0], NOTES[2], NOTES[1], NOTES[3]], 1),
    ],
    ids=["changed", "replaced", "removed", "first removed", "repeated", "swapped"],
)
def test_chain_breaks_at_the_first_entry_that_differs(notes: list[Note], place: int) -> None:
    with pytest.raises(BrokenError) as error:
        verified(notes)
    assert error.value.args == (place,)


def test_entries_before_the_break_are_yielded() -> None:
    chained = verify([NOTES[0], NOTES[2]], BrokenError)
    assert next(chained) == NOTES[0]


def test_digest_depends_on_values_and_not_on_the_order_of_keys() -> None:
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1}) != digest_of({"a": 1, "b": [3]})
    assert digest_of_text("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
