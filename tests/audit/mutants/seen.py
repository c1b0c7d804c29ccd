"""Things to see besides noisy numbers, and answers that depend on how a table is read."""

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.queries import GRID, ArmMoments, ArmTotals, MatchedContrast, Query, RegressionMoments
from dpcausal.sums.evaluation import evaluate
from dpcausal.vault import adding
from dpcausal.vault.context import Answer, AnswerContext
from dpcausal.vault.engines import Engine
from dpcausal.vault.readers import files
from tests.audit.mutants.mutant import answer_by, determinism_of, mutant, public, public_of, shape_of


@mutant("the number of treated units is told", public)
def told_size(patch: pytest.MonkeyPatch) -> None:
    def sizes(vault: dpc.Vault) -> tuple[int, int]:
        arms = vault._engine.aggregate({"treatment": 2}, ["1"])
        return int(arms[0, 0]), int(arms[1, 0])

    patch.setattr(dpc.Vault, "arm_sizes", property(sizes))


@mutant("scales in proportion to the number of treated units", public)
def told_by_scales(patch: pytest.MonkeyPatch) -> None:
    release = dpc.Vault.release

    def told(vault: dpc.Vault, query: Query, guarantee: dpc.Guarantee) -> dpc.Release:
        found = release(vault, query, guarantee)
        treated = int(vault._engine.aggregate({"treatment": 2}, ["1"])[1, 0])
        return replace(found, scales=tuple(scale and scale * (1 + treated) for scale in found.scales))

    patch.setattr(dpc.Vault, "release", told)


def _on_an_empty_arm(patch: pytest.MonkeyPatch, act: Callable[[Engine], object]) -> None:
    def answer(context: AnswerContext[ArmMoments]) -> Answer:
        sizes = context.engine.aggregate({"treatment": 2}, ["1"])
        if 0 in (sizes[0, 0], sizes[1, 0]):
            act(context.engine)
        return adding.answer(context)

    answer_by(patch, ArmMoments, answer)


@mutant("fails on an empty arm", shape_of("DifferenceInMeans"))
def fails(patch: pytest.MonkeyPatch) -> None:
    def fail(_: Engine) -> None:
        raise ZeroDivisionError

    _on_an_empty_arm(patch, fail)


@mutant("warns of an empty arm", shape_of("DifferenceInMeans"))
def warns(patch: pytest.MonkeyPatch) -> None:
    _on_an_empty_arm(patch, lambda _: warnings.warn("an arm is empty", stacklevel=1))


@mutant("logs an empty arm", shape_of("DifferenceInMeans"))
def logs(patch: pytest.MonkeyPatch) -> None:
    _on_an_empty_arm(patch, lambda _: logging.getLogger("vault").info("an arm is empty"))


@mutant("reads again where an arm is empty", shape_of("DifferenceInMeans"))
def reads_again(patch: pytest.MonkeyPatch) -> None:
    _on_an_empty_arm(patch, lambda engine: engine.aggregate({}, ["1"]))


@mutant("adds up floats in the order of the table", determinism_of(ArmTotals))
def float_sums(patch: pytest.MonkeyPatch) -> None:
    def answer(context: AnswerContext[ArmTotals]) -> Answer:
        batch = context.engine.collect(("treatment", "outcome"), 10**6)
        sums = [float(np.cumsum(batch["outcome"][batch["treatment"] == arm] / 3)[-1]) for arm in (0, 1)]
        return Answer({"total_0": int(sums[0] * 2**30), "total_1": int(sums[1] * 2**30), "size_1": 0})

    answer_by(patch, ArmTotals, answer)


@mutant("products of numbers that are not whole", determinism_of(RegressionMoments))
def float_products(patch: pytest.MonkeyPatch) -> None:
    def added(products: Any, batch: Any) -> Any:
        lines = [evaluate(pair, batch) / 3 for pair in products.factors]
        sums = [np.cumsum(one / GRID * other)[-1] if len(one) else 0.0 for one, other in lines]
        return (np.array([sums] * 2) * 2**48).astype(np.int64)

    patch.setattr(adding._Products, "added", added)


@mutant("not-a-number told by a file's statistics", determinism_of(MatchedContrast), rereads=True)
def statistics(patch: pytest.MonkeyPatch) -> None:
    def plain(path: Path, _: dpc.Schema, connection: Any) -> Any:
        return connection.read_parquet(str(path))

    patch.setattr(files, "_parquet", plain)
    patch.setattr("dpcausal.vault.engines.duckdb._WITHOUT_STATISTICS", "SET disabled_optimizers = ''")


@mutant("sizes of public arms that tell who lacks an outcome", public_of("DifferenceInMeans, trial, missing"))
def counted_outcomes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dpc.Schema, "sizes_are_public", property(lambda schema: schema.protects != "record"))
