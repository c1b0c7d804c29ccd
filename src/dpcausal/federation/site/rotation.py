"""Rotation of a site's own key. The old private key does not outlive it."""

from collections.abc import Callable
from pathlib import Path

from dpcausal.errors import StudyError
from dpcausal.federation.protocol.rotation import sign_rotation
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.changes import Changes
from dpcausal.federation.site.policy import KEY, Policy
from dpcausal.federation.site.sessions import SESSIONS, unfinished_sessions
from dpcausal.utils.durable_files import create_file, sync_folder
from dpcausal.utils.plain_text import check_plain_text

_NEXT = "site.next.key"


def rotate_key(folder: Path, by: str, announce: Callable[[str, Key, Key], None], own: Key | None = None) -> Path:
    """Replace the key of a site, and return the file of the record for those who know the old one.

    If it is interrupted, call it again: it goes on with the same new key.

    Args:
        folder: The site's folder.
        by: Who does this, for the audit log.
        announce: Called with the record, the old key and the new one, before the new one counts here.
        own: The key of the person who does this, which signs the line in the audit log.

    Raises:
        StudyError: If a secure sum is not finished: its study names the old key.
    """
    check_plain_text("who rotates a key", [by], StudyError)
    site, changes = Policy.read(folder).site, Changes(folder, own)
    signer = changes.signer()
    if unfinished := unfinished_sessions(folder / SESSIONS):
        raise StudyError(
            problem=f"Secure sums are not finished, and their studies name the key: {', '.join(unfinished)}",
            hint="finish them, or erase their secrets with: dpcausal site end-session FOLDER STUDY.",
        )
    old = Key.read(site, folder / KEY)
    if not (folder / _NEXT).exists():
        Key.make(site, folder / _NEXT)
    new = Key.read(site, folder / _NEXT)
    record = folder / f"{site}.{new.public[:12]}.rotation.json"
    if not record.exists():
        create_file(record, sign_rotation(old, new))
    announce(record.read_text(encoding="ascii"), old, new)
    with changes.recorded():
        if changes.current_key != new.public:
            who = signer.name if signer else by
            changes.audit_log.write("key", "", who, f"{old.public} replaced by {new.public}", signer)
        (folder / _NEXT).replace(folder / KEY)
        sync_folder(folder)
    return record
