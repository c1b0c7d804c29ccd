"""The paper's Tables IV and V: seconds and megabytes, by method and data set."""

_DATA = ("IHDP", "Lalonde", "ACIC", "Synth")


def _table(lines: dict[str, tuple[float, float, float, float]]) -> dict[str, dict[str, float]]:
    return {method: dict(zip(_DATA, numbers, strict=True)) for method, numbers in lines.items()}


SECONDS = _table(
    {
        "IPW-PP": (0.29, 0.16, 0.32, 0.06),
        "SmoothDPM": (0.03, 0.04, 0.06, 0.02),
        "DPCI": (0.09, 0.04, 0.94, 0.08),
        "PrivSyn": (67.02, 5.18, 4861.72, 8.11),
        "AIM": (210.35, 22.24, 12569.72, 104.63),
        "PrivATE (sample)": (0.08, 0.04, 0.68, 0.05),
        "PrivATE (label)": (0.06, 0.02, 0.55, 0.04),
    }
)

MEGABYTES = _table(
    {
        "IPW-PP": (471.13, 470.92, 493.67, 472.70),
        "SmoothDPM": (469.13, 468.92, 477.31, 470.81),
        "DPCI": (479.84, 476.26, 483.60, 476.05),
        "PrivSyn": (540.44, 534.98, 572.21, 537.60),
        "AIM": (1712.74, 933.76, 4177.00, 1043.12),
        "PrivATE (sample)": (470.60, 469.97, 484.55, 470.92),
        "PrivATE (label)": (468.19, 467.46, 479.83, 468.29),
    }
)
