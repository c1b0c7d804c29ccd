"""Every mutant is caught by its check, and the same check passes on the package as it is."""

import pytest

from tests.audit.mutants import MUTANTS, Mutant, found


def test_there_are_enough_of_them() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 55


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_broken_twin_is_caught(mutant: Mutant) -> None:
    finding = found(mutant, breaking=True)
    assert not finding.passed, finding.detail


KINDS = {f"{mutant.check.__module__}.{mutant.check.__qualname__}": mutant for mutant in MUTANTS}
"""One mutant for each kind of check; the audit makes all checks of the package as it is."""


@pytest.mark.parametrize("mutant", KINDS.values(), ids=[mutant.name for mutant in KINDS.values()])
def test_what_is_not_broken_is_not_caught(mutant: Mutant) -> None:
    finding = found(mutant, breaking=False)
    assert finding.passed, finding.detail
