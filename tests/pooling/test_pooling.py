"""One effect out of several sites' effects: rules, errors, and what is refused."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import dpcausal as dpc
from dpcausal.errors import QueryError, RefusedError
from dpcausal.pooling import RULES, Rule, leave_one_out, pool
from dpcausal.pooling.heterogeneity import Heterogeneity
from dpcausal.pooling.weights import median_sd
from dpcausal.release import Receipt
from dpcausal.results.effect import Estimator
from dpcausal.results.site_share import SiteShare
from dpcausal.uncertainty.interval import NoiseTerm, half_width
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise
from tests.support.slow import sampled

Array = NDArray[np.float64]

NEED_VARIANCES: tuple[Rule, ...] = ("minimum_variance", "inverse_variance", "random_effects")


def effect(estimate: float = 1.0, n: int = 100, epsilon: float = 1.0, scale: float = 0.3, **given: Any) -> dpc.Effect:
    parameters: dict[str, Any] = {
        "estimand": "effect",
        "arms": ("old", "new"),
        "outcome": "y",
        "estimate": estimate,
        "sampling_sd": 0.4,
        "noise": (NoiseTerm("gaussian", scale),),
        "n": n,
        "method": "made up",
        "guarantee": dpc.Guarantee(epsilon=epsilon),
        "assumptions": ("arms are comparable",),
        "receipts": (Receipt("made_up", epsilon, 0.0, 1, "0" * 64),),
    }
    return dpc.Effect(**parameters | given)


def three() -> dict[str, dpc.Effect]:
    """Standard errors of 0.5, 0.5 and 5."""
    noisy = effect(7.0, n=100, epsilon=0.1, scale=math.sqrt(25 - 0.16))
    return {"north": effect(1.0, n=100), "south": effect(2.0, n=300), "east": noisy}


# --- rules


def weights(pooled: dpc.Effect) -> dict[str, float | None]:
    return {share.site: share.weight for share in pooled.sites}


@pytest.mark.parametrize(
    ("rule", "expected", "n"),
    [
        ("minimum_variance", {"north": 0.25, "south": 0.75, "east": 0.0}, 400),
        ("inverse_variance", {"north": 4 / 8.04, "south": 4 / 8.04, "east": 0.04 / 8.04}, 500),
        ("sample_size", {"north": 0.2, "south": 0.6, "east": 0.2}, 500),
        ("largest", {"north": 0.0, "south": 1.0, "east": 0.0}, 300),
    ],
)
def test_weights_by_hand(rule: Rule, expected: dict[str, float], n: int) -> None:
    pooled = pool(three(), rule)
    assert weights(pooled) == pytest.approx(expected)
    assert pooled.estimate == pytest.approx(sum(three()[site].estimate * weight for site, weight in expected.items()))
    assert pooled.sampling_sd == pytest.approx(0.4 * math.hypot(*expected.values()))
    assert pooled.privacy_sd == pytest.approx(
        math.hypot(*(three()[site].privacy_sd * weight for site, weight in expected.items()))
    )
    assert pooled.n == n


def test_random_effects_by_hand() -> None:
    """Q = 10 on 3, so that the variance between sites is 7/6; standard errors are alike, so weights are."""
    noise = (NoiseTerm("gaussian", math.sqrt(0.5 - 0.16)),)
    pooled = pool({str(place): effect(float(place), noise=noise) for place in range(4)}, "random_effects")
    assert weights(pooled) == pytest.approx(dict.fromkeys("0123", 0.25))
    found = Heterogeneity.of(np.arange(4.0), np.full(4, 0.5))
    assert (found.spread, found.variance, found.share) == pytest.approx((10, 7 / 6, 0.7))
    assert pooled.between_sd == pytest.approx(math.sqrt(found.limit) / 2)
    assert any("1.080, at most" in note and "I² 70%, Q 10.00 on 3" in note for note in pooled.notes)


@pytest.mark.parametrize("rule", RULES)
def test_one_site_is_that_site(rule: Rule) -> None:
    for alone in (effect(), effect(sampling_sd=None), effect(no_interval="biased")):
        pooled = pool({"north": alone}, rule)
        same = dataclasses.replace(pooled, sites=(), receipts=alone.receipts)
        assert same == alone
        assert pooled.receipts[0].site == "north"
    assert pool({"north": effect()}, rule).interval() == effect().interval()


@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_answers_does_not_matter(rule: Rule) -> None:
    sites = three() | {"west": effect(3.0, n=300)}
    turned = {site: sites[site] for site in reversed(sites)}
    assert pool(sites, rule, {"b": "late", "a": "late"}) == pool(turned, rule, {"a": "late", "b": "late"})
    assert [share.site for share in pool(sites, rule).sites] == ["east", "north", "south", "west"]


def test_the_first_by_name_of_the_largest() -> None:
    assert weights(pool({"b": effect(), "a": effect()}, "largest")) == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("rule", RULES)
def test_a_pooled_effect_survives_json_and_prints(rule: Rule) -> None:
    pooled = pool(three(), rule, {"west": "no budget"})
    assert dpc.Effect.from_json(pooled.to_json()) == pooled
    text = str(pooled)
    assert "west: no budget" in text
    assert "the between-site standard deviation of effects is" in text


def test_rehearsals_can_be_pooled() -> None:
    schema = dpc.Schema(treatment=dpc.Treatment("t", undeclared=0), outcome=dpc.Real("y", 0, 1))
    plans = {str(n): dpc.DifferenceInMeans().estimate(dpc.Rehearsal(schema, n=n), epsilon=1.0) for n in (300, 500, 900)}
    for rule in RULES:
        pooled = pool(plans, rule)
        assert pooled.rehearsed
        assert {share.estimate for share in pooled.sites} == {None}
        assert "rehearsed as if effects did not differ between sites" in pooled.notes
        assert pooled.interval()[1] > 0


def test_leaving_one_out() -> None:
    left = leave_one_out(three(), "sample_size")
    assert sorted(left) == ["east", "north", "south"]
    assert left["east"].estimate == pytest.approx(1.75)
    assert [share.weight for share in left["east"].sites] == [0.0, 0.25, 0.75]
    with pytest.raises(QueryError, match="at least one"):
        leave_one_out({"north": effect()})


# --- what a reader is told


def test_guarantees_of_sites() -> None:
    pooled = pool(three() | {"west": effect(guarantee=dpc.Guarantee(epsilon=0.5, delta=1e-6))})
    assert pooled.guarantee == dpc.Guarantee(epsilon=1.0, delta=1e-6)
    assert pool(three()).guarantee == dpc.Guarantee(epsilon=1.0)
    assert "epsilon by site: east 0.1, north 1, south 1, west 0.5 (delta 1e-06)" in pooled.notes
    assert any("epsilons add up for a person with records at several sites" in note for note in pooled.notes)
    alike = pool({"a": effect(), "b": effect()})
    assert not any(note.startswith("epsilon by site") for note in alike.notes)


def test_all_sites_were_paid() -> None:
    pooled = pool(three())
    assert [(receipt.site, receipt.epsilon) for receipt in pooled.receipts] == [
        ("east", 0.1),
        ("north", 1),
        ("south", 1),
    ]


def test_absent_sites_are_listed() -> None:
    pooled = pool(three(), absent={"west": "no budget"})
    assert SiteShare("west", "no budget", weight=0.0) in pooled.sites
    assert pooled.notes[0] == "without west (no budget): the effect is of units of the sites that answered"
    assert "2 of 4 sites" in pooled.method
    assert pool({"north": effect()}, absent={"west": "late"}).notes[0].startswith("without west (late)")


def test_selected_sites_are_listed() -> None:
    (told,) = [note for note in pool(three()).notes if "selected" in note]
    assert told.startswith("left out: east, ")
    assert "which the interval does not account for" in told
    assert not any("selected" in note for note in pool(three(), "sample_size").notes)


def test_pooled_effect_has_only_the_notes_of_all_sites() -> None:
    sites = {"a": effect(notes=("all", "only a")), "b": effect(notes=("only b", "all"))}
    assert pool(sites).notes[-1] == "all"
    assert not any("only" in note for note in pool(sites).notes)
    assert pool(sites).assumptions == ("arms are comparable", "no unit is at two sites")


def test_two_sites_have_no_random_effects_interval() -> None:
    pooled = pool({"a": effect(0.0), "b": effect(1.0)}, "random_effects")
    with pytest.raises(RefusedError, match="two sites cannot estimate"):
        pooled.interval()
    assert pooled.between_sd == 0


def test_a_useless_site_does_not_matter() -> None:
    """Neither for the estimate nor, which is harder, for how much sites may differ."""
    sites = {str(place): effect(float(place % 3)) for place in range(9)}
    useless = sites | {"useless": effect(500.0, scale=1000.0)}
    for rule in NEED_VARIANCES:
        before, after = pool(sites, rule), pool(useless, rule)
        assert after.estimate == pytest.approx(before.estimate, abs=1e-3)
        assert after.interval()[1] == pytest.approx(before.interval()[1], abs=0.02)


# --- noise


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_many_noise_terms_are_simulated_as_few(level: float) -> None:
    """Sixty Laplace parts, of one size and of very different ones."""
    for scales in (np.ones(30), np.geomspace(0.01, 1, 30)):
        sites = {
            f"{place:02}": effect(sampling_sd=0.01, noise=(NoiseTerm("laplace", float(scale)),) * 2)
            for place, scale in enumerate(scales)
        }
        pooled = pool(sites, "sample_size")
        terms = [NoiseTerm("laplace", float(scale) / 30) for scale in scales for _ in range(2)]
        assert len(pooled.noise) == 24
        assert pooled.privacy_sd == pytest.approx(math.sqrt(sum(term.variance for term in terms)))
        exact = half_width(pooled.sampling_sd or 0.0, terms, level)
        assert pooled.interval(level)[1] - pooled.estimate == pytest.approx(exact, rel=0.015)


# --- how much sites differ


@pytest.mark.parametrize(
    ("variances", "between", "most"),
    [(np.ones(4), 30.0, 0.94), (np.ones(4), 1.0, 1.0), (np.geomspace(0.05, 20, 6), 30.0, 0.98)],
)
def test_the_limit_is_too_low_in_a_tenth_of_cases_at_most(variances: Array, between: float, most: float) -> None:
    generator = np.random.default_rng(4)
    drawn = generator.normal(0, np.sqrt(variances + between), (1000, len(variances)))
    held = np.mean([Heterogeneity.of(estimates, variances).limit > between for estimates in drawn])
    assert 0.87 < held <= most


def test_q_and_its_moments_against_matrices() -> None:
    """Q is a quadratic form; its parts are what the squares of its eigenvalues say."""
    generator = np.random.default_rng(5)
    for _ in range(20):
        variances, estimates = np.exp(generator.normal(0, 1.5, 6)), generator.normal(0, 3, 6)
        precisions = 1 / variances
        form = np.diag(precisions) - np.outer(precisions, precisions) / precisions.sum()
        values = np.linalg.eigvalsh(form)
        parts, spread = values.sum() ** 2 / (values**2).sum(), float(estimates @ form @ estimates)
        found = Heterogeneity.of(estimates, variances)
        assert found.spread == pytest.approx(spread)
        assert found.variance == pytest.approx(max(spread - 5, 0) / values.sum())
        limit = (max(spread, 5) * parts / stats.chi2.ppf(0.1, parts) - 5) / values.sum()
        if parts > 2:
            assert found.limit == pytest.approx(limit, rel=0.15)
        assert found.limit > 0.99 * limit  # never much below


def studies(variances: Array, between: float, runs: int) -> Array:
    """Whether the 95 % interval holds the truth, by rule; and, last, that of the textbook's random effects."""
    generator, covered = np.random.default_rng(6), np.zeros((runs, 4))
    noise = tuple((NoiseTerm("gaussian", math.sqrt(variance / 2)),) for variance in variances)
    for run in range(runs):
        truths = generator.normal(0, between, len(variances))
        estimates = truths + generator.normal(0, np.sqrt(variances))
        sites = {
            f"{place:02}": effect(float(estimates[place]), noise=noise[place], sampling_sd=math.sqrt(variance / 2))
            for place, variance in enumerate(variances)
        }
        for place, rule in enumerate(("minimum_variance", "sample_size", "random_effects")):
            pooled = pool(sites, rule)  # type: ignore[arg-type]
            counts = np.array([share.weight for share in pooled.sites])
            truth = 0.0 if rule == "random_effects" else float(truths @ counts)
            # All noise is normal here, so that intervals need not be drawn.
            error = math.hypot(pooled.sampling_sd or 0.0, pooled.between_sd, pooled.privacy_sd)
            covered[run, place] = abs(pooled.estimate - truth) < 1.96 * error
            if rule == "random_effects":
                tau = Heterogeneity.of(estimates, variances).variance
                covered[run, 3] = abs(pooled.estimate) < 1.96 * math.sqrt(counts @ (counts * (variances + tau)))
    share: Array = covered.mean(axis=0)
    return share


