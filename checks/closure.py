"""The import closure of a file: the files of this repository that decide what it does, how far away, and their digest.

It is read off the source text. A name that a package passes on, as `dpcausal` passes on `dpcausal.Vault`, stands for
the module that defines it, so that one who uses a name does not depend on its neighbours. A package that works while
it is imported, with a loop, comes as a whole. So does one that is used otherwise than by its names. Imports for type
checkers decide nothing. A string that names a module counts as an import of it.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {"dpcausal": "src/dpcausal", "tests": "tests", "checks": "checks", "benchmarks": "benchmarks"}
WRITTEN = Path("benchmarks/results")
"""What code writes and does not depend on."""

RECORDS = {Path("checks/passed.json"), Path("checks/seconds.json")}
"""What the gate writes about itself. If a test depended on it, each run would make the next one run everything."""


class Sources:
    """The files of a checkout. Paths are relative to its root.

    Args:
        root: The checkout.
        found: What each module needs directly, as far as another process has found it out.
    """

    def __init__(self, root: Path = ROOT, found: Mapping[str, Iterable[str]] | None = None) -> None:
        self.root = root
        self.found = {module: frozenset(needed) for module, needed in (found or {}).items()}
        self._digests: dict[Path, str] = {}
        self._passed_on: dict[str, dict[str, str]] = {}

    @cached_property
    def modules(self) -> dict[str, Path]:
        """The file of each module; that of a package is its `__init__.py`."""
        found = {}
        for package, place in PACKAGES.items():
            for path in sorted((self.root / place).rglob("*.py")):
                name = ".".join([package, *path.relative_to(self.root / place).with_suffix("").parts])
                found[name.removesuffix(".__init__")] = path.relative_to(self.root)
        return found

    @cached_property
    def _inside(self) -> dict[str, list[str]]:
        """The modules inside each package, at any depth, by the package's name and a point."""
        found: dict[str, list[str]] = {}
        for module in self.modules:
            for end in (place + 1 for place, letter in enumerate(module) if letter == "."):
                found.setdefault(module[:end], []).append(module)
        return found

    @cached_property
    def data(self) -> dict[Path, list[Path]]:
        """The files that are not Python, by the nearest folder above them that holds modules."""
        folders = {path.parent for path in self.modules.values()}
        found: dict[Path, list[Path]] = {}
        for place in PACKAGES.values():
            for path in sorted((self.root / place).rglob("*")):
                file = path.relative_to(self.root)
                is_data = path.suffix not in {".py", ".pyc"} and not file.is_relative_to(WRITTEN)
                if is_data and file not in RECORDS and path.is_file():
                    found.setdefault(next(above for above in file.parents if above in folders), []).append(file)
        return found

    def closure(self, *files: Path) -> dict[Path, int]:
        """Return every module's file that some files need, themselves included, with the least number of imports."""
        names = {path: name for name, path in self.modules.items()}
        seen: dict[str, int] = {}
        reached = {names[file] for file in files}
        distance = 0
        while reached:
            seen |= dict.fromkeys(reached, distance)
            reached = {each for module in reached for each in self.imports(module)} - seen.keys()
            distance += 1
        return {self.modules[name]: distance for name, distance in seen.items()}

    def conftests(self, file: Path) -> list[Path]:
        """Return the files of fixtures of a file of tests."""
        return [path for above in file.parents if (path := above / "conftest.py") in self.modules.values()]

    def needed(self, *files: Path) -> set[Path]:
        """Return all that some files need, with the files beside it that are not Python."""
        modules = self.closure(*files).keys()
        return {*modules, *(file for folder in {path.parent for path in modules} for file in self.data.get(folder, []))}

    def digest(self, files: Iterable[Path]) -> str:
        """Return the digest of files."""
        digest = hashlib.sha256()
        for file in sorted(files):
            digest.update(f"{file} {self._digest(file)}\n".encode())
        return digest.hexdigest()

    def _digest(self, file: Path) -> str:
        if file not in self._digests:
            self._digests[file] = hashlib.sha256((self.root / file).read_bytes()).hexdigest()
        return self._digests[file]

    def imports(self, module: str) -> frozenset[str]:
        """Return the modules that a module needs directly."""
        if module not in self.found:
            self.found[module] = frozenset(self._named(module)) & self.modules.keys() - {module}
        return self.found[module]

    def _named(self, module: str) -> Iterator[str]:
        nodes = list(_executed(self._tree(module)))
        known: dict[str, str] = {}  # modules by the names that they have here
        for node in nodes:
            match node:
                case ast.Import(names):
                    known |= {each.asname: each.name for each in names if each.asname}
                    known |= dict([2 * (each.name.partition(".")[0],) for each in names if not each.asname])
                    yield from (each.name for each in names if "." in each.name and not each.asname)
                case ast.ImportFrom(module=str(origin), names=names):
                    for each in names:
                        if (submodule := f"{origin}.{each.name}") in self.modules:
                            known[each.asname or each.name] = submodule
                        else:
                            yield self._home(origin, each.name)
                case ast.Constant(str(text)) if text in self._inside:
                    yield from self._inside[text]
                case ast.Constant(str(text)) if "." in text and text in self.modules:
                    yield text
                case ast.Attribute(attr="iter_modules") | ast.Call(args=[ast.Name("__name__"), *_]):
                    yield from (each for each in self.modules if each.rpartition(".")[0] == module)
        attributes = {node.value: node.attr for node in nodes if isinstance(node, ast.Attribute)}
        uses = [node for node in nodes if isinstance(node, ast.Name) and node.id in known]
        unused = known.keys() - {use.id for use in uses}
        yield from (known[name] for name in unused if name != known[name])
        for use in uses:
            yield self._home(known[use.id], attributes[use]) if use in attributes else known[use.id]

    def _home(self, module: str, name: str) -> str:
        """Return the module that a name of a module stands for."""
        if f"{module}.{name}" in self.modules:
            return f"{module}.{name}"
        return self._names_passed_on(module).get(name, module)

    def _names_passed_on(self, module: str) -> dict[str, str]:
        """Return the names that a package passes on, and the modules that they stand for."""
        if module not in self._passed_on:
            found = self._passed_on[module] = {}
            is_package = module in self.modules and self.modules[module].name == "__init__.py"
            tree = self._tree(module) if is_package else ast.Module([], [])
            if not any(isinstance(node, ast.For) for node in tree.body):
                for node in ast.walk(tree):
                    if isinstance(node, ast.ImportFrom) and node.module:
                        for each in node.names:
                            found.setdefault(each.asname or each.name, self._home(node.module, each.name))
        return self._passed_on[module]

    def _tree(self, module: str) -> ast.Module:
        return ast.parse((self.root / self.modules[module]).read_bytes())


_TELLING = (ast.Import, ast.ImportFrom, ast.Constant, ast.Attribute, ast.Name, ast.Call)


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    """Return the nodes of a tree that tell something, without what only type checkers read."""
    waiting: list[object] = [tree]
    while waiting:
        node = waiting.pop()
        is_for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if not isinstance(node, ast.AST) or isinstance(node, ast.expr_context) or is_for_types:
            continue
        if isinstance(node, _TELLING):
            yield node
        for name in node._fields:  # in place of `ast.iter_child_nodes`, which takes twice as long
            part = getattr(node, name)
            waiting += part if isinstance(part, list) else (part,)
