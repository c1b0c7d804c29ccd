"""The architecture rules catch what they forbid."""

from pathlib import Path

import pytest

from checks.architecture import (
    ANSWERS,
    PARTS,
    QUERIES,
    cycles,
    incomplete_queries,
    repeated_classes,
    upward_imports,
    violations,
)

BREACHES = {
    "an estimator that reaches for the vault": ("estimators/new.py", "from dpcausal.vault import Vault"),
    "by another spelling": ("estimators/new.py", "from dpcausal import vault"),
    "by a third": ("estimators/new.py", "import dpcausal.vault.door"),
    "by a relative import": ("estimators/new.py", "from ..vault import door"),
    "through the front page": ("planning/new.py", "from dpcausal import Vault"),
    "inside a function": ("planning/new.py", "def f():\n    from dpcausal.vault import Vault"),
    "a noun that looks up": ("schema/new.py", "from dpcausal.results.effect import Effect"),
    "a ledger that looks at tables": ("ledger/new.py", "from dpcausal.vault import table"),
    "a package that nobody planned": ("extras/new.py", "from dpcausal.schema import schema"),
    "a dataframe outside the vault": ("estimators/new.py", "import pandas as pd"),
    "an engine in an answer": ("vault/answers/new.py", "import duckdb"),
    "noise outside the noise package": ("vault/answers/new.py", "import opendp.prelude as dp"),
    "an answer that imports the sampler": ("vault/answers/new.py", "from dpcausal.vault.noise import Sampler"),
    "by another name": ("vault/numerics/new.py", "from dpcausal.vault import noise"),
    "the audit, past the door": ("audit/new.py", "import dpcausal.vault.noise"),
    "an answer that calls its integers noisy": ("vault/answers/new.py", "noisy = Noisy((1, 2))"),
    "a door that lets a value out without noise": ("vault/door.py", 'value = PublicValue("n", 1.0, because="")'),
    "float noise": ("vault/noise.py", "import numpy as np\nnp.random.laplace()"),
    "float noise by another spelling": ("vault/noise.py", "from numpy import random"),
    "float noise by a third": ("vault/noise.py", "from numpy.random import laplace"),
    "bytes of the system outside the ledger": ("vault/noise.py", "import os\nos.urandom(8)"),
    "plain random numbers": ("vault/noise.py", "import random"),
    "logging near the data": ("vault/door.py", "import logging"),
    "a word of the vault elsewhere": ("estimators/new.py", "rows = 3"),
    "a release made elsewhere": ("estimators/new.py", "release = Release(values=(1.0,))"),
    "a part of a sentence that decides": ("report/new.py", 'if "risk" in effect.estimand: pass'),
    "its beginning": ("pooling/new.py", 'if effect.method.startswith("regression"): pass'),
    "a pattern of it": ("report/new.py", "import re\nre.fullmatch('cut at .*', effect.method)"),
    "all of it": ("report/new.py", 'if effect.quantity == "median of y": pass'),
    "one sentence of several": ("report/new.py", "if handling not in effect.assumptions: pass"),
    "a file too long": ("estimators/new.py", "\n" * 501),
}


@pytest.mark.parametrize(("file", "text"), BREACHES.values(), ids=BREACHES.keys())
def test_breach_of_a_rule_is_caught(file: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    assert list(violations(tmp_path))


@pytest.mark.parametrize(
    "texts",
    [
        {"cli/one.py": "from dpcausal.cli.two import f", "cli/two.py": "def g():\n    import dpcausal.cli.one"},
        {"cli/__init__.py": "from dpcausal.cli import one", "cli/one.py": "from dpcausal.cli import app"},
        {"report/one.py": "import dpcausal.vault.a", "vault/a.py": "import dpcausal.report.two", "report/two.py": ""},
    ],
    ids=["files", "a package and its file", "packages"],
)
def test_import_cycle_is_caught(texts: dict[str, str], tmp_path: Path) -> None:
    for file, text in ({"__init__.py": "from dpcausal import cli"} | texts).items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert list(cycles(tmp_path))
    (tmp_path / next(iter(texts))).write_text("", encoding="utf-8")
    assert not list(cycles(tmp_path))


@pytest.mark.parametrize(
    "text", ["from benchmarks.parts import PUBLISHED", "import benchmarks", "def f():\n    import benchmarks.x"]
)
def test_test_that_imports_benchmarks_is_caught(text: str, tmp_path: Path) -> None:
    for folder in ("benchmarks", "vault"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_new.py").write_text(text, encoding="utf-8")
    assert [found.partition(":")[0] for found in upward_imports(tmp_path)] == ["tests/vault/test_new.py"]


QUERY = 'class New(Query):\n    name: ClassVar[str] = "new"\n'


def tree_with(folder: Path, *files: str) -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(QUERY if file.startswith(QUERIES) else "", encoding="utf-8")
    return folder


@pytest.mark.parametrize("missing", PARTS)
def test_query_without_answer_proof_or_tests_is_caught(missing: str, tmp_path: Path) -> None:
    parts = [part.format("new") for part in PARTS]
    whole = tree_with(tmp_path / "whole", f"{QUERIES}/new.py", *parts)
    assert list(incomplete_queries(whole)) == []
    (whole / missing.format("new")).unlink()
    assert list(incomplete_queries(whole)) == [f"{QUERIES}/new.py: has no {missing.format('new')}"]


def test_answer_without_a_query_of_its_name_is_caught(tmp_path: Path) -> None:
    parts = [part.format("new") for part in PARTS]
    tree = tree_with(tmp_path, f"{QUERIES}/new.py", *parts, f"{ANSWERS}/other.py")
    assert list(incomplete_queries(tree)) == [f"{ANSWERS}/other.py: has no query in {QUERIES}/other.py"]


def test_helpers_of_queries_need_no_parts(tmp_path: Path) -> None:
    helper = tree_with(tmp_path, f"{QUERIES}/helper.py") / QUERIES / "helper.py"
    helper.write_text("class Base(Query):\n    name: ClassVar[str]\n", encoding="utf-8")
    assert list(incomplete_queries(tmp_path)) == []


def test_queries_that_are_described_as_sums_need_no_parts(tmp_path: Path) -> None:
    query = tree_with(tmp_path, f"{QUERIES}/new.py") / QUERIES / "new.py"
    query.write_text(QUERY.replace("(Query)", "(Base)"), encoding="utf-8")
    assert len(list(incomplete_queries(tmp_path))) == len(PARTS)
    (query.parent / "base.py").write_text("class Base(SummingQuery):\n    pass\n", encoding="utf-8")
    assert list(incomplete_queries(tmp_path)) == []


def test_two_classes_of_one_name_are_caught(tmp_path: Path) -> None:
    for file, text in {
        "one.py": "class A:\n    pass\nclass _B:\n    pass\n",
        "two.py": "class _B(A):\n    pass\n",
    }.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert list(repeated_classes(tmp_path)) == []
    (tmp_path / "two.py").write_text("class A:\n    pass\n", encoding="utf-8")
    assert list(repeated_classes(tmp_path)) == ["one.py and two.py: A is two classes"]
