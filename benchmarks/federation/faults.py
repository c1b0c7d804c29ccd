"""Everything that can go wrong between a coordinator and its sites, done on purpose to real processes.

Each fault gets a study of its own, at a price of its own, so that no answer of an earlier one is at hand. Afterwards
every site's ledger is read: whatever happened, a study is debited at most once, and once it was answered it has one
release, which every later answer repeats.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dpcausal as dpc
from benchmarks.federation.scene import PATIENT, SITES, Scene, scene_in
from dpcausal.federation.coordinator.roster import Roster
from dpcausal.federation.protocol.messages import MEANINGS, Code, Message, Request
from dpcausal.federation.protocol.signatures import claimed_body
from dpcausal.federation.site.site import Site
from tests.support.federation_processes import SERVER
from tests.support.site_folders import signed

# In the process that answers: stop at a point, say so, and wait for what comes.
PAUSE = """
import sys
if "dpcausal.federation.site" in sys.orig_argv:
    import time
    from pathlib import Path
    from dpcausal.ledger import Ledger
    def paused(*_):
        Path(fault).with_name("reached").touch()
        time.sleep(600)
    def wrap(name, after):
        inner = getattr(Ledger, name)
        def wrapped(self, *given):
            if not after:
                paused()
            result = inner(self, *given)
            if after:
                paused()
            return result
        setattr(Ledger, name, wrapped)
    wrap({name!r}, {after})
"""

# In the process that answers: say something else.
LIE = """
import sys
if "dpcausal.federation.site" in sys.orig_argv:
    import json
    from dataclasses import replace
    from pathlib import Path
    from dpcausal.federation.protocol.messages import Message
    from dpcausal.federation.protocol.signatures import claimed_body
    from dpcausal.federation.site.site import Site
    honest = Site.answer
    def lie(self, request):
        message = Message.from_json(claimed_body(honest(self, request)))
        return {lie}
    Site.answer = lie
"""

# In every process of a site that takes part in an answer: fail, and say of whom.
QUOTE = """
import logging, sys
from pathlib import Path
if "dpcausal.federation.site" in sys.orig_argv:
    from dpcausal.vault import Vault
    def quoted(*_):
        patient = Path(fault).with_name("patient").read_text()
        print(patient)
        print(patient, file=sys.stderr)
        logging.error(patient)
        raise ValueError(patient)
    Vault.release = quoted
elif "worker_process" in " ".join(sys.orig_argv):
    import dpcausal.federation.site.worker
    def quoted(*_):
        raise ValueError(Path(fault).with_name("patient").read_text())
    {apart}
