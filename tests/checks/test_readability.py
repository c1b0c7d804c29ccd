"""Reading ease is that of the prose of a page, and of nothing else."""

import json

import pytest

from checks.readability import measure, prose_of, score, sentences, syllables

EASY = "The cat sat on the mat. " * 10
HARD = "Heterogeneous observational investigations necessitate considerable methodological sophistication. " * 10

PAGE = """---
title: no prose
---
# A heading

One two `three` [four five](six.md). Seven, e.g. eight 9 x.

- A point
- Another point

| a | table |
|---|---|

```python
code = 1
```
"""


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("the", 1),
        ("asked", 1),
        ("table", 2),
        ("sources", 2),
        ("people", 2),
        ("variance", 3),
        ("ratio", 3),
        ("estimation", 4),
    ],
)
def test_syllables_are_counted(word: str, count: int) -> None:
    assert syllables(word) == count


def test_only_prose_is_measured() -> None:
    assert sentences(PAGE) == [
        ["One", "two", "symbol", "four", "five"],
        ["Seven", "eg", "eight"],
        ["A", "point"],
        ["Another", "point"],
    ]


def test_ease_of_six_words_of_one_syllable_is_flesch() -> None:
    easy = score(EASY)
    assert easy is not None
    assert easy.ease == pytest.approx(206.835 - 1.015 * 6 - 84.6, abs=0.05)


def test_long_words_and_long_sentences_read_harder() -> None:
    easy, hard = score(EASY), score(HARD)
    joined = score(EASY.replace(". ", " and ") + ".")
    assert easy is not None
    assert hard is not None
    assert joined is not None
    assert hard.ease < joined.ease < easy.ease
    assert (easy.long_sentences, joined.long_sentences) == (0, 1)


def test_a_page_without_prose_has_no_score() -> None:
    assert score(PAGE) is None


def test_a_notebook_is_measured_by_its_text() -> None:
    cells = [{"cell_type": "markdown", "source": ["Some ", "text."]}, {"cell_type": "code", "source": ["x = 1"]}]
    assert prose_of("a.ipynb", json.dumps({"cells": cells})) == "Some text."


def test_no_page_of_the_guide_reads_harder_than_the_floor() -> None:
    """Reading ease of 50 to 60 is "fairly difficult" on Flesch's scale: the field's words alone take a page there."""
    hard = {
        name: page.ease
        for name, page in measure().items()
        if page.ease < 55 and not name.startswith(("docs/reference/", "docs/papers/", "docs/proofs/"))
    }
    assert not hard
