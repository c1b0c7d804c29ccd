"""The descriptions whose bounds are certified in Coq, each with the bound that the code claims.

`formal/Claims.v` holds them as the code has them. `formal/Certified.v` holds a certificate for each, which Coq checks.
A certificate is searched for anew only where its claim changed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from checks.formal_cases import NORMS
from checks.formal_certificates import Norm
from checks.formal_claims import Claim
from dpcausal.queries import (
    ArmMoments,
    ArmOutcomeCounts,
    CovariateSums,
    CovariateTotals,
    MetricMoments,
    ReceivedMoments,
    RegressionMoments,
)
from dpcausal.queries.summing import SummingQuery
from dpcausal.schema.columns import Binary, Category, Column
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Protects, Schema
from dpcausal.schema.treatment import Treatment
from dpcausal.sums.cases import domain_of
from dpcausal.sums.description import Sums

_COVARIATES = (Real("age", 18, 90), Binary("smoker"), Category("ward", ["a", "b", "c"]))


def _schema(protects: Protects, covariates: Sequence[Column] = _COVARIATES) -> Schema:
    return Schema(
        treatment=Treatment("arm", undeclared=0), outcome=Real("pain", 0, 10), covariates=covariates, protects=protects
    )


def _described(query: SummingQuery, schema: Schema, norm: Norm) -> Sums:
    """Return what a query adds up, with the weights that it has."""
    (sums,) = query.sums(schema, schema.protects, norm)
    coordinates = query.sensitivity(schema, schema.protects, norm).coordinates
    weights = {}
    for name in (*sums.numbers, *sums.whole):
        called = re.compile(re.escape(name).replace(r"\{\}", r"[_\d]*") + r"[_\d]*")
        (weight,) = {at.weight for at in coordinates if called.fullmatch(at.name)}
        weights[name] = weight or Fraction(0)
    return replace(sums, weights=weights)


def _claim(query: SummingQuery, schema: Schema, norm: Norm) -> Claim:
    """Return the claim of a query."""
    bound = query.sensitivity(schema, schema.protects, norm).bound
    return Claim(_described(query, schema, norm), domain_of(schema, schema.protects), norm, bound)


WHOLLY = ("covariate_sums", "covariate_totals")
"""The queries of which bounds are certified at every level of protection and in both norms."""

_LEVELS: Mapping[str, Protects] = {"record": "record", "within_arm": "record_within_arm", "outcome": "outcome"}


def _wholly() -> dict[str, Claim]:
    """Return the claims of queries that are certified wholly."""
    made: tuple[SummingQuery, ...] = CovariateSums(["age"]), CovariateTotals(["age", "smoker", "ward"])
    return {
        f"{name}_{level}_{norm}": _claim(query, _schema(protects), norm)
        for name, query in zip(WHOLLY, made, strict=True)
        for level, protects in _LEVELS.items()
        for norm in NORMS
    }


def claims() -> Mapping[str, Claim]:
    """Return all claims by name."""
    record, within, outcome = _schema("record"), _schema("record_within_arm"), _schema("outcome")
    twenty = [Real(f"x{at}", 0, 1) for at in range(20)]
    every = RegressionMoments([column.name for column in twenty])
    return {
        "arm_moments_record_l2": _claim(ArmMoments(), record, "l2"),
        "arm_moments_within_arm_l2": _claim(ArmMoments(), within, "l2"),
        "received_moments_record_l2": _claim(ReceivedMoments("smoker"), record, "l2"),
        "received_moments_outcome_l1": _claim(ReceivedMoments("smoker"), outcome, "l1"),
        "arm_outcome_counts_record_l1": _claim(ArmOutcomeCounts([2, 5]), record, "l1"),
        "regression_moments_20_within_arm_l2": _claim(every, _schema("record_within_arm", twenty), "l2"),
        "metric_moments_record_l2": _claim(MetricMoments([["pain"]], [1.0]), record, "l2"),
        **_wholly(),
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
