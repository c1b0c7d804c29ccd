"""The people of a site: who may read, decide and operate, and the keys and logins by which they are known."""

import tomllib
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self, get_args

import tomli_w

from dpcausal.errors import SchemaError, StudyError, redact_errors
from dpcausal.utils.durable_files import replace_file
from dpcausal.utils.plain_text import check_plain_text, is_plain_text
from dpcausal.utils.validation import build, check_keys, is_public_key

PEOPLE = "people.toml"
VERSION = 1
"""The version of the format of the file."""

Role = Literal["reader", "approver", "operator"]
ROLES: tuple[Role, ...] = get_args(Role)
_LONGEST_NAME = 100
_ADD = "dpcausal site people add FOLDER NAME --role approver --key PUBLIC_KEY"


def normalised(name: str) -> str:
    r"""Return a name in one spelling: compatibility characters replaced, and blanks folded.

    Example:
        >>> normalised("  Dr.\u00a0Adams "), normalised("Dr. Adam\u017f")
        ('Dr. Adams', 'Dr. Adams')
    """
    return " ".join(unicodedata.normalize("NFKC", name).split())


def identity(name: str) -> str:
    """Return what two names must share to be those of one person: spelling, blanks and case do not count.

    Example:
        >>> identity("Dr. Adams ") == identity("DR.  ADAMS")
        True
    """
    return normalised(normalised(name).casefold())


@dataclass(frozen=True)
class Person:
    """One person at a site.

    Attributes:
        name: The person's name, in normalised spelling.
        roles: What the person may do: read, decide about studies, operate the site.
        key: The public key that signs the person's decisions; empty where the person decides at the console only.
        login: The subject of the person's login at the site's console; empty where the person has none.
    """

    name: str
    roles: tuple[Role, ...]
    key: str = ""
    login: str = ""

    def __post_init__(self) -> None:
        check_plain_text("the name and the login of a person", [self.name, self.login], StudyError)
        object.__setattr__(self, "name", normalised(self.name))
        object.__setattr__(self, "roles", tuple(self.roles) if isinstance(self.roles, list | tuple) else ())
        create = "dpcausal site create-person-key FILE creates a key and prints its public part."
        for holds, expected, got, hint in (
            (
                0 < len(self.name) <= _LONGEST_NAME,
                f"a name of at most {_LONGEST_NAME} characters",
                f"name {self.name!r}",
                "correct the name.",
            ),
            (is_plain_text(self.name), "a name without control characters", f"name {self.name!r}", "correct the name."),
            (
                self.roles and all(role in ROLES for role in self.roles),
                f"one or more roles among {', '.join(ROLES)}",
                f"{', '.join(map(str, self.roles)) or 'none'}",
                "correct the roles.",
            ),
            (
                self.key == "" or is_public_key(self.key),
                "a public key of 64 hexadecimal digits, or none",
                f"key {self.key!r}",
                create,
            ),
            (
                len(self.login) <= 2 * _LONGEST_NAME,
                f"a login of at most {2 * _LONGEST_NAME} characters",
                f"{len(self.login)} characters",
                "correct the login.",
            ),
            (
                "approver" not in self.roles or self.key or self.login,
                "a key or a login for an approver",
                "none",
                create,
            ),
        ):
            if not holds:
                raise StudyError(
                    problem=f"The person {self.name!r} of a site needs {expected}; there is {got}", hint=hint
                )

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.roles)}, with {self.known_by}"

    @property
    def known_by(self) -> str:
        """The key and the login by which the person is known, in words."""
        known = (f"{what} {value}" for what, value in (("key", self.key), ("login", self.login)) if value)
        return " and ".join(known) or "no key"


