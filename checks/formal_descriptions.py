"""The descriptions whose bounds are certified in Coq, each with the bound that the code claims.

`formal/Claims.v` holds them as the code has them. `formal/Certified.v` holds a certificate for each, which Coq checks.
A certificate is searched for anew only where its claim changed.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from checks.formal_certificates import Norm
from checks.formal_claims import Claim
from dpcausal.queries.regression_moments import FINE, RegressionMoments
from dpcausal.real import Real
from dpcausal.schema import Protects, Schema
from dpcausal.sums.cases import OUTSIDE, Domain
from dpcausal.sums.description import Sums
from dpcausal.sums.numbers import (
    GRID,
    ONE,
    Bin,
    Clip,
    Code,
    Number,
    Shift,
    Ticks,
    deficit,
    equals,
    indicator,
    multiplied,
    sign,
)
from dpcausal.sums.sensitivity import sensitivity_bound
from dpcausal.treatment import Treatment

_OUTCOME, _ARM, _GROUP = Ticks("outcome"), Code("treatment", OUTSIDE), Code("covariate_0", 2)
_GRID = Fraction(GRID)


def _domain(protects: Protects, codes: Mapping[str, int], numbers: int = 0) -> Domain:
    covariates = {*codes, *(f"covariate_{at}" for at in range(numbers))}
    changes = {
        "record": {"outcome", "treatment", *covariates},
        "record_within_arm": {"outcome", *covariates},
        "outcome": {"outcome"},
    }[protects]
    return Domain({"treatment": OUTSIDE + 1, **codes}, frozenset(changes), protects == "record")


def _computed(description: Sums, domain: Domain, norm: Norm) -> Claim:
    """Return a claim of the engine that computes bounds."""
    return Claim(description, domain, norm, sensitivity_bound(description, domain, norm).bound)


def _arm_moments(protects: Protects, norm: Norm) -> Claim:
    weights = {
        "total": 2 * _GRID,
        "deficit": {"l1": 4, "l2": 2}[norm] * _GRID,
        "treated": Fraction(2),
        "compared": Fraction(2),
    }
    numbers: dict[str, Number] = {"total": _OUTCOME, "deficit": deficit(_OUTCOME)}
    whole: dict[str, Number] = {"treated": indicator(equals(_ARM, 1)), "compared": ONE}
    return _computed(Sums({_ARM: 2}, numbers, whole, weights), _domain(protects, {}), norm)


def _received_moments(protects: Protects, norm: Norm) -> Claim:
    weights = {
        "total": 2 * _GRID,
        "deficit": {"l1": 4, "l2": 2}[norm] * _GRID,
        "received": Fraction(8),
        "product": 8 * _GRID,
    }
    received = sign(_GROUP)
    numbers = {"total": _OUTCOME, "deficit": deficit(_OUTCOME), "received": received, "product": received * _OUTCOME}
    return _computed(Sums({_ARM: 2}, numbers, {}, weights), _domain(protects, {"covariate_0": 2}), norm)


def _outcome_counts(protects: Protects, norm: Norm) -> Claim:
    bins = Bin(_OUTCOME, (-GRID // 2, 0, GRID // 3))
    return _computed(Sums({_ARM: 2, bins: 4}, {"count": ONE}, {}, {"count": Fraction(1)}), _domain(protects, {}), norm)


def _change_totals(protects: Protects, norm: Norm) -> Claim:
    change = Shift(Clip(3 * _OUTCOME - 2 * Ticks("covariate_0") + 5, -2 * GRID, 2 * GRID), 1)
    weights = {"total": 2 * _GRID, "size": Fraction(2)}
    return _computed(Sums({_ARM: 2}, {"total": change, "size": ONE}, {}, weights), _domain(protects, {}, 1), norm)


def _regression_moments(features: int, protects: Protects, norm: Norm, *, interaction: bool = True) -> Claim:
    """Return the claim of `RegressionMoments` for so many numbers as covariates."""
    columns = [Real(f"x{at}", 0, 1) for at in range(features)]
    schema = Schema(
        treatment=Treatment("arm", undeclared=0), outcome=Real("y", 0, 1), covariates=columns, protects=protects
    )
    query = RegressionMoments([column.name for column in columns], interaction)
    claimed = query.sensitivity(schema, protects, norm)
    factors = [
        ONE,
        *(Shift(each + 512, 10) for each in (_OUTCOME, *(Ticks(f"covariate_{at}") for at in range(features)))),
    ]
    numbers, weights = {}, {}
    for moment, coordinate in zip(query.moments(schema), claimed.coordinates, strict=True):
        one, other = factors[moment.first], factors[moment.second]
        short = FINE ** [moment.first, moment.second].count(0)
        number = FINE**2 - one * other if moment.deficit else short * multiplied(one, other)
        numbers[coordinate.name] = multiplied(sign(_ARM), number) if moment.signed else number
        weights[coordinate.name] = coordinate.weight or Fraction(0)
    domain = replace(_domain(protects, {}, features), leaves=schema.units_may_leave(protects))
    return Claim(Sums({}, numbers, {}, weights), domain, norm, claimed.bound)


def claims() -> Mapping[str, Claim]:
    """Return all claims by name."""
    return {
        **{f"arm_moments_{protects}_l2": _arm_moments(protects, "l2") for protects in ("record", "record_within_arm")},
        "received_moments_record_l2": _received_moments("record", "l2"),
        "received_moments_outcome_l1": _received_moments("outcome", "l1"),
        "outcome_counts_record_l1": _outcome_counts("record", "l1"),
        "outcome_counts_outcome_l2": _outcome_counts("outcome", "l2"),
        "change_totals_record_l1": _change_totals("record", "l1"),
        "change_totals_record_within_arm_l2": _change_totals("record_within_arm", "l2"),
        "regression_moments_2_outcome_l1": _regression_moments(2, "outcome", "l1"),
        "regression_moments_2_record_l1": _regression_moments(2, "record", "l1", interaction=False),
        "regression_moments_20_record_within_arm_l2": _regression_moments(20, "record_within_arm", "l2"),
    }


_HEAD = (
    "From Coq Require Import QArith ZArith List.\n"
    "From dpcausal Require Import Frame Numbers Certificates Descriptions{}.\n"
    "Import ListNotations.\nOpen Scope Z_scope.\n"
)


def claims_text() -> str:
    """Return the claims as Coq writes them."""
    return _HEAD.format("") + "".join(
        f"\nDefinition {name} : claim := Claim\n  {claim.text()}.\n" for name, claim in claims().items()
    )


def certified_text() -> str:
    """Return a theorem for each claim, with its certificate.

    Raises:
        NoCertificateError: If none was found for a claim.
    """
    return _HEAD.format(" Claims") + "".join(
        f"\nTheorem {name}_certified : true_claim {name}.\nProof.\n  apply (certified {name} (Cases\n  "
        + "\n  ".join(claim.certificates())
        + ")).\n  vm_cast_no_check (eq_refl true).\nQed.\n"
        for name, claim in claims().items()
    )