@pytest.mark.parametrize(
    ("sites", "between", "uneven"), sampled(itertools.product([3, 6], [0.0, 1.0], [1.0, 100.0]), 3, 1)
)
def test_intervals_cover(sites: int, between: float, uneven: float) -> None:
    chosen, by_size, random, textbook = studies(np.geomspace(1 / uneven, uneven, sites), between, 400)
    assert 0.92 < chosen < 0.98
    assert 0.92 < by_size < 0.98
    assert random > 0.94
    if between and uneven > 1:
        assert textbook < 0.9  # mutant: what the check finds in the usual normal interval


# --- what is refused


@pytest.mark.parametrize(
    "wrong",
    [
        {"estimate": math.nan},
        {"estimate": -math.inf},
        {"estimate": 1e60},
        {"sampling_sd": math.nan},
        {"sampling_sd": -0.1},
        {"noise": (NoiseTerm("laplace", math.inf),)},
        {"noise": (NoiseTerm("laplace", 1e200),)},
        {"noise": (NoiseTerm("laplace", -1.0),)},
        {"noise": ()},
        {"noise": (NoiseTerm("laplace", 0.0),)},
        {"n": 0},
        {"n": True},
        {"n": 2.5},
        {"between_sd": 1.0},
        {"sites": (SiteShare("x", "answered"),)},
    ],
)
@pytest.mark.parametrize("rule", RULES)
def test_invalid_site_is_refused_by_name(rule: Rule, wrong: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match=r"(from|of) bad"):
        pool({"bad": effect(**wrong), "good": effect()}, rule)


