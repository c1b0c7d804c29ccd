"""Numbers in the prose of the documentation that no block of code prints, computed again."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.schema.schema import Protects

ROOT = Path(__file__).parents[2]
AT = {"epsilon": 1.0, "delta": 1e-6}
DAYS = dpc.Real("days", 0, 30, missing=15)


def says(page: str, words: str) -> bool:
    """Whether a page says this, wherever its lines break."""
    return words in " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


def noise(protects: Protects, outcome: dpc.Real) -> float:
    schema = dpc.Schema(dpc.Treatment("arm"), outcome, protects=protects)
    rehearsal = dpc.Rehearsal(schema, n=2_000, outcome_mean=9, outcome_sd=6)
    return dpc.DifferenceInMeans().estimate(rehearsal, epsilon=1.0).privacy_sd


@pytest.mark.parametrize("protects", ["record", "record_within_arm", "outcome"])
def test_noise_for_what_is_protected(protects: Protects) -> None:
    page = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    (line,) = (each for each in page.splitlines() if each.startswith(f"| `{protects}` |"))
    assert f"| {noise(protects, DAYS):.2f} days" in line
    assert noise(protects, dpc.Real("days", 0, 30)) == pytest.approx(noise("record", DAYS), rel=0.01)


def test_cost_of_arms_outside_the_comparison() -> None:
    """The noise where units may be outside, over that where undeclared arms count as one."""

    def ratio(mean: float, share: float) -> float:
        sds = []
        for arms in (dpc.Treatment("arm"), dpc.Treatment("arm", undeclared=0)):
            schema = dpc.Schema(arms, dpc.Real("days", 0, 30, missing=15))
            expected = dpc.Rehearsal(schema, n=20_000, treated_share=share, outcome_mean=mean, outcome_sd=0.01)
            sds.append(dpc.DifferenceInMeans().estimate(expected, epsilon=1.0).privacy_sd)
        return sds[0] / sds[1]

    def added(share: float) -> tuple[str, str]:
        fifth, bound = (f"{100 * (ratio(mean, share) - 1):.0f} %" for mean in (6, 0.01))
        return fifth, bound

    assert ratio(15, 0.5) == pytest.approx(1.0, abs=0.005)
    (fifth, bound), most = added(0.5), added(0.9)
    words = f"it adds {fifth} if the mean is at a fifth of the range, and {bound} if it is at a bound"
    assert says("choosing.md", f"{words}; with nine in ten treated, {most[0]} and {most[1]}.")
    assert all(ratio(0.01, share) < ratio(0.01, 0.9) for share in (0.1, 0.3, 0.5, 0.7))


def wide(count: int) -> dpc.Schema:
    columns = [dpc.Real(f"x{place}", 0, 1) for place in range(count)]
    return dpc.Schema(dpc.Treatment("treat"), dpc.Real("score", 0, 100), covariates=columns)


def test_delta_is_used_where_it_means_less_noise() -> None:
    assert says("choosing.md", "for trials, strata and regressions on up to three covariates.")
    assert says("choosing.md", "It is smaller when a query returns many numbers, from about four covariates on,")
    for n in (2_000, 20_000):
        table = dpc.Rehearsal(wide(4), n=n, outcome_sd=15, covariate_sd=0.5)
        for plain in (dpc.DifferenceInMeans(), dpc.Stratification(by=[dpc.Cut("x0", [0.5])])):
            assert plain.estimate(table, **AT).guarantee.delta == 0
        for count in (1, 3, 4):
            asked = dpc.RegressionAdjustment([f"x{place}" for place in range(count)])
            receipts = asked.estimate(table, **AT).receipts
            (moments,) = (each for each in receipts if each.query.endswith("regression_moments"))
            assert (moments.delta == 0) == (count <= 3)


def test_units_from_which_a_regression_is_worth_rehearsing_in_a_trial() -> None:
    assert says(
        "choosing.md", "From about 5,000 units at epsilon 1, rehearse `RegressionAdjustment` on the one covariate"
    )
    for n, better in ((2_000, False), (5_000, True)):
        table = dpc.Rehearsal(wide(1), n=n, outcome_sd=15, covariate_sd=0.5, confounding=0.0)
        means = dpc.DifferenceInMeans().estimate(table, epsilon=1.0).standard_error
        adjusted = dpc.RegressionAdjustment(["x0"]).estimate(table, **AT).standard_error
        assert means is not None
        assert adjusted is not None
        assert (adjusted < means) == better


def test_answers_that_a_budget_affords() -> None:
    plain, gaussian = dpc.Budget(epsilon=3), dpc.Budget(epsilon=3, delta=1e-5, rule="zcdp")
    assert says("choosing.md", "`Budget(epsilon=3)` affords 15 Laplace releases of epsilon 0.2.")
    assert plain.part(15).epsilon >= 0.2 > plain.part(16).epsilon
    assert says("choosing.md", "affords 143 Gaussian releases of epsilon 0.2 and delta 1e-5")
    assert gaussian.part(143).epsilon >= 0.2 > gaussian.part(144).epsilon


def test_gaussian_noise_of_one_difference_is_twice_that_of_laplace() -> None:
    assert says("choosing.md", "the privacy error of the Gaussian is about twice as large at the same epsilon")
    schema = dpc.Schema(dpc.Treatment("t"), DAYS)
    query, sds = dpc.queries.ArmMoments(), []
    for delta in (0.0, 1e-6):
        release = dpc.Rehearsal(schema, n=2_000).release(query, dpc.Guarantee(epsilon=1.0, delta=delta))
        sds.append(math.sqrt(release.variance(release.names[0])))
    assert 1.5 < sds[1] / sds[0] < 3


def test_numbers_of_the_start_page() -> None:
    trial = dpc.datasets.stroke_trial()
    effect = dpc.DifferenceInMeans().estimate(dpc.Rehearsal(trial.schema, n=trial.n, outcome_mean=0.22), epsilon=1.0)
    assert effect.standard_error is not None
    assert effect.sampling_sd is not None
    assert effect.standard_error / effect.sampling_sd < 1.01
    assert says("index.md", "At epsilon 1 the noise widens the interval above by less than 1 %.")
    stored = (ROOT / "benchmarks" / "results" / "coverage_difference_in_means.json").read_text(encoding="utf-8")
    runs = [(cell["runs"], cell["coverage"]) for cell in json.loads(stored)["cells"]]
    total = sum(count for count, _ in runs)
    covered = sum(count * share for count, share in runs) / total
    (mutants,) = re.findall(r"catch (\d+) mutants", (ROOT / "README.md").read_text(encoding="utf-8"))
    for page in ("index.md", "../README.md"):
        assert says(page, f"n {total:,} simulated trials {100 * covered:.1f} % of the 95 % intervals contained")
    assert says("index.md", f"of {mutants} deliberately broken versions")


@pytest.mark.parametrize(("n", "narrower"), [(300, False), (1_000, True)])
def test_units_that_winsorising_needs(n: int, narrower: bool) -> None:
    """Costs whose public range is several times too wide, at epsilon 1."""
    assert says("choosing.md", "It needs about a thousand units at epsilon 1, and pays if the public range is several")
    ratios = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        arm = random.integers(0, 2, n)
        table = pa.table({"t": arm, "y": random.gamma(4, 5_000, n) + 2_000 * arm})
        schema = dpc.Schema(dpc.Treatment("t"), dpc.Real("y", 0, 200_000))
        vault = dpc.Vault(table, schema, ledger="sqlite://", budget=dpc.Budget(epsilon=2))
        plain = dpc.DifferenceInMeans()
        effects = [each.estimate(vault, epsilon=1.0) for each in (dpc.Winsorised(plain), plain)]
        widths = [effect.interval()[1] - effect.interval()[0] for effect in effects]
        ratios.append(widths[0] / widths[1])
    assert (float(np.median(ratios)) < 0.8) == narrower