"""

LIES = {
    "a number that is none": "self._key.seal(message.to_json().replace('\"values\": [', '\"values\": [NaN, ', 1))",
    "another number of units": "self._key.seal(replace(message, n=message.n + 1).to_json())",
    "another study": "self._key.seal(replace(message, study='0' * 64).to_json())",
    "an answer to an older request": "(Path(fault).with_name('older')).read_text()",
    "less noise than it has": "self._key.seal(message.to_json().replace('\"scales\": [', '\"scales\": [0.5, ', 1))",
    "in another site's name": "self._key.seal(replace(message, site='north').to_json())",
    "nothing that can be read": "'nonsense'",
}


PAID = "grant debit release"


def _reached(file: Path, seconds: float = 80) -> None:
    end = time.monotonic() + seconds
    while not file.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"the site did not come to {file}")
        time.sleep(0.05)


def nothing_wrong(scene: Scene) -> dict[str, Any]:
    """Nothing goes wrong."""
    study = scene.approved()
    found = scene.run(study)
    return _told(scene, study, found, answered=SITES)


def server_killed(scene: Scene) -> dict[str, Any]:
    """Kill the server while a site computes, and start it again."""
    study = scene.approved()
    with scene.fault(
        "north", PAUSE.format(name="debit", after=False).replace("time.sleep(600)", "time.sleep(6)")
    ) as at:

        def during() -> None:
            _reached(at)
            scene.federation.kill(SERVER)
            time.sleep(2)
            scene.federation.start(SERVER)

        found = scene.running(study, during, timeout=90.0)
    return _told(scene, study, found, answered=SITES)


def _site_killed(scene: Scene, name: str, *, after: bool) -> dict[str, Any]:
    study = scene.approved()
    with scene.fault("north", PAUSE.format(name=name, after=after)) as at:

        def during() -> None:
            _reached(at)
            scene.federation.kill("north")
            scene.mended("north")
            scene.federation.start("north")

        found = scene.running(study, during, timeout=60.0)
    return _told(scene, study, found, answered=SITES)


def site_killed_before_debit(scene: Scene) -> dict[str, Any]:
    """Kill a site before its debit, and start it again."""
    return _site_killed(scene, "debit", after=False)


def site_killed_after_debit(scene: Scene) -> dict[str, Any]:
    """Kill a site between its debit and its answer, and start it again."""
    return _site_killed(scene, "debit", after=True)


def site_killed_after_answer(scene: Scene) -> dict[str, Any]:
    """Kill a site after its answer is stored and before it is sent, and start it again."""
    return _site_killed(scene, "store", after=True)


def site_gone(scene: Scene) -> dict[str, Any]:
    """Kill a site and leave it; later start it, and go on with the same study."""
    study = scene.approved()
    scene.federation.kill("north")
    first = scene.run(study, timeout=25.0)
    told = _told(scene, study, first, answered=("south", "west"))
    scene.federation.start("north")
    later = _told(scene, study, scene.run(study), answered=SITES)
    return told | {"later": later, "ok": told["ok"] and later["ok"]}


def task_killed(scene: Scene) -> dict[str, Any]:
    """Kill the process that NVFlare starts at a site for a question; the site itself lives."""
    study = scene.approved()
    with scene.fault("north", PAUSE.format(name="debit", after=True)) as at:

        def during() -> None:
            _reached(at)
            scene.mended("north")
            scene.federation.kill_part("north", "task")
            scene.federation.kill_part("north", "answer")

        found = scene.running(study, during, timeout=60.0)
    return _told(scene, study, found, answered=SITES)


def site_hangs(scene: Scene) -> dict[str, Any]:
    """Let the computation at a site hang; the site stops it at its limit of 10 seconds."""
    study = scene.approved()
    with scene.fault("north", PAUSE.format(name="debit", after=True)):
        found = scene.run(study)
    told = _told(scene, study, found, answered=("south", "west"), paid={"north": "grant debit"})
    later = _told(scene, study, scene.run(study), answered=SITES)
    return told | {"later": later, "ok": told["ok"] and later["ok"]}


def site_frozen(scene: Scene) -> dict[str, Any]:
    """All processes of a site stand still, as if its network were gone."""
    study = scene.approved()
    with scene.federation.frozen("north"):
        first = scene.run(study, timeout=25.0)
    told = _told(scene, study, first, answered=("south", "west"), paid=None)
    later = _told(scene, study, scene.run(study), answered=SITES)
    return told | {"later": later, "ok": told["ok"] and later["ok"]}


def lie(name: str) -> Callable[[Scene], dict[str, Any]]:
    """Return a fault: a site that sends a false response."""

    def lied(scene: Scene) -> dict[str, Any]:
        older = scene.approved()
        sealed = scene.key.seal(Request(study=older.to_toml(), ask="releases").to_json())
        folder = scene.federation.sites["south"]
        (folder / "older").write_text(Site(folder).answer(sealed), encoding="utf-8")
        study = scene.approved()
        with scene.fault("south", LIE.format(lie=LIES[name])):
            found = scene.run(study, timeout=20.0)
        return _told(scene, study, found, answered=("north", "west"))

    lied.__doc__ = f"A site sends {name}."
    return lied


def site_quotes_a_patient(scene: Scene) -> dict[str, Any]:
    """Let a site fail with a patient's name in every error, log line and print: none of it gets out."""
    found = {}
    for part, apart in (("answer", "pass"), ("task", "dpcausal.federation.site.worker.run_in_subprocess = quoted")):
        study = scene.approved()
        with scene.fault("north", QUOTE.format(apart=apart)):
            told = _told(scene, study, scene.run(study, timeout=20.0), answered=("south", "west"))
        found[part] = told | {"files_outside": scene.outside_with(PATIENT.format("north"))}
    return found | {"ok": all(each["ok"] and not each["files_outside"] for each in found.values())}


def asks_more(scene: Scene) -> dict[str, Any]:
    """Ask for more epsilon than the policy allows, after somebody approved it all the same."""
    study = scene.study(epsilon=60.0 + scene.asked / 1000)
    for site in SITES:
        opened = Site(scene.federation.sites[site])
        digest = opened.receive(study.to_toml())
        opened.audit_log.record(signed(scene.federation.sites[site], digest, "approve", why="around the check"))
    return _refused(scene, study, "not_allowed")


def asks_other_columns(scene: Scene) -> dict[str, Any]:
    """Ask for a column that the policy does not list."""
    schema = dpc.Schema(treatment=dpc.Treatment("treat", undeclared=0), outcome=dpc.Real("income", 0, 10))
    study = scene.study(schema=schema)
    for site in SITES:
        opened = Site(scene.federation.sites[site])
        digest = opened.receive(study.to_toml())
        opened.audit_log.record(signed(scene.federation.sites[site], digest, "approve", why="around the check"))
    return _refused(scene, study, "not_allowed")


def asks_changed_study(scene: Scene) -> dict[str, Any]:
    """Change a word of an approved study."""
    study = replace(scene.approved(), question="Does treatment raise the score of the rich?")
    return _refused(scene, study, "undecided")


