"""The console in a real browser: `python -m checks.console PROVIDER_PYTHON AXE OUT`.

Two people log in through an OpenID Connect provider, review a study and approve it, without scripts in the browser.
The site answers, the budget changes, and the message that left is shown. Every view is photographed at two widths in
two colour schemes, and judged by axe-core.

PROVIDER_PYTHON is a Python with Canaille installed (canaille[front,oidc,server]), AXE the file axe.min.js of the npm
package axe-core, OUT a folder for screenshots and results. Needs Chromium.
"""

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from checks.browser import launch, photograph
from dpcausal import DifferenceInMeans, Study
from dpcausal.errors import RefusedError
from dpcausal.federation.console.accounts import Accounts
from dpcausal.federation.console.settings import KEY
from dpcausal.federation.coordinator.coordinator import Coordinator
from dpcausal.federation.coordinator.workspace import Workspace
from dpcausal.federation.protocol.messages import Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.protocol.transport import LocalTransport
from dpcausal.federation.site.people import Person, add_person, set_console_key
from dpcausal.federation.site.site import Site
from dpcausal.federation.site.worker import run_in_subprocess
from dpcausal.testing import standard_schema, synthetic_table
from tests.support.site_folders import make_site_folder, record_state

PROVIDER, SITE, COORDINATOR = 28555, 28480, 28481
PROVIDER_PASSWORD, LOCAL_PASSWORD = "words-of-this-check-only", "more words of this check only"
SCHEMA = standard_schema()
STUDY = Study(
    name="early-physiotherapy-2026",
    question="Does physiotherapy on the day of the operation raise the score?",
    requester="anna",
    schema=SCHEMA,
    estimator=DifferenceInMeans(),
    epsilon=1.0,
    pooling="minimum_variance",
    eligibility="adults with a hip replacement in 2025",
)


def make_folders(folder: Path) -> tuple[Path, Path, Key]:
    """Make a site that waits for two approvals, and a coordinator's workspace."""
    workspace = Workspace.new(folder / "workspace", "anna")
    site, key = folder / "north", workspace.key("anna")
    public = make_site_folder(
        site,
        "north",
        synthetic_table(SCHEMA, 400),
        SCHEMA,
        {"anna": key.public},
        epsilon_per_study=2.0,
        budget={"epsilon": 3.0},
        approvals=2,
    )
    set_console_key(site, Key.make("console", site / KEY).public)
    add_person(site, Person("Dr. Adams", ("approver",), login="adams"))
    add_person(site, Person("Dr. Brown", ("approver", "operator"), login="brown"))
    settings = site / "console.toml"
    settings.write_text(
        f'version = 1\naddress = "http://127.0.0.1:{SITE}"\n\n[provider]\nissuer = "http://127.0.0.1:{PROVIDER}"\n'
        'client_id = "console"\nclient_secret = "a-secret-of-this-check"\n'
    )
    settings.chmod(0o600)
    record_state(site)
    received = Site(site)
    received.receive(replace(STUDY, epsilon=0.5).to_toml())
    received.receive(replace(STUDY, name="all-columns", epsilon=2.5, question="What is in the table?").to_toml())
    workspace.admit("north", public, 400)
    workspace.admit("south", Key.make("south", folder / "south.key").public)
    add_person(workspace.folder, Person("Anna", ("reader", "operator"), login="anna"))
    Accounts(workspace.folder).set_password("anna", LOCAL_PASSWORD)
    return site, workspace.folder, key


@contextmanager
def running(words: list[str], log: Path, address: str) -> Iterator[None]:
    """Run a server until the end of the block, from the moment at which it answers."""
    with log.open("w", encoding="utf-8") as output, subprocess.Popen(words, stdout=output, stderr=output) as server:  # noqa: S603
        try:
            for _ in range(240):
                try:
                    urllib.request.urlopen(address, timeout=5).close()  # noqa: S310 (on this machine)
                    break
                except OSError:
                    if server.poll() is not None:
                        break
                    time.sleep(0.5)
            else:
                sys.exit(f"{words[0]} does not answer at {address}")
            if server.poll() is not None:
                sys.exit(f"{' '.join(words)} ended:\n{log.read_text()}")
            yield
        finally:
            server.terminate()
            server.wait(30)


def log_in_at_provider(page: Page, login: str) -> None:
    """Fill in the provider's forms."""
    page.wait_for_url(f"http://127.0.0.1:{PROVIDER}/**")
    for _ in range(4):
        if f":{PROVIDER}/" not in page.url:
            return
        if page.locator("input[name=login]:visible").count():
            page.fill("input[name=login]", login)
        if page.locator("input[name=password]:visible").count():
            page.fill("input[name=password]", PROVIDER_PASSWORD)
        page.locator("button[type=submit]:visible, input[type=submit]:visible").first.click()
        page.wait_for_load_state()
    assert f":{PROVIDER}/" not in page.url, page.url


