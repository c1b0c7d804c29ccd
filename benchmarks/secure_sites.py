"""Secure sums of many sites: bytes and processor time of a site and of the coordinator.

`python -m benchmarks.secure_sites --sites 12 50`; each run's figures are stored as soon as it is done. Coordinator and
three sites are whole: they do all that they do in production, with ledgers, tables and stores on disk. The other sites
are light, so that a thousand fit into one process: they share one set of one-time secrets, compute once what would be
alike at all of them, verify nothing, and send each other ciphertexts that nobody can read, of the right size. Whole
sites and the coordinator cannot tell. What travels is counted as text, before TLS; nothing travels over a network.
"""

import argparse
import json
import math
import resource
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import tomli_w

import dpcausal as dpc
from benchmarks.parts import add_result_options, done, kept, result_file, shown
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.messages import STEPS, Message, Request
from dpcausal.federation.protocol.signatures import Key, claimed_body, claimed_signer
from dpcausal.federation.protocol.transport import NOTHING, parted, with_enclosed
from dpcausal.federation.secure import channel, masks, sharing
from dpcausal.federation.secure.messages import carried_sites, ciphertexts_in, masked_answer, step_answer
from dpcausal.federation.site.policy import FILE
from dpcausal.federation.site.site import Site
from dpcausal.federation.transports.mailbox.transport import calls_of
from dpcausal.release import Contribution, joint_price
from dpcausal.testing import standard_schema, synthetic_table
from dpcausal.utils.hash_chain import digest_of
from tests.support.site_folders import AS_OF, approve_study, make_site_folder, record_state

SIZES = (12, 50, 125, 500, 1_000)
WHOLE, UNITS, NUMBER = 3, 200, 5
BOTH = 125
"""Up to so many sites, there is also a run in which none falls silent."""

FALLEN = ("masked", "shares", "confirm", "unmask", "keys")
"""The rounds in which sites fall silent, as many of them as may."""


