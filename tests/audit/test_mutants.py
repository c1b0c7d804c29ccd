"""Every mutant is caught by its check, and the same check passes on the package as it is."""

import pytest

from tests.audit.mutants import MUTANTS, Mutant, found

pytestmark = pytest.mark.xdist_group("audit")  # in one process: they share what was read


def test_mutants_are_many_and_have_different_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 71


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_mutant_is_caught(mutant: Mutant) -> None:
    finding = found(mutant, breaking=True)
    assert not finding.passed, finding.detail


KINDS = {f"{mutant.check.__module__}.{mutant.check.__qualname__}": mutant for mutant in MUTANTS}
"""One mutant for each kind of check; the audit makes all checks of the package as it is."""


@pytest.mark.parametrize("mutant", KINDS.values(), ids=[mutant.name for mutant in KINDS.values()])
def test_check_passes_on_the_package_as_it_is(mutant: Mutant) -> None:
    finding = found(mutant, breaking=False)
    assert finding.passed, finding.detail