@pytest.mark.parametrize(
    "other",
    [
        {"arms": ("new", "old")},
        {"outcome": "z"},
        {"estimand": "another effect"},
        {"guarantee": dpc.Guarantee(epsilon=1.0, protects="outcome")},
        {"receipts": (Receipt("made_up", 1.0, 0.0),)},
    ],
)
def test_sites_must_answer_one_question(other: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="at all sites") as refused:
        pool({"a": effect(), "b": effect(**other), "c": effect()})
    assert "at a, c; " in refused.value.problem


def test_what_is_not_an_effect_is_refused() -> None:
    with pytest.raises(QueryError, match="at least one"):
        pool({})
    with pytest.raises(QueryError, match="str from b"):
        pool({"a": effect(), "b": "effect"})  # type: ignore[dict-item]
    for wrong in ([effect(), effect()], effect(), None, {1: effect()}):
        for asked in (pool, leave_one_out):
            with pytest.raises(QueryError, match="a dictionary of sites' names and their effects"):
                asked(wrong)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="one of automatic, minimum_variance"):
        pool(three(), "fixed_effect")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="absence of north"):
        pool(three(), absent={"north": "late"})


@pytest.mark.parametrize("lacks", [{"sampling_sd": None}, {"no_interval": "biased"}])
def test_sites_without_intervals(lacks: dict[str, Any]) -> None:
    sites = {"a": effect(1.0, n=100), "b": effect(3.0, n=300, **lacks)}
    for rule in RULES:
        pooled = pool(sites, rule)
        assert {"sample_size": 2.5, "largest": 3.0}.get(rule, pooled.estimate) == pooled.estimate
        with pytest.raises(RefusedError, match="none from b"):
            pooled.interval()
    grown = sites | {"a": effect(1.0, n=1000)}
    assert pool(grown, "largest").interval() == effect(1.0).interval()


