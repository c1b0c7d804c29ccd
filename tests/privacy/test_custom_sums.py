"""No unit moves sums that a study describes beyond their bound, and no description does harm before it is refused."""

import itertools
import json
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.audit.tables import exact_answer
from dpcausal.errors import DpcausalError, QueryError
from dpcausal.queries import CustomSums, Cut, Norm, from_dict, summing, to_dict
from dpcausal.queries.calibration import calibrate
from dpcausal.schema.schema import Protects
from dpcausal.sums import limits
from dpcausal.sums.cases import domain_of
from dpcausal.vault.table import open_table
from tests.support.descriptions import forget_descriptions
from tests.support.slow import marked

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("arm", arms=("none", "low", "high"), compare="high"),
    outcome=dpc.Real("score", 0, 20),
    covariates=[dpc.Real("dose mg", -1, 7), dpc.Category("ward", ["a", "b, c", "d"]), dpc.Binary("old", missing=0)],
)
NORMS = get_args(Norm)
GUARANTEE = dpc.Guarantee(epsilon=1)
DATABASE = duckdb.connect()
KINDS = {"arm": pa.string(), "score": pa.float64(), "dose mg": pa.float64(), "ward": pa.string(), "old": pa.int64()}
Record = tuple[str | None, float | None, float | None, str, int]
RECORDS: list[Record] = list(
    itertools.product(("none", "high", "low"), (0.0, 10.0, 17.0, 20.0, None), (-1.0, 3.0, 7.0, None), "ad", (0, 1))
)


def numbers(rng: random.Random, deep: int = 3) -> str:
    """Return a random expression."""
    atoms = ["centred(score)", "centred(`dose mg`)", "deficit(score)", "deficit(`dose mg`)", "centred(arm)"]
    atoms += ["centred(old)", "1", "0.5", "(2 * centred(score) - 3)"]
    if deep == 0:
        return rng.choice(atoms)
    one, other = numbers(rng, deep - 1), numbers(rng, deep - 1)
    conditions = ["score > 5", "`dose mg` <= 3", "between(score, 5, 15)", "ward == 'a'", "arm == 'high'", "old == 1"]
    return rng.choice(
        [
            rng.choice(atoms),
            f"{one} + {other}",
            f"{one} - 2 * ({other})",
            f"({one}) * ({other})",
            f"where({rng.choice(conditions)}, {one})",
            f"clip(centred(score) + {one}, -2.5, 4)",
        ]
    )


def drawn(seed: int) -> CustomSums:
    """Return random sums."""
    rng = random.Random(seed)  # noqa: S311 (no secret)
    expressions = {f"s{place}": numbers(rng) for place in range(rng.randint(1, 4))}
    cells: list[str | Cut] = rng.choice([[], ["arm"], ["ward"], ["arm", Cut("dose mg", [0, 3.5])]])
    return CustomSums(expressions, cells, {"s0": rng.choice([0.25, 1, 3])})


def answer(query: CustomSums, records: Sequence[Record], protects: Protects) -> Mapping[str, int]:
    """Return what the vault's own answer makes of a table, without noise."""
    columns = zip(*records, strict=True)
    table = pa.table({name: pa.array(cells, kind) for (name, kind), cells in zip(KINDS.items(), columns, strict=True)})
    schema = replace(SCHEMA, protects=protects)
    engine = open_table(DATABASE.from_arrow(table), schema)
    return exact_answer(query, schema, engine, dpc.Guarantee(epsilon=1, protects=protects)).ticks


def furthest(query: CustomSums, protects: Protects, norm: Norm, seed: int) -> tuple[Fraction, Fraction]:
    """Return the furthest that one of some units moves the sums, and the bound, both to the power of the norm."""
    schema = replace(SCHEMA, protects=protects)
    noise = calibrate(query, schema, dpc.Guarantee(epsilon=1, delta=1e-6 * (norm == "l2"), protects=protects))
    rng, power = random.Random(seed), {"l1": 1, "l2": 2}[norm]  # noqa: S311 (no secret)
    arm, dose, ward, old = rng.choice(RECORDS)[0], *rng.choice(RECORDS)[2:]
    fixed = {"record": (), "record_within_arm": (0,), "outcome": (0, 2, 3, 4)}[protects]
    given = (arm, None, dose, ward, old)
    group = [each for each in RECORDS if all(each[at] == given[at] for at in fixed)]
    rest = rng.choice(RECORDS)
    answers = [answer(query, [each, rest], protects) for each in rng.sample(group, min(len(group), 7))]
    most = Fraction(0)
    for one, other in itertools.combinations(answers, 2):
        changes = [
            abs(Fraction(one[at.name] - other[at.name]) / (at.weight or 0)) for at in noise.sensitivity.coordinates
        ]
        most = max(most, sum((Fraction(change**power) for change in changes), Fraction(0)))
    return most, noise.sensitivity.bound**power


