"""A coordinator's workspace: the folder with its key, its roster, and its store of requests and messages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from dpcausal.errors import StudyError, redact_errors
from dpcausal.federation.coordinator.roster import Member, Roster
from dpcausal.federation.protocol.rotation import Rotation, claimed_rotation, verified_rotation
from dpcausal.federation.protocol.signatures import Key
from dpcausal.utils.durable_files import replace_file
from dpcausal.utils.validation import is_name

_ROSTER = """\
# The sites that {name} asks. Add one with: dpcausal federation admit FOLDER SITE KEY --units N, or by hand:
#
# [sites.north]
# key = "..."       # the site's public key, received over a trusted channel
# units = 1200      # its number of units, where that was agreed on: an answer with another number is invalid
# revoked = true    # excludes the site: it is not asked, and nothing that it signed counts
"""


@dataclass(frozen=True)
class Workspace:
    """The folder of a coordinator."""

    folder: Path

    @classmethod
    def new(cls, folder: Path, name: str) -> Self:
        """Create a workspace with a key and an empty roster."""
        check_name(name)
        workspace = cls(folder)
        if workspace.roster_file.exists() or workspace.key_file(name).exists():
            raise StudyError(
                problem=f"{folder} holds a workspace already",
                hint="choose another folder, or use the workspace there; a further requester is added with: "
                "dpcausal federation add-requester FOLDER NAME.",
            )
        with redact_errors(OSError, instead=lambda error: _unusable(folder, error)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            workspace.roster_file.write_text(_ROSTER.format(name=name), encoding="utf-8")
            Key.make(name, workspace.key_file(name))
        return workspace

    @property
    def store(self) -> Path:
        """The store of requests and messages."""
        return self.folder / "requests.db"

    @property
    def network(self) -> Path:
        """The folder of the NVFlare network: its authority, and the kits of server and requester."""
        return self.folder / "nvflare"

    @property
    def roster(self) -> Roster:
        """The sites to ask."""
        return Roster.from_toml(self.roster_file)

    def key(self, name: str) -> Key:
        """Return the key of a requester."""
        if not is_name(name) or not self.key_file(name).is_file():
            made = sorted(file.stem for file in self.folder.glob("*.key"))
            if not made:
                raise StudyError(
                    problem=f"{self.folder} is not a workspace: it has no key of a requester",
                    hint="correct the folder, or create a workspace with: dpcausal federation init FOLDER NAME.",
                )
            raise StudyError(
                problem=f"{self.folder} has no key of {name!r}, the study's requester; it has keys of "
                f"{', '.join(made)}",
                hint="name another requester in the study, or create one with: dpcausal federation add-requester "
                "FOLDER NAME.",
            )
        return Key.read(name, self.key_file(name))

    def kit(self, name: str) -> Path:
        """Return the kit of a requester: its own if it was added to the network, otherwise the network's first."""
        own = self.network / "requesters" / name
        return own if own.is_dir() else self.network / "requester"

    def add_requester(self, name: str) -> Key:
        """Create the key of another requester."""
        check_name(name)
        if not self.roster_file.exists() or self.key_file(name).exists():
            raise StudyError(
                problem=f"{self.folder} has a requester {name!r} already"
                if self.key_file(name).exists()
                else f"There is no workspace in {self.folder}",
                hint="choose another name, or create a workspace with: dpcausal federation init FOLDER NAME.",
            )
        with redact_errors(OSError, instead=lambda error: _unusable(self.folder, error)):
            return Key.make(name, self.key_file(name))

    def admit(self, site: str, key: str, units: int | None = None) -> None:
        """Add a site to the roster, unless it is there already. Comments and other entries stay as they are."""
        self.admit_all({site: Member(key, units)})

    def admit_all(self, members: Mapping[str, Member]) -> None:
        """Add sites to the roster as `admit` does, all of them or none."""
        roster = self.roster
        new = {site: member for site, member in members.items() if roster.sites.get(site) != member}
        for site in new:
            if site in roster.sites:
                raise StudyError(
                    problem=f"{self.roster_file} has another key or number of units for {site}",
                    hint="edit the file by hand.",
                )
        if not new:
            return
        entry = Roster(new)
        Roster({**roster.sites, **entry.sites})
        text = f"{self.roster_file.read_text(encoding='utf-8').rstrip()}\n\n{entry.to_toml()}"
        with redact_errors(OSError, instead=lambda error: _unusable(self.folder, error)):
            replace_file(self.roster_file, text)

    def accept_key(self, sealed: str) -> Rotation | None:
        """Record the new key of a site, and return its rotation; None where that was recorded before.

        Raises:
            TransportError: If its signatures are not those of the key in the roster and of the new one.
            StudyError: If the roster has no such site, or the new key is known already.
        """
        roster, claimed = self.roster, claimed_rotation(sealed)
        member = roster.sites.get(claimed.site)
        if member is None or member.revoked:
            raise StudyError(
                problem=f"{self.roster_file} has no site {claimed.site}, or it is revoked",
                hint="add it with: dpcausal federation admit FOLDER SITE KEY, with the key that it gave you in person.",
            )
        if claimed.old in member.former and claimed.new in (member.key, *member.former):
            return None
        rotation = verified_rotation(sealed, claimed.site, member.key)
        former = {**member.former, member.key: datetime.now(UTC).isoformat(timespec="seconds")}
        wanted = Roster({**roster.sites, claimed.site: replace(member, key=rotation.new, former=former)})
        with redact_errors(OSError, instead=lambda error: _unusable(self.folder, error)):
            replace_file(self.roster_file, self._with_key(rotation, former, wanted))
        return rotation

    def _with_key(self, rotation: Rotation, former: Mapping[str, str], wanted: Roster) -> str:
        """Return the text of the roster with the new key of a site; comments stay if the key is found in it."""
        listed = ", ".join(f'"{key}" = "{until}"' for key, until in former.items())
        text = re.sub(rf'\nformer = {{[^\n]*"{next(iter(former))}"[^\n]*', "", self.roster_file.read_text("utf-8"))
        changed = text.replace(f'key = "{rotation.old}"', f'key = "{rotation.new}"\nformer = {{ {listed} }}', 1)
        try:
            return changed if Roster.from_toml(changed) == wanted else wanted.to_toml()
        except StudyError:
            return wanted.to_toml()

    @property
    def roster_file(self) -> Path:
        """The file of the roster."""
        return self.folder / "roster.toml"

    def key_file(self, name: str) -> Path:
        """Return the file of a requester's key."""
        return self.folder / f"{name}.key"


def check_name(name: str) -> None:
    """Raise unless this can be the name of a requester or a federation."""
    if not is_name(name):
        raise StudyError(expected="a name of letters, digits, - and _", got=repr(name), hint="for instance anna.")


def _unusable(folder: Path, error: Exception) -> StudyError:
    return StudyError(problem=f"{folder} cannot be written ({type(error).__name__})", hint="choose another folder.")
