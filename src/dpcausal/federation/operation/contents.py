"""What a backup of a site or a workspace holds: the files that last. What grows with each study is not listed here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dpcausal.federation.operation.archive import network_files

MAILBOX = "mailbox"
"""The folder of a mailbox: of its server in a workspace, of the connection to it at a site."""
CONNECTION = "connection.toml"
"""The file in it with the address of the server that a site joined."""


@dataclass(frozen=True)
class Contents:
    """The lasting files of a folder, relative to it.

    Attributes:
        settings: Settings; a backup without keys holds them without their secrets.
        secret: Private keys, kits of networks, open invitations and hashes of passwords.
    """

    settings: tuple[str, ...]
    public: tuple[str, ...]
    secret: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path, networks: Sequence[str]) -> Self:
        """Return the lasting files of a folder, where `networks` are its folders with kits of NVFlare."""
        certificates = tuple(_found(folder, f"{MAILBOX}/*.pem"))
        private = tuple(name for name in certificates if b"PRIVATE KEY" in (folder / name).read_bytes())
        return cls(
            settings=tuple(_found(folder, "*.toml", f"{MAILBOX}/*.toml")),
            public=(
                *_found(folder, "console_log.jsonl", "*.rotation.json"),
                *(name for name in certificates if name not in private),
            ),
            secret=(
                *private,  # some servers want key and certificate in one file
                *_found(folder, "*.key", "console_accounts.json", f"{MAILBOX}/*.key", f"{MAILBOX}/invitations/*.json"),
                *(name for root in networks for name in network_files(folder, root)),
            ),
        )

    def lasting(self, *, with_keys: bool) -> tuple[str, ...]:
        """Return the files that a backup holds, with or without keys."""
        return (*self.settings, *self.public, *(self.secret if with_keys else ()))


def _found(folder: Path, *patterns: str) -> Iterator[str]:
    for pattern in patterns:
        for file in sorted(folder.glob(pattern)):
            if file.is_file() and not file.is_symlink():
                yield file.relative_to(folder).as_posix()
