from fractions import Fraction

import pytest

import dpcausal as dpc
from dpcausal.errors import GuaranteeError
from dpcausal.guarantee import Event, exact


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": "1"},
        {"epsilon": True},
        {"epsilon": None},
        {"epsilon": 1, "delta": 0.5},
        {"epsilon": 1, "delta": -1e-9},
        {"epsilon": 1, "protects": "nothing"},
    ],
)
def test_impossible_guarantees_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(GuaranteeError):
        dpc.Guarantee(**wrong)  # type: ignore[arg-type]


def test_guarantee_says_what_it_protects() -> None:
    assert "replaced by any other; n is public" in str(dpc.Guarantee(epsilon=1))
    assert "arm are public" in str(dpc.Guarantee(epsilon=1, protects="record_within_arm"))


def test_rho_is_never_rounded_down() -> None:
    assert Event(family="laplace", epsilon=4.629, delta=0.0, mu=0.0).rho == Fraction(4629, 1000) ** 2 / 2


def test_rho_of_events() -> None:
    assert Event(family="laplace", epsilon=1.0, delta=0.0, mu=0.0).rho == pytest.approx(0.5)
    assert Event(family="gaussian", epsilon=1.0, delta=1e-6, mu=0.2).rho == pytest.approx(0.02)


@pytest.mark.parametrize("count", [1, 3, 11, 39])
def test_equal_parts_add_up_to_no_more_than_the_whole(count: int) -> None:
    for whole in (dpc.Guarantee(epsilon=1), dpc.Guarantee(epsilon=0.3, delta=1e-6)):
        part = whole.part(count)
        assert exact(part.epsilon) * count <= exact(whole.epsilon)
        assert exact(part.delta) * count <= exact(whole.delta)
        assert part.epsilon * count == pytest.approx(whole.epsilon)
        assert part.protects == whole.protects
