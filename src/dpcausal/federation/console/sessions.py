"""Sessions at the server. The cookie holds a random token and nothing else."""

import secrets
from typing import Any

from flask import Flask, Request, Response
from flask.sessions import SessionInterface, SessionMixin
from werkzeug.datastructures import CallbackDict

from dpcausal.federation.console.settings import Settings
from dpcausal.federation.console.state import State


class Session(CallbackDict[str, Any], SessionMixin):
    """The session of one browser."""

    def __init__(self, token: str, content: dict[str, Any], *, new: bool) -> None:
        def changed(_: object) -> None:
            self.modified = True

        super().__init__(content, changed)
        self.token, self.new, self.modified = token, new, False
        self.ended: list[str] = []

    def rotate(self) -> None:
        """Give the session a new token: one that somebody planted in the browser is worth nothing."""
        self.ended.append(self.token)
        self.token, self.modified = secrets.token_urlsafe(32), True

    def csrf_token(self) -> str:
        """Return the token that every form of this session holds."""
        if "csrf" not in self:
            self["csrf"] = secrets.token_urlsafe(32)
        return str(self["csrf"])

    def begin(self, login: str, now: float) -> None:
        """Begin the session of a person, with nothing of what was there before."""
        self.clear()
        self.rotate()
        self.update(login=login, began=now)

    def end(self) -> None:
        """End the session of a person."""
        self.clear()
        self.rotate()


class StoredSessions(SessionInterface):
    """Sessions in the console's state.

    Args:
        settings: How people reach the console. Its cookie is named after its address, since browsers send cookies to
            every port of a host.
    """

    def __init__(self, state: State, settings: Settings) -> None:
        self._state, self._secure = state, settings.secure
        self.cookie = settings.cookie

    def open_session(self, app: Flask, request: Request) -> Session:  # noqa: ARG002 (as the parent has it)
        """Return the session that the cookie names; a new one where it names none."""
        token = request.cookies.get(self.cookie, "")
        content = self._state.session(token) if token else None
        if content is None:
            return Session(secrets.token_urlsafe(32), {}, new=True)  # never the token that the browser sent
        return Session(token, content, new=False)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:  # noqa: ARG002
        """Store a session that changed, and set its cookie."""
        if not isinstance(session, Session) or not session.modified:
            return
        for token in session.ended:
            self._state.remove_session(token)
        if not session:
            response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True, samesite="Lax")
            return
        self._state.store_session(session.token, dict(session), known="login" in session)
        response.set_cookie(self.cookie, session.token, path="/", secure=self._secure, httponly=True, samesite="Lax")
