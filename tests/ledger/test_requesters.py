"""What one requester may spend of a ledger's budget, whoever races and is killed."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError
from dpcausal.ledger import running_total
from dpcausal.ledger.budget import Total
from dpcausal.ledger.requester import Requester
from tests.ledger.long_ledgers import AS_OF, BUDGET, GAUSSIAN, LAPLACE, answer, checkpoints, forge, opens, verifies
from tests.ledger.test_checkpoint_races import race

ANNA, BEN = Requester("anna", dpc.Budget(epsilon=1.0)), Requester("ben")

# Two processes ask in anna's name, each other questions, and one in ben's; others are killed while they do.
RACE = """
import os, random, signal, sys, time
from dpcausal.errors import BudgetExceededError
from dpcausal.ledger import Budget, Ledger, running_total
from dpcausal.ledger.requester import Requester
from tests.ledger.long_ledgers import answer

running_total.CHECKPOINT_EVERY = 4

def start(name, requester):
    child = os.fork()
    if child > 0:
        return child
    try:
        ledger = Ledger(sys.argv[1])
        ledger.requester = requester
        for place in range(8):
            try:
                answer(ledger, f"{name}{place}")
            except BudgetExceededError:
                pass
    except BaseException:
        os._exit(1)
    os._exit(0)

racers = [start(name, Requester("anna", Budget(epsilon=1.0))) for name in "ab"] + [start("d", Requester("ben"))]
moments = random.Random(7)
for name in "ef":
    doomed = start(name, Requester("anna", Budget(epsilon=1.0)))
    time.sleep(moments.uniform(0, 0.05))
    os.kill(doomed, signal.SIGKILL)
    os.waitpid(doomed, 0)
sys.exit(any([os.waitpid(racer, 0)[1] for racer in racers]))
"""


def granted(url: str) -> dict[str, int]:
    """Return how many requests a ledger granted to whom."""
    names = [entry.content["requester"] for entry in dpc.Ledger(url).entries() if entry.kind == "grant"]
    return {name: names.count(name) for name in sorted(set(names))}


def test_no_race_and_no_kill_lets_a_requester_spend_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_total, "CHECKPOINT_EVERY", 4)
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    assert race(url, RACE)
    assert granted(url) == {"anna": 10, "ben": 8}
    ledger = dpc.Ledger(url)
    assert len(checkpoints(ledger)) > 3
    share = ledger.share(ANNA, [LAPLACE])
    assert share
    assert (share.left.epsilon, share.after) == (0.0, None)


@pytest.mark.parametrize("looks_first", [False, True])
def test_a_ledger_that_looks_before_its_transaction_is_caught(tmp_path: Path, looks_first: bool) -> None:
    """The mutant: what is left is looked up first, for both of two at once, and spent in transactions of their own."""
    url, both = f"sqlite:///{tmp_path / 'ledger.db'}", Barrier(2, timeout=60)
    dpc.Ledger.create(url, BUDGET, as_of=AS_OF)

    def ask(request: str) -> None:
        ledger = dpc.Ledger(url)
        ledger.requester = Requester("anna", dpc.Budget(epsilon=0.1))
        both.wait()
        if looks_first:
            share = ledger.share(ledger.requester, [LAPLACE])
            both.wait()
            ledger.requester = Requester("anna") if share and share.after else ledger.requester
        with suppress(BudgetExceededError):
            ledger.grant(request, LAPLACE, {})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, ("first", "second")))
    assert granted(url) == {"anna": 2 if looks_first else 1}


def test_what_nobody_asked_for_counts_against_everyone() -> None:
    ledger = dpc.Ledger.create("sqlite://", BUDGET, as_of=AS_OF)
    answer(ledger, "of an earlier version")
    for place in range(20):
        ledger.requester = BEN
        answer(ledger, f"ben {place}")
    ledger.requester = ANNA
    for place in range(9):
        answer(ledger, f"anna {place}")
    with pytest.raises(BudgetExceededError, match="0, delta 0 is left of what anna may spend"):
        ledger.grant("one more", LAPLACE, {})
    with pytest.raises(BudgetExceededError, match="anna may spend"):
        ledger.check_affords({"one more": LAPLACE})
    ledger.grant("ben 3", LAPLACE, {})  # it was paid for
    ledger.requester = BEN
    ledger.grant("one more", LAPLACE, {})
    assert str(ledger.share(ANNA)) == "of the epsilon 1 that anna may spend, epsilon 0 are left"
    assert ledger.share(BEN) is None


def test_a_share_follows_the_rule_of_the_budget() -> None:
    whole = dpc.Budget(epsilon=3, delta=1e-6, rule="zcdp")
    ledger = dpc.Ledger.create("sqlite://", whole, as_of=AS_OF)
    ledger.requester = Requester("anna", dpc.Budget(epsilon=1, delta=1e-6, rule="zcdp"))
    fitting = ledger.requester.cap.cap.rho // Total().plus(GAUSSIAN).rho  # type: ignore[union-attr]
    assert 3 < fitting < whole.cap.rho // Total().plus(GAUSSIAN).rho
    for number in range(fitting):
        ledger.grant(f"r{number}", GAUSSIAN, {})
    with pytest.raises(BudgetExceededError):
        ledger.grant("one more", GAUSSIAN, {})


def test_a_forged_share_is_noticed(url: str) -> None:
    ledger = dpc.Ledger(url)
    ledger.requester = BEN
    for place in range(2):
        answer(ledger, f"ben {place}")
    assert (opens(url), verifies(url), checkpoints(ledger)[-1]) == (True, True, 40)
    forge(url, 37, requester="anna")
    assert not verifies(url)
