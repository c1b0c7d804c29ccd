"""Logins at a provider that listens on this machine: discovery, keys, tokens and userinfo over real connections."""

import base64
import hashlib
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import Flask, redirect, request
from joserfc import jwt
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

from dpcausal.federation.console.application import site_console
from dpcausal.federation.console.settings import FILE, Settings
from dpcausal.federation.site.site import Site
from tests.federation.console.test_provider import KEY
from tests.support.ports import reserved_port
from tests.support.site_folders import confirm_settings


@contextmanager
def served(app: Flask, port: int) -> Iterator[None]:
    server = make_server("127.0.0.1", port, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@dataclass
class RealProvider:
    """Lets whoever asks log in as one person; tells groups only at its endpoint for them."""

    issuer: str
    person: dict[str, Any]
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def app(self) -> Flask:
        app = Flask(__name__)
        app.add_url_rule("/.well-known/openid-configuration", view_func=self.configuration)
        app.add_url_rule("/jwks", view_func=lambda: {"keys": [KEY.as_dict(private=False)]})
        app.add_url_rule("/authorize", view_func=self.authorize)
        app.add_url_rule("/token", view_func=self.token, methods=["POST"])
        app.add_url_rule("/userinfo", view_func=self.userinfo)
        return app

    def configuration(self) -> dict[str, object]:
        addresses = {
            f"{name}_endpoint": f"{self.issuer}/{path}"
            for name, path in (("authorization", "authorize"), ("token", "token"), ("userinfo", "userinfo"))
        }
        algorithms = {"id_token_signing_alg_values_supported": ["RS256"]}
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks", **addresses, **algorithms}

    def authorize(self) -> Response:
        code = secrets.token_urlsafe()
        self.codes[code] = dict(request.args)
        return redirect(f"{request.args['redirect_uri']}?code={code}&state={request.args['state']}")

    def token(self) -> dict[str, str] | tuple[str, int]:
        asked, client = self.codes.pop(request.form["code"]), request.authorization
        digest = hashlib.sha256(request.form["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if proof != asked["code_challenge"] or client is None or client.password != "the client's secret":  # noqa: S105
            return "", 400
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": "console", "sub": self.person["sub"], "nonce": asked["nonce"]}
        claims |= {"iat": now, "exp": now + 60, "auth_time": now}
        text = jwt.encode({"alg": "RS256", "kid": KEY.kid}, claims, KEY)
        return {"access_token": "access", "token_type": "Bearer", "id_token": text}

    def userinfo(self) -> dict[str, Any] | tuple[str, int]:
        return self.person if request.headers.get("Authorization") == "Bearer access" else ("", 401)


class User(requests.Session):
    """A browser that follows redirects."""

    def __init__(self, console: str) -> None:
        super().__init__()
        self.console = console

    def send_form(self, path: str, at: str, **form: str) -> requests.Response:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(self.console + at, timeout=60).text)
        assert found, at
        return self.post(self.console + path, data={"csrf": found[1], **form}, timeout=60)


@pytest.fixture
def provider(folder: Path) -> Iterator[RealProvider]:
    port, own = reserved_port(), reserved_port()
    made = RealProvider(f"http://127.0.0.1:{own}", {"sub": "adams", "groups": ["staff", "approvers"]})
    (folder / FILE).write_text(
        f'version = 1\naddress = "http://127.0.0.1:{port}"\n[provider]\nissuer = "{made.issuer}"\n'
        'client_id = "console"\nclient_secret = "the client\'s secret"\nscope = "openid groups"\n'
        '[provider.roles]\napprover = { groups = "approvers" }\nreader = { groups = "staff" }\n'
    )
    (folder / FILE).chmod(0o600)
    app = site_console(folder, Settings.read(folder, ""))
    with served(made.app(), own), served(app, port):
        yield made


def test_groups_decide_who_reads_and_who_approves(provider: RealProvider, folder: Path, digest: str) -> None:
    console = Settings.read(folder, "").address
    adams = User(console)
    assert '<span class="roles">approver</span>' in adams.send_form("/login/provider", "/login").text
    form = {"digest": digest, "mapping": "", "kind": "approve", "why": "board"}
    adams.send_form(f"/confirm/{digest}", "/people")
    refused = adams.send_form(f"/studies/{digest}/decision", "/people", **form)
    assert "console.toml is not as it was recorded" in refused.text  # until somebody confirms these settings
    confirm_settings(folder)
    adams.send_form(f"/confirm/{digest}", "/people")
    assert adams.send_form(f"/studies/{digest}/decision", "/people", **form).status_code == 200
    (entry,) = Site(folder).audit_log.decisions(digest)
    assert entry.login == f"adams at {provider.issuer}, groups: approvers"
    provider.person["groups"] = ["another"]
    assert adams.send_form(f"/confirm/{digest}", "/people").status_code == 403
    assert User(console).send_form("/login/provider", "/login").status_code == 403
    provider.person |= {"sub": "nurse", "groups": ["staff", "approvers"]}
    assert '<span class="roles">reader</span>' in User(console).send_form("/login/provider", "/login").text
