import json
import stat
from pathlib import Path

import pytest

from dpcausal.errors import TransportError
from dpcausal.federation.protocol.signatures import Key, claimed_body, opened
from dpcausal.utils.validation import is_public_key


@pytest.fixture
def north(tmp_path: Path) -> Key:
    return Key.make("north", tmp_path / "north.key")


def test_signed_text_is_verified(north: Key, tmp_path: Path) -> None:
    again = Key.read("north", tmp_path / "north.key")
    assert again.public == north.public
    sealed = north.seal("something")
    assert sealed == again.seal("something")
    assert opened(sealed, {"north": north.public}) == ("north", "something")
    assert claimed_body(sealed) == "something"


def test_private_key_is_never_printed(north: Key, tmp_path: Path) -> None:
    file = tmp_path / "north.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().strip() not in repr(north) + str(north) + north.seal("x")
    assert is_public_key(north.public)
    with pytest.raises(FileExistsError):
        Key.make("north", file)


def test_file_without_a_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("secret text")
    for file in (tmp_path / "other", tmp_path / "absent"):
        with pytest.raises(TransportError, match="a key file") as refused:
            Key.read("north", file)
        assert refused.value.__context__ is None
        assert "secret" not in str(refused.value)


def test_changed_text_is_refused(north: Key, tmp_path: Path) -> None:
    keys = {"north": north.public, "south": Key.make("south", tmp_path / "south.key").public}
    sealed = json.loads(north.seal("something"))
    for change in (
        {"body": "something else"},
        {"signer": "south"},
        {"signer": "west"},
        {"signature": "00" * 64},
        {"signature": "zz"},
        {"signature": 3},
        {"body": None},
        {"more": 1},
    ):
        with pytest.raises(TransportError):
            opened(json.dumps(sealed | change), keys)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "{" * 10, "x" * 20_000_001])
def test_unsigned_text_is_refused(north: Key, text: str) -> None:
    with pytest.raises(TransportError, match="a signed text"):
        opened(text, {"north": north.public})
    assert not claimed_body(text)


@pytest.fixture
def passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "passphrase"
    file.write_text("five random words of mine\n")
    monkeypatch.setenv("DPCAUSAL_PASSPHRASE_FILE", str(file))
    return file


def test_key_is_encrypted_where_a_passphrase_is_given(passphrase: Path, tmp_path: Path) -> None:
    key = Key.make("north", tmp_path / "north.key")
    text = (tmp_path / "north.key").read_text()
    assert text.startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert key.private.private_bytes_raw().hex() not in text
    assert stat.S_IMODE((tmp_path / "north.key").stat().st_mode) == 0o600
    assert Key.read("north", tmp_path / "north.key").public == key.public
    assert passphrase.exists()


def test_key_without_encryption_is_read_with_a_passphrase_too(north: Key, tmp_path: Path, passphrase: Path) -> None:
    assert Key.read("north", tmp_path / "north.key").public == north.public
    assert passphrase.exists()


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("another passphrase", "a wrong passphrase"),
        ("short", "a passphrase of at least 12"),
        (None, "a file with a passphrase"),
        ("", "a passphrase of at least 12"),
    ],
)
def test_wrong_passphrase_is_named(passphrase: Path, tmp_path: Path, written: str | None, why: str) -> None:
    Key.make("north", tmp_path / "north.key")
    passphrase.unlink()
    if written is not None:
        passphrase.write_text(written)
    with pytest.raises(TransportError, match=why) as refused:
        Key.read("north", tmp_path / "north.key")
    assert refused.value.__context__ is None


@pytest.mark.usefixtures("passphrase")
def test_missing_passphrase_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Key.make("north", tmp_path / "north.key")
    monkeypatch.delenv("DPCAUSAL_PASSPHRASE_FILE")
    with pytest.raises(TransportError, match="DPCAUSAL_PASSPHRASE_FILE"):
        Key.read("north", tmp_path / "north.key")
