"""The public names: what is announced, what type checkers see, and what is fetched when it is used are the same."""

import ast
from pathlib import Path

import pytest

import dpcausal


def test_every_name_lives_where_the_front_page_says() -> None:
    tree = ast.parse(Path(str(dpcausal.__file__)).read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == dpcausal._HOMES
    assert sorted(dpcausal.__all__) == sorted(dpcausal._HOMES)
    for name in dpcausal.__all__:
        assert getattr(dpcausal, name).__name__ == name


def test_a_name_that_is_not_there() -> None:
    assert not hasattr(dpcausal, "Vaults")
    with pytest.raises(AttributeError, match="did you mean 'DoublyRobust'"):
        dpcausal.DoubleRobust  # noqa: B018
    with pytest.raises(AttributeError, match=r"^dpcausal has no 'zzz'$"):
        dpcausal.zzz  # noqa: B018
