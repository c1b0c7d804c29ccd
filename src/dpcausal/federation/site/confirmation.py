"""What counts at a site: its decisions and settings as the ledger recorded them last.

The audit log and the settings of a site are files, and an older copy of a file looks like the file itself. So the
ledger records where the audit log ends and the digest of each settings file whenever a command changes one of them, and
the witness records where the ledger ends. What differs from the record counts only after a person has confirmed it.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from dpcausal.federation.operation.settings_secrets import without_secrets
from dpcausal.federation.site.audit_log import AuditLog
from dpcausal.federation.site.people import PEOPLE
from dpcausal.federation.site.policy import FILE
from dpcausal.ledger import Ledger
from dpcausal.utils.hash_chain import digest_of, digest_of_text

_CONSOLE = "console.toml"
_ACCOUNTS = "console_accounts.json"
SETTINGS = (FILE, PEOPLE, _CONSOLE, _ACCOUNTS)
"""The files that say who may ask, decide and log in. Studies, messages and keys need no record: a study is named by its
digest, the ledger holds the receipts of messages, and other parties know the public keys."""

_EDITED = (FILE, _CONSOLE)
"""The files that people edit. No command changes the others without a record, so another content is an older copy."""


@dataclass(frozen=True)
class Unconfirmed:
    """What at a site differs from what its ledger recorded.

    Attributes:
        edited: The files that people edit, and that differ.
        older: Whether decisions or people may be lost, so that earlier approvals do not count.
    """

    words: tuple[str, ...]
    edited: tuple[str, ...]
    older: bool

    def __str__(self) -> str:
        return "; ".join(self.words)


def current_state(folder: Path, log: AuditLog) -> dict[str, Any]:
    """Return the state of a site as its ledger records it: where the audit log ends, and digests of settings."""
    return {"audit_log": log.end(), "settings": _digests(folder)}


def find_unconfirmed(folder: Path, log: AuditLog, ledger: Ledger) -> Unconfirmed | None:
    """Return what at a site is not as its ledger recorded it last; None where everything is.

    The audit log may be longer: answers are not recorded. An absent file allows nobody anything.
    """
    recorded = ledger.site_state
    if recorded is None:
        why = "the ledger has no record of this site's decisions and settings, or was restored after it"
        return Unconfirmed((why,), (), older=True)
    words = list[str]()
    if not log.holds(**recorded["audit_log"]):
        words.append("the audit log is older than the ledger, or another one")
    elif log.has_changes_after(recorded["audit_log"]["size"]):
        words.append("the ledger is older than the audit log, or a command was interrupted")
    found = _digests(folder)
    changed = [name for name in found if found[name] != recorded["settings"].get(name)]
    edited = tuple(name for name in changed if name in _EDITED)
    older = bool(words) or len(edited) < len(changed)
    words += [f"{name} is not as it was recorded" for name in changed]
    return Unconfirmed(tuple(words), edited, older) if words else None


def _digests(folder: Path) -> dict[str, str]:
    """Return the digest of each settings file that exists. Comments and secrets do not count."""
    return {name: _digest(folder / name) for name in SETTINGS if (folder / name).exists()}


def _digest(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    try:
        return digest_of(json.loads(json.dumps(without_secrets(tomllib.loads(text)), default=str)))
    except ValueError:
        return digest_of_text(text)


def described(folder: Path) -> list[str]:
    """Return the settings of a site, without secrets, as lines for the person who confirms them."""
    lines = []
    for name in (FILE, PEOPLE, _CONSOLE):
        if (folder / name).exists():
            text = tomli_w.dumps(without_secrets(tomllib.loads((folder / name).read_text(encoding="utf-8"))))  # type: ignore[arg-type]
            lines += [f"{name}:", *(f"  {line}" for line in text.splitlines())]
    return lines
