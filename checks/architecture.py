"""The architecture rules, checked on the source text: `python -m checks.architecture`.

Who may import whom, that nobody does so in a circle, where dangerous libraries may appear, which words belong to which
package, that a class has a name of its own, how long a file may be, and that no code reads a sentence again.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "dpcausal"
NOUNS = (
    *("errors", "utils", "page", "schema", "uncertainty", "guarantee", "price", "sums", "queries"),
    *("release", "source", "results"),
)
"""The public nouns: each may import only the ones before it, and, where it is a folder, its own files."""

MAY_IMPORT = {
    "ledger": ("ledger", *NOUNS),
    "vault": ("vault", "ledger", *NOUNS),
    "rehearsal": ("rehearsal", "vault", "ledger", *NOUNS),
    "estimators": ("estimators", "rehearsal", *NOUNS),
    "inference": ("inference", "rehearsal", *NOUNS),
    "experiment": ("experiment", "estimators", "inference", "rehearsal", *NOUNS),
    "pooling": ("pooling", *NOUNS),
    "diagnostics": ("diagnostics", "estimators", "rehearsal", *NOUNS),
    "planning": ("planning", "estimators", "rehearsal", *NOUNS),
    "datasets": ("datasets", *NOUNS),
    "quick": ("estimators", "vault", "ledger", *NOUNS),
    "study": (
        *(
            "study",
            "planning",
            "diagnostics",
            "experiment",
            "inference",
            "estimators",
            "pooling",
            "rehearsal",
            "ledger",
        ),
        *NOUNS,
    ),
    "report": ("report", "diagnostics", "experiment", "study", "ledger", *NOUNS),
    "testing": ("testing", "rehearsal", "vault", "ledger", *NOUNS),
    "audit": (
        *("audit", "testing", "quick", "rehearsal", "diagnostics", "estimators", "vault", "ledger", "study"),
        *NOUNS,
    ),
    "federation": ("errors",),
    "federation/protocol": ("federation/protocol", "study", *NOUNS),
    "federation/secure": ("federation/secure", "federation/protocol", "study", *NOUNS),
    "federation/operation": ("federation/operation", "federation/protocol", "ledger", *NOUNS),
    "federation/coordinator": (
        *("federation/coordinator", "federation/secure", "federation/operation", "federation/protocol"),
        *("study", "pooling", "ledger", *NOUNS),
    ),
    "federation/site": (
        *("federation/site", "federation/secure", "federation/operation", "federation/protocol"),
        *("study", "vault", "ledger", *NOUNS),
    ),
    "federation/console": (
        *("federation/console", "federation/site", "federation/coordinator", "federation/operation"),
        *("federation/protocol", "federation/transports", "report", "study", "estimators", "ledger", *NOUNS),
    ),
    "federation/transports": (
        *("federation/transports", "federation/site", "federation/coordinator", "federation/operation"),
        *("federation/protocol", *NOUNS),
    ),
    "cli": (
        *("cli", "audit", "diagnostics", "experiment", "ledger", "planning", "rehearsal", "report", "study", "vault"),
        *(f"federation/{part}" for part in ("console", "coordinator", "operation", "protocol", "site", "transports")),
        *NOUNS,
    ),
    "__main__": ("cli",),
}
"""Which packages, apart from the package's front page, each package may import from."""

LIBRARY_PACKAGES = {
    "duckdb": (
        "vault/table.py",
        "vault/readers/cloud.py",
        "vault/readers/files.py",
        "vault/readers/ibis_tables.py",
        "vault/engines/",
    ),
    "pyarrow": (
        "vault/readers/",
        "vault/engines/",
        "report/tidy.py",
        "testing/",
        "audit/",
    ),
    "narwhals": ("schema/draft.py", "vault/table.py", "vault/readers/frames.py", "audit/hostile.py"),
    "pandas": ("audit/hostile.py", "report/tidy.py"),
    "polars": ("report/tidy.py",),
    "pyspark": ("vault/table.py", "vault/engines/spark.py"),
    "adbc_driver_postgresql": ("vault/readers/postgres.py",),
    "ibis": ("vault/readers/ibis_tables.py",),
    "sqlglot": (
        "vault/engines/expressions.py",
        "vault/engines/ranges.py",
        "vault/engines/warehouse.py",
        "vault/readers/postgres.py",
    ),
    "fsspec": ("vault/readers/cloud.py",),
    "opendp": ("queries/calibration.py", "vault/noise.py"),
    "dp_accounting": ("ledger/accounting.py",),
    "sqlalchemy": ("ledger/", "federation/transports/mailbox/store.py"),
    "random": (),
    "secrets": (
        "federation/console/login.py",
        "federation/console/sessions.py",
        "federation/secure/channel.py",
        "federation/transports/mailbox/",
        "vault/noise.py",
    ),
    "numba": ("vault/numerics/matching.py",),
    "pickle": (),
    "logging": (
        *("audit/fuzz.py", "audit/opening.py", "vault/engines/spark.py"),
        "federation/transports/nvflare/logs.py",
    ),
    "warnings": ("testing/", "ledger/older_results.py", "audit/fuzz.py", "audit/opening.py"),
    "threadpoolctl": (),
    "sklearn": ("results/curve.py",),
    "hypothesis": ("audit/fuzz.py", "audit/hostile.py"),
    "scipy": ("audit/",),
    "matplotlib": ("report/",),
    "typer": ("audit/opening.py", "cli/"),
    "rich": ("cli/", "vault/engines/progress.py"),
    "authlib": ("federation/console/login.py",),
    "cryptography": (
        *("federation/operation/health.py", "federation/secure/", "federation/protocol/signatures.py"),
        *("federation/transports/mailbox/", "federation/transports/nvflare/certificates.py"),
    ),
    "flask": ("federation/console/", "federation/transports/mailbox/server.py"),
    "gunicorn": (
        "federation/console/",
        "federation/operation/deadline_worker.py",
        "federation/transports/mailbox/serve.py",
    ),
    "prometheus_client": ("cli/metrics.py",),
    "urllib3": ("federation/transports/mailbox/client.py",),
    "nvflare": ("federation/transports/nvflare/",),
    "shamirs": ("federation/secure/sharing.py",),
    "subprocess": (
        "federation/site/worker.py",
        "federation/transports/drill.py",
        "federation/transports/nvflare/",
    ),
}
"""Where each library may appear, in files or folders of the package."""

