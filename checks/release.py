"""What would be published, tried as its users get it: `python -m checks.release`, with `--all` before a release.

The sdist and the wheel are built and looked into. The wheel is installed into an empty environment with the oldest
dependencies that pyproject.toml allows; there the README and a first day's work are run. With `--extras` each extra is
installed alone, into an empty environment of its own, and used (`checks/extras.py`). With `--all` both, and also with
the pinned and with the newest dependencies, by every Python that is here, and by every line of the documents that
installs something.

With `--if-changed`, as the gate calls it, nothing is done where the digests in `checks/passed.json` are those of the
checkout. The digest of `release` is of what pyproject.toml declares, the oldest versions, which files there are, which
names of libraries the package uses, and this check itself; that of `extras` is of those that it declares, and of their
uses. A check that passed writes its digest.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from checks import passed
from checks.documents import DOCUMENTS, ROOT, blocks
from checks.extras import USES

DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = DECLARED["project"]
OLDEST, PINNED = ROOT / "constraints-oldest.txt", ROOT / "constraints.txt"

COMMANDS = (
    "dpcausal --help",
    "dpcausal plan study.toml --n 4000",
    "dpcausal ledger create cli.db --epsilon 6 --as-of 2026-06-30",
    "dpcausal run study.toml --table table.parquet --ledger cli.db --as-of 2026-06-30 --yes",
    "dpcausal report effect.json --study study.toml --ledger cli.db",
    "dpcausal ledger verify cli.db",
)
"""What is asked of the command line after `checks/smoke.py`, which leaves the study and the table."""

IN_SDIST = (
    "src/dpcausal/__init__.py",
    "tests/conftest.py",
    "checks/architecture.py",
    "benchmarks/__init__.py",
    "docs/index.md",
)
JUNK = re.compile(
    r"^/(?:site|dist)/|/(?:__pycache__|\.venv|\.git|\.hypothesis|\.\w+_cache|\.ipynb_checkpoints)/|\.(?:py[co]|db)$"
)


def oldest() -> dict[str, str]:
    """Return the lower bound of every dependency, of the package and of its extras."""
    stated = [
        *PROJECT["dependencies"],
        *(line for extra in PROJECT["optional-dependencies"].values() for line in extra),
    ]
    found = {}
    for requirement in map(Requirement, stated):
        (bound,) = (part.version for part in requirement.specifier if part.operator == ">=")
        found[canonicalize_name(requirement.name)] = bound
    return dict(sorted(found.items()))


def pins(path: Path) -> dict[str, str]:
    """Return the versions in a file of constraints."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def extras_digest() -> str:
    """Return the digest of what decides whether extras bring what they need, short of their libraries."""
    uses = (ROOT / "checks" / "extras.py").read_text(encoding="utf-8")
    return hashlib.sha256(json.dumps([PROJECT["optional-dependencies"], uses], sort_keys=True).encode()).hexdigest()


def digest() -> str:
    """Return the digest of all that decides what this check finds, short of what functions compute."""
    source = sorted((ROOT / "src").rglob("*.py"))
    declared = [DECLARED["build-system"], PROJECT, DECLARED["tool"]["hatch"]]
    texts = [
        (ROOT / name).read_text(encoding="utf-8") for name in ("checks/release.py", "checks/smoke.py", OLDEST.name)
    ]
    files = [path.relative_to(ROOT).as_posix() for path in source]
    names = sorted({name for path in source for name in library_names(path.read_text(encoding="utf-8"))})
    return hashlib.sha256(json.dumps([declared, texts, files, names], sort_keys=True).encode()).hexdigest()


