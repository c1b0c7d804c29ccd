"""Notes on curves in which privacy noise hides how effects vary: from public numbers, so a plan has them too."""

_NOTED = 0.05
"""What noise hides is noted from this standard deviation of effects on, as a share of the outcome's range."""


def hidden_by_noise(sd: float, bounds: tuple[float, float], remedy: str) -> tuple[str, ...]:
    """Return a note on a curve that is no nearer than a constant unless effects vary much; none where little is hidden.

    Args:
        sd: The standard deviation of effects, between profiles, up to which noise hides how they vary.
        bounds: The outcome's bounds.
        remedy: What makes the noise smaller.
    """
    low, high = bounds
    if sd <= _NOTED * (high - low):
        return ()
    if sd >= high - low:
        return (f"privacy noise hides how effects vary, however much; use an average effect, or {remedy}",)
    least = f"privacy noise hides how effects vary unless their standard deviation is above about {rounded(sd)}"
    return (f"{least}; below that one average effect for all is as near. Use that, or {remedy}",)


def rounded(sd: float) -> str:
    """Return a size as a note shows it, in two digits."""
    return f"{float(f'{sd:.2g}'):,g}"
