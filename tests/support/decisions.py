"""Scorecards with chosen means, and simulated experiments that are decided on."""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.random import Generator

import dpcausal as dpc
from dpcausal.experiment.decision import Situation, decide
from dpcausal.experiment.scorecard import Scorecard
from dpcausal.uncertainty.anytime import LooksSoFar
from dpcausal.uncertainty.joint_estimate import JointEstimate, JointNoise

Means = Mapping[str, tuple[float, float]]

RULE = dpc.DecisionRule(
    goals=["revenue"], guardrails=[dpc.Guardrail("bought", 0.1, relative=True), dpc.Guardrail("seconds", 0.2)]
)
EXPERIMENT = dpc.Experiment(
    name="checkout",
    treatment=dpc.Treatment("arm", arms=("old", "new"), labels=("old", "new")),
    metrics=[
        dpc.Metric(dpc.Real("revenue", 0, 60, missing=0)),
        dpc.Metric(dpc.Binary("bought", missing=0)),
        dpc.Metric(dpc.Real("seconds", 0, 20, missing=20), lower_is_better=True),
    ],
    epsilon=1.0,
    rule=RULE,
)
CARD = EXPERIMENT.rehearsed(10_000)
PAID = replace(CARD.effects[0].receipts[0], digest="0" * 64)


def shown(means: Means, sd: float = 0.01, looks: LooksSoFar | None = None) -> Scorecard:
    """Return a scorecard with these means of both arms, each with this sampling error and as much noise."""
    effects = []
    for effect in CARD.effects:
        noise = (JointNoise("gaussian", (sd, 0.0)), JointNoise("gaussian", (0.0, sd)))
        joint = JointEstimate(("old", "new"), means[effect.outcome], ((sd**2, 0.0), (0.0, sd**2)), noise)
        control, treated = means[effect.outcome]
        found = replace(effect, estimate=treated - control, arm_means=joint, receipts=(PAID,))
        effects.append(replace(found, sampling_sd=joint.sampling_sd((-1, 1)), noise=joint.noise_along((-1, 1))))
    return replace(CARD, effects=tuple(effects), looks=looks)


def simulated(random: Generator, means: Means, looks: int, sd: float = 0.05) -> Iterator[list[dpc.ArmDecision]]:
    """Yield, without end, the decisions at all looks of an experiment with such means.

    An arm's mean has this sampling error at the last look, and noise that is as large, another at each look.
    """
    truth = np.array([means[metric.label] for metric in EXPERIMENT.metrics])
    at = [LooksSoFar(look, looks, look / looks) if looks > 1 else None for look in range(1, looks + 1)]
    cards = [shown(means, sd * (looks / look) ** 0.5, now) for look, now in enumerate(at, start=1)]
    joints = [[effect.compared_means() for effect in card.effects] for card in cards]
    situations = [_situation(functools.cache(card._one_sided)) for card in cards]
    while True:
        steps = random.normal(0, sd * looks**0.5, (looks, len(truth), 2)).cumsum(axis=0)
        decisions = []
        for look in range(1, looks + 1):
            noise = random.normal(0, sd * (looks / look) ** 0.5, truth.shape)
            moved = truth + steps[look - 1] / look + noise
            effects = [
                replace(effect, arm_means=replace(joint, values=tuple(values)))
                for effect, joint, values in zip(cards[look - 1].effects, joints[look - 1], moved, strict=True)
            ]
            decisions.append(decide(RULE, effects, situations[look - 1])[0])
        yield decisions


def _situation(half: Callable[..., float]) -> Situation:
    return Situation(
        lower_is_better=("seconds",),
        half=half,
        power_half=lambda *_: 0.0,
        mismatch=False,
        last=False,
        rehearsed=False,
    )
