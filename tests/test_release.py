import pytest

import dpcausal as dpc
from dpcausal.queries import ArmMoments


def test_a_release_survives_json(vault: dpc.Vault) -> None:
    release = vault.release(ArmMoments(), dpc.Guarantee(epsilon=1.0))
    assert dpc.Release.from_json(release.to_json()) == release


def test_values_are_in_the_schemas_own_terms(vault: dpc.Vault) -> None:
    release = vault.release(ArmMoments(), dpc.Guarantee(epsilon=5.0))
    assert release.names == ("total_0", "deficit_0", "total_1", "deficit_1", "size_1", "compared")
    assert abs(release.value("size_1") - 500) < 100
    assert abs(release.value("total_1") / release.value("size_1") + 5 - 6) < 0.5
    assert release.scale("total_1") == pytest.approx(1.5 * 10 / 5, rel=1e-3)
    assert release.variance("total_1") == 2 * release.scale("total_1") ** 2
