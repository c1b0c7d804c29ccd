"""Square roots that are rounded up."""

import math
from fractions import Fraction


def root_above(number: Fraction) -> Fraction:
    """Return a fraction that is not below the square root of a fraction, and hardly above it."""
    scaled = -(-number.numerator * 10**24 // number.denominator)
    root = math.isqrt(scaled)
    return Fraction(root if root * root == scaled else root + 1, 10**12)
