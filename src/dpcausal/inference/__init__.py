"""Inference from several effects: many outcomes, interim looks, negative controls.

Everything here is post-processing of effects, so beyond what their estimators ask it costs no privacy.
"""

from dpcausal.inference.anytime import anytime_interval
from dpcausal.inference.many_outcomes import EffectFamily, adjusted_p_values, estimate_family
from dpcausal.inference.negative_controls import CalibratedEffect, calibrate_effect
from dpcausal.inference.sequential import Look, sequential_looks

__all__ = [
    "CalibratedEffect",
    "EffectFamily",
    "Look",
    "adjusted_p_values",
    "anytime_interval",
    "calibrate_effect",
    "estimate_family",
    "sequential_looks",
]
