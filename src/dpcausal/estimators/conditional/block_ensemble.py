"""Sample and aggregate: any learner, trained on many blocks of units and averaged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpcausal.errors import QueryError
from dpcausal.estimators.base import BaseEstimator
from dpcausal.estimators.conditional.curve_noise import hidden_by_noise, rounded
from dpcausal.estimators.conditional.scaled_basis import scaled_for, seen_by_scores
from dpcausal.estimators.messages import NO_INTERFERENCE, no_confounders_but
from dpcausal.queries import Basis, BlockEffects, Cells, Points
from dpcausal.queries.basis import basis_of, basis_values
from dpcausal.queries.features import covariates_named
from dpcausal.queries.profiles import by_covariate, codes_of, spread_out, values_of
from dpcausal.release import Release
from dpcausal.results.curve import EffectCurve, matrix
from dpcausal.schema.cells import Value
from dpcausal.schema.columns import Indicator
from dpcausal.schema.real import Real
from dpcausal.schema.schema import Schema
from dpcausal.source import Source, guarantee_for
from dpcausal.utils.arrays import Array

_UNITS_PER_BLOCK, _MIN_UNITS_PER_BLOCK = 100, 20
"""The default size of a block, and the size below which the effect carries a note."""


@dataclass(frozen=True)
class BlockEnsemble(BaseEstimator):
    """Sample and aggregate: the mean over blocks of the effects that any learner finds on each block.

    Estimand:
        The conditional average treatment effect (CATE) at given profiles, or as a sum of public functions of
        covariates, as the learner estimates it from the units of one block.

    Assumptions:
        Those of the learner, which needs no privacy of its own. Effects beyond `limit` are rare. The intervals do not
        include the learner's bias, averaged over blocks.

    Privacy:
        One query. A unit is in one block, so it changes the mean by at most 2 limits divided by the number of blocks,
        whatever the learner does. The noise grows with the root of the number of profiles (with delta 0, with their
        number). A note says where it hides how effects vary, or exceeds all of them. Learners see numbers by scores on
        scales as for `RLearner`, perhaps from one more query.

    Attributes:
        covariates: The covariates that the learner sees.
        learner: `linear`, `forest`, `boosting`, `network`, or a name that the vault's owner gave to a learner.
        at: Public profiles, as a mapping from covariates to values, for effects at these only.
        basis: Functions of `covariates` only, for an effect at any profile; either this or `at`.
        blocks: The number of blocks; by default one for every 100 units. More blocks mean less noise, and fewer units
            for each learner.
        limit: The largest effect, in half ranges of the outcome.

    Reference:
        Subsample and aggregate (Nissim, Raskhodnikova and Smith 2007).

    Example:
        >>> from dpcausal import Real, Rehearsal, Schema, Treatment
        >>> covariates = [Real("age", 18, 90)]
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 100), covariates=covariates)
        >>> ensemble = BlockEnsemble(covariates=["age"], learner="linear", at={"age": [30, 54, 80]})
        >>> plan = ensemble.estimate(Rehearsal(schema, n=50_000), epsilon=1.0, delta=1e-6)
        >>> float(plan.standard_errors({"age": [30]})[1][0].round(1))
        0.8
    """

    covariates: Sequence[str]
    learner: str = "forest"
    at: Mapping[str, Sequence[Value]] | None = None
    basis: Basis | None = None
    blocks: int | None = None
    limit: float = 0.5

    def estimate(self, source: Source, *, epsilon: float, delta: float = 0.0) -> EffectCurve:
        """Estimate the effects for a total of epsilon and delta."""
        guarantee = guarantee_for(source, epsilon, delta)
        self._check(source.schema)
        own = None if self.basis is None else basis_of(self.basis)
        scaled = scaled_for(own, self.covariates, source, guarantee)
        source = scaled.source
        points = Points(scaled.covariates, self._profiles(scaled.covariates, source.schema))
        basis, inverse = own or points, np.eye(len(points.at))
        if own is not None:
            inverse = np.asarray(np.linalg.pinv(_values(own, points, source.schema), rcond=1e-6), dtype=np.float64)
        blocks = max(source.n // _UNITS_PER_BLOCK, 2) if self.blocks is None else self.blocks
        release = source.release(
            BlockEffects(self.learner, points.covariates, points.at, blocks, self.limit), scaled.rest
        )
        effects, sampling, privacy = _means(release, source.schema)
        if self.basis is not None:
            # Sampling errors may be the same at all profiles, or independent: the covariance allows for both.
            common = inverse @ np.sqrt(np.diag(sampling))
            sampling = inverse @ sampling @ inverse.T + np.outer(common, common)
            effects, privacy = inverse @ effects, inverse @ privacy @ inverse.T
        values = np.eye(len(points.at)) if own is None else _values(own, points, source.schema)
        noise_sd = math.sqrt(max(float(((values @ privacy) * values).sum(axis=1).mean()), 0.0))
        return EffectCurve.of(
            source,
            estimand=f"conditional average treatment effect as learned from {source.n // blocks:,} units at a time",
            basis=basis,
            weights=tuple(float(each) for each in effects),
            sampling=matrix(sampling),
            privacy=matrix(privacy),
            family=release.family,
            method=f"mean over {blocks:,} blocks of the learner {self.learner!r} of {', '.join(self.covariates)}",
            guarantee=guarantee,
            assumptions=(
                no_confounders_but(self.covariates),
                NO_INTERFERENCE,
                f"for the intervals: the learner of scores is unbiased over blocks, within {self.limit:g} half ranges",
                "for the intervals: the learner fails on no block; a block on which it fails counts as 0",
                *source.schema.data_handling,
            ),
            receipts=(*scaled.receipts, release.receipt),
            notes=(
                *_few(source.n, blocks),
                *self._hidden(noise_sd, source.schema),
                *scaled.notes,
                *seen_by_scores(basis, source.schema),
            ),
        )

    def _hidden(self, noise_sd: float, schema: Schema) -> tuple[str, ...]:
        low, high = schema.outcome_bounds
        fewer = (
            "fewer profiles, or functions in their place (basis)" if self.basis is None else "fewer functions (basis)"
        )
        remedy = f"{fewer}, more blocks, or RLearner"
        if noise_sd >= self.limit * (high - low) / 2:  # effects are within the limit, so 0 errs by less
            noise = f"privacy noise in an effect, {rounded(noise_sd)}, exceeds the largest effect that limit allows"
            return (f"{noise}: 0 for all profiles would be nearer. Use an average effect, or {remedy}",)
        return hidden_by_noise(noise_sd, schema.outcome_bounds, remedy)

    def _check(self, schema: Schema) -> None:
        if (self.at is None) == (self.basis is None):
            raise QueryError(
                expected="either profiles (at) or functions (basis)",
                got="both" if self.basis is not None else "neither",
                hint='write at={"age": [30, 50, 70]}, or basis=Spline(["age"]).',
            )
        if self.basis is None:
            return
        basis = basis_of(self.basis)
        outside = {column.name for column in basis.reads(schema)} - set(self.covariates)
        if outside:
            raise QueryError(
                expected="a basis of covariates that the learner sees",
                got=f"one of {', '.join(sorted(outside))}",
                hint="name them in of.",
            )
        points = Points(tuple(self.covariates), self._profiles(self.covariates, schema))
        values = _values(basis, points, schema)
        if np.linalg.matrix_rank(values) < values.shape[1]:
            raise QueryError(
                expected="functions that are linearly independent on profiles spread evenly over all covariates",
                got=f"functions that are not, on {len(points.at)} profiles",
                hint="use fewer or wider groups, or give the profiles yourself (at).",
            )

    def _profiles(self, covariates: Sequence[str], schema: Schema) -> tuple[tuple[Value, ...], ...]:
        """Return the profiles given, or ones spread evenly: over groups by values, and for functions by scores."""
        columns = covariates_named(covariates, schema)
        if self.at is not None:
            return values_of(codes_of(self.at, columns), columns)
        if isinstance(basis_of(self.basis), Cells):
            columns = tuple(column.measured if isinstance(column, Real) else column for column in columns)
        varied = [column for column in columns if not isinstance(column, Indicator)]  # of units with all values
        size = 4 * len(basis_of(self.basis).names(schema))
        nothing = np.zeros(size, dtype=np.int64)
        return values_of(dict.fromkeys(covariates, nothing) | spread_out(varied, size), columns)


def _values(basis: Basis, points: Points, schema: Schema) -> Array:
    """Return the functions at points, one line a point."""
    return basis_values(basis, codes_of(by_covariate(points.covariates, points.at), points.reads(schema)), schema)


def _few(n: int, blocks: int) -> tuple[str, ...]:
    if n >= _MIN_UNITS_PER_BLOCK * blocks:
        return ()
    return (f"a block has only {n / blocks:.2g} units, too few for most learners: use fewer blocks",)


def _means(release: Release, schema: Schema) -> tuple[Array, Array, Array]:
    """Return the mean over blocks at each profile, its sampling covariance, and the covariance of privacy noise."""
    query: BlockEffects = release.query  # type: ignore[assignment]
    low, high = schema.outcome_bounds
    most = (query.limit * (high - low) / 2) ** 2
    means = np.array([release.value(name) for name in query.names]) / query.blocks
    noise = np.array([release.variance(name) for name in query.names]) / query.blocks**2
    deficits = np.array([release.value(f"deficit of {name}") for name in query.names]) / query.blocks
    hidden = math.sqrt(release.variance(f"deficit of {query.names[0]}")) / query.blocks
    spread = np.clip(most - deficits - means**2 + noise, min(hidden, most), most)
    return means, np.diag(spread / (query.blocks - 1)), np.diag(noise)
