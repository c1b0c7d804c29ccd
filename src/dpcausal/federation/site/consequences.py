"""What an approval would lead to: the price and what is left, the message that would leave, and what has changed."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain, compress

from dpcausal.federation.site.policy import Policy
from dpcausal.guarantee import Event
from dpcausal.ledger import Ledger, Spending
from dpcausal.ledger.budget import Total
from dpcausal.ledger.requester import Requester, Share
from dpcausal.queries.calibration import Asked
from dpcausal.release import session_request
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of

ANY_UNITS = 10_000
"""The number of units that is assumed where it is not known."""
_MOST_SHOWN = 200


Due = Mapping[str, list[Event]]
"""What a ledger would debit, by request: a question that several studies ask is paid for once."""


@dataclass(frozen=True)
class Committed:
    """What the answers will cost that people approved, and that the site has not given yet.

    Attributes:
        due: What the ledger would debit.
        by_requester: The same for the studies of each requester.
        price: The same in the terms of the budget.
        left: What would be left of the budget; None where not all of it fits.
    """

    studies: tuple[str, ...]
    due: Due
    by_requester: Mapping[str, Due]
    price: Spending
    left: Spending | None

    @classmethod
    def of(cls, studies: Mapping[str, tuple[str, Due]], ledger: Ledger) -> "Committed":
        """Return what these studies will cost together, each given with its requester."""
        due, by_requester = dict[str, list[Event]](), dict[str, dict[str, list[Event]]]()
        for requester, each in studies.values():
            due.update(each)
            by_requester.setdefault(requester, {}).update(each)
        events = list(chain.from_iterable(due.values()))
        price = ledger.budget.spent(reduce(Total.plus, events, Total()))
        costly = tuple(digest for digest, (_, each) in studies.items() if each)
        return cls(costly, due, by_requester, price, ledger.remaining_after(events))

    def __str__(self) -> str:
        count = len(self.studies)
        return f"{self.price} for {count:,} approved {'study' if count == 1 else 'studies'}"


@dataclass(frozen=True)
class Consequences:
    """What would follow if a study were answered now.

    Attributes:
        due: The names of the queries that would be paid for.
        free: The names of the queries that were answered before, for any study: their stored answers cost nothing.
        left: What would be left of the budget; None where the price does not fit into it, or into the share.
        share: What the requester may spend of the budget, now and after the answer; None without such a limit.
        committed: What other studies will cost that are approved and not answered yet.
        left_after_all: What would be left after these as well; None where not all of it fits.
        message: An example of the message that would leave: the names of all numbers, and no values.
    """

    due: tuple[str, ...]
    free: tuple[str, ...]
    left: Spending | None
    share: Share | None
    committed: Committed
    left_after_all: Spending | None
    message: str

    @property
    def warning(self) -> str:
        """What to know before approving a study that fits into the budget, but not beside others; or empty."""
        if self.left is None or self.left_after_all is not None:
            return ""
        return f"the budget has too little left for this study beside what is committed: {self.committed}"

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of all numbers that would leave, in one line for each query."""
        message = json.loads(self.message)
        lines = [f"public: {', '.join(message['public'])}"]
        for release in message["releases"]:
            noise = "masked, with a share of the noise" if message["masked"] else "with noise"
            noisy, others = release["noisy"][:_MOST_SHOWN], len(release["noisy"]) - _MOST_SHOWN
            more = f", and {others:,} more of the same kind" if others > 0 else ""
            lines.append(f"{release['query']}, {noise}: {', '.join(noisy)}{more}")
            if release["without noise"]:
                lines.append(f"{release['query']}, without noise: {', '.join(release['without noise'])}")
        return tuple(lines)

    @classmethod
    def of(
        cls, study: Study, policy: Policy, ledger: Ledger, committed: Committed, n: int | None = None
    ) -> "Consequences":
        """Return the consequences of a study, from its rehearsal and the site's ledger. The table stays closed."""
        asked = study.site_questions(n or ANY_UNITS, policy.site)
        stored = [_is_stored(ledger, study, policy, each) for each in asked]
        due, requester = due_of(study, policy, ledger, n), policy.requester(study.requester)
        after_all = {**committed.due, **due}
        own = {**committed.by_requester.get(study.requester, {}), **due}
        names = [each.query.name for each in asked]
        return cls(
            due=tuple(compress(names, (not answered for answered in stored))),
            free=tuple(compress(names, stored)),
            left=_left(ledger, requester, due, due),
            share=ledger.share(requester, chain.from_iterable(due.values())),
            committed=committed,
            left_after_all=_left(ledger, requester, after_all, own),
            message=example_message(study, policy.site, n),
        )


def fits(study: Study, policy: Policy, ledger: Ledger, due: Due) -> bool:
    """Return whether all of this fits into the budget, and into what the requester of a study may spend of it."""
    return _left(ledger, policy.requester(study.requester), due, due) is not None


def _left(ledger: Ledger, requester: Requester, due: Due, own: Due) -> Spending | None:
    """Return what would be left of the budget; None where not all of it fits, or not all of the requester's own."""
    share = ledger.share(requester, chain.from_iterable(own.values()))
    left = ledger.remaining_after(chain.from_iterable(due.values()))
    return left if share is None or share.after else None


def due_of(study: Study, policy: Policy, ledger: Ledger, n: int | None = None) -> Due:
    """Return what a ledger would debit if a study were answered now, by request.

    A query that depends on an earlier answer counts as due, since that answer is not known yet.
    """
    debits = study.debits(policy.serving(study.table).as_of, n or ANY_UNITS, policy.site, rule=ledger.budget.rule)
    return {request: events for request, events in debits.items() if not ledger.is_debited(request)}


def is_paid(study: Study, policy: Policy, ledger: Ledger, n: int | None = None) -> bool:
    """Return whether all of a study was debited, some of it for the study itself: then the site owes its answer.

    A study that depends on its own answers is known to be paid where its debits add up to its price.
    """
    if not ledger.is_debited_for(study.digest):
        return False
    if not due_of(study, policy, ledger, n):
        return True
    entries = ledger.entries()
    own = {each.request for each in entries if each.kind == "debit" and each.content.get("study") == study.digest}
    events = chain.from_iterable(each.events for each in entries if each.kind == "grant" and each.request in own)
    return math.fsum(event.epsilon for event in events) >= study.price(policy.site).epsilon * (1 - 1e-9)


def example_message(study: Study, site: str, n: int | None = None) -> str:
    """Return the message that would leave a site, with names in place of all values."""
    releases = [
        {
            "query": each.query.name,
            "epsilon": each.guarantee.epsilon,
            "delta": each.guarantee.delta,
            "noisy": [at.name for at in each.noise(study.schema).sensitivity.coordinates],
            "without noise": list(each.query.public_values),
        }
        for each in study.site_questions(n or ANY_UNITS, site)
    ]
    public = ["n", "arm_sizes", "as_of"] if study.schema.sizes_are_public else ["n", "as_of"]
    masked = study.secure_settings is not None
    return json.dumps({"site": site, "public": public, "masked": masked, "releases": releases}, indent=2)


def _is_stored(ledger: Ledger, study: Study, policy: Policy, asked: Asked) -> bool:
    question = asked.question(study.schema, policy.serving(study.table).as_of)
    request = session_request(study.digest) if study.secure_settings else digest_of(question)
    return ledger.stored(request) is not None
