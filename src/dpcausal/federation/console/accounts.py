"""Local accounts of a console, for sites without an OpenID Connect provider."""

import json
from pathlib import Path

from werkzeug.security import check_password_hash, generate_password_hash

from dpcausal.errors import StudyError, redact_errors
from dpcausal.utils.durable_files import replace_file

FILE = "console_accounts.json"
_SHORTEST, _LONGEST = 12, 200
_NOBODY = "scrypt:32768:8:1$n0b0dyn0b0dyn0bo$" + "0" * 128


class Accounts:
    """Logins with hashes of their passwords, in a file that only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE

    def set_password(self, login: str, password: str) -> None:
        """Create an account, or change its password."""
        if not _SHORTEST <= len(password) <= _LONGEST:
            raise StudyError(
                expected=f"a password of {_SHORTEST} to {_LONGEST} characters",
                got=f"one of {len(password)}",
                hint="several words that do not belong together are a good one.",
            )
        hashes = self._hashes() | {login: generate_password_hash(password, method="scrypt")}
        with redact_errors(OSError, instead=self._unusable):
            replace_file(self._file, json.dumps({"version": 1, "accounts": hashes}))

    def is_known(self, login: str) -> bool:
        """Return whether there is an account of this name."""
        return login in self._hashes()

    def check(self, login: str, password: str) -> bool:
        """Return whether this is the password of an account. An unknown account takes as long as a wrong password."""
        known = self._hashes().get(login)
        right = check_password_hash(known or _NOBODY, password[: _LONGEST + 1])
        return right and known is not None

    def _hashes(self) -> dict[str, str]:
        if not self._file.exists():
            return {}
        with redact_errors(OSError, ValueError, KeyError, TypeError, instead=self._unusable):
            return dict(json.loads(self._file.read_text(encoding="utf-8"))["accounts"])

    def _unusable(self, error: Exception) -> StudyError:
        return StudyError(
            problem=f"{self._file.name} cannot be read or written ({type(error).__name__})",
            hint="check its owner, or remove it and set the passwords again.",
        )
