"""Stored results: each is entered as it is, and pages that show one say when it was measured and what changed since."""

import ast
import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest
from markdown import Markdown  # type: ignore[import-untyped]
from mkdocs.config.defaults import MkDocsConfig

from checks import evidence, mkdocs_hooks
from checks.closure import ROOT, Sources
from checks.evidence import Evidence

SHOWS_NOTHING = {"data.md", "design.md", "proofs/sites.md"}
"""Pages that name the command of a benchmark and show no figure of it."""


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    for name, text in {
        "benchmarks/covers.py": "import dpcausal.estimator",
        "benchmarks/suite/__main__.py": "import dpcausal.pages",
        "src/dpcausal/__init__.py": "",
        "src/dpcausal/estimator.py": "HALF = 1",
        "src/dpcausal/pages.py": "",
        "src/dpcausal/audit/__init__.py": "import dpcausal.pages",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Sources(tmp_path)


@pytest.fixture
def folder(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two stored results, entered when the code was another one."""
    folder = sources.root / "benchmarks" / "results"
    folder.mkdir()
    monkeypatch.setattr(evidence, "FILE", folder / "evidence.json")
    monkeypatch.setattr(evidence, "Sources", lambda: Sources(sources.root))
    for name in ("covers", "suite"):
        (folder / f"{name}.json").write_text(json.dumps({"coverage": 0.95}), encoding="utf-8")
    result = evidence.digest_of_result(folder / "covers.json")
    old = Evidence(("python -m benchmarks.covers",), ("covers.md",), "2026-11-02", "0.1.0", "before", result)
    evidence.write({"covers": old, "suite": replace(old, commands=("python -m benchmarks.suite",))})
    return folder


def entered(sources: Sources, command: str, page: str = "covers.md", day: str = "2026-11-02") -> Evidence:
    known = Evidence((command,), (page,), day, "0.2.0", "", "")
    code = evidence.digest_of_code(known.modules, sources)
    return Evidence(known.commands, known.pages, day, "0.2.0", code, "")


def test_every_result_is_entered_as_it_is_stored() -> None:
    """`python -m checks.evidence --run NAME` measures a result and enters it."""
    assert evidence.faults(evidence.stored()) == {}
    assert len(evidence.results()) > 30
    assert all((evidence.FILE.parent / name).exists() for name in evidence.NOT_RESULTS)


def test_what_is_stored_otherwise_than_entered_is_a_fault(folder: Path) -> None:
    known = evidence.stored()
    assert evidence.faults(known) == {}
    (folder / "covers.json").write_text('{"coverage": 0.9}', encoding="utf-8")
    assert evidence.faults(known) == {"covers": "changed since it was entered"}
    (folder / "suite.json").unlink()
    (folder / "new.json").write_text("{}", encoding="utf-8")
    (folder / "runs.jsonl").write_text("{}", encoding="utf-8")
    (folder / "more_runs").mkdir()
    assert evidence.faults(known) == {
        "covers": "changed since it was entered",
        "suite": "has no file",
        "new": "has no entry",
        "runs.jsonl": "is no result",
        "more_runs": "is no result",
    }


@pytest.mark.parametrize("name", ["nothing", "new"])
@pytest.mark.parametrize("option", [["--run"], ["--code"], ["--measured", "0123456789abcdef"]])
def test_a_name_without_file_or_entry_cannot_be_entered(
    name: str, option: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "new.json").write_text("{}", encoding="utf-8")
    before = evidence.FILE.read_bytes()
    with pytest.raises(SystemExit) as refused:
        evidence.main([option[0], name, *option[1:]])
    assert refused.value.code == 2
    assert f"{name} is no stored result" in capsys.readouterr().err
    assert evidence.FILE.read_bytes() == before


def test_every_command_is_one_of_this_checkout() -> None:
    sources = Sources()
    modules = {module for each in evidence.stored().values() for module in each.modules}
    assert all(module in sources.modules for module in modules)
    assert len(modules) > 25


def naming_a_result(docs: Path) -> set[str]:
    """The pages that name the command of a stored result, or its file, or have a table that is written from one."""
    known = evidence.stored()
    modules = {module for each in known.values() for module in each.modules}
    named = re.compile(r"python -m (\w+\.[\w.]+)|benchmarks/results/(\w+)")
    found = set()
    for page in docs.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        names = any(command in modules or file in known for command, file in named.findall(text))
        if names or re.search(r"^<!-- [\w ]+ begin -->$", text, re.MULTILINE):
            found.add(page.relative_to(docs).as_posix())
    return found


def test_every_page_that_shows_a_result_says_when_it_was_measured() -> None:
    listed = {page for each in evidence.stored().values() for page in each.pages}
    assert naming_a_result(ROOT / "docs") - listed == SHOWS_NOTHING
    for page in listed:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert re.match(r"# .+\n\n", text), page  # the note comes below a title


def test_a_page_that_shows_a_result_is_found(tmp_path: Path) -> None:
    for name, text in {
        "new.md": "`python -m benchmarks.pooling --runs 9` gave 95 %.",
        "stored.md": "Stored in `benchmarks/results/planning.json`.",
        "written.md": "<!-- sizes begin -->\n\n| | |\n\n<!-- sizes end -->",
        "others.md": "`python -m benchmarks.data` lists files, `python -m checks.commands` writes them.",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert naming_a_result(tmp_path) == {"new.md", "stored.md", "written.md"}


def test_a_result_is_stale_once_code_that_it_runs_has_changed(sources: Sources) -> None:
    known = {
        "covers": entered(sources, "python -m benchmarks.covers --runs 400"),
        "suite": entered(sources, "python -m benchmarks.suite"),
        "audit": entered(sources, "dpcausal audit --json"),
    }
    assert set(evidence.stale(known, Sources(sources.root))) == set()
    (sources.root / "src/dpcausal/estimator.py").write_text('"""Half."""\n\nHALF = 1  # of it', encoding="utf-8")
    assert set(evidence.stale(known, Sources(sources.root))) == set()  # comments decide no figure
    (sources.root / "src/dpcausal/estimator.py").write_text("HALF = 2", encoding="utf-8")
    assert set(evidence.stale(known, Sources(sources.root))) == {"covers"}
    (sources.root / "src/dpcausal/pages.py").write_text("TITLE = 1", encoding="utf-8")
    assert set(evidence.stale(known, Sources(sources.root))) == {"covers", "suite", "audit"}


def test_a_stale_result_says_which_files_changed(folder: Path, sources: Sources) -> None:
    known = {"covers": entered(sources, "python -m benchmarks.covers"), "audit": entered(sources, "dpcausal audit")}
    files = evidence.files_of(known, sources)
    known["covers"] = replace(known["covers"], sources=evidence.name_of(files))
    evidence.write(known, files)
    evidence.write(known, {"benchmarks/covers.py": "of no result"})
    assert evidence.stored_sources() == {evidence.name_of(files): files}
    (sources.root / "src/dpcausal/pages.py").write_text("TITLE = 1", encoding="utf-8")
    (sources.root / "benchmarks/covers.py").write_text("import dpcausal.estimator\nimport dpcausal.new", "utf-8")
    (sources.root / "src/dpcausal/new.py").write_text("NEW = 1", encoding="utf-8")
    found = evidence.stale(known, Sources(sources.root))
    names = "`benchmarks/covers.py`, `src/dpcausal/new.py`"
    assert found == {"covers": f"2 of 3 files changed since ({names})", "audit": "changed since"}
    assert f"2 of 3 files changed since ({names}): `python -m" in evidence.note("covers.md", known, found)


def test_a_page_says_when_its_results_were_measured_and_which_are_stale(sources: Sources) -> None:
    known = {
        "covers": entered(sources, "python -m benchmarks.covers --runs 400"),
        "suite": entered(sources, "python -m benchmarks.suite", day="2026-11-17"),
        "audit": entered(sources, "dpcausal audit", "audit.md"),
    }
    title = "Measured from 2 November 2026 to 17 November 2026"
    assert f'??? info "{title}; the code is still the same"' in evidence.note("covers.md", known, {})
    assert f'"{title}; code has changed since"' in evidence.note(
        "covers.md", known, dict.fromkeys(("covers", "suite"), "changed since")
    )
    some = evidence.note("covers.md", known, {"covers": "changed since"})
    assert f'"{title}; code has changed since for 1 of 2 results"' in some
    assert "- 2 November 2026, version 0.2.0, changed since: `python -m benchmarks.covers --runs 400`" in some
    assert "- 17 November 2026, version 0.2.0, not changed since: `python -m benchmarks.suite`" in some
    assert '"Measured on 2 November 2026; the code is' in evidence.note("audit.md", known, {"covers": "changed since"})
    assert evidence.note("index.md", known, {"covers": "changed since"}) == ""


def test_the_note_stands_below_the_title(monkeypatch: pytest.MonkeyPatch, sources: Sources) -> None:
    known = {"covers": entered(sources, "python -m benchmarks.covers")}
    monkeypatch.setattr(mkdocs_hooks, "_evidence", lambda: (known, {"covers": "changed since"}))
    page = mkdocs_hooks.dated("# Coverage\n\nWords.", "covers.md")
    assert page.startswith('# Coverage\n\n??? info "Measured on 2 November 2026; code has changed since"\n')
    assert page.endswith("\n\nWords.")
    assert mkdocs_hooks.dated("# Start\n\nWords.", "index.md") == "# Start\n\nWords."


def test_a_built_page_without_its_date_fails_the_gate(
    monkeypatch: pytest.MonkeyPatch, sources: Sources, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning fails the strict build: of a page without the note, and of one whose note is older than the code."""
    known = {"covers": entered(sources, "python -m benchmarks.covers")}
    monkeypatch.setattr(mkdocs_hooks, "_evidence", lambda: (known, {"covers": "changed since"}))
    noted = Markdown(extensions=["pymdownx.details"]).convert(mkdocs_hooks.dated("# Coverage\n\nWords.", "covers.md"))
    fresh = noted.replace("code has changed since", "the code is still the same")
    without = Markdown(extensions=["pymdownx.details"]).convert("# Coverage\n\nWords.")
    assert fresh != noted
    for output, page, warns in (
        (noted, "covers.md", False),
        (without, "covers.md", True),
        (fresh, "covers.md", True),
        (without, "index.md", False),
    ):
        caplog.clear()
        shown = SimpleNamespace(file=SimpleNamespace(src_uri=page))
        mkdocs_hooks.on_post_page(output, shown, MkDocsConfig())  # type: ignore[arg-type]
        assert ("does not say when" in caplog.text) == warns


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("x = 1", "x = 1  # one", True),
        ("def f():\n    return 1", 'def f():\n    """One."""\n\n    return 1', True),
        ("class A:\n    x = 1", 'class A:\n    """A."""\n\n    x = 1\n    """One,\n    always."""', True),
        ("x = 1", "x = 2", False),
        ("if y:\n    x = 1\nz = 2", "if y:\n    x = 1\n    z = 2", False),
        ("x = '# one'", "x = '# two'", False),
        ('x = """one"""', 'x = """two"""', False),
        ('f(\n    "one",\n)', 'f(\n    "two",\n)', False),
        ('f(\n    "one"\n    "two"\n)', 'f(\n    "one"\n    "too"\n)', False),
        ('return (\n    "one"  # 1\n)', 'return (\n    "two"  # 1\n)', False),
    ],
)
def test_comments_docstrings_and_empty_lines_alone_are_not_of_the_essence(before: str, after: str, same: bool) -> None:
    assert (evidence.essence(before) == evidence.essence(after)) == same


