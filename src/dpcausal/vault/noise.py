"""The only place where privacy noise is drawn: OpenDP's exact discrete samplers on the operating system's entropy.

There is no seed, and none can be given.
"""

from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance

from dpcausal.calibration import Noise
from dpcausal.errors import EngineError

_LIMIT = 2**62


def add_noise(steps: tuple[int, ...], noise: Noise) -> tuple[int, ...]:
    """The integers with independent discrete noise on each.

    OpenDP does not check its input: a sum too large for 64 bits, a scale of 0 or a wrong length would go through
    silently. None of these can come from rows (docs/proofs/door.md); they are refused all the same.
    """
    fits = all(abs(step) < _LIMIT for step in steps) and all(0 < scale < _LIMIT for scale in noise.scales)
    if not fits or len(steps) != len(noise.scales):
        raise EngineError(
            expected="as many 64-bit sums as positive noise scales",
            got="something else",
            hint="this is a defect in dpcausal: please report it. The budget is spent; nothing was released.",
        )
    integers = vector_domain(atom_domain(T="i64"))
    noisy = list(steps)
    for scale in set(noise.scales):
        places = [place for place, each in enumerate(noise.scales) if each == scale]
        if noise.event.family == "laplace":
            sample = make_laplace(integers, l1_distance(T="i64"), scale=scale)
        else:
            sample = make_gaussian(integers, l2_distance(T="i64"), scale=scale)
        for place, value in zip(places, sample([steps[place] for place in places]), strict=True):
            noisy[place] = value
    return tuple(noisy)
