"""The studies that a site has been sent, by their digests."""

from pathlib import Path

from dpcausal.errors import StudyError
from dpcausal.federation.protocol import digest_of_text
from dpcausal.site.responses import written

_MOST = 1_000
_LONGEST = 200_000


class Inbox:
    """Study files in one folder, each named by its digest, so that a file cannot be changed after it was read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, text: str, *, by_hand: bool = False) -> str:
        """Keep a study until a person looks at it, and return its digest.

        A full inbox takes only what is brought by hand: what strangers send must not crowd that out.
        """
        digest = digest_of_text(text)
        if by_hand or (len(text) <= _LONGEST and len(self.digests()) < _MOST):
            written(self._folder, f"{digest}.toml", text)
        return digest

    def digests(self) -> list[str]:
        """The studies kept, oldest first."""
        files = sorted(self._folder.glob("*.toml"), key=lambda file: file.stat().st_mtime)
        return [file.stem for file in files]

    def text(self, beginning: str) -> str:
        """The study whose digest begins so.

        Raises:
            StudyError: If there is none, or more than one.
        """
        found = [digest for digest in self.digests() if beginning and digest.startswith(beginning)]
        if len(found) != 1:
            raise StudyError(
                expected="the digest of one study that this site has, or its first digits",
                got=f"{beginning!r}, which {len(found)} of {len(self.digests())} studies begin with",
                hint="list them with: dpcausal site review FOLDER.",
            )
        text = (self._folder / f"{found[0]}.toml").read_bytes().decode()
        if digest_of_text(text) != found[0]:
            raise StudyError(
                expected="a study file as it was received",
                got=f"{found[0]}.toml, which was changed",
                hint="remove the file; the coordinator sends it again with its next request.",
            )
        return text