@dataclass
class Crowd:
    """What light sites have in common: their secrets, and what all of them see of a round."""

    study: dpc.Study
    threshold: int
    keys: Mapping[str, Key]
    silent: Mapping[str, str]
    private: bytes = field(default_factory=masks.new_private_key)
    mask_key: bytes = field(default_factory=masks.new_private_key)
    seed: bytes = field(default_factory=masks.new_private_key)
    bodies: dict[str, Any] = field(default_factory=dict)
    sharings: dict[str, str] = field(default_factory=dict)
    held: dict[str, dict[str, bytes]] = field(default_factory=dict)
    shares: dict[str, bytes] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        own = {"channel": masks.public_key(self.private), "mask": masks.public_key(self.mask_key)}
        self.own = {"study": self.study.digest, **own, "seed_digest": masks.seed_digest(self.seed)}
        self.asked = self.study.site_questions()
        self.count = sum(len(each.noise(self.study.schema).scales) for each in self.asked)
        self.seen = cache(self._seen)

    def answer(self, name: str, text: str) -> str:
        """Answer a request in the name of a light site, unless it has fallen silent."""
        request_text, enclosed = parted(text)
        request = self.seen(request_text)
        last = self.silent.get(name)
        if last and STEPS.index(request.ask) >= STEPS.index(last):
            raise ConnectionError
        facts: dict[str, Any] = {"n": UNITS, "as_of": AS_OF} if request.ask == "masked" else {}
        body = getattr(self, f"_{request.ask}")(name, enclosed)
        if request.ask != "masked":
            body = step_answer(self.keys[name], request, self.study.digest, {"study": self.study.digest} | body)
        message = Message(request=request.id, study=self.study.digest, site=name, code="answered", answer=body)
        return self.keys[name].seal(replace(message, **facts).to_json())

    def _seen(self, text: str) -> Request:
        """Return a request, after noting what it carries."""
        request = Request.from_json(claimed_body(text))
        carried = {claimed_signer(each): json.loads(claimed_body(each)) for each in request.carries}
        if request.ask == "shares":
            self.bodies = {name: body["answer"]["keys"] for name, body in carried.items()}
            names = sorted(carried)
            seeds, mask_keys = (sharing.split(each, self.threshold, names) for each in (self.seed, self.mask_key))
            self.shares = {each: seeds[each] + mask_keys[each] for each in names}
        elif request.ask == "masked":
            self.members = carried_sites(request)
            self.sharings = {name: body["sharing"] for name, body in carried.items()}
            digests = {name: digest_of(self.bodies[name], self.sharings[name]) for name in self.members}
            self.members_digest = digest_of("members", self.study.digest, digests, self.count)
        elif request.ask == "confirm":
            self.summed = carried_sites(request)
            self.summed_digest = digest_of("sum", self.study.digest, self.members_digest, self.summed)
        return request

    def _keys(self, _: str, __: str) -> dict[str, Any]:
        return self.own

    def _shares(self, name: str, _: str) -> dict[str, Any]:
        """Encrypt the shares for whole sites; what goes to light ones only has the size of a ciphertext."""
        label, made = channel.new_sharing(), {}
        for other in sorted(self.bodies.keys() - {name}):
            if other in self.keys:
                made[other] = self.unread
                continue
            link = channel.Link(self.study.digest, name, other, label)
            made[other] = channel.encrypt(self.shares[other], link, self.private, self.bodies[other]["channel"])
        return {"ciphertexts": made, "sharing": label}

    @property
    def unread(self) -> str:
        """A ciphertext that nobody reads."""
        return "ab" * (12 + 2 * sharing.SHARE_BYTES + 16)

    def _masked(self, name: str, enclosed: str) -> dict[str, Any]:
        """Mask with whole sites and with those that fall silent now; masks between all others cancel."""
        received, study = ciphertexts_in(enclosed), self.study.digest
        for other in set(self.members) - self.keys.keys():
            link = channel.Link(study, other, name, self.sharings[other])
            text = channel.decrypt(received[other], link, self.private, self.bodies[other]["channel"])
            self.held.setdefault(name, {})[other] = text
        total = self.own_mask + NUMBER
        for other in self.members:
            if other != name and (other not in self.keys or self.silent.get(other) == "masked"):
                public = self.bodies[other]["mask"]
                seed = masks.pairwise_seed(self.mask_key, public, study, (name, other))
                total += masks.pairwise_mask(seed, name, other, self.count)
        price = joint_price(self.asked)
        receipt = replace(price, entry=1, digest="0" * 64, on=AS_OF, as_of=AS_OF)
        part = Contribution(tuple(map(int, total)), self.members_digest, receipt)
        return masked_answer(self.keys[name], study, self.members_digest, part)

    @property
    def own_mask(self) -> masks.UInt64s:
        """What each light site adds of its own."""
        return masks.self_mask(self.seed, self.count)

    def _confirm(self, _: str, __: str) -> dict[str, Any]:
        return {"summed_digest": self.summed_digest}

    def _unmask(self, name: str, _: str) -> dict[str, Any]:
        def shares(names: Sequence[str], place: int) -> dict[str, str]:
            cut = slice(place * sharing.SHARE_BYTES, (place + 1) * sharing.SHARE_BYTES)
            own = self.shares[name][cut].hex()
            return {each: own if each in self.keys else self.held[name][each][cut].hex() for each in names}

        silent = [each for each in self.members if each not in self.summed]
        return {"seeds": shares(self.summed, 0), "mask_keys": shares(silent, 1)}


@dataclass
class Measured:
    """A transport that carries texts to sites in this process, and counts bytes and the processor time of sites."""

    sites: Mapping[str, Callable[[str], str]]
    whole: Sequence[str]
    away: float = 0.0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))
    sent: dict[str, int] = field(default_factory=dict)
    received: dict[str, int] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    largest_call: int = 0

    def ask(
        self,
        request: str,
        sites: Sequence[str],
        timeout: float,  # noqa: ARG002
        on_response: Callable[[str, str], None],
        enclosed: Mapping[str, str] = NOTHING,
    ) -> None:
        """Ask one site after another."""
        start = time.process_time()
        step = Request.from_json(claimed_body(request)).ask
        calls = (len(json.dumps(each)) for each in calls_of(request, sites, enclosed))
        self.largest_call = max(self.largest_call, *calls)
        self.away += time.process_time() - start
        for site in sites:
            start = time.process_time()
            text = with_enclosed(request, enclosed.get(site, ""))
            try:
                message = self.sites[site](text)
            except ConnectionError:
                message = ""
            took = time.process_time() - start
            self.away += took
            self.requests[step] = max(self.requests.get(step, 0), len(text))
            self.received[site] = self.received.get(site, 0) + len(text)
            self.sent[site] = self.sent.get(site, 0) + len(message)
            if site in self.whole:
                self.seconds[step] += took / len(self.whole)
            if message:
                on_response(site, message)

    def withdraw(self, requests: Sequence[str]) -> None:
        """Do nothing: no request waits here."""


