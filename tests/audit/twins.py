"""Deliberately broken variants of the package, each with the check of the audit that must catch it.

`python -m tests.audit.twins --json` tries them all and says how each was caught.
"""

import argparse
import importlib
import json
import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal import calibration
from dpcausal.audit.attack import check_epsilon, ranked_pairs
from dpcausal.audit.densities import check_density
from dpcausal.audit.determinism import check_determinism
from dpcausal.audit.draws import check_noise
from dpcausal.audit.finding import Finding
from dpcausal.audit.fuzz import check_alone, check_shape
from dpcausal.audit.losses import Claim, claims
from dpcausal.audit.openness import check_public
from dpcausal.audit.payment import check_debit, check_refusal, check_retry
from dpcausal.audit.sensitivity import check_sensitivity
from dpcausal.audit.subjects import SUBJECTS
from dpcausal.audit.tables import catalogue_of
from dpcausal.calibration import Noise
from dpcausal.queries import (
    GRID,
    ArmMoments,
    ArmTotals,
    MatchedContrast,
    ObjectivePerturbedLogistic,
    Query,
    Sensitivity,
    StratumMatches,
)
from dpcausal.queries.matching import COEFFICIENT_STEPS
from dpcausal.release import Receipt
from dpcausal.vault import coercion, door, table
from dpcausal.vault.answer import Answer
from dpcausal.vault.answers import ANSWERS
from dpcausal.vault.engines import Engine
from dpcausal.vault.features import Features
from dpcausal.vault.matching import matched
from dpcausal.vault.noise import add_noise

# Modules that share their names with the functions in them.
arm_moments, logistic, matched_contrast, stratum_matches, weighted_arms = (
    importlib.import_module(f"dpcausal.vault.answers.{name}")
    for name in ("arm_moments", "logistic", "matched_contrast", "stratum_matches", "weighted_arms")
)

Break = Callable[[pytest.MonkeyPatch], None]
Check = Callable[[], Finding]


@dataclass(frozen=True)
class Twin:
    """A broken variant.

    Attributes:
        name: What is wrong with it.
        broken: What breaks the package.
        check: The check that must fail then, and pass otherwise.
    """

    name: str
    broken: Break
    check: Check


TWINS: list[Twin] = []


def twin(name: str, check: Check) -> Callable[[Break], Break]:
    """Put a way to break the package on the list."""

    def listed(broken: Break) -> Break:
        TWINS.append(Twin(name, broken, check))
        return broken

    return listed


def found(each: Twin, *, breaking: bool) -> Finding:
    """What the check says of the broken package, or of the whole one."""
    with pytest.MonkeyPatch.context() as patch:
        _forget()
        if breaking:
            each.broken(patch)
        finding = each.check()
    _forget()
    return finding


def _forget() -> None:
    catalogue_of.cache_clear()
    weighted_arms.weight_table.cache_clear()


def _claims(query: type[Query], wanted: Mapping[str, object]) -> list[Claim]:
    """The audited claims about such a query with such parameters."""
    return [
        claim
        for group in claims().values()
        for claim in group
        if type(claim.query) is query and all(getattr(claim.query, name) == value for name, value in wanted.items())
    ]


def _answer_by(patch: pytest.MonkeyPatch, query: Any, answer: Callable[..., Answer]) -> None:
    answers: dict[Any, Any] = ANSWERS
    patch.setitem(answers, query, answer)


def noise_of(query: type[Query], **wanted: object) -> Check:
    return lambda: check_noise(query.name, _claims(query, wanted)[0], 1_000)


def sensitivity_of(query: type[Query], **wanted: object) -> Check:
    return lambda: check_sensitivity(query.name, _claims(query, wanted), (2, 3))


def determinism_of(query: type[Query]) -> Check:
    return lambda: check_determinism(query.name, _claims(query, {})[0], 2_000)


def attack_on(name: str, runs: int) -> Check:
    def check() -> Finding:
        subject = replace(next(subject for subject in SUBJECTS if subject.name == name))
        pair, exact = ranked_pairs(subject)[0]
        return check_epsilon(subject, pair, exact, runs)

    return check