def asks_twice(scene: Scene) -> dict[str, Any]:
    """Let the coordinator lose its store and ask the same again."""
    study = scene.approved()
    first = scene.run(study)
    (scene.folder / f"{study.name}.db").unlink()
    again = scene.run(study)
    told = _told(scene, study, again, answered=SITES)
    return told | {"same_effect": first["effect"] == again["effect"], "ok": told["ok"] and first == again}


def revoked(scene: Scene) -> dict[str, Any]:
    """Revoke a site in the coordinator's roster."""
    study = scene.approved()
    members = dict(scene.roster.sites)
    members["north"] = replace(members["north"], revoked=True)
    found = scene.run(study, roster=Roster(members))
    return _told(scene, study, found, answered=("south", "west"))


def _refused(scene: Scene, study: dpc.Study, code: Code) -> dict[str, Any]:
    found = scene.run(study, timeout=20.0)
    spent = scene.spent(study)
    said = MEANINGS[code] in found.get("refused", "")
    return {"sites": found, "ledgers": spent, "ok": said and not found["effect"] and set(spent.values()) == {"nothing"}}


def _told(
    scene: Scene,
    study: dpc.Study,
    found: dict[str, str],
    answered: Sequence[str],
    paid: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return what happened, and whether it is as it must be.

    The sites that should have answered have, and nobody else; a site that has answered paid once and has one release;
    one that has not paid at most once; what is said again is what was said before.
    """
    statuses = {site: found.get(site, "nothing") for site in SITES}
    spent = scene.spent(study)
    who = tuple(site for site in SITES if statuses[site] == "answered")
    again = {site: _again(scene, study, site) for site in who}
    ok = (
        who == tuple(answered)
        and all(spent[site] == PAID for site in who)
        and all(spent[site] in ("nothing", "grant", "grant debit", PAID) for site in SITES)
        and all(spent[site] == expected for site, expected in (paid or {}).items())
        and all(again.values())
    )
    return {"sites": statuses, "ledgers": spent, "same_again": again, "ok": ok}


def _again(scene: Scene, study: dpc.Study, site: str) -> bool:
    """Whether a site that is asked once more says what went into the effect, and spends nothing for it."""
    before = dpc.Ledger(f"sqlite:///{scene.federation.sites[site] / 'ledger.db'}").spent
    sealed = scene.key.seal(Request(study=study.to_toml(), ask="releases").to_json())
    opened = Site(scene.federation.sites[site])
    texts = {opened.answer(sealed), opened.answer(sealed)}
    message = Message.from_json(claimed_body(texts.pop()))
    after = dpc.Ledger(f"sqlite:///{scene.federation.sites[site] / 'ledger.db'}").spent
    return not texts and message.code == "answered" and before == after


FAULTS: dict[str, Callable[[Scene], dict[str, Any]]] = {
    "nothing": nothing_wrong,
    "server killed": server_killed,
    "site killed before debit": site_killed_before_debit,
    "site killed between debit and answer": site_killed_after_debit,
    "site killed after answer": site_killed_after_answer,
    "site gone": site_gone,
    "task killed": task_killed,
    "site hangs": site_hangs,
    "site frozen": site_frozen,
    **{f"lie: {name}": lie(name) for name in LIES},
    "site quotes a patient": site_quotes_a_patient,
    "asks for more epsilon": asks_more,
    "asks for other columns": asks_other_columns,
    "asks a changed study": asks_changed_study,
    "asks twice": asks_twice,
    "revoked site": revoked,
}


def measure(folder: Path, names: Sequence[str] = tuple(FAULTS)) -> dict[str, Any]:
    """Every fault, what came of it, and how long it took."""
    rows: dict[str, Any] = {}
    with scene_in(folder) as scene:
        for name in names:
            start = time.monotonic()
            found = FAULTS[name](scene)
            found["seconds"] = round(time.monotonic() - start, 1)
            rows[name] = {"what": (FAULTS[name].__doc__ or "").strip()} | found
            sys.stderr.write(f"{name}: {'ok' if found['ok'] else json.dumps(found)} in {found['seconds']} s\n")
        rows["in all"] = {site: _balance(scene, site) for site in SITES}
        rows["in all"]["files_outside_with_a_patient"] = [scene.outside_with(PATIENT.format(site)) for site in SITES]
    return rows


def _balance(scene: Scene, site: str) -> dict[str, Any]:
    """Whether a site's ledger verifies, and what it has spent is the sum of the prices of all that was debited."""
    ledger = dpc.Ledger(f"sqlite:///{scene.federation.sites[site] / 'ledger.db'}")
    lives = scene.ledger(site)
    twice = [price for price, kinds in lives.items() if kinds.count("debit") > 1 or kinds.count("release") > 1]
    return {"spent": ledger.spent.epsilon, "prices": round(sum(lives), 6), "paid_twice": len(twice)}
