"""Pooling by the set of smallest variance, against all sets and against the printed rule."""

from benchmarks.pooling import Setting, agreement, errors


def test_the_best_prefix_is_the_best_of_all_sets() -> None:
    assert agreement(400, most=9)["agree"]


def test_floored_rule_is_no_worse_than_the_printed_rule() -> None:
    """Small sites, where noise makes printed variances negative: there the printed rule loses, and ours does not."""
    small, plain = errors(Setting(3, "small", 1.0, 0.0), 500), errors(Setting(3, "equal", 1.0, 0.0), 500)
    assert float(str(small["printed_variances_below_0"])) > 0.05
    assert float(str(small["z"])) < -5
    assert float(str(plain["z"])) < 3
