"""A release that was changed after it was signed does not verify."""

import shutil
import subprocess
from pathlib import Path

import pytest

from checks.sign import SIGNATURE, SIGNER, SUMS, sign, verify

KEYGEN = shutil.which("ssh-keygen")
pytestmark = pytest.mark.skipif(KEYGEN is None, reason="no ssh-keygen")


def make_key(place: Path) -> Path:
    subprocess.run([str(KEYGEN), "-q", "-t", "ed25519", "-N", "", "-f", str(place)], check=True)  # noqa: S603
    return place


@pytest.fixture
def release(tmp_path: Path) -> tuple[Path, Path]:
    """A signed folder of two files, and the file of allowed signers."""
    folder, key = tmp_path / "dist", make_key(tmp_path / "key")
    folder.mkdir()
    (folder / "a.whl").write_bytes(b"wheel")
    (folder / "a.tar.gz").write_bytes(b"sdist")
    sign(folder, key)
    signers = tmp_path / "signers"
    signers.write_text(f"{SIGNER} {key.with_suffix('.pub').read_text(encoding='utf-8')}", encoding="utf-8")
    return folder, signers


def test_signed_release_verifies(release: tuple[Path, Path]) -> None:
    verify(*release)
    assert [line.split()[1] for line in (release[0] / SUMS).read_text(encoding="utf-8").splitlines()] == [
        "a.tar.gz",
        "a.whl",
    ]


@pytest.mark.parametrize("change", ["changed", "added", "removed"])
def test_files_that_are_not_as_signed_are_named(release: tuple[Path, Path], change: str) -> None:
    folder, signers = release
    name = {"changed": "a.whl", "added": "b.whl", "removed": "a.whl"}[change]
    if change == "removed":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(b"other")
    with pytest.raises(SystemExit, match=rf"Not as they were signed: {name}"):
        verify(folder, signers)


def test_checksums_that_were_written_afresh_need_the_key(release: tuple[Path, Path]) -> None:
    folder, signers = release
    (folder / SUMS).write_text((folder / SUMS).read_text(encoding="utf-8").replace("a.whl", "b.whl"), encoding="utf-8")
    with pytest.raises(SystemExit):
        verify(folder, signers)


def test_signature_of_another_key_is_refused(release: tuple[Path, Path], tmp_path: Path) -> None:
    folder, signers = release
    sign(folder, make_key(tmp_path / "other"))
    with pytest.raises(SystemExit):
        verify(folder, signers)


def test_missing_signature_is_refused(release: tuple[Path, Path]) -> None:
    (release[0] / SIGNATURE).unlink()
    with pytest.raises(SystemExit, match=SIGNATURE):
        verify(*release)
