"""Tokens, and the certificates of a mailbox."""

import time
from pathlib import Path

import pytest

from dpcausal.errors import CertificateError, StudyError
from dpcausal.federation.transports.mailbox.authority import AUTHORITY, SERVER, fingerprint_of, last_day
from dpcausal.federation.transports.mailbox.invitations import Invitation
from dpcausal.federation.transports.mailbox.serve import _Gunicorn, serve
from dpcausal.federation.transports.mailbox.settings import Mailbox

ADDRESS = "https://mailbox.example:8443"


def invitation(authority: str, **changes: object) -> Invitation:
    parts = {"address": ADDRESS, "authority": authority, "site": "north", "expires": int(time.time()) + 60}
    return Invitation.new(**parts | changes)  # type: ignore[arg-type]


def test_token_holds_the_invitation(authority: str) -> None:
    invited = invitation(authority)
    assert Invitation.from_token(f" {invited.token}\n") == invited
    invited.check_valid("north")


def test_secrets_differ_and_the_pass_does_not_reveal_the_binding(authority: str) -> None:
    one, two = invitation(authority), invitation(authority)
    assert one.secret != two.secret
    assert one.secret not in (one.door_pass, one.bind("ab" * 32))
    assert one.binds("ab" * 32, one.bind("ab" * 32))
    assert not one.binds("cd" * 32, one.bind("ab" * 32))
    assert not one.binds("ab" * 32, two.bind("ab" * 32))


def test_cut_or_changed_token_is_refused(authority: str) -> None:
    token = invitation(authority).token
    plain = invitation(authority, address="http://mailbox.example").token
    for text in (token[:-20], token[5:], "", token.replace(".", ""), plain, token + "ä", "dpcausal-mailbox-1.e30"):
        with pytest.raises(StudyError, match="token"):
            Invitation.from_token(text)


def test_token_of_another_site_and_an_expired_one_are_refused(authority: str) -> None:
    with pytest.raises(StudyError, match="an invitation of south"):
        invitation(authority).check_valid("south")
    with pytest.raises(StudyError, match="expired"):
        invitation(authority, expires=int(time.time()) - 1).check_valid("north")
    with pytest.raises(StudyError, match="letters"):
        invitation(authority, site="../north")


def test_renewed_certificate_has_the_same_authority(tmp_path: Path) -> None:
    mailbox = Mailbox.create(tmp_path / "mailbox", ADDRESS, "sqlite:///mailbox.db", {}, 1)
    before, authority = (mailbox.folder / SERVER).read_text(), mailbox.authority
    ends = mailbox.renew(30)
    assert (mailbox.folder / SERVER).read_text() != before
    assert Mailbox.read(mailbox.folder).authority == authority
    assert abs(ends.timestamp() - time.time() - 30 * 86_400) < 600
    assert fingerprint_of(authority) != fingerprint_of((mailbox.folder / SERVER).read_text())
    assert all(file.stat().st_mode & 0o77 == 0 for file in mailbox.folder.glob("*.key"))
    assert last_day(mailbox.folder / AUTHORITY) > ends


def test_expired_certificate_is_not_served(tmp_path: Path) -> None:
    mailbox = Mailbox.create(tmp_path / "mailbox", ADDRESS, "sqlite:///mailbox.db", {}, 1)
    mailbox.renew(0)
    with pytest.raises(CertificateError, match="expired"):  # commands end with exit status 3
        serve(mailbox, "127.0.0.1:0", 1, 1)


def test_running_server_uses_a_renewed_certificate_and_keeps_the_last_one_that_is_whole(tmp_path: Path) -> None:
    mailbox = Mailbox.create(tmp_path / "mailbox", ADDRESS, "sqlite:///mailbox.db", {}, 1)
    server = _Gunicorn(mailbox, "127.0.0.1:0", 1, 1)
    first = server._context(None, None)
    assert server._context(None, None) is first
    mailbox.renew(30)
    second = server._context(None, None)
    assert second is not first
    (mailbox.folder / SERVER).write_text("half of a certificate")
    assert server._context(None, None) is second


def test_mailbox_is_created_once_and_read_whole(tmp_path: Path) -> None:
    mailbox = Mailbox.create(tmp_path / "mailbox", ADDRESS, "sqlite:///mailbox.db", {"anna": "ab" * 32}, 1)
    assert Mailbox.read(mailbox.folder) == mailbox
    assert (mailbox.host, mailbox.port) == ("mailbox.example", 8443)
    assert mailbox.database_address == f"sqlite:///{mailbox.folder / 'mailbox.db'}"
    with pytest.raises(StudyError, match="has a mailbox already"):
        Mailbox.create(mailbox.folder, ADDRESS, "sqlite:///mailbox.db", {}, 1)
    (mailbox.folder / "mailbox.toml").write_text('version = 1\naddress = "http://x"\n')
    with pytest.raises(StudyError, match=r"mailbox\.toml"):
        Mailbox.read(mailbox.folder)
    with pytest.raises(StudyError, match=r"mailbox\.toml"):
        Mailbox.read(tmp_path)
