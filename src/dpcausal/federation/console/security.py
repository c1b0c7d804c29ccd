"""What holds for every page: headers, hosts, forms, sizes and errors."""

import hmac
from http import HTTPStatus
from typing import cast
from urllib.parse import urlsplit

from flask import Flask, Response, abort, current_app, g, render_template, request, session
from werkzeug.exceptions import HTTPException, SecurityError

from dpcausal.errors import DpcausalError
from dpcausal.federation.console.sessions import Session, StoredSessions
from dpcausal.federation.console.settings import Settings
from dpcausal.federation.console.state import State
from dpcausal.federation.operation.deadline_worker import end_deadline

_LARGEST_FORM = 20_000
_STYLES = "; style-src-attr 'unsafe-inline'"
_WORDS = {
    400: "The request could not be understood.",
    403: "You may not do this.",
    404: "There is no such page.",
    405: "This page does not take such a request.",
    409: "This was not possible.",
    413: "The form is too large.",
    429: "Too many logins failed. Wait a quarter of an hour, and try again.",
    502: "The login provider did not answer as expected. Try again later.",
}


def secure(app: Flask, settings: Settings, state: State, *, behind_proxy: bool) -> None:
    """Give an application its sessions, limits, headers and error pages."""
    app.session_interface = StoredSessions(state, settings)
    app.config.update(
        TRUSTED_HOSTS=[settings.host],
        MAX_CONTENT_LENGTH=_LARGEST_FORM,
        MAX_FORM_MEMORY_SIZE=_LARGEST_FORM,
        MAX_FORM_PARTS=20,
        PROPAGATE_EXCEPTIONS=False,
        TRAP_HTTP_EXCEPTIONS=False,
    )
    issuer = f" {settings.provider.origin}" if settings.provider else ""
    policy = (
        "default-src 'none'; style-src 'self'; img-src 'self'; "
        f"form-action 'self'{issuer}; base-uri 'none'; frame-ancestors 'none'"
    )

    def add_headers(response: Response) -> Response:
        response.headers.update(
            {
                "Content-Security-Policy": policy + (_STYLES if g.get("style_attributes") else ""),
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Referrer-Policy": "same-origin",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
                "Cache-Control": "no-store",
            }
        )
        if settings.secure:
            response.headers["Strict-Transport-Security"] = "max-age=31536000"
        return response

    _add_checks(app, settings, behind_proxy=behind_proxy)
    app.after_request(add_headers)
    app.register_error_handler(HTTPException, _error_page)
    app.register_error_handler(DpcausalError, _refusal_page)
    app.register_error_handler(Exception, _failure_page)
    app.jinja_env.globals["csrf_token"] = lambda: current_session().csrf_token()


def allow_style_attributes() -> None:
    """Let the page of this request have style attributes, as the figures of a report have, and nothing else."""
    g.style_attributes = True


def _add_checks(app: Flask, settings: Settings, *, behind_proxy: bool) -> None:
    """Refuse requests that people do not make with the pages of this console."""

    def check_host() -> None:
        if isinstance(request.routing_exception, SecurityError):  # before anything reads the session
            abort(400, "The console is not known under this address.")
        if behind_proxy and "X-Forwarded-For" not in request.headers:
            abort(400, "The proxy before the console must name its client's address, in the header X-Forwarded-For.")

    def read_form() -> None:
        request.get_data(cache=True)
        end_deadline()

    app.before_request(check_host)
    app.before_request(read_form)
    app.before_request(lambda: _check_form(settings.address))


def _check_form(address: str) -> None:
    """Refuse a form that a page of this session did not hold."""
    if request.method in {"GET", "HEAD", "OPTIONS"}:
        return
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != urlsplit(address).netloc:
        abort(400, "The form came from another site.")
    token = request.form.get("csrf", "")
    if not hmac.compare_digest(token.encode(), current_session().csrf_token().encode()):
        abort(400, "The form was not made by this console, or your session ended. Open the page again.")


def current_session() -> Session:
    """Return the session of this request."""
    return cast("Session", session._get_current_object())  # type: ignore[attr-defined]  # noqa: SLF001 (Flask's proxy)


def local_path(path: str) -> str:
    """Return a path of this console to go on to after a login; the first page in place of anything else."""
    plain = path.startswith("/") and not path.startswith("//") and path.isascii() and path.isprintable()
    return path if plain and not set(path) & set("\\?#@: ") else "/"


def _error_page(error: HTTPException) -> Response | HTTPException:
    """Return a plain page: the words that this console chose, or those for the code."""
    if error.code is not None and error.code < 400:
        return error  # a redirect
    code = error.code or 500
    own = error.description if error.description != type(error).description else None
    return _page(code, _WORDS.get(code, "Something went wrong.") if code not in {400, 403, 409} or not own else own)


def _refusal_page(error: DpcausalError) -> Response:
    """Return what a file of the folder lacks, in the words that the command line has."""
    return _page(409, f"{error.problem}.", error.hint)


def _failure_page(error: Exception) -> Response:
    """Return a page without any detail: a text of a library may quote what must not leave. The log has its kind."""
    state: State = current_app.extensions["dpcausal"]
    state.log("error", "", "", type(error).__name__)
    return _page(500, "Something went wrong. The console's log names the kind of error.")


def _page(code: int, words: str, hint: str = "") -> Response:
    title = HTTPStatus(code).phrase
    return Response(render_template("error.html", title=title, words=words, hint=hint), code, mimetype="text/html")