def approve(browser: Browser, login: str, digest: str) -> None:
    """Log in, read the study, confirm and approve: without scripts."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{SITE}/studies/{digest}")
    page.click("text=Continue to the login")
    log_in_at_provider(page, login)
    assert page.url.endswith(f"/studies/{digest}"), page.url
    assert digest in page.inner_text("main")
    page.click("text=Confirm who I am")
    log_in_at_provider(page, login)
    assert f"/studies/{digest}" in page.url, page.url
    page.fill("#why", f"letter of {login}")
    page.click("button[value=approve]")
    assert f"letter of {login}" in page.inner_text("main")
    context.close()


def spent(page: Page) -> str:
    """Return what the page of the budget says is spent."""
    page.goto(f"http://127.0.0.1:{SITE}/budget")
    return page.inner_text("#spent")


def coordinate(site: Path, workspace: Path, key: Key, approved: str) -> None:
    """Let the coordinator ask north, which answers, and south, which does not; and once without an answer."""
    found = Workspace(workspace)
    transport = LocalTransport({"north": lambda request: run_in_subprocess(site, request)})
    for text in (replace(STUDY, name="all-columns", epsilon=2.5, question="What is in the table?").to_toml(), approved):
        try:
            Coordinator(text, found.roster, key, transport, store=found.store, timeout=0, attempts=1).run()
        except RefusedError:
            continue


def look_at_site(  # noqa: PLR0913, PLR0917 (all that the check made before)
    browser: Browser, site: Path, digest: str, key: Key, axe: str, out: Path
) -> dict[str, list[str]]:
    """Let two people approve, and the site answer; return what axe-core finds on its pages."""
    address = f"http://127.0.0.1:{SITE}"
    context = new_context(browser)
    found = photograph(context, {"login": f"{address}/login"}, axe, out)
    page = context.new_page()
    page.goto(address)
    page.click("text=Continue to the login")
    log_in_at_provider(page, "brown")
    views = {"waiting": "/", "study": f"/studies/{digest}"}
    found |= photograph(context, {name: address + path for name, path in views.items()}, axe, out)
    before = spent(page)
    approve(browser, "adams", digest)
    assert Site(site).status(digest) == "undecided"
    approve(browser, "brown", digest)
    assert Site(site).status(digest) == "approved"
    run_in_subprocess(site, key.seal(Request(study=Site(site).inbox.text(digest), ask="releases").to_json()))
    after = spent(page)
    assert (before, after) == ("ε 0", "ε 1"), (before, after)
    page.goto(f"{address}/sent")
    page.click("table a >> nth=-1")
    assert "arm_moments" in page.inner_text("main")
    message = page.url
    page.goto(f"{address}/studies/{digest}")
    page.click("text=Confirm who I am")
    log_in_at_provider(page, "brown")
    views = {"decide": f"/studies/{digest}", "budget": "/budget", "sent": "/sent", "log": "/log"}
    views |= {"health": "/health", "people": "/people", "missing": "/no-such-page"}
    views = {name: address + path for name, path in views.items()} | {"message": message}
    return found | photograph(context, views, axe, out)


def look_at_coordinator(browser: Browser, axe: str, out: Path) -> dict[str, list[str]]:
    """Log in with a local account; return what axe-core finds on the coordinator's pages."""
    address = f"http://127.0.0.1:{COORDINATOR}"
    context = new_context(browser)
    found = photograph(context, {"password": f"{address}/login"}, axe, out)
    page = context.new_page()
    page.goto(address)
    page.fill("#login", "anna")
    page.fill("#password", LOCAL_PASSWORD)
    page.click("main button")
    effect = page.get_attribute("tbody a >> nth=0", "href") or ""
    page.goto(address + effect)
    assert "confidence interval" in page.inner_text("main")
    views = {"studies": "/", "effect": effect, "roster": "/sites", "build": "/build", "coordinator-people": "/people"}
    return found | photograph(context, {name: address + path for name, path in views.items()}, axe, out)


def new_context(browser: Browser) -> BrowserContext:
    """Return a browser without cookies that waits long enough on a busy machine."""
    context = browser.new_context()
    context.set_default_timeout(60_000)
    return context


def main() -> None:
    """Run the whole check; fail at the first thing that is not as it should be."""
    provider, axe, out = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8"), Path(sys.argv[3])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    site, workspace, key = make_folders(out / "folders")
    digest = Site(site).receive(f"# Approved by the ethics board on 3 May 2026.\n{STUDY.to_toml()}")
    program = [sys.executable, "-m", "dpcausal"]
    issuer, here = f"http://127.0.0.1:{PROVIDER}", str(Path(__file__).with_name("console_provider.py"))
    serve_site = [*program, "site", "console", str(site), "--listen", f"127.0.0.1:{SITE}"]
    serve_coordinator = [*program, "federation", "console", str(workspace), "--listen", f"127.0.0.1:{COORDINATOR}"]
    began = time.monotonic()
    with (
        running(
            [provider, here, str(PROVIDER), f"http://127.0.0.1:{SITE}"],
            out / "provider.log",
            f"{issuer}/.well-known/openid-configuration",
        ),
        running(serve_site, out / "site.log", f"http://127.0.0.1:{SITE}/login"),
        running(serve_coordinator, out / "coordinator.log", f"http://127.0.0.1:{COORDINATOR}/login"),
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        found = look_at_site(browser, site, digest, key, axe, out)
        coordinate(site, workspace, key, Site(site).inbox.text(digest))
        found |= look_at_coordinator(browser, axe, out)
        browser.close()
    violations = {name: each for name, each in found.items() if each}
    seconds = round(time.monotonic() - began, 1)
    result = {"spent": "epsilon 0, then 1", "pages": len(found), "violations": violations, "seconds": seconds}
    (out / "result.json").write_text(json.dumps(result, indent=2), encoding="utf-8")
    print(json.dumps(result, indent=2))
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
