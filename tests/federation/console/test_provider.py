"""Logins at an OpenID Connect provider that answers as this test says. `checks/console.py` has a real one."""

import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from dpcausal.errors import StudyError
from dpcausal.federation.console.application import site_console
from dpcausal.federation.console.settings import Provider, Settings
from dpcausal.federation.site.site import Site
from tests.federation.console.conftest import ADDRESS, Browser

ISSUER = "https://login.north.example"
PROVIDER = Provider(issuer=ISSUER, client_id="console", client_secret="hidden")  # noqa: S106 (of this test only)
KEY, OTHER_KEY = (RSAKey.generate_key(2048, auto_kid=True) for _ in range(2))


class FakeResponse:
    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def raise_for_status(self) -> None:
        pass

    def json(self) -> dict[str, Any]:
        return self._content


@dataclass
class FakeProvider:
    """Signs a token with the claims and the key that a test chooses."""

    claims: dict[str, Any] = field(default_factory=dict)
    key: Any = field(default_factory=lambda: KEY)
    algorithm: str = "RS256"
    asked: dict[str, str] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    reachable: bool = True
    told: dict[str, Any] | None = None
    """What the provider tells of a person when asked; None where it has no such endpoint."""

    def request(self, url: str) -> FakeResponse:
        if not self.reachable:
            raise ConnectionError(url)
        if url.endswith("/jwks"):
            return FakeResponse({"keys": [KEY.as_dict(private=False)]})
        if url.endswith("/userinfo"):
            return FakeResponse(self.told or {})
        return FakeResponse(
            ({} if self.told is None else {"userinfo_endpoint": f"{ISSUER}/userinfo"})
            | {
                "issuer": ISSUER,
                "authorization_endpoint": f"{ISSUER}/authorize",
                "token_endpoint": f"{ISSUER}/token",
                "jwks_uri": f"{ISSUER}/jwks",
                "id_token_signing_alg_values_supported": ["none", "HS256", "RS256"],
            }
        )

    def fetch_token(self, **sent: object) -> dict[str, str]:
        self.sent = sent
        claims = {"iss": ISSUER, "sub": "adams", "aud": "console", "nonce": self.asked["nonce"]}
        now = int(time.time())
        claims |= {"iat": now, "exp": now + 60, "auth_time": now} | self.claims
        if self.algorithm == "none":
            text = jwt.encode({"alg": "none"}, claims, None, algorithms=["none"])  # type: ignore[arg-type]
        else:
            header = {"alg": self.algorithm, "kid": KEY.kid}
            text = jwt.encode(header, claims, self.key, algorithms=[self.algorithm])
        return {"access_token": "token", "token_type": "Bearer", "id_token": text}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    fake = FakeProvider()
    monkeypatch.setattr(OAuth2Session, "request", lambda _, __, url, **___: fake.request(url))
    monkeypatch.setattr(OAuth2Session, "fetch_token", lambda _, *__, **sent: fake.fetch_token(**sent))
    return fake


@pytest.fixture
def browser(folder: Path) -> Browser:
    return Browser(site_console(folder, Settings(address=ADDRESS, provider=PROVIDER)).test_client())


def go(browser: Browser, provider: FakeProvider, path: str = "/login/provider", at: str = "/login", **form: str) -> Any:
    """Go to the provider, and come back with a code."""
    answer = browser.post(path, form, at=at)
    assert answer.status_code == 302
    address = urlsplit(answer.headers["Location"])
    assert f"{address.scheme}://{address.netloc}" == ISSUER
    provider.asked = {name: values[0] for name, values in parse_qs(address.query).items()}
    return browser.get(f"/login/callback?code=abc&state={provider.asked['state']}")


def test_a_login_uses_state_nonce_and_pkce(browser: Browser, provider: FakeProvider, digest: str) -> None:
    answer = go(browser, provider, next=f"/studies/{digest}")
    assert answer.headers["Location"] == f"/studies/{digest}"
    assert provider.asked["response_type"] == "code"
    assert provider.asked["scope"] == "openid"
    assert provider.asked["code_challenge_method"] == "S256"
    assert len(provider.asked["nonce"]) >= 16
    assert provider.asked["redirect_uri"] == f"{ADDRESS}/login/callback"
    assert provider.sent["code_verifier"]
    assert "Dr. Adams" in browser.get("/").text
    policy = browser.get("/").headers["Content-Security-Policy"]
    assert f"form-action 'self' {ISSUER};" in policy


