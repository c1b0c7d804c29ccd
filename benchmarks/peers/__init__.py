"""Other authors' private estimators of the average treatment effect, written again from what could be read of them.

They are here to be compared with this library's, and protect nobody: their noise comes from an ordinary generator.
Each gets the kindest reading of what its authors left open, with noise for what replacing one unit's whole record can
do. Where a paper's own noise is smaller than that, its estimator is entered twice, as printed (not private) and
corrected; matching only as printed, its correction being `dpcausal.PropensityMatching`. Each file says what was at
hand, what was guessed, and why its sensitivity holds.
"""

from benchmarks.peers import balancing, blocking, folds, output_perturbation, printed, synthetic
from benchmarks.peers.study import Answer, Peer, Study

PEERS: dict[str, Peer] = {
    "folds_g_formula": Peer("Lebeda et al. 2025, folds, G-formula", private=True, estimate=folds.g_formula),
    "folds_weighting": Peer("Lebeda et al. 2025, folds, IPW", private=True, estimate=folds.weighting),
    "folds_doubly_robust": Peer("Lebeda et al. 2025, folds, AIPW", private=True, estimate=folds.doubly_robust),
    "balancing": Peer("Ohnishi and Awan 2024, balancing weights", private=True, estimate=balancing.estimate),
    "blocking": Peer("Stewardson et al. 2026, propensity blocks", private=True, estimate=blocking.estimate),
    "output_corrected": Peer(
        "Schröder et al. 2025, AIPW, nuisances paid for", private=True, estimate=output_perturbation.accounted
    ),
    "output_printed": Peer(
        "Schröder et al. 2025, AIPW, nuisances as if public", private=False, estimate=output_perturbation.printed
    ),
    "output_printed_constant": Peer(
        "Schröder et al. 2025, AIPW, with their earlier constant",
        private=False,
        estimate=output_perturbation.printed_constant,
    ),
    "synthetic_histogram": Peer("Webb et al. 2026, perturbed histogram", private=True, estimate=synthetic.histogram),
    "synthetic_hybrid": Peer("Webb et al. 2026, hybrid", private=False, estimate=synthetic.hybrid),
    "synthetic_generated": Peer("Webb et al. 2026, GenModel", private=False, estimate=synthetic.generated),
    "weighting_corrected": Peer(
        "Lee et al. 2019, IPW, public bounds", private=True, estimate=printed.weighting_corrected
    ),
    "weighting_printed": Peer("Lee et al. 2019, IPW, as printed", private=False, estimate=printed.weighting_printed),
    "matching_printed": Peer(
        "Yuan et al. 2025, sample level, as printed", private=False, estimate=printed.matching_printed
    ),
}
"""Every estimator by a short name."""

__all__ = ["PEERS", "Answer", "Peer", "Study"]