@dataclass(frozen=True)
class People:
    """The people of a site, each of whom differs from all others in name, key and login.

    Attributes:
        console_key: The public key of the site's console, which signs for people with a login; empty without console.
    """

    people: tuple[Person, ...] = ()
    console_key: str = ""

    def __post_init__(self) -> None:
        if self.console_key != "" and not is_public_key(self.console_key):
            raise StudyError(
                problem=f"console_key must be 64 hexadecimal digits, not {self.console_key!r}"[:200],
                hint=f"correct {PEOPLE}.",
            )
        keys = [self.console_key, *(person.key for person in self.people)]
        for what, values in (
            ("name", [identity(person.name) for person in self.people]),
            ("key", [key for key in keys if key]),
            ("login", [person.login for person in self.people if person.login]),
        ):
            if len(set(values)) != len(values):
                raise StudyError(
                    problem=f"Two people in {PEOPLE} have the same {what}",
                    hint="two approvals must be those of two people: give each an own key. Blanks and case in a name "
                    "do not count.",
                )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the people of the site in a folder; without the file there are none.

        Raises:
            StudyError: If the file is not a list of people.
        """
        try:
            document = tomllib.loads((folder / PEOPLE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(folder / PEOPLE, type(error).__name__) from None
        if document.get("version") != VERSION:
            raise _unreadable(folder / PEOPLE, f"version {document.get('version')!r}"[:100])
        people = document.get("people", [])
        try:
            check_keys(PEOPLE, document, ("version",), ("people", "console_key"))
            if not isinstance(people, list):
                raise _unreadable(folder / PEOPLE, "people that are not a list")
            return cls(tuple(build("person", Person, each) for each in people), document.get("console_key", ""))
        except SchemaError as error:
            raise StudyError(problem=error.problem, hint=f"correct {PEOPLE}.") from None

    def write(self, folder: Path) -> None:
        """Write the people of the site in a folder: completely or not at all, readable by the site's user only."""
        console = {"console_key": self.console_key} if self.console_key else {}
        document = {"version": VERSION, **console, "people": [_plain(person) for person in self.people]}
        with redact_errors(OSError, instead=lambda error: _not_written(folder / PEOPLE, error)):
            replace_file(folder / PEOPLE, tomli_w.dumps(document))

    def named(self, name: str) -> Person | None:
        """Return the person of a name, in any spelling; None if there is none."""
        return next((person for person in self.people if identity(person.name) == identity(name)), None)

    def with_login(self, subject: str) -> Person | None:
        """Return the person whose login at the console has this subject; None if there is none."""
        return next((person for person in self.people if subject and person.login == subject), None)

    def with_key(self, public: str) -> Person | None:
        """Return the person with this public key; None if there is none."""
        return next((person for person in self.people if public and person.key == public), None)


def add_person(folder: Path, person: Person) -> None:
    """Add a person to the people of a site.

    Raises:
        StudyError: If somebody has this name, key or login already.
    """
    people = People.read(folder)
    replace(people, people=(*people.people, person)).write(folder)


def remove_person(folder: Path, name: str) -> Person:
    """Remove a person from the people of a site, and return who that was. The person's approvals count no more.

    Raises:
        StudyError: If the site has no such person.
    """
    people = People.read(folder)
    person = people.named(name)
    if person is None:
        raise StudyError(
            problem=f"This site has no person named {name!r}"[:250],
            hint="list them with: dpcausal site people list FOLDER.",
        )
    replace(people, people=tuple(each for each in people.people if each != person)).write(folder)
    return person


def set_console_key(folder: Path, public: str) -> None:
    """Record the public key of the site's console, which signs the decisions of people with a login."""
    replace(People.read(folder), console_key=public).write(folder)


def nobody(people: People) -> StudyError:
    """Return the error for a site at which this person may not decide."""
    known = ", ".join(person.name for person in people.people if "approver" in person.roles)
    return StudyError(
        expected="a decision by a person of this site with the role approver",
        got=f"another signer; approvers are: {known}" if known else "another signer; this site has no approvers yet",
        hint=f"sign with the key of one of them, which is not the site's; or add a person with: {_ADD}.",
    )


def _plain(person: Person) -> dict[str, object]:
    known = {name: value for name, value in (("key", person.key), ("login", person.login)) if value}
    return {"name": person.name, "roles": list(person.roles), **known}


def _unreadable(file: Path, got: str) -> StudyError:
    return StudyError(
        problem=f"The list of people, version {VERSION}, cannot be read: {file} ({got})",
        hint=f"correct the file, or move it away and add people again with: {_ADD}.",
    )


def _not_written(file: Path, error: Exception) -> StudyError:
    return StudyError(
        problem=f"{file} cannot be written ({getattr(error, 'strerror', None) or type(error).__name__})",
        hint="free disk space or check the owner of the folder, and try again. Nothing was changed.",
    )
