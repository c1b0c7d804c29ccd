"""The machine-checked proofs: `python -m checks.formal` exports constants of the code, builds and prints the axioms.

The sources are in `formal/`. `Constants.v` is written from the queries themselves, so that a bound or a weight that
changes in Python without its theorem fails the build. For which schemas and queries, and what else a bound depends on,
is in `checks/formal_cases.py`, apart from the code. The Makefile's target is `formal`, because `proofs` writes the
index of proofs.

A build that passed writes the digest of its sources to `checks/passed.json`. While the digest is that of the checkout,
the gate does not build again: it only compares the constants with the code.
"""

import hashlib
import itertools
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from checks import formal_cases, formal_descriptions, passed
from checks.formal_cases import CASES, NORMS, PROTECTS, SETTINGS, Setting, cases, in_order
from dpcausal.queries import GRID, QUERIES, Coordinate
from dpcausal.queries.cutoff_moments import FINE
from dpcausal.queries.summing import SummingQuery

FOLDER = Path(__file__).parents[1] / "formal"
CONSTANTS, GRIDS, CLAIMS, CERTIFIED = "Constants.v", "Grid.v", "Claims.v", "Certified.v"
"""The files that are written from the code. All others need the grids; only ties and certificates need the rest."""

FILES = (
    "Grid",
    "Frame",
    "Cells",
    "Rounding",
    "Vertices",
    "Balls",
    "Numbers",
    "Exchange",
    "Certificates",
    "Descriptions",
    "Moments",
    "Counts",
    "WeightedCounts",
    "Sums",
    "WeightedArms",
    "Minimum",
    "Noise",
    "Ledger",
    "Exported",
    "Constants",
    "Ties",
    "Claims",
    "Certified",
)
"""The files of the development, each after those that it needs."""

