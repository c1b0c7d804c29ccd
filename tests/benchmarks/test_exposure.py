"""A short form of `python -m benchmarks.exposure`: one changed record, put to the heuristic and to what is proved."""

import pytest

from benchmarks import exposure
from dpcausal.audit.bound import epsilon_of_mu

pytestmark = pytest.mark.costly


@pytest.fixture(scope="module")
def scene() -> exposure.Scene:
    """One record, put on a profile with the largest outcome."""
    scene = exposure.Scene(seed=1, each=1)
    scene.changes = [change for change in scene.changes if change.record["score"] == 12]
    assert len(scene.changes) == 1
    return scene


def test_a_forest_with_noise_by_influence_functions_gives_one_record_away(scene: exposure.Scene) -> None:
    (found,) = exposure.heuristic(scene, "forest")
    assert found["epsilon"] == epsilon_of_mu(found["mu"], exposure.DELTA)
    assert found["epsilon"] >= 10 * exposure.EPSILON


@pytest.mark.parametrize("name", exposure.PROVED)
def test_what_is_proved_keeps_its_promise_on_the_same_change(scene: exposure.Scene, name: str) -> None:
    (found,) = exposure.proved(scene, name)
    assert 0 < found["epsilon"] <= exposure.EPSILON


def test_only_the_change_moves_an_answer(scene: exposure.Scene) -> None:
    """The mutant of the first: trained twice on the same table, models say the same."""
    one, other = (exposure.influence(scene.table, scene.at, "linear") for _ in range(2))
    assert exposure.moved(one, other) == (0.0, 1.0)
    (change,) = scene.changes
    table = change.made(scene.table)
    assert sum((table[name] != cells).any() for name, cells in scene.table.items()) >= 3
    assert all((table[name] != cells).sum() <= 1 for name, cells in scene.table.items())
