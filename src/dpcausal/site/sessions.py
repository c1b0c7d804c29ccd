"""A site's sessions of secure sums: one for each study, on disk before an answer leaves.

A session's secrets are used once. An older copy of a session would answer a round a second time, for other sites, and
two answers can open what one cannot. So sessions are never part of a backup, and a site that lost one begins no other
session that its ledger has paid for: the ledger holds the members of each session.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpcausal.errors import SessionError
from dpcausal.federation.protocol import Request
from dpcausal.federation.secure.session import SiteSession
from dpcausal.federation.secure_messages import verified_bodies
from dpcausal.hash_chain import digest_of_text
from dpcausal.secure_settings import SecureSettings

SESSIONS = "sessions"
"""The folder of sessions in a site's folder."""


class Sessions:
    """The sessions of a site, in files that only their owner can read.

    Args:
        folder: Their folder.
        site: The site's name.
        public_key: The site's public signing key.
    """

    def __init__(self, folder: Path, site: str, public_key: str) -> None:
        self._folder, self._site, self._public_key = folder, site, public_key

    def answer(self, request: Request, settings: SecureSettings, *, may_begin: bool) -> dict[str, Any]:
        """Return the answer to a round that reads no table: `keys`, `shares`, `confirm` or `unmask`.

        Args:
            request: The request.
            settings: The terms of its study.
            may_begin: Whether a new session may begin. It may not once the ledger has paid for one.

        Raises:
            SessionError: If the round was answered for other sites, or comes too early.
            TransportError: If the request carries something that the study's sites did not sign.
        """
        carried = {} if request.ask == "keys" else verified_bodies(request, settings.sites)
        with self._session(digest_of_text(request.study), settings, new=may_begin) as session:
            if request.ask == "keys":
                return session.keys()
            if request.ask == "shares":
                return session.shares(carried)
            return session.confirm(carried) if request.ask == "confirm" else session.unmask(carried)

    def mask(self, request: Request, settings: SecureSettings, count: int) -> tuple[list[int], str]:
        """Return the mask of the round `masked`, and the digest of the members with which it cancels.

        Raises:
            SessionError: As `answer`.
            TransportError: As `answer`.
        """
        carried: Mapping[str, Any] = verified_bodies(request, settings.sites)
        with self._session(digest_of_text(request.study), settings, new=False) as session:
            return session.mask(carried, count), session.members_digest

    @contextmanager
    def _session(self, study: str, settings: SecureSettings, *, new: bool) -> Iterator[SiteSession]:
        """Give the session of a study, and store it, durably, before the answer is returned."""
        if settings.sites.get(self._site) != self._public_key:
            raise _not_listed(self._site)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        file = self._folder / f"{study}.json"
        lock = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            session = self._read(file, study, settings, new=new)
            yield session
            _write(file, session.to_json())
        finally:
            os.close(lock)

    def _read(self, file: Path, study: str, settings: SecureSettings, *, new: bool) -> SiteSession:
        if file.exists():
            return SiteSession.from_json(file.read_text(encoding="ascii"))
        if not new:
            raise SessionError(
                expected="a session that began with the round keys",
                got="none for this study",
                hint="the session was lost, or never began; a new attempt needs a new study text.",
            )
        return SiteSession.new(study, self._site, settings.sites, settings.threshold)


def _write(file: Path, text: str) -> None:
    """Replace a file, durably and completely or not at all; its owner alone can read it."""
    descriptor, partial = tempfile.mkstemp(dir=file.parent, prefix=".")
    with os.fdopen(descriptor, "w", encoding="ascii") as output:
        output.write(text)
        output.flush()
        os.fsync(output.fileno())
    Path(partial).replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _not_listed(site: str) -> SessionError:
    return SessionError(
        expected=f"a study that lists {site} with this site's own public key",
        got="no such entry in its table [sites]",
        hint="ask the coordinator for a study with the key that dpcausal site key prints.",
    )
