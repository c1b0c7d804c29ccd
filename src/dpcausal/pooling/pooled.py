"""Pooling of several sites' effects by a rule."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpcausal.guarantee import Guarantee
from dpcausal.pooling.agreement import check_named, check_poolable
from dpcausal.pooling.heterogeneity import Heterogeneity
from dpcausal.pooling.robust import RobustFit, scaled_errors
from dpcausal.pooling.weights import (
    Automatic,
    Rule,
    automatic_rule,
    inverse_variance,
    largest_bias,
    median_sd,
    weights_of,
)
from dpcausal.results.effect import Effect
from dpcausal.results.site_share import SiteShare
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.uncertainty.joint_estimate import weighted_average
from dpcausal.utils.arrays import Array
from dpcausal.utils.other_names import called_as
from dpcausal.utils.text import format_number

_TERMS = 24
"""An interval simulates every noise term; beyond so many, the smallest are simulated as one."""

_ESTIMANDS: dict[Rule, str] = {
    "minimum_variance": "over the units of the {count} sites with weight",
    "inverse_variance": "averaged over {count} sites by precision",
    "random_effects": "averaged over a population of sites like these {count}",
    "sample_size": "over the units of {count} sites",
    "largest": "over the units of the largest site",
    "median": "at the median of {count} sites",
    "robust": "averaged over sites like these {count}, outlying sites counting less",
}

_ASSUMPTIONS: dict[Rule, tuple[str, ...]] = {
    "inverse_variance": ("effects do not differ between sites; otherwise precise sites dominate the average",),
    "random_effects": ("sites are a random sample of many sites, with normally distributed effects",),
    "median": ("more than half of the sites are correct, and these have one common effect",),
    "robust": ("most sites are correct, and their effects are spread symmetrically around the average",),
}

_MOST, _DECIDES, _DISAGREES = 0.5, 0.9, 3.0
"""A site has most of the weight, or decides alone, beyond these shares, and disagrees if it is so many standard errors
from the rest."""

_SYMMETRIC = (
    "each site's effect is a ratio, pooled by errors to first order: the interval is symmetric, and too narrow where a "
    "site's denominator is small. Sums over sites (pooling = 'sums') keep Fieller's interval"
)


@called_as('pool({"north": effect, "south": other})')
def pool(
    effects: Mapping[str, Effect], rule: Rule | Automatic = "automatic", absent: Mapping[str, str] | None = None
) -> Effect:
    """Pool the effects of several sites.

    A single site keeps its own estimate, errors and interval under every rule. Koga, Chaudhuri and Page call the rules
    MVAgg (`minimum_variance`), IVW (`inverse_variance`), AggAll (`sample_size`) and AggLargest (`largest`): see
    docs/papers/multi-site.md.

    Estimand:
        `minimum_variance`, `sample_size` and `largest`: the effect over the units of the sites with weight, all units
        alike. `inverse_variance`: the effect that all sites share; if they differ, an average by precision.
        `random_effects`: the mean effect over a population of sites, of which these are a sample. `robust`: the same
        where effects are spread symmetrically, whatever a minority of wrong sites claims. Sites that did not answer
        are in none of these.

    Assumptions:
        Those of all sites; no unit is at two sites; and those of the rule, which the effect states.

    Privacy:
        Costs nothing: an effect is public, and so is anything computed from it. A unit keeps the guarantee of its own
        site, so the pooled effect has the largest epsilon and delta of any site. For a person with records at several
        sites these add up.

    Args:
        effects: Each site's effect, by the site's name. All must estimate the same quantity.
        rule: How sites are weighted. `automatic`: `robust` from five sites on, `minimum_variance` below. A site's
            variance is that of sampling and privacy noise together, and so at least that of its noise, which is
            public. `minimum_variance`: by size, within the set of sites with the smallest variance.
            `inverse_variance`: by precision, the fixed effect of meta-analysis. `random_effects`: by precision, with
            the between-site variance added to each site's. `sample_size`: by size. `largest`: only the largest site;
            ties go to the first by name. `median`: the median site, whatever precision sites claim: fewer than half of
            the sites, wrong or dishonest, cannot move it far. `robust`: Huber's M-estimator, by precision up to that of
            the median site, with a bounded influence of sites that are far from the others; its standard error comes
            from the differences between sites, and its interval is Student's. A site whose interval was refused counts
            too, by its public noise and its sampling error; where that is missing, by that of the other sites' units.
        absent: Why other sites did not answer, by name.

    Returns:
        The effect. Its `n` counts the units of sites with a positive weight, `between_sd` is the part of heterogeneity
        in the error of random effects, `sites` lists each site's part, and the receipts are those of all sites. It has
        no interval where a site with weight has none, nor where one site decides alone, against all others. A site
        with most of the weight that disagrees with all others gives a warning.

    Raises:
        QueryError: Unless the effects estimate the same quantity with finite numbers, and have what the rule needs.

    Reference:
        Koga, Chaudhuri and Page (2024), Differentially Private Multi-Site Treatment Effect Estimation, section III-B;
        corrected here: variances are at least that of the noise, and the best set is found among prefixes.
        Huber (1964), Robust estimation of a location parameter. Hartung and Knapp (2001), A refined method for the
        meta-analysis of controlled clinical trials with binary outcome. DerSimonian and Laird (1986), Meta-analysis in
        clinical trials. Biggerstaff and Tweedie (1997), Incorporating variability in estimates of heterogeneity in the
        random effects model in meta-analysis.

    Example:
        >>> from dpcausal import DifferenceInMeans, Real, Rehearsal, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100))
        >>> sites = {"north": (4_000, 1.0), "south": (2_000, 1.0), "east": (3_000, 0.05)}
        >>> plans = {
        ...     site: DifferenceInMeans().estimate(Rehearsal(schema, n=n), epsilon=epsilon)
        ...     for site, (n, epsilon) in sites.items()
        ... }
        >>> for rule in ("minimum_variance", "inverse_variance", "sample_size"):
        ...     plan = pool(plans, rule)
        ...     print(rule, round(plan.standard_error, 2), plan.n)
        minimum_variance 0.76 6000
        inverse_variance 0.75 9000
        sample_size 1.47 9000
    """
    absent = dict(absent or {})
    check_named(effects)
    rule = automatic_rule(len(effects)) if rule == "automatic" else rule
    sites = check_poolable(effects, rule, absent)
    if len(sites) == 1:
        return _alone(sites, absent)
    known = all(effect.sampling_sd is not None for effect in sites.values())
    variances = site_variances(list(sites.values()))
    estimates = np.array([effect.estimate for effect in sites.values()])
    differing = Heterogeneity.of(estimates, variances) if known else None
    sizes = np.array([effect.n for effect in sites.values()], dtype=np.float64)
    weights = weights_of(rule, sizes, variances, differing.variance if differing else 0.0, estimates)
    counted = {
        site: effect
        for (site, effect), weight in zip(sites.items(), weights, strict=True)
        if weight > 0 or rule in {"median", "robust"}
    }
    first = next(iter(sites.values()))
    sampling_sd, noise = _sampling_sd(list(sites.values()), weights), _noise(list(sites.values()), weights)
    if rule == "median":
        sampling_sd, noise = _errors_of_median(list(sites.values()), variances)
    between_sd = _between_sd(rule, differing, weights)
    if rule == "robust" and sampling_sd is not None and not first.rehearsed:
        fitted = RobustFit.of(estimates, variances).standard_error
        sampling_sd, noise, between_sd = scaled_errors(fitted, sampling_sd, noise)
    against = _against_others(list(sites), estimates, variances, weights) if rule != "median" else ""
    alone = against if rule != "largest" and weights.max() >= _DECIDES else ""
    return Effect(
        estimand=f"{first.estimand}; {_ESTIMANDS[rule].format(count=len(counted))}",
        arms=first.arms,
        outcome=first.outcome,
        estimate=float(weights @ estimates),
        sampling_sd=sampling_sd,
        noise=noise,
        n=sum(effect.n for effect in counted.values()),
        compared=math.fsum(effect.n - effect.outside for effect in counted.values()),
        compared_sd=math.hypot(*(effect.compared_sd for effect in counted.values())),
        method=f"{rule.replace('_', ' ')} over {len(counted)} of {len(sites) + len(absent)} sites; at each: "
        + " or ".join(dict.fromkeys(effect.method for effect in counted.values())),
        guarantee=_guarantee(list(sites.values())),
        assumptions=(
            *dict.fromkeys(text for effect in counted.values() for text in effect.assumptions),
            "no unit is at two sites",
            *_ASSUMPTIONS.get(rule, ()),
        ),
        receipts=tuple(replace(receipt, site=site) for site, effect in sites.items() for receipt in effect.receipts),
        notes=(
            *_of_absent(absent),
            *_of_choice(rule, sites, counted),
            *_of_those_with_intervals(rule, sites),
            *_of_differences(rule, differing, rehearsed=first.rehearsed),
            *_of_guarantees(sites),
            *_in_common(list(sites.values())),
            *((_SYMMETRIC,) if any(effect.ratio for effect in counted.values()) else ()),
        ),
        no_interval=alone or _no_interval(rule, counted, dict(zip(sites, weights, strict=True))),
        unadjusted=tuple(dict.fromkeys(name for effect in counted.values() for name in effect.unadjusted)),
        between_sd=between_sd,
        degrees_of_freedom=len(sites) - 1 if rule == "robust" else 0,
        quantity=first.quantity,
        arm_means=None
        if rule in {"median", "robust"}
        else weighted_average([effect.arm_means for effect in sites.values()], weights),
        missing_outcomes=weighted_average(
            [effect.missing_outcomes for effect in counted.values()], [effect.n for effect in counted.values()]
        ),
        includes_missing=first.includes_missing,
        sampling_is_a_bound=any(effect.sampling_is_a_bound for effect in counted.values()),
        target=first.target,
        is_risk_difference=first.is_risk_difference,
        estimator=first.estimator if all(effect.estimator == first.estimator for effect in sites.values()) else {},
        declared=first.declared if all(effect.declared == first.declared for effect in sites.values()) else "",
        defining=first.defining,
        bias_bound=largest_bias(rule, weights, [effect.bias_bound for effect in sites.values()]),
        left_in=largest_bias(rule, weights, [effect.left_in for effect in sites.values()]),
        sites=_shares(sites, weights, absent),
        warnings=(
            *((f"{against}. This warning uses released numbers only and cost no privacy.",) if against else ()),
            *(f"{site}: {text}" for site, effect in sites.items() for text in effect.warnings),
        ),
    )


def leave_one_out(effects: Mapping[str, Effect], rule: Rule | Automatic = "automatic") -> dict[str, Effect]:
    """Pool the effects without each of the sites in turn, to show the influence of every single one."""
    check_named(effects)
    others = {out: {site: effect for site, effect in effects.items() if site != out} for out in effects}
    return {out: pool(rest, rule, {out: "left out to show its influence"}) for out, rest in others.items()}


def _alone(sites: Mapping[str, Effect], absent: Mapping[str, str]) -> Effect:
    """Return a single site's effect, unchanged but for the sites' names."""
    ((site, effect),) = sites.items()
    return replace(
        effect,
        receipts=tuple(replace(receipt, site=site) for receipt in effect.receipts),
        notes=(*_of_absent(absent), *effect.notes),
        sites=_shares(sites, np.ones(1), absent),
    )


def site_variances(effects: Sequence[Effect]) -> Array:
    """Return each site's variance: sampling, and privacy noise, whose public variance is a lower bound.

    Where a sampling error is missing, the other sites' variance per unit replaces it.
    """
    known = [effect.n * effect.sampling_sd**2 for effect in effects if effect.sampling_sd is not None]
    unit = float(np.median(known)) if known else 0.0
    sampling = [unit / effect.n if effect.sampling_sd is None else effect.sampling_sd**2 for effect in effects]
    return np.array([each + effect.privacy_sd**2 for each, effect in zip(sampling, effects, strict=True)])


def _errors_of_median(effects: Sequence[Effect], variances: Array) -> tuple[float | None, tuple[NoiseTerm, ...]]:
    """Return the standard error of the median, split into sampling and noise as at the sites."""
    error = median_sd(variances)
    share = float(np.median([effect.privacy_sd**2 for effect in effects] / variances))
    known = all(effect.sampling_sd is not None for effect in effects)
    noise = (NoiseTerm("gaussian", error * math.sqrt(share)),)
    return (error * math.sqrt(1 - share) if known else None), noise


def _against_others(sites: Sequence[str], estimates: Array, variances: Array, weights: Array) -> str:
    """Return a warning where one site has most of the weight and disagrees with all others; empty where none does."""
    first = int(np.argmax(weights))
    if weights[first] <= _MOST:
        return ""
    others = np.arange(len(sites)) != first
    shares = inverse_variance(variances[others])
    rest = float(shares @ estimates[others])
    error = math.sqrt(float(variances[first]) + float(shares**2 @ variances[others]))
    apart = abs(float(estimates[first]) - rest) / error
    if apart <= _DISAGREES:
        return ""
    own, others_together = format_number(float(estimates[first])), format_number(rest)
    decides = "alone decides, with" if weights[first] >= _DECIDES else "has"
    return (
        f"{sites[first]} {decides} {weights[first]:.1%} of the weight, and disagrees with all others "
        f"together ({own} against {others_together}, {format_number(apart)} standard errors): examine that site, and "
        "compare the rule median"
    )


def _sampling_sd(effects: Sequence[Effect], weights: Array) -> float | None:
    parts = [(effect.sampling_sd, weight) for effect, weight in zip(effects, weights, strict=True) if weight > 0]
    known = [sd * float(weight) for sd, weight in parts if sd is not None]
    return math.hypot(*known) if len(known) == len(parts) else None


def _noise(effects: Sequence[Effect], weights: Array) -> tuple[NoiseTerm, ...]:
    """Return every site's noise times its weight; of many terms, the smallest as one nearly normal term."""
    terms = [
        replace(term, scale=term.scale * float(weight))
        for effect, weight in zip(effects, weights, strict=True)
        for term in effect.noise
        if weight > 0
    ]
    if len(terms) > _TERMS:
        terms.sort(key=lambda term: term.variance, reverse=True)
        rest = math.fsum(term.variance for term in terms[_TERMS - 1 :])
        terms[_TERMS - 1 :] = [NoiseTerm("gaussian", math.sqrt(rest))]
    return tuple(terms)


