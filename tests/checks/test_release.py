"""The files that repeat a version agree, and the release check catches what should not be published."""

import re
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import dpcausal
from checks import passed, release
from checks.documents import ROOT
from checks.extras import USES
from checks.release import OLDEST, PINNED, PROJECT, faults, install_lines, library_names, oldest, pins
from checks.supply_chain import closure
from dpcausal.cli import app

GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]


def document(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_version_is_the_same_everywhere() -> None:
    assert document("CITATION.cff")["version"] == dpcausal.__version__
    assert document(".zenodo.json")["version"] == dpcausal.__version__
    assert document("r/DESCRIPTION")["Version"] == dpcausal.__version__
    assert f'{{% set version = "{dpcausal.__version__}" %}}' in (ROOT / "recipe/meta.yaml").read_text(encoding="utf-8")
    assert f"alpha ({dpcausal.__version__})" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Version {dpcausal.__version__}, alpha" in (ROOT / "docs/limitations.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(dpcausal.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert "version" not in PROJECT
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.stdout) == (0, f"dpcausal {dpcausal.__version__}\n")


def test_the_citation_is_complete() -> None:
    citation = document("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    assert len(citation["references"]) == 5
    for paper in citation["references"]:
        assert {"type", "title", "authors", "year"} <= paper.keys()
        assert all(author.keys() == {"given-names", "family-names"} for author in paper["authors"])


def test_the_record_for_a_doi_agrees_with_the_citation() -> None:
    record, citation = document(".zenodo.json"), document("CITATION.cff")
    assert [each["name"] for each in record["creators"]] == [each["name"] for each in citation["authors"]]
    assert (record["title"], record["license"]) == (citation["title"], citation["license"])
    assert record["keywords"] == citation["keywords"] == PROJECT["keywords"]
    cited = {each["value"] for paper in citation["references"] for each in paper.get("identifiers", [])}
    assert {each["identifier"] for each in record["related_identifiers"]} == cited


def test_the_conda_recipe_has_the_same_bounds() -> None:
    text = (ROOT / "recipe/meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(re.sub(r"\{\{ \w+ \}\}", "0", re.sub(r"\{%.*%\}", "", text)))
    names = {"python-duckdb": "duckdb", "pyarrow-core": "pyarrow"}
    lines = [line.split() for line in recipe["requirements"]["run"]]
    found = {names.get(name, name) + bounds for name, bounds in lines}
    assert found == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["build"]["entry_points"] == [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    assert pins(OLDEST) == oldest()


def test_constraints_pin_every_dependency() -> None:
    assert closure(GROUPS["dev"]) - pins(PINNED).keys() <= {"dpcausal", "setuptools"}


def test_the_conda_environment_has_the_same_bounds() -> None:
    *conda, with_pip = document("environment.yml")["dependencies"]
    lines = [*conda, *with_pip["pip"]]
    assert {"pip", ".", f"python{PROJECT['requires-python']}"} <= set(lines)
    found = {line.replace("python-duckdb", "duckdb") for line in lines if line not in {"pip", "."}}
    assert found == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}


def test_every_extra_is_tried() -> None:
    assert USES.keys() == PROJECT["optional-dependencies"].keys()
    assert f"dpcausal[{','.join(USES)}]" in GROUPS["dev"]
    assert "pip install ." in install_lines()


@pytest.mark.parametrize(
    "junk",
    [
        "src/dpcausal/__pycache__/effect.cpython-311.pyc",
        "src/dpcausal/effect.pyc",
        "tests/.pytest_cache/README.md",
        ".venv/bin/python",
        ".hypothesis/unicode_data",
        "site/index.html",
        "docs/ledger.db",
    ],
)
def test_junk_in_an_archive_is_caught(junk: str) -> None:
    assert faults(["LICENSE", "src/dpcausal/federation/site/site.py", junk], ["LICENSE"]) == [f"has {junk}"]


def test_missing_file_in_an_archive_is_caught() -> None:
    assert faults(["LICENSE"], ["LICENSE", "dpcausal/py.typed"]) == ["lacks dpcausal/py.typed"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml")), ids=lambda path: path.stem
)
def test_an_issue_template_can_be_filled_in(path: Path) -> None:
    form = document(str(path))
    assert {"name", "description", "body"} <= form.keys()
    named = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert named
    assert len(named) == len(set(named))
    assert all(field["attributes"].get("label") for field in form["body"] if field["type"] != "markdown")
    (no_records,) = (field for field in form["body"] if field.get("id") == "no_records")
    assert all(option["required"] for option in no_records["attributes"]["options"])


def test_names_used_of_libraries_are_found() -> None:
    text = (
        "import json\nimport numpy as np\nimport scipy.stats\nfrom duckdb import connect\nfrom dpcausal import text\n"
    )
    used = {"numpy", "scipy.stats", "duckdb.connect"}
    assert library_names(text) == used
    assert library_names(text + "def f():\n    return np.cumsum(json.loads('1'))\n") == used | {"numpy.cumsum"}


def test_release_check_runs_where_and_only_where_packaging_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[str] = []
    monkeypatch.setattr(passed, "FILE", tmp_path / "passed.json")
    monkeypatch.setattr(release, "build", lambda _: built.append("built") or (tmp_path, tmp_path))  # type: ignore[func-returns-value]
    monkeypatch.setattr(release, "look_into", lambda *_: None)
    monkeypatch.setattr(release, "try_wheel", lambda *_: None)
    monkeypatch.setattr(release, "servers", lambda _: nullcontext())
    tried: list[str] = []

    def try_extra(_: Path, folder: Path, extra: str) -> None:
        folder.mkdir()
        tried.append(extra)

    monkeypatch.setattr(release, "try_extra", try_extra)
    monkeypatch.setattr("sys.argv", ["release", "--if-changed"])
    release.main()
    release.main()
    assert built == ["built"]
    assert tried == [*USES]
    assert "nothing changed" in capsys.readouterr().out
    monkeypatch.setattr(release, "library_names", lambda _: {"numpy.new_function"})
    release.main()
    assert built == ["built"] * 2
    monkeypatch.setattr("sys.argv", ["release"])
    release.main()
    assert built == ["built"] * 3
    assert tried == [*USES]
    monkeypatch.setitem(PROJECT["optional-dependencies"], "plots", ["matplotlib>=4"])
    monkeypatch.setattr("sys.argv", ["release", "--if-changed"])
    release.main()
    release.main()
    assert built == ["built"] * 4
    assert tried == [*USES] * 2