AXIOMS = frozenset(
    {
        "ClassicalDedekindReals.sig_forall_dec",
        "ClassicalDedekindReals.sig_not_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    }
)
"""The axioms of Coq's real numbers; the last one is used by its exponential function. No theorem may use another."""

_PROTECTS = {"record": "record", "record_within_arm": "record_within_arm", "outcome": "outcome_only"}

ON_PAPER = {
    "look_metrics": "the sum over looks is not formalised; one look is that of `metric_moments`",
    "look_moments": "the sum over looks is not formalised; one look is that of `cell_moments`",
    "stratum_contrasts": "no sum over units: one unit changes the coefficients of its stratum",
    "stratum_matches": "no sum over units; smooth sensitivity is not formalised",
    "output_perturbed_logistic": "`Minimum.minimum_moves` is its main lemma; the loss and the solver are on paper",
    "objective_perturbed_logistic": "the Jacobian of the minimum is not formalised",
    "all_units_logistic": "as for `objective_perturbed_logistic`",
    "observed_logistic": "as for `objective_perturbed_logistic`, in each arm",
    "bounded_influence_logistic": "the Jacobian of the minimum is not formalised",
    "effect_weights": "`Minimum.minimum_moves` is its main lemma; the loss and the solver are on paper",
    "effect_moments": "inner products of functions are not formalised",
    "weighted_regression_moments": "inner products of matrices, and weights that bound them, are not formalised",
    "matched_contrast": "sums of squares around the means of blocks are not formalised",
    "noisy_matched_contrast": "two of its three parts are noise on each unit's score and arm, which is not formalised",
}
"""Why the bound of a query that is by hand is not proved by machine."""

PAGE = Path(__file__).parents[1] / "docs" / "formal.md"
HEAD = "| query | proof | theorem, or what is missing |\n|---|---|---|\n"
"""The head of the table that is written into the page."""


def table() -> str:
    """Return the table of all queries: which bounds are proved by machine, and why others are not."""
    found = {theorem.partition(".")[2]: theorem for theorem in theorems()}
    return HEAD + "".join(f"| `{name}` | {status(name)} | {_reason(name, found)} |\n" for name in QUERIES)


def status(name: str) -> Literal["formal", "computed", "paper"]:
    """Return how the bound of a query is proved."""
    if name in CASES or name in formal_descriptions.WHOLLY:
        return "formal"
    return "computed" if issubclass(QUERIES[name], SummingQuery) else "paper"


def _reason(name: str, found: Mapping[str, str]) -> str:
    """Return the theorem of a query, or why it has none."""
    match status(name):
        case "formal" if name in CASES:
            return f"`{found[name]}`"
        case "formal":
            return "by [certificates](#certificates-of-descriptions), at every level of protection and in both norms"
        case "computed":
            return "computed from its description, as [proved on paper](proofs/sums.md)"
        case "paper":
            return ON_PAPER[name]


def page() -> str:
    """Return the page with its table as it must be."""
    return re.sub(re.escape(HEAD) + r"(\|.*\n)*", lambda _: table(), PAGE.read_text(encoding="utf-8"))


WRITTEN = "(** Written by [python -m checks.formal] from the Python code. Do not edit. *)\n\n"


def grids() -> str:
    """Return the file of grids as the code has them."""
    numbers = {"grid": GRID, "fine": FINE}
    lines = "".join(f"Definition {name} : Z := {number}.\n" for name, number in numbers.items())
    return f"{WRITTEN}From Coq Require Import ZArith.\n\n{lines}"


def write_constants(folder: Path) -> None:
    """Write both files of constants, and the claims with their certificates where they changed."""
    (folder / CONSTANTS).write_text(constants(), encoding="utf-8")
    (folder / GRIDS).write_text(grids(), encoding="utf-8")
    if not (folder / CLAIMS).is_file() or (folder / CLAIMS).read_text(encoding="utf-8") != claims():
        (folder / CERTIFIED).write_text(WRITTEN + formal_descriptions.certified_text(), encoding="utf-8")
        (folder / CLAIMS).write_text(claims(), encoding="utf-8")


def claims() -> str:
    """Return the file of claims as the code has them."""
    return WRITTEN + formal_descriptions.claims_text()


def constants() -> str:
    """Return the file of constants as the code has them."""
    parts = [
        WRITTEN,
        "From Coq Require Import QArith ZArith List.\nFrom dpcausal Require Import Frame Exported.\n",
        "Import ListNotations.\nOpen Scope Q_scope.\n\n",
    ]
    for name in CASES:
        lines = sorted({line for setting in SETTINGS for line in _lines(name, setting)})
        parts.append(f"\nDefinition exported_{name} : list exported := [\n  " + ";\n  ".join(lines) + "].\n")
    return "".join(parts)


def _lines(name: str, setting: Setting) -> Iterator[str]:
    """Yield the weights and the bound that the code has for each case of a query."""
    for case, declared, norm in itertools.product(cases(name, setting), PROTECTS, NORMS):
        protects = setting.bounded_as(declared)
        if case.only is not None and (protects, norm) not in case.only:
            continue
        given = case.query.sensitivity(setting.schema(declared), protects, norm)
        numbers = "; ".join(map(str, case.numbers(setting, protects)))
        leaves = str(setting.leaves(protects)).lower()
        yield (
            f"Exported {_PROTECTS[protects]} {leaves} [{numbers}]%nat {norm} "
            f"[{_weights(in_order(name, given.coordinates))}] {_fraction(given.bound)}"
        )


def _weights(coordinates: Sequence[Coordinate]) -> str:
    """Return weights in their order, equal ones in a row counted."""
    weights = [at.weight for at in coordinates]
    if None in weights:
        raise FormalError("a number of an answer has no weight, and every theorem is about all numbers.")
    runs = [(len([*same]), weight) for weight, same in itertools.groupby(filter(None, weights))]
    return "; ".join(f"({count}%nat, {_fraction(weight)})" for count, weight in runs)


def _fraction(number: Fraction) -> str:
    return f"({number.numerator} # {number.denominator})"


@dataclass(frozen=True)
class Build:
    """What a build came to."""

    seconds: float
    theorems: tuple[str, ...]
    axioms: tuple[str, ...]
    lines: int


class FormalError(Exception):
    """A development that does not build, has a gap, or leans on an axiom that it may not use."""


def theorems(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the names of all theorems, lemmas not counted, as file.name."""
    return tuple(
        f"{name}.{found}"
        for name in FILES
        for found in re.findall(r"^Theorem (\w+)", (folder / f"{name}.v").read_text(encoding="utf-8"), re.MULTILINE)
    )


def digest() -> str:
    """Return the digest of all that decides whether the development builds: its sources, the cases and this module."""
    sources = [
        Path(__file__),
        Path(formal_cases.__file__),
        Path(formal_descriptions.__file__),
        *(FOLDER / f"{name}.v" for name in FILES),
    ]
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()


def changed() -> bool:
    """Say whether anything changed since the last build that passed."""
    return not passed.has_passed("formal", digest())


def build(folder: Path) -> Build:
    """Compile every file of a folder, and list the axioms that its theorems and ties rest on.

    Raises:
        FormalError: If a file does not compile, admits something, or rests on an axiom other than those of the reals.
    """
    start, lines = time.monotonic(), 0
    for name in FILES:
        text = (folder / f"{name}.v").read_text(encoding="utf-8")
        lines += text.count("\n") if f"{name}.v" not in (CONSTANTS, GRIDS, CLAIMS, CERTIFIED) else 0
        gap = re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Hypothesis)\b", text)
        if gap:
            raise FormalError(f"{name}.v has {gap.group()}: every theorem must be proved, and no axiom added.")
        compile_file(folder, f"{name}.v")
    names = theorems(folder)
    ties = re.findall(r"^Lemma (\w+_tied)", (folder / "Ties.v").read_text(encoding="utf-8"), re.MULTILINE)
    everything = ", ".join(f"@{name}" for name in (*names, *(f"Ties.{tie}" for tie in ties)))
    (folder / "Axioms.v").write_text(
        f"From dpcausal Require {' '.join(FILES)}.\nDefinition everything := ({everything}).\n"
        "Print Assumptions everything.\n",
        encoding="utf-8",
    )
    axioms = re.findall(r"^([A-Z]\w*\.[\w.]+)", compile_file(folder, "Axioms.v"), re.MULTILINE)
    unknown = sorted(set(axioms) - AXIOMS)
    if unknown:
        raise FormalError(f"theorems rest on {', '.join(unknown)}, and only the axioms of the reals are allowed.")
    return Build(time.monotonic() - start, names, tuple(axioms), lines)


def compile_file(folder: Path, file: str) -> str:
    """Compile one file and return what it prints.

    Raises:
        FormalError: If it does not compile.
    """
    command = [shutil.which("coqc") or "coqc", "-q", "-Q", ".", "dpcausal", file]
    done = subprocess.run(command, check=False, text=True, capture_output=True, cwd=folder)  # noqa: S603
    if done.returncode:
        raise FormalError(f"{file} does not build:\n{done.stderr or done.stdout}")
    return done.stdout


def main() -> None:
    """Write the constants, build in the folder itself, and print what was proved."""
    if shutil.which("coqc") is None:
        sys.exit("formal: no coqc here; on Debian: apt-get install --no-install-recommends coq")
    write_constants(FOLDER)
    PAGE.write_text(page(), encoding="utf-8")
    try:
        done = build(FOLDER)
    except FormalError as error:
        sys.exit(f"formal: FAILED: {error}")
    passed.record_pass("formal", digest(), passed.cpu_seconds())
    print(f"formal: {len(done.theorems)} theorems, {done.lines} lines, {done.seconds:.0f} s")
    print("axioms:", *done.axioms, sep="\n  ")


if __name__ == "__main__":
    main()