QUICK, EACH = 10, 100
BLOCKS = [range(QUICK), *(marked(range(start, start + EACH)) for start in range(QUICK, QUICK + 10 * EACH, EACH))]


def bounded(seeds: range) -> Iterator[tuple[int, Fraction, Fraction]]:
    """Yield how far random sums are moved, with their bounds; some are refused."""
    for seed in seeds:
        protects, norm = get_args(Protects)[seed % 3], NORMS[seed % 2]
        try:
            yield seed, *furthest(drawn(seed), protects, norm, seed)
        except QueryError:
            continue


@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda seeds: f"{seeds.start} to {seeds.stop}")
def test_no_unit_moves_random_sums_beyond_their_bound(seeds: range) -> None:
    found = list(bounded(seeds))
    assert len(found) > 0.7 * len(seeds)
    assert all(most <= bound for _, most, bound in found)
    assert max(most / bound for _, most, bound in found) > 0.9


def test_a_bound_that_takes_private_columns_as_fixed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = domain_of
    forget_descriptions()
    monkeypatch.setattr(
        summing,
        "domain_of",
        lambda schema, protects: replace(real(schema, protects), changes=frozenset({"outcome"}), leaves=False),
    )
    assert any(most > bound for _, most, bound in bounded(range(QUICK)))
    forget_descriptions()


def test_sums_are_in_the_units_of_the_schema() -> None:
    rng = np.random.default_rng(0)
    score, dose, old, high = (
        rng.uniform(0, 20, 500),
        rng.uniform(-1, 7, 500),
        rng.integers(0, 2, 500),
        rng.random(500) < 0.4,
    )
    wards = rng.choice(["a", "b, c", "d"], 500)
    records = list(zip(np.where(high, "high", "none"), score, dose, wards, old.tolist(), strict=True))
    z, x = score - 10, dose - 3
    expected = {
        "1": np.ones(500),
        "centred(score)": z,
        "centred(`dose mg`) * centred(score)": x * z,
        "centred(score)**2 * centred(`dose mg`)": z**2 * x,
        "deficit(`dose mg`)": 16 - x**2,
        "centred(arm) - centred(old)": high * 1.0 - old,
        "-0.3 * centred(score) / 2 + 1.5 * centred(`dose mg`) - 0.1": -0.15 * z + 1.5 * x - 0.1,
        "clip(centred(score) * centred(`dose mg`), -2.5, 11)": np.clip(x * z, -2.5, 11),
        "where(`dose mg` < 1.25, centred(score))": z * (dose < 1.25),
        "where(between(score, 5, 15), where(ward == 'b, c', 3))": 3
        * ((score >= 5) & (score <= 15) & (wards == "b, c")),
        "where(old == 1, where(arm == 'high', -1))": -1 * (old * high),
    }
    query = CustomSums({f"s{place}": text for place, text in enumerate(expected)}, cells=["arm"])
    noise = calibrate(query, SCHEMA, dpc.Guarantee(epsilon=1))
    found = answer(query, records, "record")
    for at in noise.sensitivity.coordinates:
        name, label = at.name.removesuffix("]").split("[")
        text, values = list(expected.items())[int(name[1:])]
        values = values[high == (label == "high")]
        assert found[at.name] * at.tick == pytest.approx(values.sum(), abs=2e-5 * len(values)), text