MODULE_IMPORTERS = {"dpcausal.vault.noise": ("vault/door.py",)}
"""Modules of the package that only these files may import: the door owns the sampler and hands it to each answer."""

PATTERN_PACKAGES = {
    r"\b(np|numpy)\.random|from numpy import [^\n]*\brandom\b|default_rng": (
        *("uncertainty/interval.py", "rehearsal/population.py", "sums/weights.py", "testing/", "audit/"),
    ),
    r"\burandom\b": ("ledger/chain.py",),
    r"\brows?\b|\bcontributions?\b": ("vault/", "__init__.py"),
    r"\binspection\b|\.look\(": ("vault/readers/inspection.py", "vault/engines/duckdb.py", "cli/check.py"),
    r"\bRelease(?:\.of)?\(": (
        "release.py",
        "vault/door.py",
        "rehearsal/rehearsal.py",
        "federation/coordinator/aggregate.py",
    ),
    r"\bNoisy\(": ("vault/noise.py", "rehearsal/rehearsal.py", "federation/coordinator/aggregate.py", "audit/spy.py"),
    r"\bPublicValue\(": ("vault/answers/", "rehearsal/rehearsal.py"),
}
"""Where each pattern may appear: random numbers, words for what must stay in the vault, what looks at a table without
privacy, makers of releases, of noisy integers and of values without noise."""

SENTENCES = frozenset(("method", "estimand", "quantity", "assumptions", "notes", "warnings", "no_interval"))
"""Attributes of results that are for people. Code decides on other attributes, and never on what is in these."""

READING = frozenset(("startswith", "endswith", "partition", "rpartition", "split", "find", "index", "count"))
READING |= {"removeprefix", "removesuffix"}

LONGEST = 500

QUERIES, ANSWERS = f"src/{PACKAGE}/queries", f"src/{PACKAGE}/vault/answers"
PARTS = (f"{ANSWERS}/{{}}.py", "docs/proofs/{}.md", "tests/privacy/test_{}.py")
"""Where each query has its answer, its proof and its tests, all under the stem of its own module. A query that is
described as sums (`SummingQuery`) needs none: `vault/adding.py`, `docs/proofs/sums.md` and `tests/privacy/test_sums.py`
are those of all of them."""


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every imported module with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            # `from dpcausal import queries` imports dpcausal.queries.
            inside = module.partition(".")[0] == PACKAGE
            names = [f"{module}.{alias.name}" for alias in node.names] if inside else [module]
            yield from ((node.lineno, name) for name in names)
            if node.level:
                yield node.lineno, f"{PACKAGE}.relative"


