"""A site's sessions of secure sums: one for each study, on disk before an answer leaves.

A session's secrets are used once. An older copy of a session would answer a round a second time, for other sites, and
two answers can open what one cannot. So sessions are never part of a backup, and a site that lost one begins no other
session that its ledger has paid for: the ledger holds the members of each session, and the sum that it confirmed.

Its secrets are erased before the last answer leaves.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpcausal.errors import SessionError
from dpcausal.federation.protocol.messages import BEFORE, Request
from dpcausal.federation.secure.messages import ciphertexts_in, verified_bodies
from dpcausal.federation.secure.session import SiteSession
from dpcausal.ledger import Ledger
from dpcausal.release import session_request
from dpcausal.study.secure_settings import SecureSettings
from dpcausal.utils.durable_files import locked, sync_folder, write_through
from dpcausal.utils.hash_chain import digest_of_text

SESSIONS = "sessions"
"""The folder of sessions in a site's folder."""


class Sessions:
    """The sessions of a site, in files that only their owner can read."""

    def __init__(self, folder: Path, site: str, public_key: str) -> None:
        self._folder, self._site, self._public_key = folder, site, public_key

    def answer(self, request: Request, settings: SecureSettings, ledger: Ledger, *, may_begin: bool) -> dict[str, Any]:
        """Return the answer to a round that reads no table: `keys`, `shares`, `confirm` or `unmask`.

        Args:
            ledger: Where the sum is recorded that the site confirms, before the confirmation leaves.
            may_begin: Whether a new session may begin. It may not once the ledger has paid for one.

        Raises:
            SessionError: If the round was answered for other sites, or comes too early.
            TransportError: If the request carries something that the study's sites did not sign.
        """
        carried = {} if request.ask == "keys" else verified_bodies(request, settings.sites)
        study = digest_of_text(request.study)
        with self._session(study, settings, ledger, new=may_begin) as session:
            if request.ask == "keys":
                return session.keys()
            if request.ask == "shares":
                return session.shares(carried, named=request.version > BEFORE)
            answer = session.confirm(carried) if request.ask == "confirm" else session.unmask(carried)
            if ledger.store_confirmation(session_request(study), session.summed_digest) != session.summed_digest:
                raise SessionError(
                    expected="the sum that this site's ledger recorded for the session",
                    got="another set of sites",
                    hint="the session was put back from an older copy; a new attempt needs a new study text.",
                )
            if request.ask == "unmask":
                session.erase()
            return answer

    def mask(
        self, request: Request, enclosed: str, settings: SecureSettings, ledger: Ledger, count: int
    ) -> tuple[list[int], str]:
        """Return the mask of the round `masked`, and the digest of the members with which it cancels.

        Args:
            enclosed: What came with the request for this site alone: the ciphertexts of its shares.
        """
        carried: Mapping[str, Any] = verified_bodies(request, settings.sites)
        received = ciphertexts_in(enclosed) if request.version > BEFORE else None
        with self._session(digest_of_text(request.study), settings, ledger, new=False) as session:
            return session.mask(carried, count, received), session.members_digest

    def end(self, study: str) -> None:
        """End the session of a study: erase its secrets. It answers nothing new from then on, and none other begins."""
        with _lock(self._folder):
            file = self._folder / f"{study}.json"
            session = _stored(file)
            session.erase()
            _write(file, session.to_json())

    @contextmanager
    def _session(self, study: str, settings: SecureSettings, ledger: Ledger, *, new: bool) -> Iterator[SiteSession]:
        """Give the session of a study, and store it, durably, before the answer is returned.

        A session that began before the ledger was restored is refused: nobody can tell what it answered since.
        """
        if settings.sites.get(self._site) != self._public_key:
            raise SessionError(
                problem=f"The study's table [sites] does not list {self._site} with this site's own public key",
                hint="ask the coordinator for a study with the key that dpcausal site key prints.",
            )
        with _lock(self._folder):
            file = self._folder / f"{study}.json"
            if new and not file.exists():
                session = SiteSession.new(study, self._site, settings.sites, settings.threshold)
                session.restore = ledger.last_restore
            else:
                session = _stored(file)
            if session.restore != ledger.last_restore:
                raise SessionError(
                    expected="a session that began after the last restore of this site's ledger",
                    got="one that began before it",
                    hint="it may have answered since; a new attempt needs a new study text.",
                )
            yield session
            _write(file, session.to_json())


def unfinished_sessions(folder: Path) -> dict[str, float]:
    """Return the studies whose sessions in a folder hold secrets, with the time of their last round."""
    if not folder.exists():
        return {}
    with _lock(folder):
        files = sorted(folder.glob("*.json"))
        return {file.stem: file.stat().st_mtime for file in files if not _stored(file).is_erased}


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Exclude all other processes from the sessions in a folder."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with locked(folder / ".lock"):
        yield


def _stored(file: Path) -> SiteSession:
    if not file.exists():
        raise SessionError(
            expected="a session that began with the round keys",
            got="none for this study",
            hint="the session was lost, or never began; a new attempt needs a new study text.",
        )
    return SiteSession.from_json(file.read_text(encoding="ascii"))


def _write(file: Path, text: str) -> None:
    """Replace a file, durably and completely or not at all, and overwrite what it held; its owner alone can read it.

    The lock must be held: the new text is written beside the file under one name. What was replaced is overwritten
    where it was on disk, as far as the disk and its file system do so.
    """
    partial = file.with_suffix(".partial")
    write_through(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), text.encode("ascii"))
    replaced = os.open(file, os.O_WRONLY) if file.exists() else None
    partial.replace(file)
    sync_folder(file.parent)
    if replaced is not None:
        write_through(replaced, bytes(os.fstat(replaced).st_size))