def _between_sd(rule: Rule, differing: Heterogeneity | None, weights: Array) -> float:
    """Return the standard error from heterogeneity, at its upper limit and not at its estimate."""
    if rule != "random_effects" or differing is None or math.isinf(differing.limit):
        return 0.0
    return math.sqrt(differing.limit * float((weights**2).sum()))


def _no_interval(rule: Rule, counted: Mapping[str, Effect], weights: Mapping[str, float]) -> str:
    if without := [site for site, effect in counted.items() if effect.no_interval]:
        return f"there is none from {', '.join(without)} ({sum(weights[site] for site in without):.0%} of the weight)"
    if rule == "median" and len(counted) == 2:
        return "two sites have no median site"
    if rule == "robust" and len(counted) == 2:
        return "two sites cannot estimate how far sites are apart"
    if rule == "random_effects" and len(counted) == 2:
        return "two sites cannot estimate heterogeneity; sample_size has an interval for the units of these two"
    return ""


def _guarantee(effects: Sequence[Effect]) -> Guarantee:
    """Return the weakest guarantee of any site, which holds for every unit."""
    guarantees = [effect.guarantee for effect in effects]
    return Guarantee(
        epsilon=max(guarantee.epsilon for guarantee in guarantees),
        delta=max(guarantee.delta for guarantee in guarantees),
        protects=guarantees[0].protects,
    )


