from dpcausal.page.numbers import number


def test_nothing_rounds_to_minus_zero() -> None:
    assert number(-0.0001, 2) == "0.00"
    assert number(float("-inf")) == "\N{MINUS SIGN}∞"
