from collections.abc import Callable
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.estimators.base import declared_for
from dpcausal.release import Receipt
from dpcausal.report import Report
from dpcausal.report.section import Section
from dpcausal.results.site_share import SiteShare
from dpcausal.uncertainty.interval import NoiseTerm
from dpcausal.uncertainty.joint_estimate import JointEstimate

Made = Callable[..., dpc.Effect]


@pytest.fixture
def made(schema: dpc.Schema) -> Made:
    """Effects with whatever numbers a test needs."""

    def make(*, risks: tuple[float, float] | None = None, **changes: Any) -> dpc.Effect:
        if risks:
            apart = ((0.00045, 0.0), (0.0, 0.00045))
            changes["arm_means"] = JointEstimate(("usual care", "training"), risks, apart, ())
        parts: dict[str, Any] = {
            "estimand": "average treatment effect over strata with both arms, a stratum counting for less where one "
            "arm outnumbers the other by more than 3 to 1",
            "arms": ("usual care", "training"),
            "outcome": "score",
            "estimate": 2.0,
            "sampling_sd": 0.3,
            "noise": (NoiseTerm("laplace", 0.2),),
            "n": 1_000,
            "method": "stratification by race; 3 strata, cap 3",
            "guarantee": dpc.Guarantee(epsilon=1.0),
            "assumptions": ("arms are comparable", *schema.data_handling),
            "receipts": (Receipt("arm_moments", 1.0, 0.0, 2, "ab" * 32),),
            "estimator": {"name": "stratification", "by": ["race"], "cap": 3},
            "declared": declared_for(dpc.Stratification(by=["race"]), schema),
        }
        return dpc.Effect(**parts | changes)

    return make


def like(study: dpc.Study, n: int = 1_000) -> dict[str, Any]:
    """What an effect of a study says of its estimator."""
    planned = study.rehearsed(n)
    return {
        name: getattr(planned, name)
        for name in ("method", "estimand", "quantity", "target", "clip", "estimator", "declared", "is_risk_difference")
    }


def interval_of(effect: dpc.Effect) -> tuple[float, float] | None:
    return None if effect.no_interval else effect.interval()


def part(report: Report, key: str) -> Section:
    """The section of a report with this key."""
    (found,) = (section for section in report.sections if section.key == key)
    return found


@pytest.fixture
def study(schema: dpc.Schema) -> dpc.Study:
    return dpc.Study(
        name="training",
        question="Does training help?",
        schema=schema,
        estimator=dpc.Stratification(by=("race",), cap=3),
        epsilon=1.0,
        eligibility="adults",
        time_zero="discharge",
        confounders={"race": "who is trained differs, and so do outcomes"},
        bounds={"by": "A. Author", "on": "2026-01-15", "source": "the codebook"},
        expected={"confounding": 0.0},
    )


@pytest.fixture
def sites() -> tuple[SiteShare, ...]:
    return (
        SiteShare("coast", "its budget is spent", weight=0.0),
        SiteShare("north", "answered", 700, 2.1, 0.4, 0.7),
        SiteShare("south", "answered", 300, 1.8, 0.6, 0.3),
    )