def test_essence_of_every_file_does_what_the_file_does() -> None:
    """Without docstrings the syntax is the same; a body that was nothing else is left out of both."""

    def bare(text: str) -> str:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            for field in ("body", "orelse", "finalbody"):
                if isinstance(block := getattr(node, field, None), list):
                    block[:] = [
                        each
                        for each in block
                        if not (isinstance(each, ast.Expr) and isinstance(getattr(each.value, "value", None), str))
                    ] or [ast.Pass()]
        return ast.unparse(tree)

    files = sorted((ROOT / "src").rglob("*.py"))[::7]
    for file in files:
        text = file.read_text(encoding="utf-8")
        try:
            left = evidence.essence(text)
            found = bare(left)
        except SyntaxError:  # a body of a docstring alone
            continue
        assert found == bare(text), file


def measuring(sources: Sources, text: str) -> None:
    """Write a benchmark that prints a result, and enters itself as a module of its folder."""
    (sources.root / "benchmarks/covers.py").write_text(text, encoding="utf-8")
    (sources.root / "benchmarks/__init__.py").touch()


def test_a_run_is_entered_with_the_code_that_it_began_with(
    folder: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evidence, "ROOT", sources.root)
    known = evidence.stored()
    covers = replace(known["covers"], commands=("python -m benchmarks.covers --json",))
    evidence.write(known | {"covers": covers})
    measuring(sources, "print('{}')")
    evidence.main(["--run", "covers"])
    new = evidence.stored()["covers"]
    assert (folder / "covers.json").read_text(encoding="utf-8") == "{}\n"
    assert new.result == evidence.digest_of_result(folder / "covers.json")
    assert new.code == evidence.digest_of_code(new.modules, Sources(sources.root))
    assert new.minutes is not None
    assert set(evidence.stale(evidence.stored(), Sources(sources.root))) == {"suite"}

    measuring(sources, "open('benchmarks/covers.py', 'a').write('\\nx = 1')\nprint('{\"a\": 1}')")
    with pytest.raises(SystemExit):
        evidence.main(["--run", "covers"])
    assert "the code changed while covers was measured" in capsys.readouterr().err
    assert evidence.stored()["covers"] == new


def test_what_was_measured_is_entered_with_day_code_and_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = evidence.stored()["covers"]
    (folder / "covers.json").write_text(json.dumps({"coverage": 0.94}), encoding="utf-8")
    evidence.main([])
    assert capsys.readouterr().out.startswith("WRONG    covers changed since it was entered\n")
    evidence.main(["--code", "covers"])
    code = capsys.readouterr().out.strip()
    assert code == evidence.digest_of_code(old.modules, Sources(folder.parents[1]))
    evidence.main(["--measured", "covers", code])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["stale", "2026-11-02", "suite"]
    assert lines[1].startswith("current ")
    assert lines[2] == "1 of 2 results are stale"
    new = evidence.stored()["covers"]
    assert date.fromisoformat(new.date) > date(2026, 11, 2)
    assert (new.commands, new.pages) == (old.commands, old.pages)
    assert new.result == evidence.digest_of_result(folder / "covers.json")
    assert evidence.stored()["suite"].code == "before"
