"""Every mutant is caught by its check, and the same check passes on the package as it is."""

import csv
from pathlib import Path

import pytest

from dpcausal.audit.tasks import CHECKS, NOT_AUDITED
from tests.audit.mutants import MUTANTS, Mutant, found

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.xdist_group("audit")  # in one process: they share what was read

KINDS = {f"{mutant.check.__module__}.{mutant.check.__qualname__}": mutant for mutant in MUTANTS}
"""One mutant for each kind of check. Every run of the gate makes these checks, with the mutant and without."""

COSTLY = pytest.mark.costly("src", "docs/audit.md", "docs/mutants.csv")
LISTED = dict(csv.reader((ROOT / "docs" / "mutants.csv").read_text(encoding="utf-8").splitlines()[1:]))
"""The check that catches each mutant, as the documentation lists them."""


def test_mutants_are_many_and_have_different_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 71


def test_page_lists_every_mutant_check_and_limit() -> None:
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    assert "](mutants.csv)" in page
    assert sorted(LISTED) == sorted(mutant.name for mutant in MUTANTS)
    assert all(f"\n| `{name}` | {shown} |" in page for name, shown in CHECKS.items())
    assert all(f"\n- {limit}\n" in page for limit in NOT_AUDITED)
    assert f"holds {len(MUTANTS)} deliberately broken variants" in page
    assert f"catch {len(MUTANTS)} mutants" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(mutant, id=mutant.name, marks=[] if mutant in KINDS.values() else [COSTLY]) for mutant in MUTANTS],
)
def test_mutant_is_caught(mutant: Mutant) -> None:
    finding = found(mutant, breaking=True)
    assert not finding.passed, finding.detail
    assert LISTED[mutant.name] == finding.check


@pytest.mark.parametrize("mutant", KINDS.values(), ids=[mutant.name for mutant in KINDS.values()])
def test_check_passes_on_the_package_as_it_is(mutant: Mutant) -> None:
    finding = found(mutant, breaking=False)
    assert finding.passed, finding.detail
