"""The machine-checked proofs build, are about the constants of the code, and fail on deliberate errors."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from checks import formal, formal_cases, formal_descriptions, passed
from checks.formal_cases import CASES, SETTINGS
from dpcausal.queries import QUERIES, CellMoments, OutcomeCounts, ReceivedMoments, received_moments, summing
from dpcausal.queries.query import Coordinate
from dpcausal.queries.summing import SummingQuery, by_norm
from dpcausal.schema.schema import Schema
from dpcausal.sums.cases import Domain, domain_of
from dpcausal.sums.description import Sums
from dpcausal.sums.sensitivity import sensitivity_bound
from tests.support.descriptions import forget_descriptions

# Building takes more than a minute of one core; all tests that need it share one build.
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("formal")]


def why_not_built() -> str:
    """Return why nothing is built here; empty where it is."""
    if shutil.which("coqc") is None:
        return "the prover, coqc of Debian's package coq, is not here"
    if not formal.changed() and "DPCAUSAL_FORMAL" not in os.environ:
        return "no proof changed since the last build that passed; `make formal` builds them again"
    return ""


COQ = pytest.mark.skipif(bool(why_not_built()), reason=why_not_built())
PAGE = formal.PAGE


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the development that was built."""
    folder = tmp_path_factory.mktemp("formal")
    _copy(formal.FOLDER, folder)
    done = formal.build(folder)
    assert done.axioms
    assert set(done.axioms) <= formal.AXIOMS
    return folder


def _copy(source: Path, folder: Path) -> None:
    for file in (*source.glob("*.v"), *source.glob("*.vo")):
        shutil.copy2(file, folder / file.name)


def test_exported_constants_are_current() -> None:
    assert (formal.FOLDER / formal.CONSTANTS).read_text(encoding="utf-8") == formal.constants(), "run make formal"
    assert (formal.FOLDER / formal.GRIDS).read_text(encoding="utf-8") == formal.grids(), "run make formal"


def test_claims_are_current() -> None:
    assert (formal.FOLDER / formal.CLAIMS).read_text(encoding="utf-8") == formal.claims(), "run make formal"


def test_every_claim_has_a_theorem() -> None:
    certified = (formal.FOLDER / formal.CERTIFIED).read_text(encoding="utf-8")
    assert re.findall(r"^Theorem (\w+)_certified : true_claim \1\.$", certified, re.MULTILINE) == [
        *formal_descriptions.claims()
    ]


def test_other_bound_of_a_description_is_not_the_certified_one(monkeypatch: pytest.MonkeyPatch) -> None:
    _half_a_bound(monkeypatch)
    with pytest.raises(AssertionError, match="run make formal"):
        test_claims_are_current()


