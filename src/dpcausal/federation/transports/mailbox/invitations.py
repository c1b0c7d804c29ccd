"""Invitations: one-time tokens that let a site join a mailbox with one command.

A token holds the server's address, the certificate of its authority, the site's name, and a secret that the coordinator
chose. The server never learns the secret. It stores the digest of a pass that is derived from it, so that the token
opens the mailbox once; and the site binds its public key to the secret, so that the coordinator can verify the key
although an untrusted server carried it.
"""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Self

from dpcausal.errors import StudyError
from dpcausal.federation.transports.mailbox.authority import fingerprint_of
from dpcausal.utils.validation import is_name

_PREFIX = "dpcausal-mailbox-1."
_HINT = "copy the whole token, or ask the coordinator for a new one: dpcausal federation invite FOLDER SITE."


@dataclass(frozen=True)
class Invitation:
    """What a token holds.

    Attributes:
        authority: The certificate of the server's authority, in PEM.
        site: The name of the site that is invited.
        expires: The time until which it is valid, in seconds since 1970.
    """

    address: str
    authority: str
    site: str
    secret: str
    expires: int

    @classmethod
    def new(cls, address: str, authority: str, site: str, expires: int) -> Self:
        """Return an invitation with a fresh secret."""
        if not is_name(site):
            raise StudyError(expected="a name of letters, digits, - and _", got=repr(site), hint="for instance north.")
        return cls(address, authority, site, secrets.token_hex(32), expires)

    @property
    def token(self) -> str:
        """The token: one line of text."""
        return _PREFIX + base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode().rstrip("=")

    @classmethod
    def from_token(cls, token: str) -> Self:
        """Read a token."""
        invitation = None
        try:
            text = token.strip().removeprefix(_PREFIX)
            invitation = cls(
                **json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
            )
            texts = (invitation.address, invitation.authority, invitation.site, invitation.secret)
            holds = (
                token.strip().startswith(_PREFIX)
                and all(isinstance(each, str) for each in texts)
                and invitation.address.startswith("https://")
                and len(bytes.fromhex(invitation.secret)) == 32
                and bool(fingerprint_of(invitation.authority))
                and is_name(invitation.site)
                and type(invitation.expires) is int
            )
        except (ValueError, TypeError, RecursionError):
            holds = False
        if invitation is None or not holds:
            raise StudyError(expected="a token as dpcausal federation invite prints it", got="another text", hint=_HINT)
        return invitation

    def check_valid(self, site: str) -> None:
        """Raise unless the invitation is for this site and has not expired."""
        if self.site != site:
            raise StudyError(expected=f"an invitation of {site}", got=f"one of {self.site}", hint=_HINT)
        if datetime.now(UTC).timestamp() > self.expires:
            ended = datetime.fromtimestamp(self.expires, UTC).isoformat(sep=" ", timespec="minutes")
            raise StudyError(expected="a valid invitation", got=f"one that expired at {ended}", hint=_HINT)

    @property
    def door_pass(self) -> str:
        """The pass that the site shows to the server."""
        return self._derived("pass")

    def bind(self, public: str) -> str:
        """Return the proof that whoever has the secret vouches for a public key."""
        return self._derived("key", self.site, public)

    def binds(self, public: str, binding: str) -> bool:
        """Return whether a proof is that of a public key."""
        return hmac.compare_digest(self.bind(public).encode(), binding.encode())

    def _derived(self, *parts: str) -> str:
        text = "\n".join(("dpcausal mailbox invitation", *parts)).encode()
        return hmac.new(bytes.fromhex(self.secret), text, hashlib.sha256).hexdigest()