def _shares(sites: Mapping[str, Effect], weights: Array, absent: Mapping[str, str]) -> tuple[SiteShare, ...]:
    shares = [SiteShare(site, why, weight=0.0) for site, why in absent.items()]
    for (site, effect), weight in zip(sites.items(), weights, strict=True):
        error = None if effect.no_interval else effect.standard_error
        estimate = None if effect.rehearsed else effect.estimate  # a placeholder in a rehearsal
        shares.append(SiteShare(site, "answered", effect.n, estimate, error, float(weight)))
    return tuple(sorted(shares, key=lambda share: share.site))


def _of_absent(absent: Mapping[str, str]) -> tuple[str, ...]:
    if not absent:
        return ()
    listed = ", ".join(f"{site} ({why})" for site, why in sorted(absent.items()))
    return (f"without {listed}: the effect is of units of the sites that answered",)


def _of_choice(rule: Rule, sites: Mapping[str, Effect], counted: Mapping[str, Effect]) -> tuple[str, ...]:
    if rule != "minimum_variance":
        return ()
    out = [site for site in sites if site not in counted]
    omitted = f"left out: {', '.join(out)}, which would increase the variance; " if out else ""
    return (f"{omitted}sites were selected by their noisy standard errors, which the interval does not account for",)


def _of_those_with_intervals(rule: Rule, sites: Mapping[str, Effect]) -> tuple[str, ...]:
    """Return a note with the pooled effect of the sites that have intervals, where some have none."""
    sure = {site: effect for site, effect in sites.items() if not effect.no_interval}
    if not sure or len(sure) == len(sites):
        return ()
    alone = pool(sure, rule)
    if alone.no_interval or alone.rehearsed:
        return ()
    low, high = alone.interval()
    pooled = f"{format_number(alone.estimate)}, 95 % interval {format_number(low)} to {format_number(high)}"
    return (f"only the sites with intervals ({', '.join(sure)}): {pooled}",)


