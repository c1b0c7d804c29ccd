"""The console as a WSGI application: one for a site, one for a coordinator."""

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from flask import Blueprint, Flask, g
from werkzeug.middleware.proxy_fix import ProxyFix

from dpcausal.federation.console import coordinator_views, site_views
from dpcausal.federation.console.login import Login
from dpcausal.federation.console.security import secure
from dpcausal.federation.console.settings import Settings
from dpcausal.federation.console.state import State
from dpcausal.federation.site.policy import Policy
from dpcausal.utils.text import format_number


def site_console(
    folder: Path, settings: Settings, *, behind_proxy: bool = False, clock: Callable[[], float] = time.time
) -> Flask:
    """Return the console of a site."""
    login = _login(folder, settings, clock, decides=True)
    app = _application(login, site_views.SitePages(folder, login).blueprint(), behind_proxy=behind_proxy)
    app.jinja_env.globals.update(
        console_name=f"Site {Policy.read(folder).site}",
        about="This console reads the files beside the table, and never the table.",
        menu=site_views.MENU,
    )
    return app


def coordinator_console(
    folder: Path, settings: Settings, *, behind_proxy: bool = False, clock: Callable[[], float] = time.time
) -> Flask:
    """Return the console of a coordinator; the arguments are those of `site_console`, for its workspace."""
    login = _login(folder, settings, clock, decides=False)
    app = _application(login, coordinator_views.coordinator_pages(folder, login), behind_proxy=behind_proxy)
    app.jinja_env.globals.update(
        console_name="Coordinator",
        about="This console asks no site, and changes nothing.",
        menu=coordinator_views.MENU,
    )
    return app


def _login(folder: Path, settings: Settings, clock: Callable[[], float], *, decides: bool) -> Login:
    state = State(folder, idle=settings.idle_minutes * 60, absolute=settings.absolute_hours * 3600, clock=clock)
    return Login(folder, settings, state, decides=decides)


def _application(login: Login, pages: Blueprint, *, behind_proxy: bool) -> Flask:
    app = Flask(__name__, static_url_path="/static")
    app.extensions["dpcausal"] = login.state
    secure(app, login.settings, login.state, behind_proxy=behind_proxy)
    login.add_to(app)
    app.register_blueprint(pages)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters["number"] = format_number
    app.jinja_env.globals.update(version=version("dpcausal"), person=lambda: g.get("person"))
    if behind_proxy:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1, x_proto=1)  # type: ignore[method-assign]
    return app
