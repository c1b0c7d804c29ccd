from pathlib import Path

import pytest

from checks.closure import Sources

FILES = {
    "src/dpcausal/__init__.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from dpcausal.shapes import Circle as Circle
            from dpcausal.colours import Red as Red
        def __getattr__(name): ...
    """,
    "src/dpcausal/shapes/__init__.py": "from dpcausal.shapes.circle import Round as Circle",
    "src/dpcausal/shapes/circle.py": "from dpcausal.numbers import PI\nclass Round: ...",
    "src/dpcausal/shapes/table.csv": "1,2",
    "src/dpcausal/numbers.py": "if TYPE_CHECKING:\n    from dpcausal import colours\nPI = 3",
    "src/dpcausal/colours.py": "class Red: ...",
    "src/dpcausal/answers/__init__.py": """
        import pkgutil
        from dpcausal.registry import ANSWERS
        for each in pkgutil.iter_modules(__path__): ...
    """,
    "src/dpcausal/answers/first.py": "",
    "src/dpcausal/registry.py": "ANSWERS = {}",
    "src/dpcausal/kinds/__init__.py": "from dpcausal.discovery import listed\nKINDS = list(listed(__name__, str))",
    "src/dpcausal/kinds/second.py": "import dpcausal.numbers",
    "src/dpcausal/discovery.py": "import pkgutil\ndef listed(name, kind): return pkgutil.iter_modules(name)",
    "tests/conftest.py": "import dpcausal.numbers",
    "tests/shapes/conftest.py": "",
    "tests/shapes/test_shapes.py": "import dpcausal as dpc\ndpc.Circle()",
    "tests/test_from.py": "from dpcausal import Circle",
    "tests/test_module.py": "from dpcausal import shapes\ngetattr(shapes, 'Circle')",
    "tests/test_inside.py": "def f():\n    from dpcausal import colours",
    "tests/test_string.py": "run('-m', 'checks.tool')",
    "tests/test_strings.py": "import_module(f'dpcausal.shapes.{name}')",
    "tests/test_effect.py": "from dpcausal import shapes  # for its effect",
    "tests/test_dotted.py": "import dpcausal.numbers\ndpcausal.Red",
    "tests/test_works.py": "from dpcausal.answers import ANSWERS",
    "tests/test_listed.py": "from dpcausal.kinds import KINDS",
    "checks/tool.py": "import dpcausal.colours",
    "benchmarks/results/run.json": "{}",
    "benchmarks/one.py": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        lines = text.strip("\n").splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
        (tmp_path / name).write_text("\n".join(line[indent:] for line in lines), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "needed"),
    [
        ("tests/shapes/test_shapes.py", {"src/dpcausal/shapes/circle.py": 1, "src/dpcausal/numbers.py": 2}),
        ("tests/test_from.py", {"src/dpcausal/shapes/circle.py": 1, "src/dpcausal/numbers.py": 2}),
        (
            "tests/test_module.py",
            {
                "src/dpcausal/shapes/__init__.py": 1,
                "src/dpcausal/shapes/circle.py": 2,
                "src/dpcausal/numbers.py": 3,
            },
        ),
        (
            "tests/test_effect.py",
            {
                "src/dpcausal/shapes/__init__.py": 1,
                "src/dpcausal/shapes/circle.py": 2,
                "src/dpcausal/numbers.py": 3,
            },
        ),
        ("tests/test_dotted.py", {"src/dpcausal/numbers.py": 1, "src/dpcausal/colours.py": 1}),
        ("tests/test_inside.py", {"src/dpcausal/colours.py": 1}),
        ("tests/test_string.py", {"checks/tool.py": 1, "src/dpcausal/colours.py": 2}),
        ("tests/test_strings.py", {"src/dpcausal/shapes/circle.py": 1, "src/dpcausal/numbers.py": 2}),
        (
            "tests/test_works.py",
            {"src/dpcausal/answers/__init__.py": 1, "src/dpcausal/answers/first.py": 2, "src/dpcausal/registry.py": 2},
        ),
        (
            "tests/test_listed.py",
            {
                "src/dpcausal/kinds/__init__.py": 1,
                "src/dpcausal/discovery.py": 2,
                "src/dpcausal/kinds/second.py": 2,
                "src/dpcausal/numbers.py": 3,
            },
        ),
    ],
)
def test_closure_holds_what_decides_and_nothing_else(file: str, needed: dict[str, int], root: Path) -> None:
    found = Sources(root).closure(Path(file))
    assert {path.as_posix(): distance for path, distance in found.items()} == {file: 0, **needed}


def test_fixtures_of_a_test_are_those_of_its_folders(root: Path) -> None:
    found = Sources(root).conftests(Path("tests/shapes/test_shapes.py"))
    assert found == [Path("tests/shapes/conftest.py"), Path("tests/conftest.py")]


@pytest.mark.parametrize(
    ("changed", "is_other"),
    [
        ("tests/test_from.py", True),
        ("src/dpcausal/numbers.py", True),
        ("src/dpcausal/shapes/table.csv", True),
        ("Makefile", True),
        ("src/dpcausal/colours.py", False),
        ("src/dpcausal/__init__.py", False),
        ("benchmarks/results/run.json", False),
    ],
)
def test_digest_changes_with_what_decides(changed: str, is_other: bool, root: Path) -> None:
    (root / "Makefile").touch()

    def digest() -> str:
        sources = Sources(root)
        return sources.digest(sources.needed(Path("tests/test_from.py")) | {Path("Makefile")})

    before = digest()
    assert digest() == before
    with (root / changed).open("a", encoding="utf-8") as file:
        file.write("\n# changed")
    assert (digest() != before) is is_other


def test_closure_of_this_repository_is_a_part_of_it() -> None:
    sources = Sources()
    estimator = sources.closure(Path("src/dpcausal/estimators/average/difference_in_means.py"))
    assert Path("src/dpcausal/guarantee.py") in sources.closure(Path("tests/test_guarantee.py"))
    assert not any(path.is_relative_to(Path("src/dpcausal/cli")) for path in estimator)
    assert len(estimator) < len(sources.modules) / 4
    for folder, file in (("vault/answers", "vault/door.py"), ("estimators/average", "quick.py")):
        registered = {path for path in sources.modules.values() if path.parent == Path("src/dpcausal", folder)}
        assert len(registered) > 5
        assert registered <= sources.closure(Path("src/dpcausal", file)).keys()


def test_what_another_process_found_is_not_looked_for_again(root: Path) -> None:
    known = Sources(root)
    needed = known.closure(Path("tests/test_from.py"))
    (root / "src/dpcausal/shapes/circle.py").write_text("no Python", encoding="utf-8")
    assert Sources(root, found=known.found).closure(Path("tests/test_from.py")) == needed