def library_names(text: str) -> set[str]:
    """Return what a module uses of other libraries than Python's, such as `numpy.cumsum`."""
    tree = ast.parse(text)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {each.asname or each.name.partition(".")[0]: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            known |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    used = set(known.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            used.add(f"{known[node.value.id]}.{node.attr}")
    return {name for name in used if name.partition(".")[0] not in {*sys.stdlib_module_names, PROJECT["name"]}}


def run(*words: str | Path, cwd: Path = ROOT, path: Path | None = None) -> str:
    """Run a command and return what it prints; if it fails, that is shown and everything ends."""
    first = {"PATH": os.pathsep.join([str(path), os.environ["PATH"]])} if path else {}
    done = subprocess.run(  # noqa: S603
        [*map(str, words)],
        check=False,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": "", **first},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        print(done.stdout)
        sys.exit(f"Failed with {done.returncode}: {shlex.join(map(str, words))}")
    return done.stdout


@contextmanager
def step(name: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    print(f"{name} …", flush=True)
    start = time.monotonic()
    yield
    print(f"    {time.monotonic() - start:.0f} s", flush=True)


@dataclass(frozen=True)
class Environment:
    """An environment that holds what was installed into it and nothing else, pip not either."""

    folder: Path

    @classmethod
    def empty(cls, folder: Path, python: Path = Path(sys.executable)) -> "Environment":
        """Make a new one, with its empty working folder."""
        run(python, "-m", "venv", "--without-pip", folder)
        (folder / "work").mkdir()
        return cls(folder)

    def install(self, *requirements: str, constraints: Path | None = None, dry: bool = False) -> str:
        """Install requirements, or with `dry` only see that they can be."""
        options = ["--constraint", str(constraints)] * bool(constraints) + ["--dry-run"] * dry
        pip = (sys.executable, "-m", "pip", "--python", self.folder / "bin" / "python", "install")
        return run(*pip, *options, *requirements)

    def run(self, command: str) -> str:
        """Run a command and return what it prints in the working folder, with this environment's programs first."""
        return run(*shlex.split(command), cwd=self.folder / "work", path=self.folder / "bin")

    def sizes(self) -> dict[str, float]:
        """Megabytes of each distribution as it lies on the disk."""
        (site,) = self.folder.glob("lib/python3*/site-packages")
        found = {}
        for one in distributions(path=[str(site)]):
            places = {Path(str(file.locate())).resolve() for file in one.files or []}
            found[one.name] = sum(place.stat().st_size for place in places if place.is_file()) / 1e6
        return found

    def milliseconds(self, code: str) -> float:
        """Processor time of Python until some code has run; the median of nine."""
        self.run(f"python -c {shlex.quote(code)}")
        taken = []
        for _ in range(9):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.run(f"python -c {shlex.quote(code)}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        return statistics.median(taken)


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist and the wheel; the wheel of the sdist must hold what that of the checkout holds."""
    with step("Build the sdist, and the wheel from it"):
        run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    with step("Build the wheel from the checkout"):
        run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "direct", ROOT)
    (sdist,), (wheel,), (direct,) = folder.glob("*.tar.gz"), folder.glob("*.whl"), folder.glob("direct/*.whl")
    if _digests(wheel) != _digests(direct) or wheel.name != direct.name:
        sys.exit("The sdist makes another wheel than the checkout does.")
    return sdist, wheel


def _digests(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def faults(names: list[str], wanted: list[str]) -> list[str]:
    """Return what should not be in an archive, and what is missing from it."""
    return [f"has {name}" for name in names if JUNK.search(f"/{name}")] + [
        f"lacks {name}" for name in wanted if name not in names
    ]


def look_into(sdist: Path, wheel: Path) -> None:
    """See that both archives hold what they should and no junk."""
    with tarfile.open(sdist) as archive:
        in_sdist = [name.partition("/")[2] for name in archive.getnames()]
    in_wheel = list(_digests(wheel))
    modules = [path.relative_to(ROOT / "src").as_posix() for path in sorted((ROOT / "src/dpcausal").rglob("*.py"))]
    licence = f"{wheel.name.rpartition('-py3')[0]}.dist-info/licenses/LICENSE"
    at_root = [path.name for path in ROOT.glob("*") if path.suffix in {".cff", ".md", ".toml", ".txt", ".yml"}]
    found = [f"{wheel.name} {fault}" for fault in faults(in_wheel, [*modules, "dpcausal/py.typed", licence])]
    found += [f"{wheel.name} has {name}" for name in in_wheel if not name.startswith(("dpcausal/", "dpcausal-"))]
    found += [f"{sdist.name} {fault}" for fault in faults(in_sdist, [*IN_SDIST, *at_root, "LICENSE", "Makefile"])]
    if found:
        sys.exit("\n".join(found))
    with zipfile.ZipFile(wheel) as archive:
        (stated,) = (name for name in in_wheel if name.endswith(".dist-info/METADATA"))
        Metadata.from_email(archive.read(stated))  # raises where an index would refuse it
    for path, count in ((sdist, len(in_sdist)), (wheel, len(in_wheel))):
        print(f"    {path.name}: {count} files, {path.stat().st_size / 1e6:.1f} MB")


def first_day(environment: Environment, version: str) -> None:
    """Run the README, a first day's work and the commands on what was installed."""
    for command in ("dpcausal --version", "python -m dpcausal --version"):
        if environment.run(command).split() != ["dpcausal", version]:
            sys.exit(f"{command} does not print {version}")
    readme = [block.body for block in blocks(DOCUMENTS[0].read_text(encoding="utf-8")) if block.language == "python"]
    (environment.folder / "work" / "readme.py").write_text("\n".join(readme), encoding="utf-8")
    for command in ("python readme.py", f"python -I {ROOT / 'checks' / 'smoke.py'}", *COMMANDS):
        environment.run(command)


def try_wheel(wheel: Path, folder: Path, constraints: Path | None, python: Path = Path(sys.executable)) -> None:
    """Install the wheel and use it; tell what it weighs and how fast it comes up."""
    environment = Environment.empty(folder, python)
    environment.install(str(wheel), constraints=constraints)
    first_day(environment, version=wheel.name.split("-")[1])
    sizes = environment.sizes()
    missing = {canonicalize_name(name) for name in sizes} - pins(PINNED).keys() - {"dpcausal"}
    if constraints == PINNED and missing:
        sys.exit(f"constraints.txt does not name {', '.join(sorted(missing))}")
    heaviest = sorted(sizes.items(), key=lambda item: -item[1])
    print(f"    {len(sizes)} packages, {sum(sizes.values()):.0f} MB: ", end="")
    print(", ".join(f"{name} {size:.1f}" for name, size in heaviest if size >= 1))
    nothing = environment.milliseconds("pass")
    for code in ("import dpcausal", "import dpcausal; dpcausal.Vault, dpcausal.DifferenceInMeans"):
        print(f"    {code}: {environment.milliseconds(code) - nothing:.0f} ms beyond Python's own {nothing:.0f}")


@contextmanager
def servers(folder: Path) -> Iterator[None]:
    """Start PostgreSQL and an object store for the extras, and name them in the environment."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 (slow to load)

    postgres = folder / "postgres"
    postgres.mkdir()
    folder.chmod(0o755)  # PostgreSQL has a user of its own where this is root's
    store = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    store.start()
    os.environ["DPCAUSAL_POSTGRES"] = run("bash", ROOT / ".ci" / "postgres", "start", postgres).split()[-1]
    os.environ["AWS_ENDPOINT_URL"] = "http://{}:{}".format(*store.get_host_and_port())
    os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "of this check", "AWS_REGION": "us-east-1"}
    try:
        yield
    finally:
        store.stop()
        run("bash", ROOT / ".ci" / "postgres", "stop", postgres)


def try_extra(wheel: Path, folder: Path, extra: str) -> None:
    """Install an extra alone with the pinned versions, and use it."""
    environment = Environment.empty(folder)
    environment.install("--no-compile", f"dpcausal[{extra}] @ {wheel.as_uri()}", constraints=PINNED)
    used = environment.run(f"python -I {ROOT / 'checks' / 'extras.py'} {extra}")
    print(f"    {used.splitlines()[-1]}")
    sizes = environment.sizes()
    print(f"    {len(sizes)} packages, {sum(sizes.values()):.0f} MB")


def install_lines() -> list[str]:
    """Every line of the documents that installs with pip, once each."""
    found = [
        line.split("#")[0].strip()
        for document in DOCUMENTS
        for block in blocks(document.read_text(encoding="utf-8"))
        if block.language == "sh"
        for line in block.body.splitlines()
    ]
    return list(dict.fromkeys(line for line in found if line.startswith("pip install")))


def try_line(wheel: Path, environment: Environment, line: str) -> None:
    """See that a line of the documents can be followed; what is not on an index yet is taken from here."""
    named = []
    for word in shlex.split(line)[2:]:
        name, bracket, extras = word.partition("[")
        ours = {".": f"{ROOT}{bracket}{extras}", "dpcausal": f"{word} @ {wheel.as_uri()}"}
        named.append(ours.get(name, word))
    environment.install(*named, constraints=PINNED, dry=True)


def find_python(minor: int) -> Path | None:
    """Return a Python 3 of this minor version, pyenv's or the one on the path, if there is one."""
    name = f"python3.{minor}"
    places = [*Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"), shutil.which(name)]
    return next((Path(place) for place in places if place), None)


def try_python(wheel: Path, folder: Path, minor: int) -> None:
    """Use the wheel by another Python: one that a classifier names must work, a later one is only reported."""
    is_named = f"Programming Language :: Python :: 3.{minor}" in PROJECT["classifiers"]
    python = find_python(minor)
    if python is None:
        if is_named:
            print(f"NOT TRIED: pyproject.toml names Python 3.{minor}, which is not on this machine")
        return
    with step(f"Install with the newest versions by {python.name} and use it"):
        try:
            try_wheel(wheel, folder / python.name, None, python)
        except SystemExit as error:
            if is_named:
                raise
            print(f"    {error}")


def record(digests: Mapping[str, str], done: Mapping[str, bool]) -> None:
    """Write down what passed."""
    for name, digest in digests.items():
        if done[name]:
            passed.record_pass(name, digest, passed.cpu_seconds())


def main() -> None:
    """Try everything; end with an error at the first thing that is wrong."""
    parser = argparse.ArgumentParser(prog="python -m checks.release", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--all", action="store_true", help="also pinned and newest versions, other Pythons, extras, documents"
    )
    parser.add_argument("--extras", action="store_true", help="each extra alone, and nothing else")
    parser.add_argument("--if-changed", action="store_true", help="only where packaging changed since it last passed")
    chosen = parser.parse_args()
    now, everything = {"release": digest(), "extras": extras_digest()}, chosen.all
    changed = {name: not passed.has_passed(name, each) for name, each in now.items()}
    base = everything or (changed["release"] if chosen.if_changed else not chosen.extras)
    extras = everything or chosen.extras or (chosen.if_changed and changed["extras"])
    if not (base or extras):
        print("release: nothing changed since it was ready")
        return
    with TemporaryDirectory(prefix="dpcausal-release-") as place:
        folder = Path(place)
        sdist, wheel = build(folder / "dist")
        look_into(sdist, wheel)
        for name, constraints in {"oldest": OLDEST, "pinned": PINNED, "newest": None}.items():
            if everything or (base and name == "oldest"):
                with step(f"Install with the {name} versions and use it"):
                    try_wheel(wheel, folder / name, constraints)
        if everything:
            for minor in range(sys.version_info.minor + 1, sys.version_info.minor + 9):
                try_python(wheel, folder, minor)
            environment = Environment.empty(folder / "lines")
            for extra, constraints in product(USES, (OLDEST, None)):
                named = constraints.name if constraints else "the newest versions"
                with step(f"See that the extra {extra} resolves with {named}"):
                    environment.install(f"dpcausal[{extra}] @ {wheel.as_uri()}", constraints=constraints, dry=True)
            for line in install_lines():
                with step(f"See that this can be done: {line}"):
                    try_line(wheel, environment, line)
        if extras:
            with servers(folder):
                for extra in USES:
                    with step(f"Install the extra {extra} alone, and use it"):
                        try_extra(wheel, folder / f"extra-{extra}", extra)
                    shutil.rmtree(folder / f"extra-{extra}")
    record(now, {"release": base, "extras": extras})
    print("release: ready")


if __name__ == "__main__":
    main()
