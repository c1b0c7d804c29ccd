"""A coordinator with colluding sites shows at most epsilon of a victim in a secure sum; one more share shows more."""

from dpcausal.audit import lower_bound
from dpcausal.audit.attack import SURE
from tests.support.transcript_attack import TICKS, Attack

SITES, HONEST, COLLUDING = 6, 3, 1
SESSIONS, COUNT = 3, 800


def test_the_coordinator_with_all_shares_but_one_shows_no_more_than_epsilon() -> None:
    """It fails with a probability of at most 1e-9 if the claim holds; and it shows most of epsilon."""
    attack = Attack(SITES, HONEST, COLLUDING, leaked=HONEST - 1)
    one, other = (attack.transcripts(number, SESSIONS, COUNT) for number in (0, TICKS))
    assert lower_bound(one, other, confidence=SURE).epsilon <= attack.epsilon
    assert lower_bound(one, other).epsilon > 0.4 * attack.epsilon


def test_one_more_share_opens_the_victims_numbers() -> None:
    """The victim's own share of the noise is all that is left: about 1.9 is shown where epsilon is 1."""
    attack = Attack(SITES, HONEST, COLLUDING, leaked=HONEST)
    one, other = (attack.transcripts(number, SESSIONS, COUNT) for number in (0, TICKS))
    assert lower_bound(one, other).epsilon > 1.3 * attack.epsilon
