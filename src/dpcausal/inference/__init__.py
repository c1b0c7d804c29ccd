"""Inference from several effects: many outcomes and interim looks.

Everything here is post-processing of effects, so beyond what their estimators ask it costs no privacy.
"""

from dpcausal.inference.anytime import anytime_interval
from dpcausal.inference.many_outcomes import EffectFamily, adjusted_p_values, estimate_family
from dpcausal.inference.sequential import Look, sequential_looks

__all__ = [
    "EffectFamily",
    "Look",
    "adjusted_p_values",
    "anytime_interval",
    "estimate_family",
    "sequential_looks",
]