@pytest.mark.parametrize(
    "change",
    [
        {"claims": {"iss": "https://evil.example"}},
        {"claims": {"aud": "another client"}},
        {"claims": {"aud": "another client", "azp": "console"}},
        {"claims": {"nonce": "of another login"}},
        {"claims": {"exp": 1_000_000}},
        {"claims": {"sub": ""}},
        {"key": OTHER_KEY},
        {"algorithm": "none"},
        {"algorithm": "HS256", "key": OctKey.import_key("hidden-hidden-hidden-hidden-hidden")},
    ],
    ids=["issuer", "audience", "authorized party", "nonce", "expired", "no subject", "other key", "unsigned", "secret"],
)
def test_a_false_token_is_refused(browser: Browser, provider: FakeProvider, change: dict[str, Any]) -> None:
    for name, value in change.items():
        setattr(provider, name, value)
    assert go(browser, provider).status_code == 502
    assert browser.get("/").status_code == 302


def test_an_answer_to_another_browser_is_refused(browser: Browser, folder: Path, provider: FakeProvider) -> None:
    go(browser, provider)  # an attacker logs in, and plants the answer in the browser of another person
    victim = Browser(site_console(folder, Settings(address=ADDRESS, provider=PROVIDER)).test_client())
    victim.token()
    assert victim.get(f"/login/callback?code=abc&state={provider.asked['state']}").status_code == 502
    assert victim.get("/login/callback?code=abc").status_code == 502
    assert victim.get("/").status_code == 302


def test_a_state_counts_once(browser: Browser, provider: FakeProvider) -> None:
    go(browser, provider)
    assert browser.get(f"/login/callback?code=abc&state={provider.asked['state']}").status_code == 502


def test_a_stranger_with_a_true_token_has_no_role(browser: Browser, provider: FakeProvider) -> None:
    provider.claims = {"sub": "somebody"}
    go(browser, provider)
    assert browser.get("/").status_code == 403
    assert browser.get("/").status_code == 302


def test_passwords_do_not_count_beside_a_provider(browser: Browser) -> None:
    browser.login("adams")
    assert browser.get("/").headers["Location"].startswith("/login")


def test_a_decision_needs_a_new_login_of_the_same_person(
    folder: Path, browser: Browser, provider: FakeProvider, digest: str
) -> None:
    go(browser, provider)
    page = f"/studies/{digest}"
    assert browser.decide(digest).status_code == 403
    provider.claims = {"auth_time": int(time.time()) - 3600}  # the provider did not ask again
    assert go(browser, provider, f"/confirm/{digest}", page).status_code == 403
    provider.claims = {"auth_time": None}
    assert go(browser, provider, f"/confirm/{digest}", page).status_code == 403
    provider.claims = {"sub": "brown"}
    assert go(browser, provider, f"/confirm/{digest}", page).status_code == 403
    assert browser.decide(digest).status_code == 403
    provider.claims = {}
    assert go(browser, provider, f"/confirm/{digest}", page).headers["Location"] == f"{page}#decide"
    assert provider.asked["prompt"] == "login"
    assert browser.decide(digest).status_code == 302
    assert [entry.who for entry in Site(folder).audit_log.decisions(digest)] == ["Dr. Adams"]


def test_a_provider_that_is_away_is_told_plainly(folder: Path, browser: Browser, provider: FakeProvider) -> None:
    provider.reachable = False
    answer = browser.post("/login/provider", at="/login")
    assert answer.status_code == 502
    assert "provider did not answer" in answer.text
    assert re.search(r"provider: ConnectionError", (folder / "console_log.jsonl").read_text())


def test_words_of_the_provider_are_not_shown(browser: Browser, provider: FakeProvider) -> None:
    answer = browser.get("/login/callback?error=access_denied&error_description=<script>alert(1)</script>")
    assert answer.status_code == 502
    assert "alert" not in answer.text


