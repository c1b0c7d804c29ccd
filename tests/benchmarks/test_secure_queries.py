"""Curves, subgroups and metrics of secure sums: the stored result, and a short form of the suite."""

import json
from typing import Any

import numpy as np
import pytest

from benchmarks.array_engine import ArrayEngine
from benchmarks.parts import PUBLISHED
from benchmarks.secure_queries import PARTS, SITES, drawn, sources
from benchmarks.secure_sums import NUMBER
from dpcausal.audit.tables import exact_answer
from dpcausal.guarantee import Guarantee
from dpcausal.queries import MetricMoments


def stored() -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = json.loads((PUBLISHED / "secure_queries.json").read_text(encoding="utf-8"))["parts"]
    return parts


def test_stored_parts_have_nearly_the_noise_of_one_table_and_cover() -> None:
    assert [line["part"] for line in stored()] == list(PARTS)
    for line in stored():
        assert (line["sites"], line["tables"] >= 200) == (SITES, True)
        assert line["privacy_sd_ratio"] == pytest.approx(line["expected_ratio"], rel=0.05)
        assert line["difference_over_privacy_sd"] == pytest.approx(line["expected_difference"], rel=0.05)
        error = 2 * line["coverage_se"]
        assert 0.93 - error <= line["coverage"] <= 0.97 + error
        assert abs(line["coverage"] - line["coverage_of_one_table"]) < 0.02


def test_metrics_of_arrays_add_up_over_sites() -> None:
    secure, _ = sources(drawn(1), NUMBER)
    query, guarantee = MetricMoments([["y"], ["x"]], [1.0, 1.0]), Guarantee(epsilon=1.0)
    table = drawn(1)
    whole = sources(table, NUMBER)[1]._engine
    assert isinstance(whole, ArrayEngine)
    one = exact_answer(query, NUMBER, whole, guarantee).ticks
    parts = [exact_answer(query, NUMBER, engine, guarantee).ticks for engine in secure._engines]
    assert {name: sum(part[name] for part in parts) for name in one} == one
    treated = np.flatnonzero(table["arm"] == 1)
    assert one["size_1"] == len(treated)
