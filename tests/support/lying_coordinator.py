"""A lying coordinator with colluding sites: all that it may try against honest sites, and what it then knows.

Honest sites are real sessions. The coordinator chooses for each site with which members it masks and which sum it
confirms, shows colluding sites' messages as it likes, and tries every other choice afterwards.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from dpcausal.errors import SessionError
from dpcausal.federation.secure.session import SiteSession
from tests.support.secure_sums import STUDY, received_by, site_names

COUNT = 2
Choice = tuple[tuple[str, ...], tuple[str, ...]]
"""The members with which a site masks, and the sites of the sum that it confirms."""


@dataclass(frozen=True)
class Setting:
    """Sites of which the last collude, with a session class that may be a mutant.

    Attributes:
        sites: How many sites there are.
        honest: How many honest sites each sum must hold.
        colluding: How many sites collude with the coordinator.
        kind: The sessions of honest sites.
    """

    sites: int
    honest: int
    colluding: int
    kind: type[SiteSession] = SiteSession

    @property
    def threshold(self) -> int:
        """The threshold of the study."""
        return self.honest + self.colluding

    @property
    def names(self) -> list[str]:
        """All sites."""
        return site_names(self.sites)

    @property
    def victims(self) -> list[str]:
        """The honest sites."""
        return self.names[: self.sites - self.colluding]

    def choices(self, own: str) -> list[Choice]:
        """Return all that a coordinator can choose for a site."""
        return [(members, summed) for members in self._sets(self.names, own) for summed in self._sets(members, own)]

    def schedules(self) -> Iterator[dict[str, Choice]]:
        """Yield every first choice for all honest sites together."""
        for chosen in product(*(self.choices(name) for name in self.victims)):
            yield dict(zip(self.victims, chosen, strict=True))

    def _sets(self, names: Iterable[str], own: str) -> list[tuple[str, ...]]:
        names = list(names)
        sizes = range(self.threshold, len(names) + 1)
        return [found for size in sizes for found in combinations(names, size) if own in found]


@dataclass
class Knowledge:
    """What a coordinator and its colluding sites learned.

    Attributes:
        masked: For each honest site, the sets of members with which it masked numbers.
        seeds: For each site, the honest sites that revealed a share of its seed.
        mask_keys: The same for its private mask key.
    """

    masked: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    seeds: dict[str, set[str]] = field(default_factory=dict)
    mask_keys: dict[str, set[str]] = field(default_factory=dict)

    def add(self, site: str, answer: Mapping[str, Any] | None) -> None:
        """Add what a site revealed."""
        for kind in ("seeds", "mask_keys"):
            for name in answer[kind] if answer else ():
                getattr(self, kind).setdefault(name, set()).add(site)

    def known(self, kind: str, setting: Setting) -> set[str]:
        """Return the sites of which enough shares are known; colluding sites hold one of everybody's."""
        revealed: dict[str, set[str]] = getattr(self, kind)
        least = setting.threshold - setting.colluding
        return {name for name in setting.victims if len(revealed.get(name, ())) >= least}

    def breaches(self, setting: Setting) -> list[str]:
        """Return what this knowledge opens beyond one sum of enough honest sites."""
        found = [f"{name} masked {len(sets)} times" for name, sets in self.masked.items() if len(sets) > 1]
        both = self.known("seeds", setting) & self.known("mask_keys", setting)
        found += [f"both secrets of {name} are known" for name in sorted(both)]
        opened = self.opened(setting)
        if len(opened) > 1:
            found.append(f"{len(opened)} sums are open")
        found += [f"a sum of {len(names)} honest sites is open" for names in opened if len(names) < setting.honest]
        return found

    def opened(self, setting: Setting) -> list[set[str]]:
        """Return the sets of honest sites whose sum is free of unknown masks.

        An unknown mask of a pair is in the numbers of both sites or of one of them. Sites that are linked by such masks
        are open only together, and not at all if one of them has an unknown mask that is nowhere else.
        """
        seeds, mask_keys = self.known("seeds", setting), self.known("mask_keys", setting)
        members = {name: set().union(*sets) for name, sets in self.masked.items()}
        closed = {name for name in members if name not in seeds}
        links: dict[str, set[str]] = {name: set() for name in members}
        for name, others in members.items():
            for other in others & set(setting.victims) - {name}:
                if not {name, other} & mask_keys:
                    if name in members.get(other, ()):
                        links[name].add(other)
                    else:
                        closed.add(name)
        return [names for names in _components(links) if not names & closed]


