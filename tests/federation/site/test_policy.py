"""The policy file of a site, and the versions of its format."""

from pathlib import Path

import pytest

from dpcausal.errors import StudyError
from dpcausal.federation.site.policy import FILE, Policy
from dpcausal.federation.site.policy_template import new_site


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    new_site(tmp_path / "west", "west")
    return tmp_path / "west" / "policy.toml"


def change(file: Path, was: str, becomes: str) -> None:
    assert was in file.read_text()
    file.write_text(file.read_text().replace(was, becomes))


def test_template_is_a_policy(policy: Path) -> None:
    read = Policy.read(policy.parent)
    assert (read.site, read.approval_days) == ("west", 365)


@pytest.mark.parametrize(
    ("line", "got"), [("", "no version"), ("version = 1", "version = 1"), ("version = true", "True")]
)
def test_another_version_is_refused_with_what_changed(policy: Path, line: str, got: str) -> None:
    change(policy, "version = 2", line)
    with pytest.raises(StudyError, match=rf"policy.toml with version = 2, not .*{got}(.|\n)*askers is now requesters"):
        Policy.read(policy.parent)


@pytest.mark.parametrize(
    ("was", "becomes", "old"),
    [("[requesters]", "[askers]", "askers")],
)
def test_old_keys_are_refused_with_their_new_names(policy: Path, was: str, becomes: str, old: str) -> None:
    change(policy, was, becomes)
    with pytest.raises(StudyError, match=rf"not version = 2, {old}(.|\n)*askers is now requesters"):
        Policy.read(policy.parent)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "There is no site in"),
        (b'version = 2\nsite = "north\n', "not valid TOML"),
        (b"version = 2\nepsilon = 3,0\n", "numbers with a point"),
        ("# Gr\u00f6\u00dfe\nversion = 2\n".encode("latin-1"), "not in UTF-8"),
    ],
)
def test_policy_that_cannot_be_read_says_why(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StudyError) as raised:
        Policy.read(tmp_path)
    assert words in str(raised.value)
    assert ("dpcausal site init" in str(raised.value)) == (content is None)


def test_policy_with_a_byte_order_mark_says_so(tmp_path: Path) -> None:
    new_site(tmp_path, "north")
    file = tmp_path / FILE
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    with pytest.raises(StudyError, match="begins with a byte order mark"):
        Policy.read(tmp_path)