def sentences_read(tree: ast.AST) -> Iterator[int]:
    """Yield the line of every search in a sentence of a result, by `in`, a pattern or a method, and of every match."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, sides, node.comparators, strict=False):
                words = any(isinstance(each, ast.Constant) and " " in str(each.value) for each in (left, right))
                inside = isinstance(operator, ast.In | ast.NotIn) and _is_sentence(right)
                if inside or (words and (_is_sentence(left) or _is_sentence(right))):
                    yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            pattern = isinstance(of, ast.Name) and of.id == "re" and any(map(_is_sentence, node.args))
            if pattern or (node.func.attr in READING and _is_sentence(of)):
                yield node.lineno


def _is_sentence(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in SENTENCES


def package_of(path: str) -> str:
    """Return the package that a path of a module belongs to: one with rules of its own, or the first folder."""
    parts = path.removesuffix(".py").split("/")
    inside = ("/".join(parts[:length]) for length in range(len(parts), 1, -1))
    return next((package for package in inside if package in MAY_IMPORT), parts[0])


def allowed_packages(package: str) -> tuple[str, ...]:
    """Return the packages that a package may import from."""
    return (*NOUNS[: NOUNS.index(package)], package) if package in NOUNS else MAY_IMPORT.get(package, ())


def violations(root: Path) -> Iterator[str]:
    """Yield every breach of the rules in the package at `root`."""
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        package, tree = package_of(file), ast.parse(text)
        yield from (f"{file}:{line}: a sentence decides; give the result a field" for line in sentences_read(tree))
        for line, module in imports(tree):
            library, _, rest = module.partition(".")
            inner = package_of(rest.replace(".", "/"))
            if library == PACKAGE and file != "__init__.py" and inner not in allowed_packages(package):
                yield f"{file}:{line}: {package} may not import {module}"
            owner = next((owner for owner in MODULE_IMPORTERS if f"{module}.".startswith(f"{owner}.")), None)
            if owner and file not in MODULE_IMPORTERS[owner]:
                yield f"{file}:{line}: only {', '.join(MODULE_IMPORTERS[owner])} may import {owner}"
            if library in LIBRARY_PACKAGES and not file.startswith(LIBRARY_PACKAGES[library] or "nowhere"):
                yield f"{file}:{line}: {library} may not appear here"
        for pattern, packages in PATTERN_PACKAGES.items():
            if not file.startswith(packages or "nowhere"):
                for found in re.finditer(pattern, text):
                    yield f"{file}:{text[: found.start()].count(chr(10)) + 1}: {found.group()!r} may not appear here"
        if text.count("\n") > LONGEST:
            yield f"{file}: longer than {LONGEST} lines"


def cycles(root: Path) -> Iterator[str]:
    """Yield a cycle of imports between files of the package at `root`, and one between packages, if there are any."""
    paths = {
        path.relative_to(root).with_suffix("").as_posix().removesuffix("/__init__"): path for path in root.rglob("*.py")
    }
    del paths["__init__"]  # the front page imports everything, and nothing imports it
    files = {path: set(_imported(file, paths)) for path, file in paths.items()}
    packages: dict[str, set[str]] = {}
    for path, found in files.items():
        packages.setdefault(package_of(path), set()).update(map(package_of, found))
    for graph in (files, packages):
        try:
            TopologicalSorter({name: found - {name} for name, found in graph.items()}).prepare()
        except CycleError as error:
            yield f"import cycle: {' <- '.join(error.args[1])}"


def _imported(file: Path, paths: Collection[str]) -> Iterator[str]:
    """Yield those of `paths` that a file imports, or a name in them."""
    for _, module in imports(ast.parse(file.read_text(encoding="utf-8"))):
        inside, _, path = module.replace(".", "/").partition("/")
        if inside == PACKAGE:
            yield from [each for each in (path, path.rpartition("/")[0]) if each in paths][:1]


def repeated_classes(root: Path) -> Iterator[str]:
    """Yield every name that two public classes of the package at `root` share: one word means one thing."""
    homes: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.relative_to(root).as_posix())
    yield from (f"{' and '.join(files)}: {name} is two classes" for name, files in homes.items() if len(files) > 1)


def upward_imports(root: Path) -> Iterator[str]:
    """Yield every import of benchmarks in the tests at `root`, but for the tests of benchmarks themselves."""
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        if not file.startswith("benchmarks/"):
            for line, module in imports(ast.parse(path.read_text(encoding="utf-8"))):
                if module.partition(".")[0] == "benchmarks":
                    yield f"tests/{file}:{line}: tests may not import {module}"


def incomplete_queries(tree: Path) -> Iterator[str]:
    """Yield every part that a query in the repository at `tree` lacks, and every answer without a query."""
    bases = _bases(tree / QUERIES)
    for stem in (stem for stem, each in bases.items() if not all("SummingQuery" in names for names in each)):
        for part in (part.format(stem) for part in PARTS):
            if not (tree / part).is_file():
                yield f"{QUERIES}/{stem}.py: has no {part}"
    for path in sorted((tree / ANSWERS).glob("*.py")):
        if path.stem != "__init__" and not bases.get(path.stem):
            yield f"{ANSWERS}/{path.name}: has no query in {QUERIES}/{path.name}"


def _bases(folder: Path) -> dict[str, list[set[str]]]:
    """Return what each query of each module is derived from. A query is a class with a `name` of its own."""
    parsed = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.py"))}
    classes = {stem: [node for node in each.body if isinstance(node, ast.ClassDef)] for stem, each in parsed.items()}
    direct = {node.name: {ast.unparse(base) for base in node.bases} for each in classes.values() for node in each}

    def every(name: str) -> set[str]:
        return {name}.union(*(every(base) for base in direct.get(name, ())))

    return {stem: [every(node.name) for node in each if _is_named(node)] for stem, each in classes.items()}


def _is_named(node: ast.ClassDef) -> bool:
    named = (each.target for each in node.body if isinstance(each, ast.AnnAssign) and each.value)
    return any(isinstance(target, ast.Name) and target.id == "name" for target in named)


def main() -> None:
    """Print every breach; fail if there is one."""
    package = Path("src", PACKAGE)
    inside = (*violations(package), *cycles(package), *repeated_classes(package))
    found = [*inside, *upward_imports(Path("tests")), *incomplete_queries(Path())]
    print("\n".join(found) or "architecture rules: kept")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