@pytest.mark.parametrize("rule", RULES)
def test_extreme_numbers_neither_warn_nor_fail(rule: Rule) -> None:
    sites = {
        "a": effect(1e50, n=10**9, scale=1e-50, sampling_sd=0.0),
        "b": effect(-1e50, n=1, scale=1e50),
        "c": effect(0.0, n=1, scale=1e-3),
    }
    pooled = pool(sites, rule)
    interval = () if pooled.no_interval else pooled.interval()
    assert all(map(math.isfinite, (pooled.estimate, pooled.privacy_sd, pooled.between_sd, *interval)))
    assert dpc.Effect.from_json(pooled.to_json()) == pooled
    assert str(pooled)


# --- sites that were refused an interval, and sites that are wrong


def test_site_without_an_interval_keeps_its_weight() -> None:
    refused = effect(3.0, n=100, no_interval="biased")
    sites = {"a": effect(1.0, n=100), "b": refused, "c": effect(1.0, n=100)}
    for rule in NEED_VARIANCES:
        pooled = pool(sites, rule)
        assert weights(pooled) == pytest.approx({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
        assert pooled.estimate == pytest.approx(5 / 3)
        assert "b (33% of the weight)" in pooled.no_interval
    without = pool({site: sites[site] for site in "ac"})
    low, high = without.interval()
    assert any(f"(a, c): 1.000, 95 % interval {low:.4f} to {high:.3f}" in note for note in pool(sites).notes)


def test_an_unknown_sampling_error_is_that_of_the_other_sites_units() -> None:
    """Otherwise a site that says nothing would look as if it were the most precise."""
    sites = {"a": effect(n=100, sampling_sd=0.4), "b": effect(n=400, sampling_sd=None)}
    same = {"a": effect(n=100, sampling_sd=0.4), "b": effect(n=400, sampling_sd=0.2)}
    for rule in ("minimum_variance", "inverse_variance"):
        assert weights(pool(sites, rule)) == pytest.approx(weights(pool(same, rule)))


def lying() -> dict[str, dpc.Effect]:
    """As in a review: two honest sites, and one that says +30.00 ± 0.07."""
    lie = effect(30.0, n=100_000, sampling_sd=0.02, scale=0.03)
    return {"honest": effect(-1.6), "liar": lie, "true": effect(-1.1, n=300)}


def test_site_that_decides_alone_against_all_others_gives_a_warning() -> None:
    for rule in ("minimum_variance", "inverse_variance", "sample_size"):
        pooled = pool(lying(), rule)
        assert pooled.warnings[0].startswith("liar alone decides")
        assert str(pooled).splitlines()[2].startswith("WARNING           liar alone decides")
        with pytest.raises(RefusedError, match="compare the rule median"):
            pooled.interval()


@pytest.mark.parametrize(("n", "warned"), [(450, True), (350, False)])
def test_site_with_most_of_the_weight_against_all_others_gives_a_warning(n: int, warned: bool) -> None:
    """Beyond half of the weight people must look at the site; below it, the heterogeneity is in the notes."""
    sites = lying() | {"liar": dataclasses.replace(lying()["liar"], n=n), "honest": effect(-1.6, n=100)}
    pooled = pool(sites, "sample_size")
    assert [text.startswith("liar has 52.9% of the weight") for text in pooled.warnings] == [True] * warned
    assert pooled.interval()


def test_the_largest_site_against_all_others_gives_a_warning_and_its_own_interval() -> None:
    pooled = pool(lying(), "largest")
    assert pooled.warnings[0].startswith("liar alone decides")
    assert pooled.interval()


def test_precise_site_that_agrees_gives_no_warning() -> None:
    sites = lying() | {"liar": dataclasses.replace(lying()["liar"], estimate=-1.3)}
    pooled = pool(sites)
    assert not pooled.warnings
    assert pooled.interval()


def test_median_resists_a_minority_of_wrong_sites() -> None:
    pooled = pool(lying(), "median")
    low, high = pooled.interval()
    assert pooled.estimate == -1.1
    assert low < -1.3 < high < 1
    assert pooled.n == 100_400
    with pytest.raises(RefusedError, match="two sites have no median site"):
        pool({site: lying()[site] for site in ("honest", "liar")}, "median").interval()


@pytest.mark.parametrize("errors", [[1.0] * 3, [1.0] * 4, [1.0, 1.0, 10.0], [0.5, 1.0, 2.0, 4.0, 8.0], [1.0] * 20])
def test_the_standard_error_of_the_median(errors: list[float]) -> None:
    """Never too small; too large where some sites are more precise than the middle one, which is not believed."""
    drawn = np.random.default_rng(3).normal(0, errors, (20_000, len(errors)))
    most = 1.7 if min(errors) < np.median(errors) else 1.3
    assert 0.95 < median_sd(np.square(errors)) / np.median(drawn, axis=1).std() < most


def test_pooled_effect_has_the_warnings_of_all_sites() -> None:
    sites = three() | {"north": dataclasses.replace(three()["north"], warnings=("every age is 38",))}
    assert "north: every age is 38" in pool(sites).warnings


def test_pooled_means_are_weighted_like_the_effects() -> None:
    apart, noise = ((1e-4, 0.0), (0.0, 1e-4)), (JointNoise("laplace", (0.01, 0.0)),)
    sites = {
        site: effect(0.1, n=n, arm_means=JointEstimate(("old", "new"), (level, level + 0.1), apart, noise))
        for site, n, level in (("north", 300, 0.2), ("south", 100, 0.4))
    }
    means = pool(sites, "sample_size").arm_means
    assert means is not None
    assert means.values == pytest.approx((0.25, 0.35))
    assert means.sampling[0][0] == pytest.approx((0.75**2 + 0.25**2) * 1e-4)
    assert [term.scales[0] for term in means.noise] == pytest.approx([0.0075, 0.0025])
    assert pool(sites | {"south": effect(0.1)}, "sample_size").arm_means is None


def test_strata_of_one_cap_are_pooled_whichever_target_noise_named_at_a_site() -> None:
    """Each site has paid by then. What is no average treatment effect at one site is called none of all."""
    schema = dpc.Schema(
        treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Category("ward", ["a", "b"])]
    )
    found = dpc.Stratification(by=["ward"], cap=3).estimate(dpc.Rehearsal(schema, n=5_000), epsilon=1.0)
    named = dataclasses.replace(found, target="ATE", estimand="average")
    modest = dataclasses.replace(found, target="ATO", estimand="overlap")
    for sites in ({"a": named, "b": modest}, {"a": modest, "b": named}):
        pooled = pool(sites, "sample_size")
        assert (pooled.target, pooled.estimand.split(";")[0]) == ("ATO", "overlap")
    assert pool({"a": named, "b": named}, "sample_size").target == "ATE"
    other = dataclasses.replace(modest, defining={"cap": 4})
    with pytest.raises(QueryError, match="the same estimand at all sites"):
        pool({"a": named, "b": other}, "sample_size")


def test_what_defines_an_estimand_decides_and_not_its_words() -> None:
    schema = dpc.Schema(
        treatment=dpc.Treatment("t"), outcome=dpc.Real("y", 0, 1), covariates=[dpc.Category("ward", ["a", "b"])]
    )
    source = dpc.Rehearsal(schema, n=5_000)

    def by(estimator: Estimator) -> dpc.Effect:
        return estimator.estimate(source, epsilon=1.0)

    plain, adjusted = by(dpc.DifferenceInMeans()), by(dpc.RegressionAdjustment(covariates=["ward"]))
    both = pool({"a": dataclasses.replace(plain, estimand="ATE"), "b": adjusted}, "sample_size")
    assert both.defining == {}
    assert not both.estimator
    for other in (
        by(dpc.Stratification(by=["ward"], cap=3)),
        by(dpc.InverseWeighting(covariates=["ward"], estimand="ATO")),
        by(dpc.QuantileEffects()),
    ):
        with pytest.raises(QueryError, match="the same estimand at all sites"):
            pool(
                {
                    "a": dataclasses.replace(plain, estimand="the same"),
                    "b": dataclasses.replace(other, estimand="the same"),
                },
                "sample_size",
            )
    caps = {str(cap): by(dpc.Stratification(by=["ward"], cap=cap)) for cap in (3, 4)}
    with pytest.raises(QueryError, match='"cap": 3'):
        pool(caps, "sample_size")