def shape() -> Finding:
    return check_shape(40)


def public() -> Finding:
    return check_public(SUBJECTS[2])


# Noise.


@twin("half the noise", noise_of(ArmMoments))
def half_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(steps: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return add_noise(steps, replace(noise, scales=tuple(scale / 2 for scale in noise.scales if scale)))

    patch.setattr(door, "add_noise", drawn)


@twin("noise a tenth too small", noise_of(ArmMoments))
def less_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(steps: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return add_noise(steps, replace(noise, scales=tuple(scale * 0.9 for scale in noise.scales if scale)))

    patch.setattr(door, "add_noise", drawn)


@twin("no noise where its size is private", noise_of(StratumMatches, bound="smooth"))
def no_smooth_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(steps: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return tuple(steps) if noise.event.family == "smooth" else add_noise(steps, noise)

    patch.setattr(door, "add_noise", drawn)


@twin("no noise in one of twenty releases", noise_of(ArmTotals))
def forgets(patch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng()

    def drawn(steps: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        return tuple(steps) if random.random() < 0.05 else add_noise(steps, noise)

    patch.setattr(door, "add_noise", drawn)


@twin("half the Laplace noise, told as it is", attack_on("plain Laplace", 20_000))
def half_scale(patch: pytest.MonkeyPatch) -> None:
    above = calibration.float_above
    patch.setattr(calibration, "float_above", lambda number: above(number) / 2)


@twin("half the Gaussian noise, told as it is", attack_on("plain Gaussian", 60_000))
def half_gaussian(patch: pytest.MonkeyPatch) -> None:
    sd = calibration.gaussian_sd
    patch.setattr(calibration, "gaussian_sd", lambda epsilon, delta: sd(epsilon, delta) / 2)


@twin("both arms share their noise", noise_of(ArmTotals))
def shared_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(steps: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        once = {scale: add_noise((0,), replace(noise, scales=(scale,)))[0] for scale in noise.scales}
        return tuple(step + once[scale] for step, scale in zip(steps, noise.scales, strict=True))

    patch.setattr(door, "add_noise", drawn)


@twin("noise from a seed", noise_of(ArmTotals))
def seeded_noise(patch: pytest.MonkeyPatch) -> None:
    def drawn(steps: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
        random = np.random.default_rng(0)
        return tuple(
            step + round(random.laplace(0, scale)) for step, scale in zip(steps, noise.scales, strict=True) if scale
        )

    patch.setattr(door, "add_noise", drawn)


@twin("noise whose low bits show", noise_of(ArmTotals))
def low_bits(patch: pytest.MonkeyPatch) -> None:
    of = dpc.Release.of.__func__  # type: ignore[attr-defined]

    def with_bits(cls: type[dpc.Release], *parts: Any) -> dpc.Release:
        release: dpc.Release = of(cls, *parts)
        return replace(release, values=tuple(value * (1 + 2.0**-40) for value in release.values))

    patch.setattr(dpc.Release, "of", classmethod(with_bits))


@twin("a regression without its tilt", attack_on("InverseWeighting", 800))
def no_tilt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(logistic, "cube_noise", lambda dimensions, _: np.zeros(dimensions))


@twin("half the tilt, drawn", lambda: check_density(1.0, 600))
def half_drawn(patch: pytest.MonkeyPatch) -> None:
    drawn = logistic.cube_noise
    patch.setattr(logistic, "cube_noise", lambda dimensions, scale: drawn(dimensions, scale / 2))


@twin("half the tilt, told", lambda: check_density(1.0, 600))
def half_tilt(patch: pytest.MonkeyPatch) -> None:
    whole = ObjectivePerturbedLogistic.tilt_scale
    half = staticmethod(lambda epsilon, covariates: whole(epsilon, covariates) / 2)
    patch.setattr(ObjectivePerturbedLogistic, "tilt_scale", half)


# Sensitivity.


@twin("clipped after the noise, so that nothing is clipped before it", sensitivity_of(ArmTotals))
def unclipped(patch: pytest.MonkeyPatch) -> None:
    def steps(column: dpc.Real, value: str) -> str:
        middle, per_step = coercion._grid(column)
        wide = f"LEAST(GREATEST(({value} - {middle}) * {per_step}, -2e9), 2e9)"
        return f"CASE WHEN {value} IS NULL OR isnan({value}) THEN 0 ELSE FLOOR({wide}) END"

    patch.setattr(coercion, "_real_steps", steps)


@twin("bounds from the table", sensitivity_of(ArmTotals))
def own_bounds(patch: pytest.MonkeyPatch) -> None:
    def answer(_: Query, __: dpc.Schema, engine: Engine, ___: dpc.Guarantee) -> Answer:
        batch = engine.collect(("treatment", "outcome"), 10**6)
        low, high = int(batch["outcome"].min()), int(batch["outcome"].max())
        scaled = (batch["outcome"] - low) * 2 * GRID // max(high - low, 1) - GRID
        totals = {f"total_{arm}": int(scaled[batch["treatment"] == arm].sum()) for arm in (0, 1)}
        return Answer(totals | {"size_1": int(batch["treatment"].sum())})

    _answer_by(patch, ArmTotals, answer)


@twin("numbers as shares of the largest in the table", lambda: check_alone(20))
def own_largest(patch: pytest.MonkeyPatch) -> None:
    steps = coercion._real_steps
    patch.setattr(
        coercion,
        "_real_steps",
        lambda column, value: (
            f"CAST({steps(column, value)} * 2.0 / MAX(CASE WHEN {value} > 0 THEN 2 ELSE 1 END) OVER () AS BIGINT)"
        ),
    )


@twin("lengths from the table", sensitivity_of(dpc.queries.OutputPerturbedLogistic, penalty=20.0))
def own_lengths(patch: pytest.MonkeyPatch) -> None:
    unit = Features.unit

    def scaled(features: Features, batch: Mapping[str, Any]) -> Any:
        values = unit(features, batch).copy()
        values[1:] /= max(np.abs(values[1:] * features.root).max(initial=0.0), 1e-6)
        return values

    patch.setattr(Features, "unit", scaled)


@twin("a constant without a penalty", sensitivity_of(dpc.queries.OutputPerturbedLogistic, penalty=20.0))
def free_constant(patch: pytest.MonkeyPatch) -> None:
    penalised = logistic.penalised

    def derivatives(losses: Any, penalty: float, tilt: Any) -> Any:
        whole = penalised(losses, penalty, tilt)

        def without(at: Any) -> Any:
            gradient, curvature = whole(at)
            gradient[0] -= 0.999 * penalty * at[0]  # a thousandth is left, so that there is a minimum
            curvature[0, 0] -= 0.999 * penalty
            return gradient, curvature

        return without

    patch.setattr(logistic, "penalised", derivatives)


@twin("matches weighted by how many were found (equation 4)", sensitivity_of(MatchedContrast, neighbours=5, limit=1))
def equation_4(patch: pytest.MonkeyPatch) -> None:
    def contrast(query: MatchedContrast, scores: Any, arms: Any, outcomes: Any, _: float) -> Answer:
        limit = query.limit or 1
        has, serves = matched(scores, arms, query.neighbours, (query.neighbours * limit,) * 2)
        found_by = [max(float(has[arms == arm].mean()), 1.0) if (arms == arm).any() else 1.0 for arm in (0, 1)]
        each = (has > 0) + np.where(arms == 1, serves / found_by[0], serves / found_by[1])
        coefficients = np.rint(each / (1 + limit) * COEFFICIENT_STEPS).astype(np.int64) * (2 * arms - 1)
        return Answer({"effect": int((coefficients * outcomes).sum()), "squares": 0}, dict.fromkeys(query.facts, 1.0))

    patch.setattr(matched_contrast, "contrast", contrast)


def _printed(sizes: Any, n: int, beta: float) -> float:
    """The multi-site paper's equation (1), in steps."""

    def ratio(t: int, c: int, k: int) -> int:
        few, many = min(t, c), max(t, c)
        return many + k if k >= few else math.ceil((many + k + 1) / (few - k))

    farthest = n + math.ceil(10 / beta)  # where the exponential has won
    most = (max(ratio(t, c, k) for t, c in sizes.tolist()) for k in range(farthest))
    return max(math.exp(-beta * k) * 4 * GRID * (1 + each) for k, each in enumerate(most))


@twin("smooth sensitivity off by one, as printed", sensitivity_of(StratumMatches, bound="smooth"))
def off_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stratum_matches, "smooth_bound", _printed)


@twin("absent strata left out", sensitivity_of(StratumMatches, bound="smooth"))
def absent_strata(patch: pytest.MonkeyPatch) -> None:
    bound = stratum_matches.smooth_bound
    patch.setattr(stratum_matches, "smooth_bound", lambda sizes, n, beta: bound(sizes[sizes.sum(axis=1) > 0], n, beta))


@twin("noise of once the smooth bound in place of twice", sensitivity_of(StratumMatches, bound="smooth"))
def once_the_bound(patch: pytest.MonkeyPatch) -> None:
    def answer(*asked: Any) -> Answer:
        whole: Answer = stratum_matches.stratum_matches(*asked)
        return replace(whole, scales={name: scale / 2 for name, scale in whole.scales.items()})

    _answer_by(patch, StratumMatches, answer)


@twin("charged for one arm where two can change", sensitivity_of(ArmMoments))
def wrong_arm(patch: pytest.MonkeyPatch) -> None:
    sensitivity = ArmMoments.sensitivity

    def one_arm(query: ArmMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        trial = sensitivity(query, schema, "record_within_arm", norm)
        return replace(sensitivity(query, schema, protects, norm), bound=trial.bound)

    patch.setattr(ArmMoments, "sensitivity", one_arm)


@twin("deficits at half their weight", sensitivity_of(ArmMoments))
def light_deficits(patch: pytest.MonkeyPatch) -> None:
    sensitivity = ArmMoments.sensitivity

    def lighter(query: ArmMoments, schema: dpc.Schema, protects: Any, norm: Any) -> Sensitivity:
        whole = sensitivity(query, schema, protects, norm)
        coordinates = [
            replace(at, weight=at.weight / 2) if at.weight and at.name.startswith("deficit") else at
            for at in whole.coordinates
        ]
        return replace(whole, coordinates=tuple(coordinates))

    patch.setattr(ArmMoments, "sensitivity", lighter)


@twin("weights that are not clipped", sensitivity_of(dpc.queries.WeightedArms, coefficients=(0.0, 20.0)))
def heavy_weights(patch: pytest.MonkeyPatch) -> None:
    def table_of(_: str, __: float, largest: float, *, treated: bool) -> Any:
        odds = np.exp(weighted_arms.EXPONENTS)
        return np.rint(np.minimum((1 + odds) / largest, 2.0**10) * GRID).astype(np.int64)

    table_of.cache_clear = lambda: None  # type: ignore[attr-defined]
    patch.setattr(weighted_arms, "weight_table", table_of)


# What is seen without noise.


@twin("the number of treated units is told", public)
def told_size(patch: pytest.MonkeyPatch) -> None:
    def sizes(vault: dpc.Vault) -> tuple[int, int]:
        arms = vault._engine.aggregate({"treatment": 2}, ["1"])
        return int(arms[0, 0]), int(arms[1, 0])

    patch.setattr(dpc.Vault, "arm_sizes", property(sizes))


def _on_an_empty_arm(patch: pytest.MonkeyPatch, act: Callable[[Engine], object]) -> None:
    def answer(query: Query, schema: dpc.Schema, engine: Engine, guarantee: dpc.Guarantee) -> Answer:
        sizes = engine.aggregate({"treatment": 2}, ["1"])
        if 0 in (sizes[0, 0], sizes[1, 0]):
            act(engine)
        answered: Answer = arm_moments.arm_moments(query, schema, engine, guarantee)
        return answered

    _answer_by(patch, ArmMoments, answer)


@twin("fails on an empty arm", shape)
def fails(patch: pytest.MonkeyPatch) -> None:
    def fail(_: Engine) -> None:
        raise ZeroDivisionError

    _on_an_empty_arm(patch, fail)


@twin("warns of an empty arm", shape)
def warns(patch: pytest.MonkeyPatch) -> None:
    _on_an_empty_arm(patch, lambda _: warnings.warn("an arm is empty", stacklevel=1))


@twin("logs an empty arm", shape)
def logs(patch: pytest.MonkeyPatch) -> None:
    _on_an_empty_arm(patch, lambda _: logging.getLogger("vault").info("an arm is empty"))


@twin("reads again where an arm is empty", shape)
def reads_again(patch: pytest.MonkeyPatch) -> None:
    _on_an_empty_arm(patch, lambda engine: engine.aggregate({}, ["1"]))


@twin("adds up floats in the order of the table", determinism_of(ArmTotals))
def float_sums(patch: pytest.MonkeyPatch) -> None:
    def answer(_: Query, __: dpc.Schema, engine: Engine, ___: dpc.Guarantee) -> Answer:
        batch = engine.collect(("treatment", "outcome"), 10**6)
        sums = [float(np.cumsum(batch["outcome"][batch["treatment"] == arm] / 3)[-1]) for arm in (0, 1)]
        return Answer({"total_0": int(sums[0] * 2**30), "total_1": int(sums[1] * 2**30), "size_1": 0})

    _answer_by(patch, ArmTotals, answer)


@twin("not-a-number told by a file's statistics", determinism_of(MatchedContrast))
def statistics(patch: pytest.MonkeyPatch) -> None:
    def plain(path: Path, _: dpc.Schema, connection: Any) -> Any:
        return connection.read_parquet(str(path))

    patch.setattr(table, "_parquet", plain)
    patch.setattr("dpcausal.vault.engines.duckdb._WITHOUT_STATISTICS", "SET disabled_optimizers = ''")


# Payment.


@twin("reads before it pays", check_debit)
def reads_first(patch: pytest.MonkeyPatch) -> None:
    release = dpc.Vault.release

    def read_first(vault: dpc.Vault, query: Query, guarantee: dpc.Guarantee) -> dpc.Release:
        ANSWERS[type(query)](query, vault.schema, vault._engine, guarantee)
        return release(vault, query, guarantee)

    patch.setattr(dpc.Vault, "release", read_first)


@twin("fresh noise when asked again", check_retry)
def fresh_noise(patch: pytest.MonkeyPatch) -> None:
    release = dpc.Vault.release

    def fresh(vault: dpc.Vault, query: Query, guarantee: dpc.Guarantee) -> dpc.Release:
        release(vault, query, guarantee)
        noise = calibration.calibrate(query, vault.schema, guarantee)
        return vault._answer(query, guarantee, noise, Receipt(query.name, 1.0, 0.0))

    patch.setattr(dpc.Vault, "release", fresh)


@twin("a budget that refuses nothing", check_refusal)
def no_budget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dpc.Budget, "covers", lambda *_: True)


def tried() -> Iterator[dict[str, object]]:
    """What became of every twin."""
    for each in TWINS:
        finding = found(each, breaking=True)
        yield {"twin": each.name, "check": finding.check, "caught": not finding.passed, "how": finding.detail}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    results = []
    for line in tried():
        results.append(line)
        sys.stderr.write(
            f"{'caught' if line['caught'] else 'MISSED'}  {line['twin']}  ({line['check']}: {line['how']})\n"
        )
    if chosen.json:
        sys.stdout.write(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    sys.exit(not all(line["caught"] for line in results))


if __name__ == "__main__":
    main()