def _components(links: Mapping[str, set[str]]) -> list[set[str]]:
    left, found = set(links), []
    while left:
        reached, new = set(), {left.pop()}
        while new:
            reached |= new
            new = set().union(*(links[name] for name in new)) - reached
        left -= reached
        found.append(reached)
    return found


class LyingCoordinator:
    """A coordinator with its colluding sites, after all sites have shared their secrets."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        sessions = {name: setting.kind.new(STUDY, name, setting.names, setting.threshold) for name in setting.names}
        keys = {name: session.keys() for name, session in sessions.items()}
        shares = {name: session.shares(keys) for name, session in sessions.items()}
        self._states = {name: sessions[name].to_json() for name in setting.victims}
        everything = {choice for name in setting.victims for choice in setting.choices(name)}
        self._answered: dict[tuple[str, str, str], tuple[str, Any]] = {}
        self._digests: dict[str, str] = {}
        self._inputs = {
            (name, members): json.dumps([shown, COUNT, received_by(name, shown)])
            for members in {members for members, _ in everything}
            for shown in [{member: shares[member] for member in members}]
            for name in members
        }
        self._retries = [dict.fromkeys(set(choice[1]) & set(setting.victims), choice) for choice in sorted(everything)]

    def attack(self, schedule: Mapping[str, Choice], *, retry: bool = True) -> Knowledge:
        """Return what is learned when sites get these choices first, and then, if at all, every other choice."""
        known, states = Knowledge(), dict(self._states)
        digests: dict[str, str] = {}
        confirmed: dict[str, tuple[set[str], set[str]]] = {}
        for round_ in [schedule, *(self._retries if retry else [])]:
            for name, (members, _) in round_.items():
                states[name], answer = self._step(states[name], "mask", self._inputs[name, members])
                if answer is not None:
                    known.masked.setdefault(name, set()).add(members)
                    digests[name] = self._members_digest(states[name])
            for name, (_, summed) in round_.items():
                # A colluding site signs whatever fits; an honest one has signed one digest.
                headers = {site: {"members_digest": digests.get(site, digests[name])} for site in summed}
                states[name], answer = self._step(states[name], "confirm", json.dumps([headers]))
                if answer is not None:
                    accomplices = set(summed) - set(self.setting.victims)
                    confirmed.setdefault(answer["summed_digest"], (accomplices, set()))[1].add(name)
            for name in self.setting.victims:
                for digest, (accomplices, by) in confirmed.items():
                    shown = {site: {"study": STUDY, "summed_digest": digest} for site in sorted(accomplices | by)}
                    states[name], answer = self._step(states[name], "unmask", json.dumps([shown]))
                    known.add(name, answer)
        return known

    def _step(self, state: str, method: str, inputs: str) -> tuple[str, Any]:
        """Return a session and its answer after one request; unchanged and without an answer if it refuses."""
        request = (state, method, inputs)
        if request not in self._answered:
            session = self.setting.kind.from_json(state)
            try:
                answer = getattr(session, method)(*json.loads(inputs))
                self._answered[request] = session.to_json(), answer
            except SessionError:
                self._answered[request] = state, None
        return self._answered[request]

    def _members_digest(self, state: str) -> str:
        if state not in self._digests:
            self._digests[state] = self.setting.kind.from_json(state).members_digest
        return self._digests[state]
