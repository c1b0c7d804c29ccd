"""Login, logout, and the confirmation of who decides: at an OpenID Connect provider, or with a local account."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from flask import Blueprint, Flask, abort, g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from dpcausal.errors import MissingExtraError, StudyError
from dpcausal.federation.console.accounts import Accounts
from dpcausal.federation.console.security import current_session, local_path
from dpcausal.federation.console.settings import Provider, Settings
from dpcausal.federation.console.state import BROWSER_SECONDS, CONFIRMED_SECONDS, WINDOW_SECONDS, State
from dpcausal.federation.site.people import People, Person, Role

_CLOCK_SKEW = 5.0
_PUBLIC = {"login.login", "login.check_password", "login.go_to_provider", "login.callback", "static"}

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Login:
    """How people log in to one console.

    Attributes:
        folder: The folder that the console shows; it has the list of people.
        decides: Whether people decide about studies at this console, and so confirm who they are.
    """

    folder: Path
    settings: Settings
    state: State
    decides: bool

    def add_to(self, app: Flask) -> None:
        """Add the pages of the login to an application, and let only known people see the others."""
        pages = Blueprint("login", __name__)
        pages.add_url_rule("/login", "login", self._login)
        pages.add_url_rule("/logout", "logout", self._logout, methods=["POST"])
        confirm: Callable[[str], Response | tuple[str, int] | str] = self._confirm
        if self.settings.provider:
            client = _client(app, self.settings.provider)
            pages.add_url_rule("/login/provider", "go_to_provider", lambda: self._go(client), methods=["POST"])
            pages.add_url_rule("/login/callback", "callback", lambda: self._callback(client))
            confirm = partial(self._confirm_at, client)
        else:
            pages.add_url_rule("/login", "check_password", self._check_password, methods=["POST"])
        if self.decides:
            pages.add_url_rule("/confirm/<digest>", "confirm", confirm, methods=["POST"])
        app.register_blueprint(pages)
        app.before_request(self._check_person)

    def _check_person(self) -> Response | None:
        """Send strangers to the login. A person who was removed from the list is a stranger at once."""
        g.person = None
        login = current_session().get("login", "")
        if login:
            g.person = self._person(login)
        if request.endpoint in _PUBLIC:
            return None
        if g.person:
            return None
        if login:
            self.state.log("no role", login, _address())
            current_session().end()
            abort(403, "Your login is right, but it has no role here. An operator can add you to the list of people.")
        path = local_path(request.path) if request.method == "GET" else "/"
        return redirect(url_for("login.login", next=None if path == "/" else path))

    def _person(self, login: str) -> Person | None:
        """Return the person of a login, with the roles that neither the list of people nor the login's claims deny.

        Who is not on the list may have the other roles by claims, and never decides: the site verifies decisions by it.
        """
        ruled = self.settings.provider.roles if self.settings.provider else {}
        granted = current_session().get("granted", {})
        person = People.read(self.folder).with_login(login)
        listed = person.roles if person else tuple(role for role in ruled if role != "approver")
        roles = tuple(role for role in listed if role not in ruled or role in granted)
        try:
            return replace(person or Person(login, ("reader",), login=login), roles=roles) if roles else None
        except StudyError:  # a subject that cannot be shown
            return None

    def evidence(self) -> str:
        """Return how the person of this request is known, for the audit log."""
        session, provider = current_session(), self.settings.provider
        if provider is None:
            return f"{session['login']}, by password"
        claims = session.get("granted", {}).get("approver", "")
        return f"{session['login']} at {provider.issuer}" + (f", {claims}" if claims else "")

    def _login(self) -> Response | str:
        path = local_path(request.args.get("next", "/"))
        if g.person:
            return redirect(path)
        return render_template("login.html", title="Log in", next=path, provider=self.settings.provider, failed=False)

    def _check_password(self) -> Response | tuple[str, int]:
        path = local_path(request.form.get("next", "/"))
        login = request.form.get("login", "")
        if not self._is_right(login, request.form.get("password", "")):
            page = render_template("login.html", title="Log in", next=path, provider=None, failed=True)
            return page, 401
        self._begin(login)
        return self._known(login, redirect(path))

    def _known(self, login: str, response: Response) -> Response:
        """Give the browser a token, unless it has one: failed logins elsewhere do not count in it."""
        if self._browser(login):
            return response
        token = secrets.token_urlsafe(32)
        self.state.know_browser(login, token)
        response.set_cookie(
            self._browser_cookie,
            token,
            max_age=int(BROWSER_SECONDS),
            secure=self.settings.secure,
            httponly=True,
            samesite="Strict",
        )
        return response

    def _browser(self, login: str) -> str:
        """Return the browser of this request, if this person logged in with it before."""
        return self.state.known_browser(login, request.cookies.get(self._browser_cookie, ""))

    @property
    def _browser_cookie(self) -> str:
        return f"{self.settings.cookie}-browser"

    def _is_right(self, login: str, password: str) -> bool:
        """Return whether a login and a password belong together; too many failures end with 429."""
        accounts, address = Accounts(self.folder), _address()
        browser = self._browser(login)
        if self.state.is_limited(login, address, browser):
            abort(Response(render_template("limited.html", title="Too many attempts"), 429, _retry_later()))
        if accounts.check(login, password):
            self.state.forget_failures(login, address)
            return True
        self.state.count_failure(login, address, browser)
        known = login if accounts.is_known(login) else "an unknown account"  # people type passwords as names
        limited = self.state.is_limited(login, address, browser)
        self.state.log("failed login", known, address, "further attempts are refused for a while" if limited else "")
        return False

    def _begin(self, login: str) -> None:
        current_session().begin(login, self.state.clock())
        self.state.log("login", login, _address())

    def _logout(self) -> Response:
        self.state.log("logout", str(current_session().get("login", "")), _address())
        current_session().end()
        return redirect(url_for("login.login"))

    def _confirm(self, digest: str) -> Response | tuple[str, int] | str:
        """Ask for the password once more, and note for which study it was given."""
        session = current_session()
        failed = False
        if "password" in request.form:
            if self._is_right(session["login"], request.form["password"]):
                return self._confirmed(digest)
            failed = True
        page = render_template("confirm.html", title="Confirm who you are", digest=digest, failed=failed)
        return (page, 401) if failed else page

    def _confirmed(self, digest: str) -> Response:
        session = current_session()
        session.rotate()
        self.state.confirm(session.token, digest)
        self.state.log("confirmed", session["login"], _address(), digest)
        return redirect(f"{url_for('site.study', digest=digest)}#decide")

    def take_confirmation(self, digest: str) -> None:
        """End with 403 unless this person confirmed the login for this study just now; each counts once."""
        if not self.state.take_confirmation(current_session().token, digest):
            abort(403, "Confirm who you are first, on the page of the study.")

    def is_confirmed(self, digest: str) -> bool:
        """Return whether this person may decide about this study now."""
        return self.state.is_confirmed(current_session().token, digest)

    def _go(self, client: Any) -> Response:  # noqa: ANN401 (Authlib has no types)
        session = current_session()
        session["next"] = local_path(request.form.get("next", "/"))
        return self._redirect(client)

    def _confirm_at(self, client: Any, digest: str) -> Response:  # noqa: ANN401
        current_session()["confirming"] = {"study": digest, "at": self.state.clock()}
        return self._redirect(client, prompt="login", max_age=int(CONFIRMED_SECONDS))

    def _redirect(self, client: Any, **options: Any) -> Response:  # noqa: ANN401
        try:
            response: Response = client.authorize_redirect(f"{self.settings.address}/login/callback", **options)
        except Exception as error:  # noqa: BLE001 (whatever it is, the provider cannot be used)
            self._unusable(error)
        return response

    def _callback(self, client: Any) -> Response:  # noqa: ANN401
        """Take the provider's answer: state, code, PKCE, signature, issuer, audience and nonce are Authlib's to check.

        Authlib finds the state, the nonce and the code verifier in the session of the browser that began.
        """
        session = current_session()
        provider = cast("Provider", self.settings.provider)
        options = {
            "iss": {"essential": True, "values": [provider.issuer]},
            "aud": {"essential": True, "value": client.client_id},
            "sub": {"essential": True},
        }
        try:
            token = client.authorize_access_token(claims_options=options)
            claims = token["userinfo"]
            login, at = str(claims["sub"]), claims.get("auth_time")
            granted = provider.granted(claims | _further(client, token, provider))
        except Exception as error:  # noqa: BLE001 (a hostile answer may break in ways that nobody listed)
            self._unusable(error)
        confirming = session.pop("confirming", None)
        if confirming and g.person:
            if login != session["login"] or not isinstance(at, int | float) or at < confirming["at"] - _CLOCK_SKEW:
                self.state.log("failed login", session["login"], _address(), "another login, or none, as confirmation")
                abort(403, "The provider did not confirm that it was you, just now.")
            session["granted"] = granted
            return self._confirmed(confirming["study"])
        path = local_path(str(session.get("next", "/")))
        self._begin(login)
        session["granted"] = granted
        return redirect(path)

    def _unusable(self, error: Exception) -> NoReturn:
        self.state.log("failed login", "", _address(), f"provider: {type(error).__name__}")
        abort(502)


def _further(client: Any, token: Any, provider: Provider) -> dict[str, object]:  # noqa: ANN401 (Authlib has no types)
    """Return claims that roles need, and that the provider tells only when asked for them."""
    claims = token["userinfo"]
    needed = {name for wanted in provider.roles.values() for name in wanted} - set(claims)
    if not needed or "userinfo_endpoint" not in client.load_server_metadata():
        return {}
    told = client.userinfo(token=token)
    if told["sub"] != claims["sub"]:
        raise ValueError
    return {name: told[name] for name in needed & set(told)}


def needs_role(role: Role) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Decorate a page that only people with a role may use."""

    def decorate(page: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @wraps(page)
        def checked(*args: Parameters.args, **named: Parameters.kwargs) -> Result:
            if role not in current_person().roles:
                abort(403, f"Only people with the role {role} may do this.")
            return page(*args, **named)

        return checked

    return decorate


def current_person() -> Person:
    """Return the person of this request; every page but the login has one."""
    person: Person = g.person
    return person


def _address() -> str:
    return request.remote_addr or ""


def _retry_later() -> dict[str, str]:
    return {"Retry-After": str(int(WINDOW_SECONDS))}


def _client(app: Flask, provider: Provider) -> Any:  # noqa: ANN401 (Authlib has no types)
    try:
        from authlib.integrations.flask_client import OAuth  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError(
            problem="The library Authlib, for logins at a provider, is not installed",
            hint='pip install "dpcausal[console]".',
        ) from None
    return OAuth(app).register(
        "provider",
        server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_id=provider.client_id,
        client_secret=provider.client_secret,
        client_kwargs={"scope": provider.scope, "code_challenge_method": "S256", "default_timeout": 10},
    )
