"""Numbers to compare with, for IHDP, Lalonde, ACIC and Synth.

The paper shows relative errors as a figure only. `REIMPLEMENTED` are those of a plain re-implementation of its
algorithms with its constants: bounds and scaling from the data, so not private; error against its own non-private
matching; 4000 repeats at the outcome level, 300 at the record level (60 for ACIC). Times and memory are the paper's
Tables IV and V.
"""

from dpcausal.schema import Protects

REIMPLEMENTED: dict[Protects, dict[str, tuple[float, ...]]] = {
    "outcome": {
        "IHDP": (0.083, 0.056, 0.042, 0.038, 0.035, 0.030, 0.027, 0.027),
        "Lalonde": (0.575, 0.305, 0.257, 0.247, 0.201, 0.166, 0.157, 0.137),
        "ACIC": (0.399, 0.269, 0.235, 0.182, 0.146, 0.134, 0.125, 0.121),
        "Synth": (0.081, 0.055, 0.041, 0.038, 0.033, 0.029, 0.027, 0.025),
    },
    "record": {
        "IHDP": (0.916, 0.787, 0.677, 0.564, 0.464, 0.372, 0.287, 0.217),
        "Lalonde": (2.43, 1.24, 0.918, 0.705, 0.564, 0.488, 0.375, 0.338),
        "ACIC": (0.886, 0.766, 0.653, 0.522, 0.416, 0.307, 0.223, 0.139),
        "Synth": (0.797, 0.616, 0.461, 0.309, 0.195, 0.113, 0.046, 0.027),
    },
}
"""Mean relative error at epsilon 0.5, 1, … 4."""

SECONDS: dict[Protects, dict[str, float]] = {
    "outcome": {"IHDP": 0.06, "Lalonde": 0.02, "ACIC": 0.55, "Synth": 0.04},
    "record": {"IHDP": 0.08, "Lalonde": 0.04, "ACIC": 0.68, "Synth": 0.05},
}

MEGABYTES: dict[Protects, dict[str, float]] = {
    "outcome": {"IHDP": 468, "Lalonde": 467, "ACIC": 480, "Synth": 468},
    "record": {"IHDP": 471, "Lalonde": 470, "ACIC": 485, "Synth": 471},
}
