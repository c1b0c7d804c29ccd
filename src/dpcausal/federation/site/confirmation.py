"""What counts at a site: its decisions and settings as the ledger recorded them last.

The audit log and the settings of a site are files, and an older copy of a file looks like the file itself. So the
ledger records where the audit log ends, and the digest of each settings file and its text, without secrets, whenever a
command changes one of them; and the witness records where the ledger ends. What differs from the record counts only
after a person has confirmed it, and the audit log then has the lines that changed.
"""

import json
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from dpcausal.errors import StudyError
from dpcausal.federation.operation.settings_secrets import without_secrets
from dpcausal.federation.site.audit_log import AuditLog
from dpcausal.federation.site.people import PEOPLE
from dpcausal.federation.site.policy import FILE
from dpcausal.ledger import Ledger
from dpcausal.utils.hash_chain import digest_of, digest_of_text
from dpcausal.utils.plain_text import changed_lines

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


def record_state(folder: Path, log: AuditLog, ledger: Ledger, keep: Collection[str] = ()) -> None:
    """Record in the ledger the state of a site as it is now: where the audit log ends, and what settings say.

    Args:
        folder: The site's folder.
        log: Its audit log.
        ledger: Its ledger.
        keep: The settings files that are not recorded, since people edited them and did not confirm that yet.
    """
    recorded = (ledger.site_state or {"settings": {}})["settings"]
    found = {name: digest for name, digest in digests(folder).items() if name not in keep}
    texts = {name: _text(folder, name) for name in found if name != _ACCOUNTS and found[name] != recorded.get(name)}
    settings = found | {name: recorded.get(name, "") for name in keep}
    ledger.record_site({"audit_log": log.end(), "settings": settings, "texts": texts})


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
    found = digests(folder)
    changed = [name for name in found if found[name] != recorded["settings"].get(name)]
    edited = tuple(name for name in changed if name in _EDITED)
    older = bool(words) or len(edited) < len(changed)
    words += [_difference(folder, name, recorded["settings"].get(name), ledger) for name in changed]
    return Unconfirmed(tuple(words), edited, older) if words else None


def check_data_versions(folder: Path, ledger: Ledger) -> None:
    """Raise if a version of the data that was answered is now read by another mapping, or as another table.

    Its stored answers would be sent again, as if they were of what is read now.
    """
    served = dict[str, object]()
    for state in ledger.site_states():
        served |= _served(state.get("texts", {}).get(FILE, ""))
    plain = ("", dict[str, object]())  # what was answered before any policy was recorded
    for as_of, read in _served(_text(folder, FILE)).items():
        if ledger.versions.get(as_of) is not None and served.get(as_of, plain) != read:
            raise StudyError(
                problem=f"The version {as_of} of the data was answered by another mapping, or as another table",
                hint=f"its stored answers would be sent again. Write a new as_of in {FILE}, and declare it with: "
                "dpcausal ledger add-version.",
            )


def recorded_policy(ledger: Ledger) -> dict[str, Any]:
    """Return the policy as the ledger recorded it last, as plain values; empty where it has none."""
    texts = [state["texts"][FILE] for state in ledger.site_states() if FILE in state.get("texts", {})]
    return tomllib.loads(texts[-1]) if texts else {}


def _served(policy: str) -> dict[str, object]:
    """Return the name and the mapping of the table that each version in a policy is of."""
    document = tomllib.loads(policy)
    tables = {"": document, **document.get("tables", {})} if document else {}
    return {each["as_of"]: (name, each.get("mapping", {})) for name, each in tables.items()}


def _difference(folder: Path, name: str, recorded: str | None, ledger: Ledger) -> str:
    """Return how a settings file differs from the one with the recorded digest: its lines, if the ledger has them."""
    states = (each for each in ledger.site_states() if each["settings"].get(name) == recorded)
    before = [each["texts"][name] for each in states if name in each.get("texts", {})]
    lines = changed_lines(before[-1], _text(folder, name)) if before else ()
    return f"{name} is not as it was recorded" + (f": {', '.join(lines)}" if lines else "")


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each settings file that exists. Comments and secrets do not count."""
    return {name: _digest(folder / name) for name in SETTINGS if (folder / name).exists()}


def _digest(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    try:
        return digest_of(json.loads(json.dumps(without_secrets(tomllib.loads(text)), default=str)))
    except ValueError:
        return digest_of_text(text)


def _text(folder: Path, name: str) -> str:
    """Return a settings file without its comments and secrets; empty if it cannot be read."""
    try:
        return tomli_w.dumps(without_secrets(tomllib.loads((folder / name).read_text(encoding="utf-8"))))  # type: ignore[arg-type]
    except ValueError:
        return ""


def described(folder: Path) -> list[str]:
    """Return the settings of a site, without secrets, as lines for the person who confirms them."""
    texts = {name: _text(folder, name) for name in (FILE, PEOPLE, _CONSOLE) if (folder / name).exists()}
    return [line for name, text in texts.items() for line in (f"{name}:", *(f"  {each}" for each in text.splitlines()))]
