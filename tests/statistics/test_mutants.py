"""Every statistical mutant is caught by a check of its estimator. The package passes the same checks elsewhere."""

import pytest

from tests.statistics.mutants import MUTANTS, Mutant, caught_by
from tests.statistics.pooled import check_pooling
from tests.statistics.sites import check_requires_at_a_site

pytestmark = pytest.mark.xdist_group("statistics")  # in one process: they share what was estimated

COSTLY = pytest.mark.costly("tests/statistics/estimators")  # cases are found in this folder


def test_mutants_are_many_and_have_different_names() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 200


KINDS = {mutant.name.partition(": ")[2]: mutant for mutant in reversed(MUTANTS)}
"""The first mutant of each kind, which is tried in every run; the others are costly."""


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(
            mutant,
            id=mutant.name,
            marks=() if mutant in KINDS.values() else COSTLY,
        )
        for mutant in MUTANTS
    ],
)
def test_mutant_is_caught(mutant: Mutant) -> None:
    assert caught_by(mutant)


def test_pooled_effects_are_those_of_a_textbook() -> None:
    assert not check_pooling()


def test_a_site_refuses_studies_that_require_diagnostics() -> None:
    assert not check_requires_at_a_site()
