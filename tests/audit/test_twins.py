"""Every broken twin is caught by its check, and the same check passes on the package as it is."""

import pytest

from tests.audit.twins import TWINS, Twin, found


def test_there_are_enough_of_them() -> None:
    assert len({twin.name for twin in TWINS}) == len(TWINS) >= 55


@pytest.mark.parametrize("twin", TWINS, ids=[twin.name for twin in TWINS])
def test_a_broken_twin_is_caught(twin: Twin) -> None:
    finding = found(twin, breaking=True)
    assert not finding.passed, finding.detail


KINDS = {f"{twin.check.__module__}.{twin.check.__qualname__}": twin for twin in TWINS}
"""One twin for each kind of check; the audit makes all checks of the package as it is."""


@pytest.mark.parametrize("twin", KINDS.values(), ids=[twin.name for twin in KINDS.values()])
def test_what_is_not_broken_is_not_caught(twin: Twin) -> None:
    finding = found(twin, breaking=False)
    assert finding.passed, finding.detail