@pytest.mark.parametrize("name", [*formal.FILES, "checks", "cases", "descriptions"])
def test_changed_source_is_built_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _copy(formal.FOLDER, tmp_path)
    monkeypatch.setattr(formal, "FOLDER", tmp_path)
    monkeypatch.setattr(passed, "FILE", tmp_path / "passed.json")
    assert formal.changed()
    passed.record_pass("formal", formal.digest(), seconds=1)
    assert not formal.changed()
    code = {"checks": formal, "cases": formal_cases, "descriptions": formal_descriptions}
    if name in code:
        monkeypatch.setattr(code[name], "__file__", str(shutil.copy(str(code[name].__file__), tmp_path / f"{name}.v")))
    source = tmp_path / f"{name}.v"
    source.write_text(source.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert formal.changed()


def test_every_exported_query_has_a_theorem_and_a_tie() -> None:
    named = {theorem.partition(".")[2] for theorem in formal.theorems()}
    ties = (formal.FOLDER / "Ties.v").read_text(encoding="utf-8")
    for name in CASES:
        assert name in QUERIES
        assert name in named
        assert f"Lemma {name}_tied :" in ties


def test_page_lists_every_query() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == formal.page(), "run make formal"
    rows = re.findall(r"^\| `(\w+)` \| (formal|computed|paper) \|", text, re.MULTILINE)
    assert dict(rows) == {name: formal.status(name) for name in QUERIES}
    assert formal.ON_PAPER.keys() == {name for name, how in rows if how == "paper"}


def test_proof_pages_of_formal_queries_name_their_theorem() -> None:
    for name in (name for name in CASES if not issubclass(QUERIES[name], SummingQuery)):
        stem = QUERIES[name].__module__.rpartition(".")[2]
        page = (PAGE.parent / "proofs" / f"{stem}.md").read_text(encoding="utf-8")
        assert "(../formal.md)" in page, stem
        assert any(f"`{theorem}`" in page for theorem in formal.theorems() if theorem.endswith(f".{name}")), name


@COQ
def test_build_rests_on_the_axioms_of_the_reals_only(built: Path) -> None:
    assert (built / "Ties.vo").exists()


@COQ
@pytest.mark.parametrize("gap", ["Theorem none : False.\nAdmitted.\n", "Axiom none : False.\n"])
def test_gap_or_new_axiom_fails_the_build(tmp_path: Path, gap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Gap.v").write_text(gap, encoding="utf-8")
    monkeypatch.setattr(formal, "FILES", ("Gap",))
    with pytest.raises(formal.FormalError, match="every theorem must be proved"):
        formal.build(tmp_path)


def _half_a_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        summing, "sensitivity_bound", lambda *given: replace(found := sensitivity_bound(*given), bound=found.bound / 2)
    )


def _wrong_weight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(received_moments, "by_norm", lambda norm, l1, l2: by_norm(norm, l1, l2) / 2)


def _swapped_weights(patch: pytest.MonkeyPatch) -> None:
    """Give each of two sums the weight of the other."""
    right = ReceivedMoments.sums

    def swapped(*given: Any) -> tuple[Sums, ...]:
        (sums,) = right(*given)
        weights = {**sums.weights, "received": sums.weights["product"], "product": sums.weights["received"]}
        return (replace(sums, weights=weights),)

    patch.setattr(ReceivedMoments, "sums", swapped)


def _missing_case(patch: pytest.MonkeyPatch) -> None:
    """Charge private arms as if no unit could change its arm."""

    def staying(*given: Any) -> Domain:
        whole = domain_of(*given)
        return replace(whole, changes=whole.changes - {"treatment", "arm"}, leaves=False)

    patch.setattr(summing, "domain_of", staying)


def _nobody_moves(patch: pytest.MonkeyPatch) -> None:
    """Charge cells as if no unit could move between them, whatever is protected."""
    patch.setattr(CellMoments, "units_may_move", lambda *_: False)


def _nobody_leaves(patch: pytest.MonkeyPatch) -> None:
    """Release the number compared without noise of its own."""
    patch.setattr(Schema, "units_may_leave", lambda *_: False)


def _a_bin_less(patch: pytest.MonkeyPatch) -> None:
    """Leave the last edge of several out of the answer."""
    right = OutcomeCounts.sums

    def fewer(query: OutcomeCounts, *given: Any) -> tuple[Sums, ...]:
        return right(replace(query, edges=query.edges[:-1]) if len(query.edges) > 1 else query, *given)

    patch.setattr(OutcomeCounts, "sums", fewer)


ERRORS = pytest.mark.parametrize(
    "error",
    [
        _half_a_bound,
        _wrong_weight,
        _swapped_weights,
        _missing_case,
        _nobody_moves,
        _nobody_leaves,
        _a_bin_less,
    ],
)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Compute every sensitivity anew."""
    forget_descriptions()
    yield
    forget_descriptions()


@pytest.mark.parametrize("name", CASES)
def test_what_is_compared_does_not_come_from_the_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that says nothing of itself but its weights and its bound is exported as before."""
    lines = [*formal._lines(name, SETTINGS[0])]
    for method in ("examples", "reads", "expected"):
        monkeypatch.setattr(QUERIES[name], method, None)
    assert [*formal._lines(name, SETTINGS[0])] == lines


def test_number_without_a_weight_is_not_left_out() -> None:
    with pytest.raises(formal.FormalError, match="no weight"):
        formal._weights((Coordinate("total", 1.0, Fraction(1)), Coordinate("size", 1.0, None)))


@ERRORS
def test_wrong_constant_in_python_is_not_the_exported_one(
    monkeypatch: pytest.MonkeyPatch, error: Callable[[pytest.MonkeyPatch], None]
) -> None:
    error(monkeypatch)
    with pytest.raises(AssertionError, match="run make formal"):
        test_exported_constants_are_current()


@COQ
@ERRORS
def test_wrong_constant_in_python_fails_the_build(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Callable[[pytest.MonkeyPatch], None]
) -> None:
    _copy(built, tmp_path)
    error(monkeypatch)
    text = formal.constants()
    assert text != (built / formal.CONSTANTS).read_text(encoding="utf-8")
    (tmp_path / formal.CONSTANTS).write_text(text, encoding="utf-8")
    formal.compile_file(tmp_path, formal.CONSTANTS)
    with pytest.raises(formal.FormalError, match=r"Ties\.v does not build"):
        formal.compile_file(tmp_path, "Ties.v")


STATEMENTS = {
    "half a bound": ("Moments", "record, l1 => 3 # 2 | _, _ => 1 end", "record, l1 => 3 # 4 | _, _ => 1 end"),
    "a wrong weight": ("Moments", "[(Total, Zq (2 * G))].", "[(Total, Zq G)]."),
    "a missing case": ("Moments", "record, l1 => 3 # 2 | _, _ => 1 end", "_, _ => 1 end"),
}


@COQ
@pytest.mark.parametrize(("file", "right", "wrong"), STATEMENTS.values(), ids=STATEMENTS.keys())
def test_wrong_statement_has_no_proof(built: Path, tmp_path: Path, file: str, right: str, wrong: str) -> None:
    _copy(built, tmp_path)
    text = (tmp_path / f"{file}.v").read_text(encoding="utf-8")
    assert right in text
    (tmp_path / f"{file}.v").write_text(text.replace(right, wrong, 1), encoding="utf-8")
    with pytest.raises(formal.FormalError, match=rf"{file}\.v does not build"):
        formal.compile_file(tmp_path, f"{file}.v")


def _only(name: str) -> tuple[str, str]:
    """Return the files of claims and certificates with one claim alone."""
    found = []
    for file, start in ((formal.CLAIMS, "Definition"), (formal.CERTIFIED, "Theorem")):
        head, *blocks = re.split(
            rf"(?=^{start} )", (formal.FOLDER / file).read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        found.append(head + next(block for block in blocks if re.match(rf"{start} {name}(_certified)? ", block)))
    return found[0], found[1]


WRONG_CERTIFICATES = {
    "the right one": ("received_moments_outcome_l1", "", ""),
    "half a bound": ("received_moments_outcome_l1", r"# 4398046511104\)", "# 8796093022208)"),
    "a lighter weight": ("received_moments_outcome_l1", r"\(4194304 # 1\)", "(1048576 # 1)"),
    "a public column that is private": ("received_moments_outcome_l1", r"\)\) true", ")) false"),
    "factors that are no group": ("regression_moments_20_within_arm_l2", r"\]; \[(?=\d)", "; "),
    "a case without a proof": ("arm_moments_record_l2", r"\n  \(Parts .*", "\n  Missing"),
    "a box that is not empty": ("arm_moments_record_l2", "ByRanges", "Empty"),
    "no box is cut": ("arm_moments_record_l2", r"\n  \((?=Split|Parts).*", "\n  ByRanges"),
}


@COQ
@pytest.mark.parametrize(("name", "right", "wrong"), WRONG_CERTIFICATES.values(), ids=WRONG_CERTIFICATES.keys())
def test_wrong_claim_or_certificate_has_no_proof(
    built: Path, tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    _copy(built, tmp_path)
    for file, text in zip((formal.CLAIMS, formal.CERTIFIED), _only(name), strict=True):
        (tmp_path / file).write_text(re.sub(right, wrong, text, count=1) if right else text, encoding="utf-8")
    formal.compile_file(tmp_path, formal.CLAIMS)
    if not right:
        formal.compile_file(tmp_path, formal.CERTIFIED)
        return
    assert (*_only(name),) != tuple(
        (tmp_path / file).read_text(encoding="utf-8") for file in (formal.CLAIMS, formal.CERTIFIED)
    )
    with pytest.raises(formal.FormalError, match=r"Certified\.v does not build"):
        formal.compile_file(tmp_path, formal.CERTIFIED)