ROLES = {"approver": {"groups": "dpcausal-approvers"}, "reader": {"groups": "staff", "site": "north"}}
STAFF = {"groups": ["staff", "dpcausal-approvers"], "site": "north"}


@pytest.fixture
def ruled(folder: Path) -> Browser:
    """A browser at a console whose roles need claims."""
    provider = replace(PROVIDER, scope="openid groups", roles=ROLES)  # type: ignore[arg-type]
    return Browser(site_console(folder, Settings(address=ADDRESS, provider=provider)).test_client())


def test_a_decision_needs_the_role_in_the_list_and_the_claims_of_its_own_login(
    ruled: Browser, provider: FakeProvider, digest: str, folder: Path
) -> None:
    page = f"/studies/{digest}"
    provider.claims = dict(STAFF)
    go(ruled, provider)
    assert provider.asked["scope"] == "openid groups"
    provider.claims = {"groups": ["dpcausal-approvers-of-another"]}  # left the group since the login
    go(ruled, provider, f"/confirm/{digest}", "/people")
    assert ruled.get(page).status_code == 403
    assert Site(folder).audit_log.decisions(digest) == ()
    provider.claims = dict(STAFF)
    go(ruled, provider)
    go(ruled, provider, f"/confirm/{digest}", page)
    assert ruled.decide(digest).status_code == 302
    (entry,) = Site(folder).audit_log.decisions(digest)
    assert (entry.who, entry.login) == ("Dr. Adams", f"adams at {ISSUER}, groups: dpcausal-approvers")
    assert f"login adams at {ISSUER}, groups: dpcausal-approvers" in ruled.get("/log").text
    assert "<code>groups</code> is or lists <code>dpcausal-approvers</code>" in ruled.get("/people").text


@pytest.mark.parametrize(
    ("claims", "told", "roles"),
    [
        ({"sub": "adams"}, None, None),  # on the list, and in no group
        ({"sub": "adams", "groups": "dpcausal-approvers"}, None, "approver"),
        ({"sub": "adams", "groups": "dpcausal-approvers-too"}, None, None),
        ({"sub": "adams", "groups": {"dpcausal-approvers": 1}}, None, None),
        ({"sub": "adams"}, {"sub": "adams", "groups": ["dpcausal-approvers"]}, "approver"),
        ({"sub": "adams", "groups": []}, {"sub": "adams", "groups": ["dpcausal-approvers"]}, None),  # the token counts
        ({"sub": "rita", "groups": ["staff"]}, None, None),  # one claim of two
        ({"sub": "otto"}, None, "operator"),  # a role without a rule
        ({"sub": "unlisted"} | STAFF, None, "reader"),  # never approver
        ({"sub": "a\nb"} | STAFF, None, None),
    ],
)
def test_roles_by_claims(
    ruled: Browser, provider: FakeProvider, claims: dict[str, Any], told: dict[str, Any] | None, roles: str | None
) -> None:
    provider.claims, provider.told = claims, told
    go(ruled, provider)
    page = ruled.get("/people")
    assert page.status_code == (200 if roles else 403)
    if roles:
        assert f'<span class="roles">{roles}</span>' in page.text


def test_claims_told_of_another_person_are_refused(ruled: Browser, provider: FakeProvider) -> None:
    provider.told = {"sub": "brown"} | STAFF
    assert go(ruled, provider).status_code == 502


@pytest.mark.parametrize(
    "change",
    [
        "scope = 'groups'",
        "[provider.roles]\nowner = { groups = 'a' }",
        "[provider.roles]\nreader = { groups = ['a'] }",
        "[provider.roles]\nreader = {}",
        "roles = 'all'",
    ],
)
def test_rules_are_checked(folder: Path, change: str) -> None:
    file = folder / "console.toml"
    secret = "client_secret = 's'"  # noqa: S105 (of this test only)
    file.write_text(
        f"version = 1\naddress = '{ADDRESS}'\n[provider]\nissuer = '{ISSUER}'\nclient_id = 'c'\n{secret}\n{change}\n"
    )
    file.chmod(0o600)
    with pytest.raises(StudyError, match=r"scope must|provider\.roles"):
        Settings.read(folder, ADDRESS)
