"""One site's part in one secure sum: a state machine that answers each exchange once."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from dpcausal.errors import SessionError
from dpcausal.federation.secure import channel, masks, sharing
from dpcausal.utils.hash_chain import digest_of

Body = Mapping[str, Any]
"""A message without its signature, which the caller has verified: plain values under names."""

_VERSION = 1


@dataclass
class SiteSession:
    """A site's session in the secure sum of one study.

    The exchanges come in the order `keys`, `shares`, `mask`, `confirm`, `unmask`. Each is answered for one input: the
    same input gets the same answer, another one raises `SessionError` and changes nothing. The caller verifies the
    signatures of all bodies, and stores `to_json()` durably before an answer leaves. A session must never be restored
    from an older copy: it would answer a second input. `erase` ends it: what was answered before is answered again, but
    for the mask, and nothing new.

    Attributes:
        study: The digest of the study.
        sites: The names of all sites of the study.
        threshold: The smallest number of sites in an opened sum, and of shares that give a secret.
        peers: The `keys` bodies of the sites among which this site shared its secrets.
        sent: The answer to `shares`.
        members: Digests of the keys and the sharings of the sites with which this site masked.
        held: For each member, the shares that this site holds of its seed and of its private mask key.
        summed: The names of the sites whose sum this site confirmed.
        revealed: The answer to `unmask`.
        restore: The last restore of the site's ledger when the session began; empty where there was none.
    """

    study: str
    name: str
    sites: tuple[str, ...]
    threshold: int
    channel_key: bytes = field(repr=False)
    mask_key: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    peers: dict[str, Any] = field(default_factory=dict, repr=False)
    sent: dict[str, Any] = field(default_factory=dict, repr=False)
    members: dict[str, str] = field(default_factory=dict)
    held: dict[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    count: int = 0
    summed: tuple[str, ...] = ()
    revealed: dict[str, Any] = field(default_factory=dict, repr=False)
    restore: str = ""

    @classmethod
    def new(cls, study: str, name: str, sites: Collection[str], threshold: int) -> Self:
        """Return a session with new one-time secrets.

        Args:
            study: The digest of the study.
            sites: The names of all sites of the study, or a mapping from them.
            threshold: The smallest number of sites in an opened sum: more than half of all.
        """
        if name not in sites or not 2 <= threshold <= len(sites) < 2 * threshold:
            raise SessionError(
                expected="a site of the study, and a threshold of at least 2 and more than half of the sites",
                got=f"site {name!r}, threshold {threshold} of {len(sites)} sites",
                hint="correct the sites and the numbers honest and colluding in the study.",
            )
        new = masks.new_private_key
        return cls(study, name, tuple(sorted(sites)), threshold, channel_key=new(), mask_key=new(), seed=new())

    def keys(self) -> dict[str, Any]:
        """Return the site's one-time public keys and what it announces of its seed. No table is read for it."""
        if self.is_erased and self.peers:
            return dict(self.peers[self.name])
        self._check_secrets()
        return {
            "study": self.study,
            "channel": masks.public_key(self.channel_key),
            "mask": masks.public_key(self.mask_key),
            "seed_digest": masks.seed_digest(self.seed),
        }

    def shares(self, keys: Mapping[str, Body], *, named: bool = True) -> dict[str, Any]:
        """Share the site's secrets among sites, each share encrypted for its holder.

        The answer names the sharing, at random; only with this name can its ciphertexts be read. So sites that see the
        same names hold shares of the same sharing, and none of them needs to see what is encrypted for another.

        Args:
            keys: The `keys` bodies of the sites that take part, this one included.
            named: Whether the sharing has a name. In version 4 of the protocol it has none: there every site sees all
                ciphertexts.
        """
        self._check_names(keys, self.sites, "the study")
        bodies = {name: self._keys_of(name, body) for name, body in keys.items()}
        if bodies[self.name] != self.keys():
            raise _other_input("this site's own keys")
        if self.peers:
            if bodies != self.peers or ("sharing" in self.sent) != named:
                raise _other_input("the keys of the same sites as before, in the same version of the protocol")
            return self.sent
        self._check_secrets()
        names, name = sorted(keys), channel.new_sharing() if named else ""
        seeds = sharing.split(self.seed, self.threshold, names)
        mask_keys = sharing.split(self.mask_key, self.threshold, names)
        ciphertexts = {
            to: channel.encrypt(
                seeds[to] + mask_keys[to],
                channel.Link(self.study, self.name, to, name),
                self.channel_key,
                bodies[to]["channel"],
            )
            for to in names
            if to != self.name
        }
        own = (seeds[self.name].hex(), mask_keys[self.name].hex())
        self.peers, self.held = bodies, {self.name: own}
        self.sent = {"study": self.study, "ciphertexts": ciphertexts}
        self.sent |= {"sharing": name} if named else {}
        return self.sent

    def mask(self, sharings: Mapping[str, Body], count: int, received: Body | None = None) -> list[int]:
        """Return the mask to add, modulo 2^64, to the site's noisy numbers.

        Args:
            sharings: For each of the members, which are the sites that mask together, this one included, the signed
                body that holds the name of its `sharing`.
            received: The ciphertexts for this site, by sender. In version 4 of the protocol there are none: the bodies
                hold the `ciphertexts` for all sites.
        """
        self._check_secrets()
        self._check_names(sharings, self.peers, "the keys that this site received")
        bound: dict[str, Any]
        if received is None:
            bound = {name: self._ciphertexts_of(name, body) for name, body in sharings.items()}
            received, names = {name: each.get(self.name, "") for name, each in bound.items()}, dict.fromkeys(bound, "")
        else:
            bound = names = {name: self._sharing_of(name, body) for name, body in sharings.items()}
        own = self.sent.get("sharing", self.sent["ciphertexts"])
        if type(count) is not int or count < 1 or bound[self.name] != own:
            raise _other_input("at least one number to mask, and this site's own shares")
        held = {name: self._share_of(name, received.get(name, ""), names[name]) for name in bound if name != self.name}
        members = {name: digest_of(self.peers[name], bound[name]) for name in sorted(bound)}
        if self.members and (members, count) != (self.members, self.count):
            raise _other_input("the same members and count as before")
        pairs = {
            name: masks.pairwise_seed(self.mask_key, self.peers[name]["mask"], self.study, (self.name, name))
            for name in held
        }
        total = masks.total_mask(self.name, self.seed, pairs, count)
        self.members, self.count, self.held = members, count, held | {self.name: self.held[self.name]}
        return [int(each) for each in total.tolist()]

    @property
    def members_digest(self) -> str:
        """The digest of the members, their keys and sharings, which goes with the masked numbers."""
        if not self.members:
            raise _too_early("mask")
        return digest_of("members", self.study, self.members, self.count)

    def confirm(self, headers: Mapping[str, Body]) -> dict[str, Any]:
        """Confirm which sites are summed.

        Args:
            headers: For each site whose masked numbers arrived, this one included, the signed body that holds its
                `members_digest`.
        """
        self._check_names(headers, self.members, "the members")
        if any(body.get("members_digest") != self.members_digest for body in headers.values()):
            raise SessionError(
                expected="masked numbers of sites that all masked with the same members",
                got="sites that masked with different members",
                hint="the coordinator gave sites different requests; this study cannot be summed with these sites.",
            )
        summed = tuple(sorted(headers))
        if self.summed and summed != self.summed:
            raise _other_input("the same sites in the sum as before")
        if not self.summed:
            self._check_secrets()
        self.summed = summed
        return self._confirmation()

    @property
    def summed_digest(self) -> str:
        """The digest of the members and of the sites whose sum this site confirmed."""
        if not self.summed:
            raise _too_early("confirm")
        return digest_of("sum", self.study, self.members_digest, self.summed)

    def unmask(self, confirmations: Mapping[str, Body]) -> dict[str, Any]:
        """Reveal shares: of the seeds of sites in the sum, and of the mask keys of members that fell silent.

        Args:
            confirmations: The `confirm` bodies of at least `threshold` sites in the sum.
        """
        confirmed = self.summed_digest
        self._check_names(confirmations, self.summed, "the sum", own=False)
        if any(body.get("summed_digest") != confirmed for body in confirmations.values()):
            raise _other_input("confirmations of the sum that this site confirmed")
        if self.is_erased and self.revealed:
            return self.revealed
        self._check_secrets()
        silent = [name for name in self.members if name not in self.summed]
        self.revealed = {
            "study": self.study,
            "seeds": {name: self.held[name][0] for name in self.summed},
            "mask_keys": {name: self.held[name][1] for name in silent},
        }
        return self.revealed

    @property
    def is_erased(self) -> bool:
        """Whether the session holds no secrets any more."""
        return not self.seed

    def erase(self) -> None:
        """Remove the keys, the seed and all shares that were not revealed; nothing new is answered from then on."""
        self.channel_key = self.mask_key = self.seed = b""
        self.held = {}

    def to_json(self) -> str:
        """Write the session, secrets included, as JSON text."""
        private = {name: getattr(self, name).hex() for name in ("channel_key", "mask_key", "seed")}
        return json.dumps({"version": _VERSION, **vars(self), **private}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a session that `to_json` wrote."""
        document = json.loads(text)
        if document.pop("version", None) != _VERSION:
            raise SessionError(
                expected=f"a session with version {_VERSION}",
                got="another version",
                hint="finish the study with the dpcausal release that began it, or send a new study.",
            )
        for name in ("channel_key", "mask_key", "seed"):
            document[name] = bytes.fromhex(document[name])
        document["held"] = {name: tuple(pair) for name, pair in document["held"].items()}
        return cls(**document | {name: tuple(document[name]) for name in ("sites", "summed")})

    def _confirmation(self) -> dict[str, Any]:
        return {"study": self.study, "summed_digest": self.summed_digest}

    def _check_secrets(self) -> None:
        if self.is_erased:
            raise SessionError(
                expected="a session that has its secrets",
                got="one that ended, and whose secrets were erased",
                hint="a new attempt needs a new study text.",
            )

    def _keys_of(self, sender: str, body: Body) -> dict[str, str]:
        """Return what a site's `keys` body must hold, and nothing else."""
        found = {name: body.get(name) for name in ("study", "channel", "mask", "seed_digest")}
        if body.get("study") != self.study or not all(isinstance(text, str) for text in found.values()):
            raise _other_message(sender)
        return {name: str(text) for name, text in found.items()}

    def _ciphertexts_of(self, sender: str, body: Body) -> dict[str, str]:
        """Return the ciphertexts of a site's `shares` body, of version 4 of the protocol."""
        found = body.get("ciphertexts")
        whole = isinstance(found, Mapping) and all(isinstance(text, str) for text in found.values())
        if body.get("study") != self.study or not isinstance(found, Mapping) or not whole:
            raise _other_message(sender)
        return dict(found)

    def _sharing_of(self, sender: str, body: Body) -> str:
        """Return the name of a site's sharing."""
        found = body.get("sharing")
        if body.get("study") != self.study or not isinstance(found, str) or not found:
            raise _other_message(sender)
        return found

    def _share_of(self, sender: str, sealed: object, sharing_of_sender: str) -> tuple[str, str]:
        """Return the shares that another site encrypted for this one: of its seed and of its private mask key."""
        if not isinstance(sealed, str):
            raise _other_message(sender)
        link, public = channel.Link(self.study, sender, self.name, sharing_of_sender), self.peers[sender]["channel"]
        text = channel.decrypt(sealed, link, self.channel_key, public)
        if len(text) != 2 * sharing.SHARE_BYTES:
            raise _other_message(sender)
        return text[: sharing.SHARE_BYTES].hex(), text[sharing.SHARE_BYTES :].hex()

    def _check_names(self, given: Mapping[str, Body], among: Collection[str], what: str, *, own: bool = True) -> None:
        """Raise unless there are enough sites, all of them among these, and this one of them if it must be."""
        strange = [name for name, body in given.items() if name not in among or not isinstance(body, Mapping)]
        if strange or len(given) < self.threshold or (own and self.name not in given):
            raise SessionError(
                expected=f"at least {self.threshold} sites, all of {what}{', with this site' if own else ''}",
                got=f"{len(given)} sites, {len(strange)} of them others",
                hint="wait for more sites; a sum of fewer is never opened.",
            )


def _other_message(sender: str) -> SessionError:
    return SessionError(
        expected=f"a message of {sender} in this study, as dpcausal writes it",
        got="a message of another study, or of another shape",
        hint=f"leave {sender} out of the sum.",
    )


def _other_input(expected: str) -> SessionError:
    return SessionError(
        expected=expected,
        got="something else",
        hint="each exchange is answered for one input only; a new attempt needs a new study, with its own price.",
    )


def _too_early(exchange: str) -> SessionError:
    return SessionError(
        expected=f"the exchange {exchange} before this one",
        got="a session without it",
        hint="send the requests of a secure sum in their order.",
    )
