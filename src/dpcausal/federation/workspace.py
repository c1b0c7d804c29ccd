"""A coordinator's folder: its key, its roster, and what it asked and believed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dpcausal.errors import StudyError, redact_errors
from dpcausal.federation.roster import Member, Roster
from dpcausal.federation.signatures import Key, is_name

_ROSTER = """\
# The sites that {name} asks. Enter one with: dpcausal federation admit FOLDER SITE KEY, or write by hand:
#
# [sites.north]
# key = "..."       # the site's public key, received by a way that can be trusted
# units = 1200      # its number of units, where that was agreed on: an answer with another number is not believed
# revoked = true    # once it is out: it is not asked, and what it signed counts no more
"""


@dataclass(frozen=True)
class Workspace:
    """The folder that a coordinator works in.

    Attributes:
        folder: Where it is.
    """

    folder: Path

    @classmethod
    def new(cls, folder: Path, name: str) -> Self:
        """Make a coordinator's folder, with a key and an empty roster."""
        if not is_name(name):
            raise StudyError(expected="a name of letters, digits, - and _", got=repr(name), hint="for instance anna.")
        workspace = cls(folder)
        if workspace._roster.exists() or workspace._key(name).exists():
            raise StudyError(
                expected="a folder that holds no coordinator yet",
                got=str(folder),
                hint="choose another, or use the one there.",
            )
        with redact_errors(OSError, instead=lambda error: _unusable(folder, error)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            workspace._roster.write_text(_ROSTER.format(name=name), encoding="utf-8")
            Key.make(name, workspace._key(name))
        return workspace

    @property
    def store(self) -> Path:
        """Where requests and answers are kept."""
        return self.folder / "requests.db"

    @property
    def network(self) -> Path:
        """Where the authority and the kits of the transport of NVFlare are, if there is one."""
        return self.folder / "nvflare"

    @property
    def roster(self) -> Roster:
        """Who is asked."""
        return Roster.from_toml(self._roster)

    def key(self, name: str) -> Key:
        """What somebody signs requests with here."""
        if not is_name(name) or not self._key(name).is_file():
            made = sorted(file.stem for file in self.folder.glob("*.key"))
            raise StudyError(
                expected=f"the key of {name!r}, the study's requester, in {self.folder}",
                got=f"those of {', '.join(made) or 'nobody'}",
                hint="name another requester in the study, or make the folder with: dpcausal federation init FOLDER NAME.",
            )
        return Key.read(name, self._key(name))

    def admit(self, site: str, key: str, units: int | None = None) -> None:
        """Enter a site into the roster, unless it is there already; what a person wrote there stays as it is."""
        roster = self.roster
        if roster.sites.get(site) == Member(key, units):
            return
        if site in roster.sites:
            raise StudyError(
                expected=f"what {self._roster} says of {site}, or a new site",
                got="something else",
                hint="change the file by hand.",
            )
        entry = Roster({site: Member(key, units)})
        Roster({**roster.sites, **entry.sites})
        text = f"{self._roster.read_text(encoding='utf-8').rstrip()}\n\n{entry.to_toml()}"
        half = self._roster.with_suffix(".half")
        with redact_errors(OSError, instead=lambda error: _unusable(self.folder, error)):
            half.write_text(text, encoding="utf-8")
            half.replace(self._roster)

    @property
    def _roster(self) -> Path:
        return self.folder / "roster.toml"

    def _key(self, name: str) -> Path:
        return self.folder / f"{name}.key"


def _unusable(folder: Path, error: Exception) -> StudyError:
    return StudyError(
        expected="a folder that can be written", got=f"{folder} ({type(error).__name__})", hint="choose another."
    )
