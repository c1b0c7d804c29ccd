"""Checks that effects can be pooled: they estimate the same quantity, with finite numbers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from dpcausal.errors import QueryError
from dpcausal.pooling.weights import RULES, Rule
from dpcausal.results.effect import Effect
from dpcausal.utils.validation import is_number

_LARGEST = 1e50
"""Numbers beyond this, and noise below its inverse, cannot be squared and divided without overflow."""

_HINT = "ask all sites the same question; different quantities have no common average."
_OTHER_ESTIMANDS = (
    f"{_HINT} Stratification chooses a cap at each site, and its estimand says how much that trims: "
    "give the same cap= at all sites, large enough to trim little at each."
)
"""What to do where the settings of one estimator make different estimands."""


class _Common(NamedTuple):
    """What all sites must have in common: in words, of an effect, and what to do where they have not."""

    words: str
    of: Callable[[Effect], object]
    hint: str = _HINT


def _estimand(effect: Effect) -> dict[str, object]:
    """Return what defines an estimand, in fields."""
    missing = {"includes_missing": True} if effect.includes_missing else {}
    kind = {"target": effect.target, "quantity": effect.quantity, "is_risk_difference": effect.is_risk_difference}
    return kind | missing | dict(effect.defining or {})


_SAME = (
    _Common("the same arms", lambda effect: effect.arms),
    _Common("the same outcome", lambda effect: effect.outcome),
    _Common("guarantees of the same kind", lambda effect: effect.guarantee.protects),
    _Common(
        "effects that were all released, or all rehearsed",
        lambda effect: "rehearsed" if effect.rehearsed else "released",
    ),
)


def check_poolable(effects: Mapping[str, Effect], rule: Rule, absent: Mapping[str, str]) -> dict[str, Effect]:
    """Return the effects in the order of their sites' names, so that the order of answers does not matter."""
    if rule not in RULES:
        raise QueryError(
            expected=f"a rule, one of automatic, {', '.join(RULES)}", got=repr(rule), hint="docs/pooling.md has them."
        )
    if not effects or not all(isinstance(effect, Effect) for effect in effects.values()):
        raise QueryError(
            expected="at least one site's effect",
            got=", ".join(f"{type(effect).__name__} from {site}" for site, effect in effects.items()) or "none",
            hint="give a dictionary of sites' names and effects, and in `absent` the reasons of the other sites.",
        )
    if twice := sorted(set(effects) & set(absent)):
        raise QueryError(
            problem=f"There is both an effect and an absence of {', '.join(twice)}",
            hint="list only sites without an effect in `absent`.",
        )
    sites = _with_one_target({site: effects[site] for site in sorted(effects)})
    _check_numbers(sites)
    _check_same(sites)
    return sites


def check_named(effects: object) -> None:
    """Raise unless this is a dictionary with names as keys."""
    if not isinstance(effects, Mapping) or not all(isinstance(site, str) for site in effects):
        raise QueryError(
            expected="a dictionary of sites' names and their effects",
            got=f"a {type(effects).__name__}",
            hint='write for instance pool({"north": effect, "south": other}).',
        )


def _check_numbers(sites: Mapping[str, Effect]) -> None:
    if wrong := [site for site, effect in sites.items() if not _usable(effect)]:
        raise QueryError(
            expected=f"numbers that are finite and not beyond {_LARGEST:g}, and at least one unit",
            got=f"others from {', '.join(wrong)}",
            hint="omit the site, and give the reason in `absent`.",
        )
    if silent := [site for site, effect in sites.items() if effect.privacy_sd < 1 / _LARGEST]:
        raise QueryError(
            problem=f"There is no privacy noise in the effect of {', '.join(silent)}; its variance is a lower bound of "
            "the site's variance",
            hint="an effect without noise is not private; it does not come from this package.",
        )
    if pooled := [site for site, effect in sites.items() if effect.sites or effect.between_sd]:
        raise QueryError(
            expected="each site's own effect",
            got=f"a pooled effect from {', '.join(pooled)}",
            hint="pool the effects of all sites at once.",
        )
    if looks := [site for site, effect in sites.items() if effect.looks is not None]:
        raise QueryError(
            expected="effects whose intervals are for one look",
            got=f"a look of several from {', '.join(looks)}",
            hint="the rules of pooling have no intervals that hold at all looks; run each site without cohorts.",
        )


def _usable(effect: Effect) -> bool:
    sizes = [effect.estimate, 0.0 if effect.sampling_sd is None else effect.sampling_sd]
    sizes += [term.scale for term in effect.noise]
    return (
        isinstance(effect.n, int)
        and not isinstance(effect.n, bool)
        and 1 <= effect.n <= _LARGEST
        and all(is_number(size) and abs(size) <= _LARGEST for size in sizes)
        and min(sizes[1:]) >= 0
    )


def _written(answer: object) -> str:
    """Return an answer as text, which does not depend on the order of a dictionary."""
    return json.dumps(answer, sort_keys=True, default=str) if isinstance(answer, dict) else repr(answer)


def _with_one_target(sites: Mapping[str, Effect]) -> dict[str, Effect]:
    """Return the effects with the words of the most modest where only noise decided between them.

    A cap defines what is estimated. Whether strata then count as nearly all units, so that it is called the average
    treatment effect, is decided at each site by numbers with noise, after its price was paid.
    """
    capped = [effect for effect in sites.values() if "cap" in (effect.defining or {})]
    modest = next((effect for effect in capped if effect.target == "ATO"), None)
    if modest is None:
        return dict(sites)
    words = {"target": modest.target, "estimand": modest.estimand}
    return {
        site: replace(effect, **words) if effect.defining == modest.defining and effect.target == "ATE" else effect  # type: ignore[arg-type]
        for site, effect in sites.items()
    }


def _check_same(sites: Mapping[str, Effect]) -> None:
    in_words = any(effect.defining is None for effect in sites.values())  # older versions saved nothing else
    estimand = _Common(
        "the same estimand", (lambda effect: effect.estimand) if in_words else _estimand, _OTHER_ESTIMANDS
    )
    for common in (*_SAME, estimand):
        answers: dict[str, list[str]] = {}
        for site, effect in sites.items():
            answers.setdefault(_written(common.of(effect)), []).append(site)
        if len(answers) > 1:
            raise QueryError(
                expected=f"{common.words} at all sites",
                got="; ".join(f"{answer} at {', '.join(named)}" for answer, named in answers.items()),
                hint=common.hint,
            )
