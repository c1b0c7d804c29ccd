"""The paper's calibration by influence functions: a baseline for comparison, without a proof of privacy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.conditional.meta_learners import MetaLearner, learner_of
from dpcausal.estimators.messages import no_confounders_but
from dpcausal.queries import InfluenceEffects, Points
from dpcausal.queries.features import covariates_named
from dpcausal.queries.profiles import codes_of, values_of
from dpcausal.results.curve import EffectCurve, matrix
from dpcausal.schema.cells import Value
from dpcausal.source import Source, guarantee_for


@dataclass(frozen=True)
class InfluenceLearner(BaseEstimator):
    """DP-CATE for finite queries: a meta-learner with noise scaled by influence functions. Not proved private.

    Estimand:
        The conditional average treatment effect (CATE) at given profiles.

    Assumptions:
        The covariates hold all confounders. Learners see numbers between their declared bounds, not by scores as those
        of `BlockEnsemble` do: a network learns little of one that fills a small part of them.

    Privacy:
        Heuristic. One query, refused unless the data set's owner allowed `influence_effects` by name. Epsilon is that
        of Theorem 1 of the paper; an audit shows losses far above it.

    Attributes:
        covariates: The covariates.
        at: Public profiles, as a mapping from covariates to values.
        learner: The learner of the effect: `forest`, `linear` or `network`.
        clip: Propensities are clipped to clip and 1 - clip.
        meta_learner: `R` for the R-learner (Lemma 2) or `DR` for the DR-learner (Lemma 2b).

    Reference:
        Schröder, Melnychuk and Feuerriegel (2025), Theorem 1, Lemmas 2 and 2b: docs, The papers, DP-CATE.

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> learner = InfluenceLearner(covariates=["age"], at={"age": [30, 54, 80]})
        >>> learner.estimate(Rehearsal(schema, n=3_000), epsilon=1.0, delta=1e-5).guarantee.proof_status
        'heuristic'
    """

    covariates: Sequence[str]
    at: Mapping[str, Sequence[Value]]
    learner: str = "forest"
    clip: float = 0.05
    meta_learner: MetaLearner = "R"

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """Estimate the effects for what the paper calls epsilon and delta."""
        guarantee = replace(guarantee_for(source, epsilon, delta), proof_status="heuristic")
        columns = covariates_named(self.covariates, source.schema)
        points = Points(tuple(self.covariates), values_of(codes_of(self.at, columns), columns))
        query = InfluenceEffects(self.learner, points.covariates, points.at, self.clip, learner_of(self.meta_learner))
        release = source.release(query, guarantee)
        nothing = matrix(np.zeros((len(points.at), len(points.at))))
        return EffectCurve.of(
            source,
            estimand="conditional average treatment effect at given profiles",
            basis=points,
            weights=release.values,
            sampling=nothing,
            privacy=nothing,
            family=release.family,
            method=f"{self.meta_learner}-learner with {self.learner} of {', '.join(self.covariates)}, "
            "noise by influence functions (not proved)",
            guarantee=guarantee,
            assumptions=(no_confounders_but(self.covariates), *source.schema.data_handling),
            receipts=(release.receipt,),
            notes=("THE PRIVACY OF THIS RELEASE IS NOT PROVED: audits show losses far above the stated epsilon",),
            no_interval="the scale of the noise is itself private",
        )