DEEP = "(" * 33 + "1" + ")" * 33
WIDE = {f"s{place}": f"clip(centred(score), {place / 20}, {place / 20 + 1})" for place in range(60)}
MULTIPLIED = {"s": " * ".join(["(centred(score) + centred(`dose mg`) + centred(old) + centred(arm))"] * 12)}
CUTS = {"name": "dose mg", "edges": [place / 200 for place in range(1, 1_300)]}
PLAIN = {"s": "1"}
STRANGE: dict[str, Any] = {
    "no mapping": (5, (), ()),
    "a name that is none": ({"a b": "1"}, (), ()),
    "a name with a brace": ({"a{}": "1"}, (), ()),
    "a long name": ({"a" * 41: "1"}, (), ()),
    "two of a name": ([["s", "1"], ["s", "2"]], (), ()),
    "no sums": ({}, (), ()),
    "too many sums": ({f"s{place}": "1" for place in range(65)}, (), ()),
    "a tree in place of a text": ({"s": ["ticks", "outcome"]}, (), ()),
    "a long text": ({"s": "1+" * 3_000 + "1"}, (), ()),
    "many words": ({"s": "1+" * 999 + "1"}, (), ()),
    "a deep text": ({"s": DEEP}, (), ()),
    "many signs": ({"s": "-" * 3_000 + "1"}, (), ()),
    "a huge constant": ({"s": "1e99"}, (), ()),
    "a huge product": ({"s": "centred(score)" + " * 1e80" * 9}, (), ()),
    "a huge constant beside a number": ({"s": "centred(score) + 1e70"}, (), ()),
    "not a number": ({"s": "nan"}, (), ()),
    "nothing but 0": ({"s": "0 * centred(score)"}, (), ()),
    "a column that is none": ({"s": "centred(name)"}, (), ()),
    "a program": ({"s": "__import__('os')"}, (), ()),
    "an attribute": ({"s": "score.__class__"}, (), ()),
    "SQL": ({"s": "1); DROP TABLE coerced; --"}, (), ()),
    "a bare column": ({"s": "score"}, (), ()),
    "an unknown function": ({"s": "exp(centred(score))"}, (), ()),
    "too few arguments": ({"s": "clip(centred(score))"}, (), ()),
    "division by a column": ({"s": "1 / centred(score)"}, (), ()),
    "division by 0": ({"s": "centred(score) / 0"}, (), ()),
    "a third power": ({"s": "centred(score)**3"}, (), ()),
    "a third power in disguise": ({"s": "centred(score)**2 * centred(score)"}, (), ()),
    "a power of a power": ({"s": "(centred(score)**2)**2"}, (), ()),
    "a value that is none": ({"s": "where(ward == 'z', 1)"}, (), ()),
    "a condition that cannot hold": ({"s": "where(score > 20, 1)"}, (), ()),
    "an edge out of bounds": ({"s": "where(score > 1e40, 1)"}, (), ()),
    "numbers in the place of texts": ({"s": "where(ward == 1, 1)"}, (), ()),
    "a category from its middle": ({"s": "centred(ward)"}, (), ()),
    "a weight of a stranger": (PLAIN, (), {"t": 1.0}),
    "a weight of nothing": (PLAIN, (), {"s": 0.0}),
    "a weight that is not a number": (PLAIN, (), {"s": math.nan}),
    "a weight that is a text": (PLAIN, (), {"s": "1"}),
    "cells by a number": (PLAIN, ["score"], ()),
    "cells by nothing": (PLAIN, 7, ()),
    "cells by a mapping": (PLAIN, [{"name": "ward", "edges": [], "more": 1}], ()),
    "cells twice": (PLAIN, ["ward", "ward"], ()),
    "edges that are not numbers": (PLAIN, [{"name": "dose mg", "edges": [math.nan]}], ()),
    "too many cells": (PLAIN, ["arm", "ward", {"name": "dose mg", "edges": [i / 1_000 for i in range(1, 6_990)]}], ()),
    "a million cells": ({f"s{place}": "1" for place in range(60)}, ["arm", "ward", "old", CUTS], ()),
    "corners without end": (WIDE, (), ()),
    "terms without end": (MULTIPLIED, (), ()),
    "pieces without end": (
        {**WIDE, **{f"t{i}": f"deficit(score) * where(score > {i}, 1)" for i in range(4)}},
        [CUTS],
        (),
    ),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_stranger_s_description_is_refused_before_anything_is_read_or_debited(what: str) -> None:
    table = pa.table(
        {"arm": ["none", "high"] * 4, "score": [1.0] * 8, "dose mg": [0.0] * 8, "ward": ["a"] * 8, "old": [0] * 8}
    )
    vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=9))
    entries = len(vault.ledger.entries())
    expressions, cells, weights = STRANGE[what]
    asked = {"query": "custom_sums", "expressions": expressions, "cells": cells, "weights": weights}
    start = time.process_time()
    with pytest.raises(QueryError) as refused:
        vault.release(from_dict(asked), dpc.Guarantee(epsilon=1))
    assert time.process_time() - start < 30
    assert len(str(refused.value)) < 1_500
    assert len(vault.ledger.entries()) == entries


def test_work_is_counted_before_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_WORK", 1_000)
    query = CustomSums({"a": "centred(score) * centred(`dose mg`)", "b": "deficit(`dose mg`) * centred(arm)"})
    with pytest.raises(QueryError, match="1,000 steps"):
        query.sensitivity(SCHEMA, "record", "l1")


def test_a_query_survives_json() -> None:
    query = drawn(3)
    assert from_dict(json.loads(json.dumps(to_dict(query)))) == query
    assert hash(query) == hash(drawn(3))


def test_a_weight_moves_noise_from_others_to_a_sum() -> None:
    texts = {"n": "1", "total": "centred(score)"}
    equal, heavier = (
        [float(scale or 0) for scale in calibrate(CustomSums(texts, ["arm"], weights), SCHEMA, GUARANTEE).scales]
        for weights in ({}, {"n": 2.0})
    )
    assert heavier[0] / heavier[1] == pytest.approx(2 * equal[0] / equal[1])
    assert heavier[1] < equal[1]


def test_errors_of_expressions_help() -> None:
    with pytest.raises(DpcausalError, match=r"did you mean 'score'"):
        CustomSums({"s": "centred(scores)"}).sensitivity(SCHEMA, "record", "l1")
    with pytest.raises(DpcausalError, match=r"write centred\(dose\)"):
        CustomSums({"s": "2 * score"}).sensitivity(SCHEMA, "record", "l1")
