"""What matching on noisy records finds, with noise that turns as many arms as a vault's does."""

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from benchmarks.discrete_noise import seeded

SCHEMA = dpc.Schema(
    treatment=dpc.Treatment("t", undeclared=0),
    outcome=dpc.Real("y", 0, 1, missing=0),
    covariates=[dpc.Real("x", 0, 1)],
)


@pytest.mark.parametrize(("epsilon", "apart"), [(1.0, 0.2), (2.0, 0.1), (4.0, 0.05)])
def test_flipped_arms_shrink_a_difference_in_means_by_the_known_factor(epsilon: float, apart: float) -> None:
    """To undo that gives what `DifferenceInMeans` gives, much further off: docs/proofs/noisy_matched_contrast.md."""
    shrunken, undone, plain = [], [], []
    flipped = 1 / (1 + np.exp(0.7 * epsilon))
    for seed in range(8):
        generator = np.random.default_rng(seed)
        x = generator.uniform(0, 1, 2_000)
        t = generator.random(2_000) < 0.3 + 0.4 * x
        y = 0.3 + 0.2 * x + 0.1 * t + generator.normal(0, 0.1, 2_000)
        table = pa.table({"t": t.astype(int), "x": x, "y": y})
        vault = dpc.Vault(table, SCHEMA, ledger="sqlite://", budget=dpc.Budget(epsilon=100))
        with seeded(seed):  # rounded noise would turn too many arms
            matched = dpc.PropensityMatching(covariates=["x"]).estimate(vault, epsilon=epsilon)
            means = dpc.DifferenceInMeans().estimate(vault, epsilon=epsilon)
        exact, share = y[t].mean() - y[~t].mean(), t.mean()
        noisy = share * (1 - flipped) + (1 - share) * flipped
        factor = share * (1 - share) * (1 - 2 * flipped) / (noisy * (1 - noisy))
        shrunken.append(matched.estimate / exact / factor)
        undone.append(matched.estimate / factor - exact)
        plain.append(means.estimate - exact)
    assert np.mean(shrunken) == pytest.approx(1.0, abs=apart)  # three standard errors
    assert np.std(undone) > 5 * np.std(plain)
