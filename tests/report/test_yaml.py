from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpcausal.report.yaml import to_yaml

yaml: Any = pytest.importorskip("yaml")

TEXTS = st.text(st.characters(), max_size=200) | st.lists(st.sampled_from(["word", "a:", "#", "- x", "  "])).map(
    " ".join
)
PLAIN = TEXTS | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)


@given(PLAIN)
@example("yes")
@example("1e-06")
@example("2026-01-31")
@example("a: b # c")
@example("line\nline\n")
@example("\x85\u2028\ufeff\ud800")
@example("word " * 50 + "end")
@example(" leading " + "word " * 50)
@example("🎉" * 60)
@example(1e-06)
@example(1e16)
def test_yaml_is_parsed_back_to_the_same_values(value: object) -> None:
    document = {"one": value, "deep": {"er": [value, {"first": value, "second": [value]}]}, "none": [], "empty": {}}
    assert yaml.safe_load(to_yaml(document)) == document


def test_yaml_is_readable() -> None:
    text = to_yaml({"name": "scores", "long": "word " * 40 + "end"})
    assert text.startswith("name: scores\nlong: >-\n  word word")
    assert max(map(len, text.splitlines())) <= 102
