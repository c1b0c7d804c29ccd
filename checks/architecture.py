"""The architecture rules, checked on the source text: `python -m checks.architecture`.

Who may import whom, where dangerous libraries may appear, which words belong to which package, how long a file may be.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "dpcausal"
NOUNS = (
    *("errors", "hash_chain", "text", "plain_text", "other_names", "validation"),
    *("cells", "real", "columns", "treatment", "schema"),
    *("expectations", "interval", "guarantee", "queries", "calibration", "release", "source", "effect", "curve"),
)
"""The public nouns: each may import only the ones before it, and, where it is a folder, its own files."""

MAY_IMPORT = {
    "ledger": ("ledger", *NOUNS),
    "vault": ("vault", "ledger", *NOUNS),
    "estimators": ("estimators", "rehearsal", *NOUNS),
    "pooling": ("pooling", *NOUNS),
    "diagnostics": ("diagnostics", "estimators", "rehearsal", *NOUNS),
    "planning": ("rehearsal", "planning", "estimators", *NOUNS),
    "quick": ("estimators", "vault", "ledger", *NOUNS),
    "testing": ("testing", "rehearsal", "vault", "ledger", *NOUNS),
    "audit": (
        *("audit", "testing", "quick", "rehearsal", "diagnostics", "estimators", "vault", "ledger", "study", "cli"),
        *NOUNS,
    ),
    "report": ("report", "diagnostics", "study", "ledger", *NOUNS),
    "dowhy": ("rehearsal", "planning", *NOUNS),
    "prepared": ("rehearsal", "diagnostics", "ledger", *NOUNS),
    "study_file": ("estimators", *NOUNS),
    "study": (
        *("study_file", "study_template", "prepared", "planning", "diagnostics", "estimators", "pooling"),
        *("rehearsal", "ledger", *NOUNS),
    ),
    "federation": ("federation", "study", "pooling", "ledger", *NOUNS),
    "plugins": ("plugins", "federation", "site", *NOUNS),
    "rehearsal": ("rehearsal", "planning", "ledger", *NOUNS),
    "site": ("site", "federation", "study", "vault", "ledger", *NOUNS),
    "study_template": NOUNS,
    "cli": (
        *(
            "cli",
            "audit",
            "diagnostics",
            "plugins",
            "federation",
            "ledger",
            "planning",
            "report",
            "site",
            "study",
        ),
        *("study_template", "vault", *NOUNS),
    ),
    "__main__": ("cli",),
}
"""Which packages, apart from the package's front page, each package may import from."""

LIBRARY_PACKAGES = {
    "duckdb": ("vault/table.py", "vault/engines/"),
    "pyarrow": (
        "vault/table.py",
        "vault/readers/frames.py",
        "vault/engines/",
        "report/tidy.py",
        "testing/",
        "audit/",
    ),
    "narwhals": ("vault/table.py", "vault/readers/frames.py", "audit/hostile.py"),
    "pandas": ("audit/hostile.py", "dowhy.py", "report/tidy.py"),
    "polars": ("report/tidy.py",),
    "dowhy": ("dowhy.py",),
    "pyspark": ("vault/table.py", "vault/engines/spark.py"),
    "adbc_driver_postgresql": ("vault/readers/postgres.py",),
    "opendp": ("calibration.py", "vault/noise.py"),
    "dp_accounting": ("ledger/accounting.py",),
    "sqlalchemy": ("ledger/",),
    "random": (),
    "secrets": ("vault/noise.py",),
    "numba": ("vault/numerics/matching.py",),
    "pickle": (),
    "logging": ("audit/fuzz.py", "audit/opening.py", "vault/numerics/learners.py", "vault/engines/spark.py"),
    "warnings": ("testing/", "audit/fuzz.py", "audit/opening.py", "vault/numerics/learners.py"),
    "threadpoolctl": ("vault/numerics/learners.py",),
    "sklearn": ("curve.py", "vault/numerics/learners.py", "vault/answers/influence_effects.py"),
    "hypothesis": ("audit/fuzz.py", "audit/hostile.py"),
    "scipy": ("audit/",),
    "matplotlib": ("audit/figure.py", "report/"),
    "typer": ("audit/opening.py", "cli/"),
    "rich": ("cli/", "vault/engines/progress.py"),
    "cryptography": ("federation/signatures.py",),
    "nvflare": ("plugins/nvflare/",),
    "subprocess": ("site/worker.py", "plugins/nvflare/"),
}
"""Where each library may appear, in files or folders of the package."""

PATTERN_PACKAGES = {
    r"np\.random|default_rng": ("interval.py", "testing/", "audit/"),
    r"\brows?\b|\bcontributions?\b": ("vault/", "__init__.py"),
    r"\binspection\b|\.look\(": ("vault/readers/inspection.py", "vault/engines/duckdb.py", "cli/check.py"),
    r"\bRelease(?:\.of)?\(": ("release.py", "vault/door.py", "rehearsal/rehearsal.py", "federation/aggregate.py"),
}
"""Where each pattern may appear: random numbers, words for what must stay in the vault, what looks at a table without
privacy, makers of releases."""

LONGEST = 400


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every imported module with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            # `from dpcausal import queries` imports dpcausal.queries.
            names = [f"{module}.{alias.name}" for alias in node.names] if module == PACKAGE else [module]
            yield from ((node.lineno, name) for name in names)
            if node.level:
                yield node.lineno, f"{PACKAGE}.relative"


def allowed_packages(package: str) -> tuple[str, ...]:
    """The packages that a package may import from."""
    return (*NOUNS[: NOUNS.index(package)], package) if package in NOUNS else MAY_IMPORT.get(package, ())


def violations(root: Path) -> Iterator[str]:
    """Every breach of the rules in the package at `root`."""
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        package = next(
            (package for package in MAY_IMPORT if "/" in package and file.startswith(f"{package}/")), file.split("/")[0]
        )
        package = package.removesuffix(".py")
        for line, module in imports(ast.parse(text)):
            library, _, rest = module.partition(".")
            inner = rest.partition(".")[0]
            if library == PACKAGE and file != "__init__.py" and inner not in allowed_packages(package):
                yield f"{file}:{line}: {package} may not import {module}"
            if library in LIBRARY_PACKAGES and not file.startswith(LIBRARY_PACKAGES[library] or "nowhere"):
                yield f"{file}:{line}: {library} may not appear here"
        for pattern, packages in PATTERN_PACKAGES.items():
            if not file.startswith(packages or "nowhere"):
                for found in re.finditer(pattern, text):
                    yield f"{file}:{text[: found.start()].count(chr(10)) + 1}: {found.group()!r} may not appear here"
        if text.count("\n") > LONGEST:
            yield f"{file}: longer than {LONGEST} lines"


def main() -> None:
    """Print every breach; fail if there is one."""
    found = list(violations(Path(sys.argv[1] if len(sys.argv) > 1 else f"src/{PACKAGE}")))
    print("\n".join(found) or "architecture rules: kept")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
