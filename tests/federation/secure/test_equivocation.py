"""A coordinator that sends requests of two plans in any order, with colluding sites that have two sets of keys."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal.errors import SessionError
from dpcausal.federation.secure.coordinator import open_sum
from dpcausal.federation.secure.session import SiteSession
from tests.support.lying_coordinator import Knowledge, Setting
from tests.support.secure_sums import STUDY, masked_by

EXCHANGES = ("shares", "mask", "confirm", "unmask")
NUMBERS = [1, -1]


@dataclass(frozen=True)
class Plan:
    """What a coordinator would have sites do.

    Attributes:
        sharing: The sites that share secrets.
        members: Those of them that mask.
        summed: Those of them that are summed.
    """

    sharing: tuple[str, ...]
    members: tuple[str, ...]
    summed: tuple[str, ...]


class Equivocator:
    """A coordinator with two plans; its colluding sites have other keys in each."""

    def __init__(self, setting: Setting, plans: list[Plan]) -> None:
        def session(name: str) -> SiteSession:
            return SiteSession.new(STUDY, name, setting.names, setting.threshold)

        self.setting, self.plans = setting, plans
        self.sessions = {name: session(name) for name in setting.victims}
        self.colluding = [{name: session(name) for name in setting.names if name not in self.sessions} for _ in plans]
        self.known = Knowledge()
        self.shared: dict[str, dict[str, Any]] = {}
        self.sent: dict[str, list[int]] = {}
        self.confirmed: dict[str, dict[str, Any]] = {}
        self.answers: list[dict[str, dict[str, Any]]] = [{} for _ in plans]

    def request(self, name: str, exchange: str, index: int) -> None:
        """Send an honest site one request of a plan; a refusal must change nothing."""
        session = self.sessions[name]
        before = session.to_json()
        try:
            getattr(self, f"_{exchange}")(name, session, index)
        except SessionError:
            assert session.to_json() == before

    def keys(self, index: int, names: Iterable[str]) -> dict[str, Any]:
        """Return the keys of sites as a plan shows them."""
        everybody = self.sessions | self.colluding[index]
        return {name: everybody[name].keys() for name in names}

    def _shares(self, name: str, session: SiteSession, index: int) -> None:
        self.shared[name] = session.shares(self.keys(index, self.plans[index].sharing))

    def _mask(self, name: str, session: SiteSession, index: int) -> None:
        plan = self.plans[index]
        keys = self.keys(index, plan.sharing)
        shares = {each: accomplice.shares(keys) for each, accomplice in self.colluding[index].items() if each in keys}
        shown = {each: (self.shared | shares).get(each, {}) for each in plan.members}
        mask = masked_by(session, shown, len(NUMBERS))
        self.sent[name] = [(number + each) % 2**64 for number, each in zip(NUMBERS, mask, strict=True)]
        self.known.masked.setdefault(name, set()).add(plan.members)

    def _confirm(self, name: str, session: SiteSession, index: int) -> None:
        digests = {each: self.sessions[each].members_digest for each in self.sent}
        forged = dict.fromkeys(self.colluding[index], digests.get(name, ""))
        headers = {each: {"members_digest": (digests | forged).get(each)} for each in self.plans[index].summed}
        self.confirmed[name] = session.confirm(headers)

    def _unmask(self, name: str, session: SiteSession, index: int) -> None:
        own = self.confirmed.get(name, {})
        forged = dict.fromkeys(self.colluding[index], own)
        shown = {each: (self.confirmed | forged).get(each, {}) for each in self.plans[index].summed}
        answer = session.unmask({each: body for each, body in shown.items() if body == own})
        self.known.add(name, answer)
        if tuple(sorted(answer["seeds"])) == self.plans[index].summed:
            self.answers[index][name] = answer


@st.composite
def attacks(draw: st.DrawFn) -> tuple[Setting, list[Plan], list[tuple[int, str, int]]]:
    """Draw a federation, two plans, and the order in which honest sites first get requests of either."""
    sites = draw(st.integers(3, 5))
    colluding = draw(st.integers(0, sites - 2))
    honest = draw(st.integers(max(2, (sites - colluding) // 2 + 1), sites - colluding))
    setting = Setting(sites, honest, colluding)

    def some(names: tuple[str, ...]) -> tuple[str, ...]:
        left = draw(st.sets(st.sampled_from(names), max_size=len(names) - setting.threshold))
        return tuple(name for name in names if name not in left)

    plans = []
    for _ in range(2):
        shared = some(tuple(setting.names))
        members = some(shared)
        plans.append(Plan(shared, members, some(members)))
    request = st.tuples(st.integers(0, len(setting.victims) - 1), st.sampled_from(EXCHANGES), st.integers(0, 1))
    return setting, plans, draw(st.lists(request, max_size=16))


@given(attacks())
@settings(max_examples=50, deadline=None, derandomize=True)
def test_no_order_of_requests_opens_two_sums_or_one_of_few(
    attack: tuple[Setting, list[Plan], list[tuple[int, str, int]]],
) -> None:
    """Whatever comes first, and with all that is left to try afterwards."""
    setting, plans, requests = attack
    coordinator = Equivocator(setting, plans)
    for which, exchange, index in requests:
        coordinator.request(setting.victims[which], exchange, index)
    for exchange in EXCHANGES:
        for name in setting.victims:
            for index in range(len(plans)):
                coordinator.request(name, exchange, index)
    assert not coordinator.known.breaches(setting)
    for plan, answers in zip(plans, coordinator.answers, strict=True):
        if len(answers) >= setting.threshold and not setting.colluding:
            numbers = {name: coordinator.sent[name] for name in plan.summed}
            keys = coordinator.keys(0, setting.names)
            assert open_sum(numbers, keys, answers, setting.threshold) == [len(numbers), -len(numbers)]
