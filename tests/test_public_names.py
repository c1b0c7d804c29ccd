"""The public names: those announced, those that type checkers see, and those imported on first use are the same."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dpcausal
from dpcausal.estimators.base import BaseEstimator
from dpcausal.utils.discovery import classes_in


def test_every_public_name_is_defined_where_dpcausal_says() -> None:
    tree = ast.parse(Path(str(dpcausal.__file__)).read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == dpcausal._HOMES
    assert all(alias.asname == alias.name for node in imports for alias in node.names)  # exported to type checkers
    assert sorted(dpcausal.__all__) == sorted(dpcausal._HOMES)
    for name in dpcausal.__all__:
        assert getattr(dpcausal, name).__name__ == name


@pytest.mark.parametrize("package", ["dpcausal.estimators.average", "dpcausal.estimators.conditional"])
def test_every_estimator_in_its_folder_has_a_public_name(package: str) -> None:
    missing = [kind.__name__ for kind in classes_in(package, BaseEstimator) if kind.__name__ not in dpcausal._HOMES]
    assert not missing, f"write {', '.join(missing)} in both lists of src/dpcausal/__init__.py"


def test_unknown_name_raises_attribute_error() -> None:
    assert not hasattr(dpcausal, "Vaults")
    with pytest.raises(AttributeError, match="did you mean 'DoublyRobust'"):
        dpcausal.DoubleRobust  # noqa: B018
    with pytest.raises(AttributeError, match=r"^dpcausal has no 'zzz'; the names are in"):
        dpcausal.zzz  # noqa: B018


BASE = """
import sys
for extra in ("cryptography", "nvflare", "sklearn", "numba", "matplotlib", "pyspark", "hypothesis", "psycopg",
              "adbc_driver_postgresql", "pandas", "polars", "econml"):
    sys.modules[extra] = None
import dpcausal
"""
"""What comes before each of these: an installation without any extra."""


def told(code: str) -> str:
    """What a program prints in an installation without extras."""
    done = subprocess.run([sys.executable, "-c", BASE + code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_works_without_extras() -> None:
    page = told("help(dpcausal)")
    assert "class Vault" in page
    assert "class Site(" not in page


def test_import_star_works_without_extras() -> None:
    names = told("from dpcausal import *\nprint(*sorted(dir()))").split()
    assert "Vault" in names
    assert "Report" in names
    assert "Site" not in names


def test_hasattr_says_no_without_extras_and_dir_agrees() -> None:
    assert told("print(hasattr(dpcausal, 'Site'), hasattr(dpcausal, 'Coordinator'), 'Site' in dir(dpcausal))") == (
        "False False False\n"
    )


@pytest.mark.parametrize(
    "code", ["dpcausal.Site", "from dpcausal import Site", "from dpcausal.federation.site.site import Site"]
)
def test_a_name_whose_extra_is_missing_says_which(code: str) -> None:
    message = told(f"try:\n    {code}\nexcept dpcausal.DpcausalError as error:\n    print(error)")
    assert message == (
        "The library cryptography, which signs and masks messages, is not installed.\n\n"
        'Hint: pip install "dpcausal[federation]".\n'
    )


def test_commands_whose_extra_is_missing_are_listed_and_say_which() -> None:
    run = "from typer.testing import CliRunner\nfrom dpcausal.cli import app\n"
    assert "Run a site" in told(f"{run}print(CliRunner().invoke(app, ['--help']).output)")
    message = told(f"{run}done = CliRunner().invoke(app, ['site', 'key', 'north'])\nprint(done.exit_code, done.output)")
    assert message.startswith("2 Error: The library cryptography")
    assert 'pip install "dpcausal[federation]"' in message
