"""The rotation of a site's key: a record that the old key signs, and the new one inside it.

The old key vouches for the new one, and the new one shows that it is the site's own. A record counts where the old key
is the one that is known, so that no record counts twice, and none that is signed with a key that was replaced before.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from dpcausal.errors import SchemaError, TransportError, redact_errors
from dpcausal.federation.protocol.signatures import Key, claimed_body, opened
from dpcausal.utils.validation import build, is_name, is_public_key

_FORMAT = "key rotation 1"


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """The change of a site's key.

    Attributes:
        site: The site's name.
        old: The public key so far.
        new: The public key from now on.
        at: The time at which it was signed, in UTC.
        format: The format of this document.
    """

    site: str
    old: str
    new: str
    at: str
    format: str = _FORMAT


def sign_rotation(old: Key, new: Key) -> str:
    """Return the record of a rotation, signed with both keys of a site."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    rotation = Rotation(site=old.owner, old=old.public, new=new.public, at=at)
    return old.seal(new.seal(json.dumps(asdict(rotation), sort_keys=True)))


def claimed_rotation(sealed: str) -> Rotation:
    """Return the rotation in a record without verifying its signatures.

    Raises:
        TransportError: If it is no such record.
    """
    with redact_errors(ValueError, RecursionError, TypeError, SchemaError, instead=lambda _: _invalid()):
        rotation = build("rotation", Rotation, json.loads(claimed_body(claimed_body(sealed))))
    keys = rotation.old, rotation.new
    if rotation.format != _FORMAT or not is_name(rotation.site) or not all(map(is_public_key, keys)):
        raise _invalid()
    return rotation


def verified_rotation(sealed: str, site: str, key: str) -> Rotation:
    """Return the rotation in a record of a site with this key.

    Raises:
        TransportError: If it is of another site or key, or one of its signatures is not valid.
    """
    rotation = claimed_rotation(sealed)
    if (rotation.site, rotation.old) != (site, key) or rotation.new == key:
        raise _invalid()
    _, inner = opened(sealed, {site: key})
    opened(inner, {site: rotation.new})
    return rotation


def _invalid() -> TransportError:
    return TransportError(
        expected="the record of a rotation of this site's key, signed with the key that is known",
        got="another text",
        hint="send the file that dpcausal site rotate-key wrote; if its key is not the one that is known, ask the site "
        "for its key in person.",
    )