def measure(sites: int, *, dropouts: bool) -> dict[str, Any]:
    """Return what one secure sum of so many sites takes, with two thirds of them honest and one that colludes."""
    names = [f"site{place:04}" for place in range(sites)]
    honest = -(-2 * sites // 3)
    fallen = _fallen(names[WHOLE:], sites - honest - 1) if dropouts else {}
    with tempfile.TemporaryDirectory() as folder:
        coordinator, transport = _federation(Path(folder), names, honest, fallen)
        start = time.process_time()
        effect = coordinator.run()
        took = time.process_time() - start - transport.away
    answered = sum(share.status == "answered" for share in effect.sites)
    expected = sites - sum(step in STEPS[:3] for step in fallen.values())
    if answered != expected or effect.n != UNITS * answered:
        raise AssertionError(effect)  # a mask that is left makes the sum impossible, which the coordinator refuses
    whole = names[:WHOLE]
    return {
        "sites": sites,
        "honest": honest,
        "threshold": honest + 1,
        "silent": {step: sum(each == step for each in fallen.values()) for step in STEPS},
        "in_the_sum": answered,
        "site_seconds": round(sum(transport.seconds.values()), 2),
        "site_seconds_by_round": {step: round(each, 3) for step, each in transport.seconds.items()},
        "site_received_bytes": max(transport.received[each] for each in whole),
        "site_sent_bytes": max(transport.sent[each] for each in whole),
        "coordinator_seconds": round(took, 1),
        "coordinator_sent_bytes": sum(transport.received.values()),
        "coordinator_received_bytes": sum(transport.sent.values()),
        "largest_request_by_round": transport.requests,
        "largest_request": max(transport.requests.values()),
        "largest_call": transport.largest_call,
        "process_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000,
    }


def _fallen(light: Sequence[str], most: int) -> dict[str, str]:
    """Return which light sites fall silent, and from which round on: of a hundred, four in each round."""
    each = max(1, math.ceil((len(light) + WHOLE) / 25))
    rounds = FALLEN[: most // each]
    return {light[place * each + of]: step for place, step in enumerate(rounds) for of in range(each)}


def _federation(
    folder: Path, names: Sequence[str], honest: int, fallen: Mapping[str, str]
) -> tuple[dpc.Coordinator, Measured]:
    schema, whole = standard_schema(), names[:WHOLE]
    keys = {name: Key.make(name, folder / f"{name}.key") for name in ("anna", *names[WHOLE:])}
    anna = keys.pop("anna")
    public = {
        name: make_site_folder(
            folder / name,
            name,
            synthetic_table(schema, UNITS, place),
            schema,
            {"anna": anna.public},
            witness="witness.log",
        )
        for place, name in enumerate(whole)
    } | {name: key.public for name, key in keys.items()}
    study = dpc.Study(
        name="many",
        question="Does treatment raise the score?",
        requester="anna",
        schema=schema,
        estimator=dpc.DifferenceInMeans(),
        epsilon=1.0,
        pooling="sums",
        aggregation="secure",
        secure={"honest": honest, "colluding": 1},
        sites=public,
    )
    terms = {"secure_sums": {"honest": honest, "colluding": 1, "sites": public}}
    for name in whole:
        with (folder / name / FILE).open("a", encoding="utf-8") as policy:
            policy.write(f"\n{tomli_w.dumps(terms)}")
        record_state(folder / name)
        approve_study(folder / name, study)
    crowd = Crowd(study, honest + 1, keys, fallen)
    answers: dict[str, Callable[[str], str]] = {name: partial(crowd.answer, name) for name in keys}
    transport = Measured(answers | {name: Site(folder / name).answer for name in whole}, whole)
    roster = Roster({name: Member(key, units=UNITS) for name, key in public.items()})
    settings: dict[str, Any] = {"store": folder / "requests.db", "timeout": 0.0, "attempts": 1}
    return dpc.Coordinator(study.to_toml(), roster, anna, transport, **settings), transport


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secure_sites", description=__doc__)
    parser.add_argument("--sites", nargs="+", type=int, default=SIZES, help="numbers of sites")
    add_result_options(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    file = result_file(parser, chosen, "secure_sites")
    for sites in chosen.sites:
        for dropouts in (False, True) if sites <= BOTH else (True,):
            name = f"{sites} sites{', some silent' if dropouts else ''}"
            done(name, partial(measure, sites, dropouts=dropouts), file)
    print(shown(kept(file), chosen.json))


if __name__ == "__main__":
    main()
