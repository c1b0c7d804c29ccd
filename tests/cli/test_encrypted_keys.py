"""Commands with encrypted keys: the passphrase comes from a file or a terminal, and never from a default."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcausal.cli import app
from dpcausal.errors import TransportError
from dpcausal.federation.protocol.messages import Message
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.site.worker import run_in_subprocess

SECRET = "five random words of mine"  # noqa: S105


def run(*words: object, code: int = 0, typed: str = "") -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], input=typed)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run("site", "init", tmp_path / "north", "north")
    return tmp_path / "north"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(SECRET)
    return tmp_path / "secret"


def test_key_is_encrypted_and_keeps_its_public_part(
    folder: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = run("site", "key", folder)
    run("site", "encrypt-key", folder, typed=f"{SECRET}\n{SECRET}\n")
    assert "ENCRYPTED" in (folder / "site.key").read_text()
    assert (folder / "site.key").stat().st_mode & 0o777 == 0o600
    assert "no passphrase" in run("site", "key", folder, code=2)
    monkeypatch.setenv("DPCAUSAL_PASSPHRASE_FILE", str(secret))
    assert run("site", "key", folder) == public


def test_requester_key_is_encrypted(tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("federation", "init", tmp_path / "workspace", "anna")
    public = run("federation", "key", tmp_path / "workspace")
    run("federation", "encrypt-key", tmp_path / "workspace", "anna", "--key-file", secret)
    assert "no passphrase" in run("federation", "key", tmp_path / "workspace", code=2)
    monkeypatch.setenv("DPCAUSAL_PASSPHRASE_FILE", str(secret))
    assert run("federation", "key", tmp_path / "workspace") == public


def test_worker_of_a_site_takes_the_passphrase_from_the_environment(
    folder: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("site", "encrypt-key", folder, "--key-file", secret)
    with pytest.raises(TransportError, match="no passphrase"):
        run_in_subprocess(folder, "a request")
    monkeypatch.setenv("DPCAUSAL_PASSPHRASE_FILE", str(secret))
    assert Message.from_json(claimed_body(run_in_subprocess(folder, "a request"))).code == "unknown_requester"
