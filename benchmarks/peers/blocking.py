"""Stewardson, White and Groce 2026: blocks of units with similar propensity scores.

"Differentially private average treatment effect estimation by propensity score blocking" (arXiv 2609.09536). Of the
paper only the title and the first sentences of the abstract were at hand: two estimators that use a propensity score,
one of them by blocks of units with similar scores. Everything else here is a plain reading of the title, not the
paper's algorithm.

1. A logistic regression of arms, its coefficients with noise. Rows of features, divided by the root of their number,
   have a length of at most 1, so that replacing a unit moves the coefficients by at most 2 / penalty.
2. Scores, kept within `CLIP` and 1 - `CLIP`, fall into public blocks of equal width. Each block has, for each arm, the
   number of its units and the sum of their outcomes, from the middle of the range in half ranges. A unit adds 1 to one
   number and at most 1 to one sum. Replacing it moves all numbers and sums together by at most 4.
3. Differences of the noisy means, weighted by noisy sizes. Blocks in which an arm's noisy number is small are left
   out.
"""

import numpy as np
from numpy.random import Generator

from benchmarks.peers import noise
from benchmarks.peers.regression import clipped, output_perturbed, unit_rows
from benchmarks.peers.study import CLIP, Answer, Floats, Study

SCORE_SHARE = 0.7
"""The part of epsilon that the score gets; numbers and sums need little."""
FEWEST = 4.0
"""A block needs this many standard deviations of noise in each arm's number of units."""
SENSITIVITY = 4.0
"""What replacing one unit moves numbers and sums of all blocks by, in half ranges of the outcome."""


def number_of_blocks(n: int, epsilon: float) -> int:
    """More blocks leave less confounding in and have more noise; a large table can afford twice as many."""
    return 8 if n * epsilon < 50_000 else 16


def tallies(study: Study, coefficients: Floats, blocks: int) -> Floats:
    """Numbers of units and sums of outcomes, by block and arm, for a given score."""
    width = (1 - 2 * CLIP) / blocks
    scores = clipped(unit_rows(study) @ coefficients)
    block = np.minimum((scores - CLIP) // width, blocks - 1).astype(int)
    cells = 2 * block + study.arms
    sums = np.bincount(cells, study.centred / (study.width / 2), 2 * blocks)
    numbers = np.bincount(cells, minlength=2 * blocks).astype(float)
    return np.stack([numbers, sums]).reshape(2, blocks, 2)


def estimate(study: Study, epsilon: float, delta: float, generator: Generator) -> Answer:
    """Fit the score, then the blocks, on the same units."""
    score_epsilon = SCORE_SHARE * epsilon
    rest = (epsilon - score_epsilon, delta / 2)
    rows = unit_rows(study)
    coefficients = output_perturbed(rows, study.arms, score_epsilon, delta / 2, generator)
    exact = tallies(study, coefficients, number_of_blocks(study.n, epsilon))
    numbers, sums = exact + noise.numbers(exact.size, SENSITIVITY, *rest, generator).reshape(exact.shape)
    full = numbers.min(axis=1) > FEWEST * noise.number_sd(SENSITIVITY, *rest)
    if not full.any():
        return Answer(0.0)
    means = np.clip(sums[full] / numbers[full], -1, 1)
    sizes = numbers[full].sum(axis=1)
    return Answer(float(study.width / 2 * (sizes * (means[:, 1] - means[:, 0])).sum() / sizes.sum()))