def _of_differences(rule: Rule, differing: Heterogeneity | None, *, rehearsed: bool) -> tuple[str, ...]:
    if differing is None:
        return ()
    found = "rehearsed as if effects did not differ between sites" if rehearsed else str(differing)
    if rule != "random_effects" or math.isinf(differing.limit):
        return (found,)
    return found, "the interval uses the upper limit of the between-site variance, and is valid up to level 99 %"


def _of_guarantees(sites: Mapping[str, Effect]) -> tuple[str, ...]:
    notes = ["a unit has the guarantee of its own site; epsilons add up for a person with records at several sites"]
    if len({(effect.guarantee.epsilon, effect.guarantee.delta) for effect in sites.values()}) > 1:
        each = (
            f"{site} {effect.guarantee.epsilon:g}"
            + (f" (delta {effect.guarantee.delta:g})" * bool(effect.guarantee.delta))
            for site, effect in sites.items()
        )
        notes.append(f"epsilon by site: {', '.join(each)}")
    return tuple(notes)


def _in_common(effects: Sequence[Effect]) -> tuple[str, ...]:
    """Return the notes that all sites share; those of one site are in its own effect."""
    shared = set(effects[0].notes).intersection(*(effect.notes for effect in effects))
    return tuple(note for note in dict.fromkeys(effects[0].notes) if note in shared)
