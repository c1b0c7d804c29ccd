import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import QueryError
from dpcausal.queries import ArmMoments, CustomSums


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


def test_misspelt_number_of_a_release_is_answered_with_its_names() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1))
    release = dpc.Rehearsal(schema, n=100).release(CustomSums({"count": "1"}), dpc.Guarantee(epsilon=1.0))
    for ask in (release.value, release.scale, release.variance):
        with pytest.raises(QueryError, match="no number named 'counts'") as told:
            ask("counts")
        assert told.value.hint == "did you mean 'count'? Its numbers are count."


def test_query_of_ones_own_is_answered_with_sums_of_ones_own() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1))
    table = pa.table({"t": [0, 1], "y": [0.0, 1.0]})
    vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=1))
    with pytest.raises(QueryError) as told:
        vault.release(lambda table: table.mean(), dpc.Guarantee(epsilon=1.0))  # type: ignore[arg-type]
    assert "CustomSums(" in told.value.hint
