"""Checksums of a release, and their signature: `python -m checks.sign dist --key KEY`, or `--verify SIGNERS`.

`SHA256SUMS` lists every file of the folder. `SHA256SUMS.sig` is its signature by an SSH key, which may be in a hardware
token. It is made and checked by `ssh-keygen`, which most machines have. `--verify` takes the
file of allowed signers that the project publishes, and checks the signature, every checksum, and that no file is
unlisted.
"""

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
NAMESPACE = "dpcausal-release"
"""A signature that was made for another purpose is not valid here."""

SIGNER = "release@dpcausal"
"""The name of the key in the file of allowed signers."""


def checksums(folder: Path) -> str:
    """Return a line for each file of a release, as `sha256sum` writes and checks them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in {SUMS, SIGNATURE})
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def sign(folder: Path, key: Path) -> None:
    """Write the checksums of a folder and sign them."""
    text = checksums(folder)
    if not text:
        sys.exit(f"{folder} holds nothing to sign")
    (folder / SUMS).write_text(text, encoding="utf-8")
    (folder / SIGNATURE).unlink(missing_ok=True)
    _ssh_keygen("sign", "-f", str(key), "-n", NAMESPACE, str(folder / SUMS))


def verify(folder: Path, signers: Path) -> None:
    """End with an error unless the checksums are signed by an allowed signer and are those of the folder's files."""
    for name in (SUMS, SIGNATURE):
        if not (folder / name).is_file():
            sys.exit(f"{folder} has no {name}")
    signed = (folder / SUMS).read_bytes()
    words = ("-f", str(signers), "-I", SIGNER, "-n", NAMESPACE, "-s", str(folder / SIGNATURE))
    _ssh_keygen("verify", *words, given=signed)
    stated, found = set(signed.decode().splitlines()), set(checksums(folder).splitlines())
    if stated != found:
        names = sorted({line.partition("  ")[2] for line in stated ^ found})
        sys.exit(f"Not as they were signed: {', '.join(names)}")


def _ssh_keygen(action: str, *words: str, given: bytes = b"") -> None:
    done = subprocess.run(  # noqa: S603
        ["ssh-keygen", "-Y", action, *words],  # noqa: S607 (wherever it is installed)
        check=False,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        sys.exit(done.stdout.decode().strip() or f"ssh-keygen ended with {done.returncode}")


def main() -> None:
    """Sign or verify a folder."""
    parser = argparse.ArgumentParser(prog="python -m checks.sign", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder with sdist, wheel and bill of materials")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--key", type=Path, help="sign with this SSH key")
    what.add_argument("--verify", type=Path, metavar="SIGNERS", help="verify with this file of allowed signers")
    chosen = parser.parse_args()
    if chosen.key:
        sign(chosen.folder, chosen.key)
        print(f"Wrote {SUMS} and {SIGNATURE}.")
    else:
        verify(chosen.folder, chosen.verify)
        print("The signature is valid, and all files are as they were signed.")


if __name__ == "__main__":
    main()
