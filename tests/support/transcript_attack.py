"""A coordinator and its colluding sites against one victim in a secure sum: all that they can make of what they see."""

from dataclasses import dataclass

import numpy as np

from dpcausal.federation.secure import masks, sharing
from dpcausal.queries.calibration import NoiseShare
from dpcausal.utils.arrays import Array
from dpcausal.vault.noise import Sampler
from tests.support.secure_sums import STUDY, SecureSum

TICKS = 8
"""By how much the victim's number differs between the two neighbouring tables."""


@dataclass(frozen=True)
class Attack:
    """A secure sum of one victim, other honest sites, and sites that collude with the coordinator.

    The coordinator takes as many honest sites as it can for silent, so that the sum holds as little noise as can be.

    Attributes:
        sites: How many sites there are.
        honest: How many honest sites' shares of noise are the whole noise.
        colluding: How many sites collude. They add no noise.
        leaked: How many honest sites give the coordinator, against the protocol, their share of the victim's mask key.
        epsilon: The epsilon of the study.
    """

    sites: int
    honest: int
    colluding: int
    leaked: int = 0
    epsilon: float = 1.0

    def transcripts(self, number: int, sessions: int, count: int) -> Array:
        """Return what is seen of the victim's number: one line for each of `count` numbers of each session.

        Masks and noise of different numbers are independent, so each line is a transcript of its own. Its numbers are
        the opened sum, the victim's masked number, and the latter without all masks that the coordinator can compute.
        """
        return np.vstack([self._session(number, count) for _ in range(sessions)])

    def _session(self, number: int, count: int) -> Array:
        run = SecureSum(self.sites, self.honest + self.colluding)
        honest, accomplices = run.names[: self.sites - self.colluding], run.names[self.sites - self.colluding :]
        share = NoiseShare("laplace", (TICKS / self.epsilon,) * count, self.honest)
        noisy = {name: Sampler().add_noise_share([0] * count, share) for name in honest}
        victim = honest[0]
        noisy[victim] = [number + noise for noise in noisy[victim]]
        run.share()
        sent = run.mask(noisy | {name: [0] * count for name in accomplices})
        summed = sorted([*honest[: self.honest], *accomplices])
        run.confirm(summed)
        total = run.open({name: sent[name] for name in summed}, run.unmask(summed))
        masked = np.array(sent[victim], dtype=np.uint64)
        stripped = masked - self._known_masks(run, victim, [*honest[1:], *accomplices], count)
        return np.column_stack([total, masked.view(np.int64), stripped.view(np.int64)]).astype(float)

    def _known_masks(self, run: SecureSum, victim: str, others: list[str], count: int) -> masks.UInt64s:
        """Return the victim's masks as well as the coordinator can compute them.

        The seed is opened, as of every site in the sum. The masks of pairs follow from the victim's private mask key,
        which as many shares as the threshold give; fewer give another key. (Masks with silent and colluding sites could
        also be had from their keys.)
        """
        in_sum = run.names[1 : self.honest]
        holders = [*run.names[self.sites - self.colluding :], *others[: self.leaked]]
        shares = {name: bytes.fromhex(run.sessions[name].held[victim][1]) for name in holders}
        guessed = sharing.join(shares, len(shares)) if shares else bytes(32)
        total = masks.self_mask(run.sessions[victim].seed, count)
        for other in others:
            true = run.sessions[victim].mask_key
            private = guessed if other in in_sum else true
            pair = masks.pairwise_seed(private, run.keys[other]["mask"], STUDY, (victim, other))
            total = total + masks.pairwise_mask(pair, victim, other, count)
        return total
