"""Effects with noise sized by influence functions, as printed. Not proved: docs/proofs/influence_effects.md."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpcausal.queries import GRID, InfluenceEffects
from dpcausal.queries.profiles import design_lines, spread_out
from dpcausal.queries.query import outcome_tick
from dpcausal.utils.arrays import Array
from dpcausal.vault.answers.block_effects import for_learners
from dpcausal.vault.context import Answer, AnswerContext, answers
from dpcausal.vault.engines import OUTSIDE
from dpcausal.vault.numerics.augmented_learner import AugmentedLearner, augmented, augmented_networks
from dpcausal.vault.numerics.features import Features
from dpcausal.vault.numerics.learners import ResidualLearner, networks, run_silenced

_PLACES = 4_096


@answers(InfluenceEffects, kernel=True)
def answer(context: AnswerContext[InfluenceEffects]) -> Answer:
    """Return the effects at profiles, and the size of noise that Lemma 2, or 2b, of the paper gives them."""
    query, schema, engine = context.query, context.schema, context.engine
    *rows, at = for_learners(query, schema, engine)
    covariates, arms, outcomes = (column[rows[1] < OUTSIDE] for column in rows)
    bounds = np.array(schema.outcome_bounds)
    columns = Features(query.covariates, schema).covariates
    everywhere = np.array(design_lines(spread_out(columns, _PLACES), columns)).T / GRID
    work = partial(_work, query, covariates, arms, outcomes, np.vstack([at, everywhere]), bounds)
    *effects, largest = run_silenced(work, len(at) + 1)
    tick = outcome_tick(schema)
    scale = max(largest, 1e-9 * tick) * query.factor(
        max(len(arms), 2), context.guarantee.epsilon, context.guarantee.delta
    )
    within = np.clip(effects, -2 * GRID * tick, 2 * GRID * tick) / tick
    ticks = {name: round(value) for name, value in zip(query.names, within.tolist(), strict=True)}
    return Answer(ticks, scales=dict.fromkeys(query.names, max(scale / tick, 1e-3)))


def _work(  # noqa: PLR0913, PLR0917
    query: InfluenceEffects, covariates: Array, arms: Array, outcomes: Array, places: Array, bounds: Array
) -> Array:
    asked, second = len(places) - _PLACES, SECOND_STAGES[query.learner]()
    if query.pseudo_outcome == "residual":
        model = networks(second).fit(covariates, arms, outcomes)
        effect = model.effect(places)
        largest = influence(model, covariates, places[asked:], effect[asked:], bounds, query.clip)
    else:
        double = augmented_networks(second).fit(covariates, arms, outcomes)
        effect = double.effect(places)
        largest = augmented_influence(double, places[asked:], effect[asked:], bounds, query.clip)
    return np.append(effect[:asked], largest)


def influence(  # noqa: PLR0913, PLR0917
    model: ResidualLearner, covariates: Array, places: Array, effect: Array, bounds: Array, clip: float
) -> float:
    """Return the largest influence that one record could have on the R-learner at these places, by Lemma 2."""
    own = np.clip(model.propensity(covariates), clip, 1 - clip)
    propensity, predicted = np.clip(model.propensity(places), clip, 1 - clip), model.predicted_outcome(places)
    distance = np.array([[0.0], [1.0]]) - propensity
    missed = bounds[:, None, None] - predicted - distance * effect
    return float(np.abs(distance * missed).max() / (own * (1 - own)).mean())


def augmented_influence(model: AugmentedLearner, places: Array, effect: Array, bounds: Array, clip: float) -> float:
    """Return the largest influence that one record could have on the DR-learner at these places, by Lemma 2b."""
    share = np.clip(model.propensity(places), clip, 1 - clip)
    control, treated = (model.predicted_outcome(places, arm) for arm in (0, 1))
    arms = np.array([[0.0], [1.0]])
    scores = augmented(arms, bounds[:, None, None], share, control, treated)
    return float(np.abs(scores - effect).max())


def _forest() -> Any:  # noqa: ANN401 (scikit-learn has no types)
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    return RandomForestRegressor(random_state=0)


def _linear() -> Any:  # noqa: ANN401 (scikit-learn has no types)
    from sklearn.linear_model import LinearRegression  # noqa: PLC0415

    return LinearRegression()


SECOND_STAGES: dict[str, Callable[[], Any]] = {"forest": _forest, "linear": _linear, "network": lambda: None}
"""What the paper puts second, by name; the first stage is always a network."""
